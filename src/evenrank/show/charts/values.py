"""Values with intervals, runs as dots; bias by cut-off (Rekabsaz & Schedl 2020, Fig. 1); its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.comparing import curve_measures
from evenrank.auditing.result import Audit
from evenrank.measures.base import interpretation, preferred_direction, short, sign_names_group
from evenrank.measures.results import Measurement
from evenrank.show.charts.theme import (
    LINES,
    finished,
    group_colour,
    named,
    reach,
    run_colour,
    run_dash,
    run_shape,
    zero_line,
)
from evenrank.show.figure import (
    RUNS,
    Figure,
    Section,
    asked,
    drawn_runs,
    first_of,
    listed,
    slug,
    with_short_names,
)

BANDED = 3
"""Curves whose intervals are drawn as bands; those of more would only cover one another."""
NARROW = 4
"""Runs whose curves find room in a third of the page; more take all of it."""
WORDS = 14
"""Words of a chart; the attribution in audit.json has more."""


def intervals(frame: pl.DataFrame, *, balance: float | None = 0.0, title: str = "value") -> Any:
    """One row for each run, a dot at the value and a line for the interval; measures that share a unit.

    Parameters
    ----------
    frame
        measure, run, value, low, high, perhaps queries; measures beneath one another, runs in their order
        within each.
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
        *_number_of_queries(frame),
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


def _number_of_queries(frame: pl.DataFrame) -> list[alt.Tooltip]:
    return [alt.Tooltip("queries:Q", title="queries", format=",d")] if "queries" in frame.columns else []


def value_figures(audit: Audit) -> list[Figure]:
    rows = pl.DataFrame(
        [
            (short(m.measure), m.run, m.value, m.low, m.high, m.queries, _family(m))
            for m in _by_measure(audit)
            if m.value is not None
        ],
        schema=["measure", "run", "value", "low", "high", "queries", "family"],
        orient="row",
        infer_schema_length=None,
    )
    items: list[Figure] = []
    for family, title, reading, crossing in (
        ("lean", "Lean toward a group", "", " If a line crosses 0, the lean may be to either side."),
        ("share", "Effectiveness and fairness, from 0 to 1", "Further right is better. ", ""),
    ):
        frame = rows.filter(pl.col("family") == family).drop("family")
        if frame.is_empty():
            continue
        drawn, few = drawn_runs(audit, frame)
        few += f" {asked(m.queries for m in audit.measured if _family(m) == family)}."
        chart = intervals(with_short_names(drawn), balance=0.0 if family == "lean" else None)
        sure = frame["low"].null_count() < frame.height
        lines = f", lines their intervals.{crossing}" if sure else ". No intervals were computed."
        told = f"Values{' with intervals' if sure else ''} of {listed(frame['measure'])}"
        alt = f"{told} for {listed(drawn['run'])}."
        caption = f"{reading}Dots are values{lines}{few}"
        items.append(Figure(f"values-{family}", title, caption, alt, chart, frame))
    return items


def _family(m: Measurement) -> str:
    if sign_names_group(m.measure):
        return "lean"
    return "share" if preferred_direction(m.measure) == "high" and 0 <= (m.value or 0) <= 1 else "other"


def _by_measure(audit: Audit) -> list[Measurement]:
    return [audit.measured[run, measure] for measure in audit.measures for run in audit.runs]


def bias_by_cutoff(frame: pl.DataFrame, *, balance: float | None = 0.0, title: str = "bias") -> Any:
    """One line for each run, with its interval as a band.

    Parameters
    ----------
    frame
        run, cutoff, value, low, high, perhaps queries.
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
        *_number_of_queries(frame),
    ]
    scale = alt.Scale(zero=balance == 0, nice=True)
    band = base.mark_area(opacity=0.13).encode(
        x=x,
        y=alt.Y("low:Q", title=title, scale=scale),
        y2="high:Q",
        color=run_colour(runs, legend=LINES),
    )
    line = base.mark_line().encode(
        x=x,
        y=alt.Y("value:Q", title=title, scale=scale),
        color=run_colour(runs, legend=LINES),
        strokeDash=run_dash(runs),
    )
    points = base.mark_point(size=34, opacity=1, fill=named("surface"), filled=False, strokeWidth=2).encode(
        x=x, y=alt.Y("value:Q", scale=scale), color=run_colour(runs, legend=LINES), tooltip=tooltip
    )
    layers = [band, line, points] if len(runs) <= BANDED else [line, points]
    if balance is not None:
        layers.insert(0, zero_line("y", balance))
    return finished(alt.layer(*layers), height=250)


def cutoff_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "cutoff",
        "Bias by cut-off",
        "Readers see the first results most. A curve that starts far from 0 and then returns leans where it "
        "matters most.",
        cutoff_figures(audit),
    )


def cutoff_figures(audit: Audit) -> list[Figure]:
    items: list[Figure] = []
    if audit.curves.is_empty() or audit.curves["cutoff"].n_unique() < 2:
        return []
    families = curve_measures(audit.measures)
    for (name,), frame in audit.curves.group_by(["measure"], maintain_order=True):
        measure = families[str(name)]
        balance = 0.0 if preferred_direction(measure) == "zero" else None
        frame = frame.drop("measure").drop_nulls("value")
        if frame.is_empty():
            continue
        says = interpretation(measure, audit.groups)
        drawn, few = drawn_runs(audit, frame)
        ends = "; ".join(
            f"{run} goes from {rows['value'][0]:+.3f} at {rows['cutoff'][0]} "
            f"to {rows['value'][-1]:+.3f} at {rows['cutoff'][-1]}"
            for (run,), rows in drawn.group_by(["run"], maintain_order=True)
        )
        banded = drawn["run"].n_unique() <= BANDED and drawn["low"].null_count() < drawn.height
        bands = "Bands are intervals." if banded else "Intervals are in the numbers behind the chart."
        if drawn["low"].null_count() == drawn.height:
            bands = "No intervals were computed."
        items.append(
            Figure(
                f"cutoff-{slug(str(name))}",
                f"{short(measure)} by cut-off",
                f"{says[:1].upper()}{says[1:]}. {bands}{few} {_behind(audit, str(name))}",
                f"{short(measure)} against the cut-off: {ends}.",
                bias_by_cutoff(with_short_names(drawn), balance=balance, title=short(measure)),
                frame,
                wide=drawn["run"].n_unique() > NARROW,
            )
        )
    return items


def _behind(audit: Audit, family: str) -> str:
    """How many queries a curve rests on: those of the measures that it belongs to."""
    counts = [m.queries for m in audit.measured if family in curve_measures([m.measure])]
    return f"{said}." if (said := asked(counts)) else ""


def word_bars(frame: pl.DataFrame, groups: list[str], domain: Sequence[float] | None = None) -> Any:
    """The words that add most, each in the colour of its group.

    Parameters
    ----------
    frame
        word, group, contribution; the largest first.
    domain
        Ends of the scale, where several charts share one.
    """
    words = frame["word"].to_list()
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "contribution:Q",
                title="contribution to the value",
                axis=alt.Axis(grid=True, tickCount=5),
                scale=alt.Undefined if domain is None else alt.Scale(domain=list(domain)),
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


def word_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "words",
        "What makes up the bias",
        f"{short(audit.headline) if audit.headline else 'It'} is a sum over words, documents and queries. "
        "These are its largest terms; they are exact, not estimated. All charts share one scale."
        + first_of(audit, RUNS),
        word_figures(audit),
    )


def word_figures(audit: Audit) -> list[Figure]:
    rows: list[Figure] = []
    shown = list(audit.attributions.items())[:RUNS]
    domain = reach(
        value for _, one in shown if one.words is not None for value in one.words.head(WORDS)["contribution"]
    )
    for run, attribution in shown:
        if attribution.words is None or attribution.words.is_empty():
            continue
        frame = attribution.words.head(WORDS).select("word", "group", "contribution")
        top = ", ".join(f"{word} {value:+.3f}" for word, _, value in frame.head(5).iter_rows())
        rows.append(
            Figure(
                f"words-{slug(run)}-{len(rows)}",
                f"{short(audit.headline) if audit.headline else ''} of {run}, by word",
                f"Over all words contributions add up to {attribution.value:+.3f}. {_run_behind(audit, run)}",
                f"Words that add most: {top}.",
                word_bars(frame, list(audit.groups), domain),
                frame,
            )
        )
    return rows


def _run_behind(audit: Audit, run: str) -> str:
    """How many queries the contributions are the mean of."""
    if audit.headline is None:
        return ""
    return f"{asked([audit.measured[run, audit.headline].queries])}."
