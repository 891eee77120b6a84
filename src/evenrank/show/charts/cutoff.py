"""Bias against the cut-off (Rekabsaz & Schedl, SIGIR 2020, Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.auditing.running import curve_measures
from evenrank.measures.base import direction, good
from evenrank.show.charts.theme import finished, named, run_colour, run_dash, zero_line
from evenrank.show.figure import Figure, Section, drawn_runs, slug


def bias_by_cutoff(frame: pl.DataFrame, *, balance: float | None = 0.0, title: str = "bias") -> Any:
    """One line for each run, with its interval as a band.

    Parameters
    ----------
    frame
        run, cutoff, value, low, high.
    balance
        Where a line marks balance; None for measures without such a point.
    """
    runs = frame["run"].unique(maintain_order=True).to_list()
    deepest = max(frame["cutoff"].to_list(), default=1)
    ticks = [k for k in (1, 2, 3, 5, 10, 20, 50, 100) if k <= deepest]
    x = alt.X(
        "cutoff:Q",
        title="cut-off (results looked at)",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=ticks, format="d", grid=False),
    )
    base = alt.Chart(frame)
    tooltip = [
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip("cutoff:Q", title="cut-off", format="d"),
        alt.Tooltip("value:Q", title=title, format="+.4f" if balance == 0 else ".4f"),
        alt.Tooltip("low:Q", title="from", format="+.4f" if balance == 0 else ".4f"),
        alt.Tooltip("high:Q", title="to", format="+.4f" if balance == 0 else ".4f"),
    ]
    lines = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=260)
    scale = alt.Scale(zero=balance == 0, nice=True)
    band = base.mark_area(opacity=0.13).encode(
        x=x,
        y=alt.Y("low:Q", title=title, scale=scale),
        y2="high:Q",
        color=run_colour(runs, legend=lines),
    )
    line = base.mark_line().encode(
        x=x,
        y=alt.Y("value:Q", title=title, scale=scale),
        color=run_colour(runs, legend=lines),
        strokeDash=run_dash(runs),
    )
    points = base.mark_point(size=34, opacity=1, fill=named("surface"), filled=False, strokeWidth=2).encode(
        x=x, y=alt.Y("value:Q", scale=scale), color=run_colour(runs, legend=lines), tooltip=tooltip
    )
    layers = [band, line, points]
    if balance is not None:
        layers.insert(0, zero_line("y", balance))
    return finished(alt.layer(*layers), height=250)


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "cutoff",
        "Bias by cut-off",
        "Readers see the first results most. A curve that starts far from 0 and comes back leans where it "
        "counts.",
        cutoff_figures(audit),
    )


def cutoff_figures(audit: Audit) -> list[Figure]:
    found: list[Figure] = []
    if audit.curves.is_empty() or audit.curves["cutoff"].n_unique() < 2:
        return []
    families = curve_measures(audit.measures)
    for (name,), frame in audit.curves.group_by(["measure"], maintain_order=True):
        measure = families[str(name)]
        balance = 0.0 if good(measure) == "zero" else None
        frame = frame.drop("measure").drop_nulls("value")
        if frame.is_empty():
            continue
        says = direction(measure, audit.groups)
        drawn, few = drawn_runs(audit, frame)
        ends = "; ".join(
            f"{run} goes from {rows['value'][0]:+.3f} at {rows['cutoff'][0]} "
            f"to {rows['value'][-1]:+.3f} at {rows['cutoff'][-1]}"
            for (run,), rows in drawn.group_by(["run"], maintain_order=True)
        )
        found.append(
            Figure(
                f"cutoff-{slug(str(name))}",
                f"{name} by cut-off",
                f"{says[:1].upper()}{says[1:]}. Bands are intervals.{few}",
                f"{name} against the cut-off: {ends}.",
                bias_by_cutoff(drawn, balance=balance, title=str(name)),
                frame,
            )
        )
    return found
