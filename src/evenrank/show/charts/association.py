"""How close queries stand to their own relevant documents, female against male (Seyedsalehi et al. 2022)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from evenrank.show.charts.theme import finished, group_colour


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
