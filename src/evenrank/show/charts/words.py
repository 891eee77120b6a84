"""Which words make up a bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.base import short
from evenrank.show.charts.theme import finished, group_colour, zero_line
from evenrank.show.figure import RUNS, Figure, Section, slug


def word_bars(frame: pl.DataFrame, groups: list[str]) -> Any:
    """The words that add most, each in the colour of its group.

    Parameters
    ----------
    frame
        word, group, contribution; the largest first.
    """
    words = frame["word"].to_list()
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "contribution:Q", title="contribution to the value", axis=alt.Axis(grid=True, tickCount=5)
            ),
            y=alt.Y("word:N", sort=words, title=None, axis=alt.Axis(labelLimit=140)),
            color=group_colour([g for g in groups if g in frame["group"].to_list()]),
            tooltip=[
                alt.Tooltip("word:N", title="word"),
                alt.Tooltip("group:N", title="group"),
                alt.Tooltip("contribution:Q", title="adds", format="+.4f"),
            ],
        )
    )
    return finished(alt.layer(bars, zero_line("x")), height=max(90, 24 * len(words)))


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "words",
        "What makes up the bias",
        f"{short(audit.headline) if audit.headline else 'It'} is a sum over words, documents and queries. "
        "These are its largest terms, exact and not estimated.",
        word_figures(audit),
    )


def word_figures(audit: Audit) -> list[Figure]:
    found: list[Figure] = []
    for run, attribution in list(audit.attributions.items())[:RUNS]:
        if attribution.words is None or attribution.words.is_empty():
            continue
        frame = attribution.words.head(14).select("word", "group", "contribution")
        top = ", ".join(f"{word} {value:+.3f}" for word, _, value in frame.head(5).iter_rows())
        found.append(
            Figure(
                f"words-{slug(run)}-{len(found)}",
                f"{short(audit.headline) if audit.headline else ''} of {run}, by word",
                f"Over all words contributions add up to {attribution.value:+.3f}.",
                f"Words that add most: {top}.",
                word_bars(frame, list(audit.groups)),
                frame,
            )
        )
    return found
