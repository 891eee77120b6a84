"""By the gender of the query: psychological characteristics, and how close it stands to its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.disparities import FEWEST
from evenrank.measures.pairs import LEVEL
from evenrank.psychology import Characteristic, JudgmentsAudit, RankingsAudit
from evenrank.show.charts.theme import finished, group_colour
from evenrank.show.figure import Figure, Section, slug


def process_bars(frame: pl.DataFrame) -> Any:
    """Grouped bars: percent of words of each characteristic, a bar for each gender.

    Parameters
    ----------
    frame
        characteristic, gender, percent; one process.
    """
    order = frame["characteristic"].unique(maintain_order=True).to_list()
    genders = [g for g in ("female", "male", "neutral", "other") if g in frame["gender"].to_list()]
    chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("characteristic:N", sort=order, title=None, axis=alt.Axis(labelLimit=120)),
            yOffset=alt.YOffset("gender:N", sort=genders),
            x=alt.X("percent:Q", title="% of words", axis=alt.Axis(grid=True, tickCount=5)),
            color=group_colour(genders, "gender:N"),
            tooltip=[
                alt.Tooltip("characteristic:N", title="characteristic"),
                alt.Tooltip("gender:N", title="queries"),
                alt.Tooltip("percent:Q", title="% of words", format=".3f"),
            ],
        )
    )
    return finished(chart, height=max(80, (14 * len(genders) + 8) * len(order)))


def psychology_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    if isinstance(given, RankingsAudit):
        bars = given.bars().filter(pl.col("run") == given.baseline).drop("run")
    else:
        bars = given.bars()
    counts = ", ".join(f"{count:,} {gender}" for gender, count in given.queries.items())
    caption = f"Share of words, mean over the queries of each gender: {counts}."
    if min(given.queries.get(gender, 0) for gender in ("female", "male")) < FEWEST:
        caption += f" Fewer than {FEWEST} on one side: do not compare them."
    found: list[Figure] = []
    for (process,), frame in bars.group_by(["process"], maintain_order=True):
        name = str(process) or "other"
        parts = frame.filter(pl.col("characteristic") != process)
        frame = (parts if not parts.is_empty() else frame).select("characteristic", "gender", "percent")
        found.append(
            Figure(
                f"psychology-{slug(name)}",
                name.capitalize(),
                caption,
                f"Percent of words of each characteristic of {name}, by the gender of the query.",
                process_bars(frame),
                frame,
            )
        )
    return found


@dataclass(frozen=True)
class Psychology:
    """What the section says: where the texts come from, how many queries, what differs."""

    where: str
    queries: Mapping[str, int]
    characteristics: Sequence[Characteristic]
    established: list[Characteristic]


def psychology_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    given = more.get("psychology") or audit.psychology
    figures = psychology_figures(given)
    if given is None or not figures:
        return None
    content = {"found": _found(given)}
    return Section("psychology", "Psychological characteristics", "", figures, "psychology.html", content)


def _found(given: JudgmentsAudit | RankingsAudit) -> Psychology:
    """The characteristics of the judged documents, or of the baseline's top results."""
    if isinstance(given, RankingsAudit):
        where, found = f"top {given.at} results of {given.baseline}", given.runs[given.baseline]
    else:
        where, found = "judged documents", given.characteristics
    clear = [one for one in found if one.p_holm is not None and one.p_holm < LEVEL]
    ordered = sorted(found, key=lambda one: -abs(one.welch.effect or 0))
    return Psychology(where, given.queries, ordered, sorted(clear, key=ordered.index))


def association_histogram(frame: pl.DataFrame) -> Any:
    """Two overlaid histograms of the scores γ, as shares of each gender's pairs.

    Parameters
    ----------
    frame
        gender, low, high, pairs, share: what :meth:`Association.frame` gives.
    """
    genders = [g for g in ("female", "male") if g in frame["gender"].to_list()]
    chart = (
        alt.Chart(frame)
        .mark_bar(opacity=0.55, binSpacing=1, cornerRadius=0)
        .encode(
            x=alt.X("low:Q", title="association γ of query and document"),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of pairs", axis=alt.Axis(format="%")),
            y2=alt.datum(0),
            color=group_colour(genders, "gender:N"),
            tooltip=[
                alt.Tooltip("gender:N", title="queries"),
                alt.Tooltip("low:Q", title="from", format=".2f"),
                alt.Tooltip("high:Q", title="to", format=".2f"),
                alt.Tooltip("share:Q", title="share", format=".1%"),
                alt.Tooltip("pairs:Q", title="pairs", format=",d"),
            ],
        )
    )
    return finished(chart, height=240)


def association_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "association",
        "Association",
        "How close queries are to their own relevant documents. Rankers learn the easier association better.",
        association_figures(more.get("association")),
    )


def association_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    frame = given if isinstance(given, pl.DataFrame) else given.frame()
    caption = "Where the two differ, one gender's queries stand closer to their own relevant documents."
    if not isinstance(given, pl.DataFrame):
        caption += (
            f" Means: female {given.means['female']:.2f}, male {given.means['male']:.2f}; "
            f"overlap {given.overlap:.0%}."
        )
    pairs = {gender: int(rows["pairs"].sum()) for (gender,), rows in frame.group_by(["gender"])}
    if pairs:
        said = " and ".join(f"{pairs[gender]:,} {gender}" for gender in ("female", "male") if gender in pairs)
        caption += f" n = {said} pairs."
    chart = association_histogram(frame)
    title = "Association of queries with their documents"
    return [Figure("association", title, caption, caption, chart, frame, True)]
