"""Psychological characteristics by the gender of the query, one process at a time (thesis, Figs. 3.1–3.6)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from evenrank.show.charts.theme import finished, group_colour


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
