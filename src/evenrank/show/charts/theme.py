"""One look for all charts: colours that colour-blind readers can tell apart, type that prints.

Charts name their colours (`female`, `ink`, …) by parameters of the configuration. `configuration()` gives
them values; the page gives them CSS variables instead, so that one chart serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# Light colours: 4.5 : 1 and more against white. Purple and orange are told apart by all common kinds of
# colour blindness, and differ in lightness; runs differ by line and shape as well as by colour.
LIGHT = {
    "female": "#7646c4",
    "male": "#a84e08",
    "ink": "#1c2330",
    "muted": "#5a6474",
    "rule": "#dfe3ea",
    "surface": "#ffffff",
    "run-1": "#525c6b",
    "run-2": "#0b6bb8",
    "run-3": "#0a7d67",
    "run-4": "#b0246a",
    "run-5": "#7a6a00",
    "run-6": "#2f9cc9",
    "group-3": "#0a7d67",
    "group-4": "#0b6bb8",
    "good": "#08735f",
    "bad": "#b0246a",
}
RUNS = tuple(name for name in LIGHT if name.startswith("run-"))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 4])
LINES = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=600)
"""A legend of lines, long enough to tell a dashed one."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def named(colour: str) -> alt.ExprRef:
    """A colour of the theme."""
    return alt.ExprRef(colour.replace("-", "_"))


def configuration(colours: dict[str, str] | None = None) -> dict[str, Any]:
    """The configuration of a chart: Vega-Lite's `config`, with the theme's colours as parameters."""
    result = colours or LIGHT
    text, rule = result["muted"], result["rule"]
    return {
        "params": [{"name": name.replace("-", "_"), "value": value} for name, value in result.items()],
        "background": result["surface"],
        "font": FONT,
        "view": {"stroke": None, "continuousHeight": 260, "continuousWidth": 480},
        "axis": {
            "labelColor": text,
            "titleColor": result["ink"],
            "labelFontSize": 12,
            "titleFontSize": 12.5,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 5,
            "gridColor": rule,
            "gridOpacity": 1,
            "domainColor": rule,
            "tickColor": rule,
            "tickSize": 4,
        },
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "labelColor": result["ink"],
            "titleColor": text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "orient": "top",
            "direction": "horizontal",
            "offset": 8,
            "symbolSize": 90,
            "symbolStrokeWidth": 2,
            # What has no colour of its own (a shape that stands for a method) is drawn in that of the text.
            "symbolBaseFillColor": text,
            "symbolBaseStrokeColor": text,
            "labelLimit": 220,
            "columns": 4,
        },
        "title": {
            "color": result["ink"],
            "fontSize": 14,
            "fontWeight": 600,
            "anchor": "start",
            "subtitleColor": text,
            "subtitleFontSize": 12,
            "subtitlePadding": 6,
            "offset": 12,
        },
        "text": {"color": result["ink"], "fontSize": 12},
        "rule": {"color": text},
        "line": {"strokeWidth": 2.25},
        "point": {"size": 55, "filled": True},
        "bar": {"cornerRadiusEnd": 2},
    }


def finished(chart: Any, *, height: int | None = 280) -> Any:
    """The chart with the theme, as wide as its place."""
    size: dict[str, Any] = {"width": "container"} | ({} if height is None else {"height": height})
    return chart.properties(config=alt.Config(**configuration()), **size)


def reach(values: Iterable[float | None], *, zero: bool = True) -> list[float] | None:
    """A domain that charts beside one another share, so that a longer bar is a larger number."""
    rows = [value for value in values if value is not None]
    if not rows:
        return None
    low, high = min(rows), max(rows)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.04 * ((high - low) or 1.0)
    return [low - room if low < 0 or not zero else 0.0, high + room if high > 0 or not zero else 0.0]


def run_colour(runs: list[str], **more: Any) -> alt.Color:
    """A colour for each run, the same in every chart; the first (the baseline) is grey."""
    colours = [named(RUNS[i % len(RUNS)]) for i in range(len(runs))]
    return alt.Color("run:N", title=None, scale=alt.Scale(domain=runs, range=colours), sort=runs, **more)


def _turned(given: Sequence[Any], count: int) -> list[Any]:
    """One for each run; where colours come again, so that run 7 does not look like run 1, turned by one."""
    return [given[(i + i // len(RUNS)) % len(given)] for i in range(count)]


def run_dash(runs: list[str]) -> alt.StrokeDash:
    dashes = _turned(DASHES, len(runs))
    return alt.StrokeDash("run:N", title=None, scale=alt.Scale(domain=runs, range=dashes), sort=runs)


def run_shape(runs: list[str]) -> alt.Shape:
    shapes = _turned(SHAPES, len(runs))
    return alt.Shape("run:N", title=None, scale=alt.Scale(domain=runs, range=shapes), sort=runs)


def group_colours(groups: list[str]) -> list[alt.ExprRef]:
    """Purple for female and the first of other groups, orange for male and the second."""
    plain = ["female", "male", "group-3", "group-4", "run-5", "run-6", "run-1"]
    known = {"female": "female", "male": "male", "neutral": "muted", "other": "group-3"}
    if set(groups) <= set(known):
        return [named(known[group]) for group in groups]
    return [named(plain[i % len(plain)]) for i in range(len(groups))]


def group_colour(groups: list[str], field: str = "group:N", **more: Any) -> alt.Color:
    return told_apart(field, groups, group_colours(groups), **more)


def told_apart(field: str, labels: list[str], colours: list[alt.ExprRef], **more: Any) -> alt.Color:
    """A colour for each label, in this order."""
    scale = alt.Scale(domain=labels, range=colours)
    return alt.Color(field, title=None, scale=scale, sort=labels, **more)


def zero_line(axis: str = "y", value: float = 0.0) -> alt.Chart:
    """A line at balance."""
    mark = alt.Chart(alt.Data(values=[{}])).mark_rule(color=named("muted"), strokeWidth=1.25)
    return mark.encode(**{axis: alt.datum(value)})


def field(name: str) -> str:
    """A column as Vega-Lite reads it, whatever its name holds."""
    return name.replace("\\", "\\\\").replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")
