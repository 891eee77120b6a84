"""Templates and styles of the pages: the report's look, the server's own; the page of a monitor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import polars as pl

import evenrank
from evenrank.measures.base import interpretation, meaning
from evenrank.measures.parse import Condition, parse
from evenrank.server.changes import Judged
from evenrank.server.changes import meaning as meaning_of_alarms
from evenrank.server.monitor import Observation
from evenrank.show.numbers import minus, plain, typeset

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "theme.js": "text/javascript"}


@cache
def environment() -> Any:
    """Where templates come from; everything they show is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("evenrank.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"signed": typeset, "plain": plain, "minus": minus, "moment": _moment}
    return made


def render(name: str, **content: Any) -> str:
    """A page as text."""
    text: str = environment().get_template(name).render(**content)
    return text


@cache
def static(name: str) -> str:
    """A style or a script."""
    own = _file("evenrank.server", name)
    return f"{report_style()}\n{own}" if name == "page.css" else own


@cache
def report_style() -> str:
    """The report's style; dark where the system is, also for readers whose browser runs no script."""
    style = _file("evenrank.show", "style.css")
    dark = re.search(r':root\[data-theme="dark"\]\s*\{([^}]*)\}', style)
    if dark is None:
        return style
    return (
        f"{style}\n@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{{dark[1]}}} }}"
    )


def _moment(time: str) -> str:
    """2026-01-31T12:00:00Z as 2026-01-31 12:00."""
    return time[:16].replace("T", " ")


def _file(package: str, name: str) -> str:
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


GROUPS = ("female", "male")
_SCHEMA = {"time": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
_WIDTH, _HEIGHT = 1000, 260


@dataclass(frozen=True, eq=False)
class Trend:
    """One measure over time."""

    measure: str
    meaning: str
    reading: str
    latest: float | None
    change: float | None
    exceeded: bool
    signed: bool
    drawing: Any
    judged: Judged | None = None


def trend_page(
    history: Sequence[Observation],
    conditions: Sequence[Condition] = (),
    *,
    judged: Sequence[Judged] = (),
    groups: tuple[str, ...] = GROUPS,
) -> str:
    """The page as text: one file, no script, no network.

    Observations of one source are compared with each other; the page is about the source seen last.
    """
    from markupsafe import Markup

    history = [seen for seen in history if seen.source == history[-1].source]

    measured = [seen for seen in history if seen.values]
    names = list(dict.fromkeys(value.measure for seen in reversed(measured) for value in seen.values))
    changes = {one.measure: one for one in judged if history and one.source == history[-1].source}
    trends = [_trend(name, measured, conditions, groups, changes.get(name)) for name in names]
    shown = [(seen, {value.measure: value for value in seen.values}) for seen in reversed(history[-200:])]
    return render(
        "trend.html",
        version=evenrank.__version__,
        style=Markup(report_style()),  # our own file
        trends=trends,
        names=names,
        signed={trend.measure for trend in trends if trend.signed},
        history=shown,
        total=len(history),
        first=history[0] if history else None,
        last=history[-1] if history else None,
        conditions=[str(condition) for condition in conditions],
        exceeded=[trend.measure for trend in trends if trend.exceeded],
        changed=[trend.judged.sentence() for trend in trends if trend.judged and trend.judged.alarm],
        alarms=meaning_of_alarms(judged[0].judging, len(judged)) if judged else None,
    )


def _trend(
    name: str,
    measured: Sequence[Observation],
    conditions: Sequence[Condition],
    groups: tuple[str, ...],
    judged: Judged | None,
) -> Trend:
    measure = parse(name)
    rows = [(s.time, v.value, v.low, v.high) for s in measured for v in s.values if v.measure == name]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    known = frame.drop_nulls("value")["value"].to_list()
    bounds = [condition for condition in conditions if str(condition.subject) == name]
    latest = rows[-1][1]
    return Trend(
        name,
        meaning(measure, groups),
        interpretation(measure, groups),
        latest,
        known[-1] - known[0] if len(known) > 1 else None,
        any(condition.holds(latest) for condition in bounds),
        getattr(measure, "SIGNED", False),
        _drawn(frame, bounds),
        judged,
    )


def _drawn(frame: pl.DataFrame, bounds: Sequence[Condition]) -> Any:
    """The chart as SVG in the page's own colours, so that one drawing serves light and dark."""
    import altair as alt
    import vl_convert
    from markupsafe import Markup

    from evenrank.show.charts.theme import LIGHT, configuration, named

    base = alt.Chart(frame)
    utc, axis = alt.Scale(type="utc"), alt.Axis(labelOverlap=True, tickCount=8)
    x = alt.X("time:T", title=None, scale=utc, axis=axis)
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    layers: list[Any] = []
    first = frame.drop_nulls(["low", "high"]).head(1)
    if len(first):
        band = alt.Chart(first).mark_rect(color=named("muted"), opacity=0.13)
        layers.append(band.encode(y=alt.Y("low:Q", title=None), y2="high:Q"))
    for condition in bounds:
        both = condition.absolute and condition.subject == condition.measure
        for bound in (condition.bound, -condition.bound) if both else (condition.bound,):
            rule = alt.Chart(alt.Data(values=[{}])).mark_rule(color=named("bad"), strokeDash=[6, 4])
            layers.append(rule.encode(y=alt.datum(bound)))
    layers += [
        base.mark_rule(color=named("run-2"), opacity=0.35, strokeWidth=3).encode(x=x, y="low:Q", y2="high:Q"),
        base.mark_line(color=named("run-2")).encode(x=x, y=y),
        base.mark_point(color=named("run-2"), size=45).encode(x=x, y=y),
    ]
    colours = {name: f"var(--{name})" for name in LIGHT} | {"surface": "transparent"}
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)
    spec = chart.to_dict()
    spec["config"] = configuration(colours)
    drawn: str = vl_convert.vegalite_to_svg(spec)
    # Scale with the page; numbers of ours are all it holds.
    return Markup(re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", drawn, count=1))
