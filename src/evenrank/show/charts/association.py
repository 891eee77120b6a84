"""How close queries stand to their own relevant documents, female against male (Seyedsalehi et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.show.charts.theme import finished, group_colour
from evenrank.show.figure import Figure, Section


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


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
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
    chart = association_histogram(frame)
    title = "Association of queries with their documents"
    return [Figure("association", title, caption, caption, chart, frame, True)]
