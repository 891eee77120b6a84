"""Which words make up a bias."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from evenrank.show.charts.theme import finished, group_colour, zero_line


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
