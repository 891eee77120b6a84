"""Values with their intervals: runs as dots."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.base import good, leans, short
from evenrank.measures.results import Measurement
from evenrank.show.charts.theme import finished, named, run_colour, run_shape, zero_line
from evenrank.show.figure import Figure, drawn_runs, listed


def intervals(frame: pl.DataFrame, *, balance: float | None = 0.0, title: str = "value") -> Any:
    """One row for each run, a dot at the value and a line for the interval; measures that share a unit.

    Parameters
    ----------
    frame
        measure, run, value, low, high; measures beneath one another, runs in their order within each.
    """
    runs = frame["run"].unique(maintain_order=True).to_list()
    measures = frame["measure"].unique(maintain_order=True).to_list()
    form = "+.4f" if balance == 0 else ".4f"
    y = alt.Y(
        "measure:N", title=None, sort=measures, axis=alt.Axis(labelLimit=190, domain=False, ticks=False)
    )
    offset = alt.YOffset("run:N", sort=runs)
    x = alt.X(
        "value:Q", title=title, axis=alt.Axis(grid=True, tickCount=5), scale=alt.Scale(zero=balance == 0)
    )
    tooltip = [
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip("measure:N", title="measure"),
        alt.Tooltip("value:Q", title="value", format=form),
        alt.Tooltip("low:Q", title="from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
    ]
    base = alt.Chart(frame)
    lines = base.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("low:Q", title=title, axis=alt.Axis(grid=True, tickCount=5)),
        x2="high:Q",
        y=y,
        yOffset=offset,
        color=run_colour(runs),
    )
    dots = base.mark_point(size=85, filled=True, opacity=1, stroke=named("surface"), strokeWidth=1).encode(
        x=x, y=y, yOffset=offset, color=run_colour(runs), shape=run_shape(runs), tooltip=tooltip
    )
    layers = [lines, dots]
    if balance is not None:
        layers.insert(0, zero_line("x", balance))
    return finished(alt.layer(*layers), height=max(90, len(measures) * (18 + 17 * len(runs))))


def value_figures(audit: Audit) -> list[Figure]:
    rows = pl.DataFrame(
        [
            (short(m.measure), m.run, m.value, m.low, m.high, _family(m))
            for m in _by_measure(audit)
            if m.value is not None
        ],
        schema=["measure", "run", "value", "low", "high", "family"],
        orient="row",
        infer_schema_length=None,
    )
    found: list[Figure] = []
    for family, title, axis, caption in (
        (
            "lean",
            "Lean toward a group",
            "value",
            "Dots are values, lines their intervals. A line that crosses 0 leaves the side open.",
        ),
        ("share", "Effectiveness and fairness, from 0 to 1", "value", "Further right is better."),
    ):
        frame = rows.filter(pl.col("family") == family).drop("family")
        if frame.is_empty():
            continue
        drawn, few = drawn_runs(audit, frame)
        chart = intervals(drawn, balance=0.0 if family == "lean" else None, title=axis)
        alt = f"Values with intervals of {listed(frame['measure'])} for {listed(drawn['run'])}."
        found.append(Figure(f"values-{family}", title, caption + few, alt, chart, frame))
    return found


def _family(m: Measurement) -> str:
    if leans(m.measure):
        return "lean"
    return "share" if good(m.measure) == "high" and 0 <= (m.value or 0) <= 1 else "other"


def _by_measure(audit: Audit) -> list[Measurement]:
    return [audit.measured[run, measure] for measure in audit.measures for run in audit.runs]
