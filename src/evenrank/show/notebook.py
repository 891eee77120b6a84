"""How a notebook shows results: what they say, their table, a bar for each lean, and a small chart.

One piece of HTML for each, without scripts and without anything from elsewhere, in the notebook's own type
and colours: it fits light and dark pages. `chart` gives the same chart as an Altair object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing import verdict
from evenrank.auditing.black_box import VariantAudit
from evenrank.auditing.result import Audit, printed_bounds, printed_value
from evenrank.auditing.stages import Trace
from evenrank.errors import InputError
from evenrank.measures.association import Association
from evenrank.measures.representation import Representation
from evenrank.measures.results import Measurements
from evenrank.mitigate.constrain import Constrained
from evenrank.mitigate.feedback import FeedbackSweep
from evenrank.mitigate.mirror import Mirror
from evenrank.mitigate.tradeoff import TradeOff
from evenrank.psychology import PsychologyAudit
from evenrank.show.charts.change import rankshift_figures
from evenrank.show.charts.query_gender import association_figures, psychology_figures, variant_figures
from evenrank.show.charts.representation import representation_figures
from evenrank.show.charts.stages import preference_figures, stage_figures
from evenrank.show.charts.theme import LIGHT, configuration, finished, named
from evenrank.show.charts.tradeoff import feedback_figures, tradeoff_figures
from evenrank.show.charts.values import value_figures
from evenrank.show.figure import Figure
from evenrank.show.grid import Grid, Small, frame_grid
from evenrank.show.numbers import PLAIN, counted, minus, number
from evenrank.show.report import converted, sheet
from evenrank.show.tables import Card, cards

WIDTH = 420
"""Of a chart in a notebook's cell."""
_RUNS = 6
_INK, _MUTED = "#010203", "#010204"  # stand for the page's own colour until the chart is drawn
# In between: to be read on white and on black.
_BOTH = LIGHT | {
    "ink": _INK,
    "muted": _MUTED,
    "rule": "rgba(128,128,128,0.3)",
    "surface": "transparent",
    "female": "#9b7ae6",
    "male": "#cf7a33",
    "run-1": "#7f8a99",
    "run-2": "#3a8fd9",
    "run-3": "#1f9c84",
    "run-4": "#d45a98",
    "run-5": "#9c8b1f",
    "run-6": "#45aad6",
    "group-3": "#1f9c84",
    "group-4": "#3a8fd9",
    "good": "#1f9c84",
    "bad": "#d45a98",
}


@dataclass(frozen=True)
class Told:
    """What is shown of a result: a headline, a table, a bar for each run, and remarks beneath."""

    headline: str
    grid: Grid
    bars: Sequence[Card] = ()
    remarks: Sequence[str] = ()


def page(result: Any) -> str:
    """A result as a piece of HTML."""
    shown = told(result)
    parts = [f'<p style="font-weight:600;margin:.2em 0 .6em">{_text(shown.headline)}</p>']
    parts += [_bar(card) for card in shown.bars if card.gauge is not None]
    parts.append(_table(shown.grid))
    drawn = figures(result)
    if drawn:
        parts.append(f'<div role="img" aria-label="{_text(drawn[0].alt)}">{_drawn(drawn[0].chart)}</div>')
    parts += [
        f'<p style="opacity:.8;font-size:.9em;margin:.3em 0">{_text(line)}</p>' for line in shown.remarks
    ]
    style = "max-width:46rem;line-height:1.4;overflow-x:auto"
    return f'<div class="evenrank" style="{style}">{"".join(parts)}</div>'


def chart(result: Any) -> Any:
    """The charts of a result as one Altair object."""
    drawn = figures(result)
    if not drawn:
        raise InputError("there is nothing to draw: no value that leans or has a share")
    return drawn[0].chart.properties(width=WIDTH) if len(drawn) == 1 else sheet(drawn, width=WIDTH)


@singledispatch
def told(result: Any) -> Told:
    """What a result says: by default, its numbers."""
    return Told(type(result).__name__, frame_grid(result.frame()))


@singledispatch
def figures(result: Any) -> list[Figure]:
    """The charts of a result; none by default."""
    return []


@told.register
def _(found: Measurements) -> Told:
    runs = counted(len(found.runs), "run")
    lines = [*(note for m in found for note in m.notes), *found.warnings]
    names = list(dict.fromkeys(str(m.measure) for m in found))
    rows: list[list[str]] = []
    for run, row in found.runs.items():
        rows.append([run, *(printed_value(m) for m in row), _queries(row)])
        if any(m.low is not None for m in row):
            rows.append(["", *(Small(printed_bounds(m)) for m in row), ""])
    return Told(f"{runs}, {', '.join(names)}", Grid(["run", *names, "queries"], rows), (), _once(lines))


@figures.register
def _(found: Measurements) -> list[Figure]:
    return value_figures(Audit(measured=found, baseline=None))


@told.register
def _(found: Audit) -> Told:
    shown = told(found.measured)
    rows: list[list[str]] = []
    for run, row in found.measured.runs.items():
        name = f"{run} (baseline)" if run == found.baseline else run
        rows.append([name, *(printed_value(m) + found.mark(m) for m in row), _queries(row)])
        if any(m.low is not None for m in row):
            rows.append(["", *(Small(printed_bounds(m)) for m in row), ""])
    lines = [*found.remarks(), *found.failures, *(f"Warning: {warning}" for warning in found.warnings)]
    return Told(verdict.headline(found), Grid(shown.grid.headings, rows), cards(found)[:_RUNS], _once(lines))


@figures.register
def _(found: Audit) -> list[Figure]:
    return value_figures(found)


@told.register
def _(found: TradeOff) -> Told:
    first, last = found.points[0], found.chosen
    bias, useful = (
        f"from {number(getattr(first, of).value, PLAIN)} to {number(getattr(last, of).value, PLAIN)}"
        for of in ("bias", "utility")
    )
    chosen = f"{found.bias} {bias}, {found.utility} {useful} as chosen"
    said = f"{found.method}: {'no setting chosen' if last is first else chosen}"
    return Told(said, found.grid(), (), found.remarks())


@figures.register
def _(found: TradeOff) -> list[Figure]:
    return tradeoff_figures(found)


@told.register
def _(found: Constrained) -> Told:
    summary = found.certificate
    status = {name: count for name, count in summary["status"].items() if count}
    grid = Grid(
        ["limit", "before", "after"],
        [
            [
                name,
                number(_mean(found.report[f"{name} before"]), PLAIN),
                number(_mean(found.report[name]), PLAIN),
            ]
            for name in _limited(found)
        ],
    )
    queries = counted(found.report.height, "query", "queries")
    lines = [
        "Means of absolute values over queries. "
        f"Utility given up: {summary['mean_loss']:.2%} (mean over {queries}).",
        "Queries: " + ", ".join(f"{count:,} {name}" for name, count in status.items()) + ".",
        f"A run of {found.height:,} rows: use it wherever a run is taken. `report` has every query.",
    ]
    return Told(f"Re-ranked within {' and '.join(summary['limits'])}", grid, (), lines)


@figures.register
def _(found: Constrained) -> list[Figure]:
    drawn: list[Figure] = []
    for name in _limited(found):
        frame = pl.concat(
            found.report.select("query_id", when=pl.lit(when), value=pl.col(column))
            for when, column in (("before", f"{name} before"), ("after", name))
        )
        says = f"{name} of every query before and after."
        drawn.append(
            Figure(f"constrained-{len(drawn)}", name, says, says, _before_and_after(frame, name), frame)
        )
    return drawn


def _before_and_after(frame: pl.DataFrame, name: str) -> Any:
    """A tick for each query, before and after."""
    marks = (
        alt.Chart(frame.drop_nulls())
        .mark_tick(thickness=1.5, opacity=0.6, color=named("run-2"))
        .encode(
            x=alt.X("value:Q", title=f"{name}, one tick for each query", axis=alt.Axis(grid=True)),
            y=alt.Y("when:N", title=None, sort=["before", "after"]),
            tooltip=["query_id:N", alt.Tooltip("value:Q", format="+.3f")],
        )
    )
    return finished(marks, height=90)


def _limited(found: Constrained) -> list[str]:
    return [name for name in found.report.columns if f"{name} before" in found.report.columns]


def _mean(column: pl.Series) -> float | None:
    mean = column.abs().mean()
    return None if mean is None else float(mean)  # type: ignore[arg-type]


@told.register
def _(found: Representation) -> Told:
    headings = ["group", "MB", "SB", "MAB", "min", "max", "queries"]
    rows = []
    for feature in found.features:
        summary = found.summary(feature)
        values = [number(summary[key], PLAIN if key in ("SB", "MAB") else "+.3f") for key in headings[1:-1]]
        rows.append([feature, *values, f"{summary['queries']:,}"])
    lines = [f"labels: {found.labels}; targets: {found.targets}"]
    lines += [f"{count:,} queries left out, {reason}" for reason, count in found.left_out.items()]
    said = f"Representation in the top {found.at}: shown minus wanted, 0 is right"
    return Told(said, Grid(headings, rows), (), lines)


@figures.register
def _(found: Representation) -> list[Figure]:
    return [figure for figure in representation_figures(found) if figure.id.startswith("representation-")]


@figures.register
def _(found: Association) -> list[Figure]:
    return association_figures(found)


@figures.register
def _(found: PsychologyAudit) -> list[Figure]:
    return psychology_figures(found)


@figures.register
def _(found: VariantAudit) -> list[Figure]:
    return variant_figures(found)


@figures.register
def _(found: Trace) -> list[Figure]:
    return stage_figures(found)


@figures.register
def _(found: Mirror) -> list[Figure]:
    return rankshift_figures(found.rank_shift()) if found.of_pairs else preference_figures(found)


@figures.register
def _(found: FeedbackSweep) -> list[Figure]:
    return feedback_figures(found)


def _queries(row: Sequence[Any]) -> str:
    """How many queries a row is about: one number where all measures have the same."""
    return " / ".join(dict.fromkeys(f"{m.queries:,}" for m in row))


def _once(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _text(text: str) -> str:
    return escape(minus(text))


def _table(grid: Grid) -> str:
    """The table; an interval is smaller than its value."""

    def cell(kind: str, text: str, place: int) -> str:
        side = "left" if place < grid.left else "right"
        small = ";opacity:.75;font-size:.88em;padding-top:0" if isinstance(text, Small) else ""
        numeric = "font-variant-numeric:tabular-nums;" if kind == "td" else ""
        style = f"text-align:{side};padding:.15em .7em .15em 0;white-space:nowrap;{numeric}border:0{small}"
        return f'<{kind} style="{style}">{_text(text)}</{kind}>'

    def row(kind: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(cell(kind, text, place) for place, text in enumerate(cells)) + "</tr>"

    body = "".join(row("td", cells) for cells in grid.rows if cells)
    head = row("th", grid.headings)
    style = "border-collapse:collapse;margin:0;color:inherit;font-size:inherit"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _bar(card: Card) -> str:
    """A lean on a scale around balance, its interval a band: the gauge of the report, in a line."""
    gauge = card.gauge
    assert gauge is not None
    colour = _BOTH["male"] if (card.value or 0) > 0 else _BOTH["female"]
    band = ""
    if gauge.low is not None and gauge.high is not None:
        wide = max(gauge.high - gauge.low, 0.5)
        place = f'x="{gauge.low}" y="5" width="{wide:.2f}" height="6"'
        band = f'<rect {place} fill="{colour}" opacity=".4"/>'
    value = printed_value(card.measurement)
    said = minus(f"{card.run}: {value} {printed_bounds(card.measurement)}")
    return (
        '<div style="display:flex;align-items:center;gap:.8em;margin:.15em 0">'
        f'<span style="min-width:8em;overflow-wrap:anywhere">{_text(card.run)}</span>'
        '<svg viewBox="0 0 100 16" width="220" height="16" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">'
        '<line x1="0" x2="100" y1="8" y2="8" stroke="currentColor" opacity=".35"/>'
        f'<line x1="50" x2="50" y1="2" y2="14" stroke="currentColor" stroke-width=".5"/>{band}'
        f'<rect x="{gauge.value - 0.75}" y="2" width="1.5" height="12" fill="{colour}"/></svg>'
        f'<span style="font-variant-numeric:tabular-nums">{_text(value)}</span></div>'
    )


def _drawn(drawn: Any) -> str:
    """A chart as SVG in the colours of the page it stands on."""
    spec = drawn.to_dict() | {"config": configuration(_BOTH)}
    if "width" in spec:
        spec["width"] = WIDTH
    svg = converted(spec, "svg").decode()
    for colour in (_INK, _MUTED):
        svg = svg.replace(colour, "currentColor")
    return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
