"""Charts of long rows, all of one look: lines, bars, shares, dots with intervals, points, histograms.

A row has a place (`x`: a number or a name) and a value, and perhaps an interval (`low`, `high`), what it is
of (`of`: a colour and a place in the legend), its panel (`panel`: charts beside one another), and the right
end of its bar (`end`, in histograms).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import polars as pl

from evenrank.show.charts.theme import (
    LINES,
    RUNS,
    configuration,
    group_colours,
    named,
    reach,
    run_dash,
    run_shape,
    zero_line,
)

Kind = Literal["lines", "bars", "shares", "dots", "points", "histogram"]
WIDTH = 640
BANDED = 3
"""Lines whose intervals are drawn as bands; those of more would only cover one another."""
_GENDERS = {"female", "male", "neutral", "other"}
_COLUMNS = {"x": None, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "end": pl.Float64}


def long_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a frame; those without a value are left out, numbers are numbers."""
    frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    kinds = {name: kind for name, kind in _COLUMNS.items() if kind is not None and name in frame.columns}
    return frame.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items()).drop_nulls("value")


def interval_marks(frame: pl.DataFrame, kind: str) -> list[str]:
    """A sentence on how 95% intervals are drawn; none where none is."""
    if not {"low", "high"} <= set(frame.columns) or frame.drop_nulls(["low", "high"]).is_empty():
        return []
    if kind == "lines":
        return ["Bands are 95% intervals."] if _banded(_each(frame, "of")) else []
    return ["Thin lines are 95% intervals."] if kind in ("bars", "dots") else []


def _banded(series: list[str]) -> bool:
    return len(series) <= BANDED


def long_form(
    frame: pl.DataFrame,
    *,
    kind: Kind,
    x: str,
    y: str,
    fits: pl.DataFrame | None = None,
    colours: Mapping[str, str] | None = None,
    balance: float | None = None,
    form: str | None = None,
    own_scale: bool = False,
) -> Any:
    """A chart of long rows.

    Parameters
    ----------
    frame
        The rows, as :func:`long_frame` gives them.
    kind
        `lines` and `points` have numbers on both axes; `bars`, `shares` (parts of a whole) and `dots` have
        names down the side; a `histogram` has bars from `x` to `end`.
    x, y
        What the axes of places and of values are called.
    fits
        Further rows that are drawn as lines, over `points`.
    colours
        Colours of the theme for what `of` names; without them genders have theirs, all else those of runs.
    balance
        Where a line marks balance on the axis of values.
    form
        How values are written at the axis.
    own_scale
        Whether each panel has a scale of its own; else longer is more in all of them.
    """
    panels = _each(frame, "panel") or [""]
    columns = 1 if len(panels) == 1 else 3 if len(panels) > 4 else 2
    across = kind in ("bars", "shares", "dots")
    beside = 150 if across else 66
    width = max(130, (WIDTH - beside * columns) // columns)
    shared = reach(
        [
            *frame["value"],
            *(value for name in ("low", "high") if name in frame.columns for value in frame[name]),
        ],
        zero=kind != "lines" and kind != "points",
    )
    domain = shared if len(panels) > 1 and not own_scale else None
    look = _Look(kind, x, y, colours or {}, balance, form, domain, 3 if across and len(panels) > 1 else 5)
    drawn = []
    for panel in panels:
        rows = frame.filter(pl.col("panel") == panel) if panel else frame
        lines = fits.filter(pl.col("panel") == panel) if panel and fits is not None else fits
        part = alt.layer(*look.layers(rows, lines, _each(frame, "of"), _each(fits, "of")))
        part = part.properties(width=width, height=_height(kind, rows, len(panels)))
        drawn.append(
            part.properties(title=alt.TitleParams(panel, fontSize=12.5, frame="group")) if panel else part
        )
    whole = drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=columns, spacing=18)
    # Room at the sides: a reader's font may be wider than the one that text was measured with.
    room = {"left": 16, "right": 16, "top": 5, "bottom": 5}
    return whole.properties(padding=room, config=alt.Config(aria=False, **configuration()))


def _each(frame: pl.DataFrame | None, column: str) -> list[str]:
    if frame is None or column not in frame.columns:
        return []
    return [str(name) for name in frame[column].unique(maintain_order=True)]


def _height(kind: Kind, rows: pl.DataFrame, panels: int) -> int:
    if kind in ("lines", "points", "histogram"):
        return 260 if panels == 1 else 150
    places, series = rows["x"].n_unique(), len(_each(rows, "of"))
    return max(60, places * (22 if kind == "shares" or places == rows.height else 10 + 13 * series))


class _Look:
    """The layers of a panel."""

    def __init__(
        self,
        kind: Kind,
        x: str,
        y: str,
        colours: Mapping[str, str],
        balance: float | None,
        form: str | None,
        domain: list[float] | None,
        ticks: int,
    ) -> None:
        self.kind, self.colours, self.balance = kind, colours, balance
        room = {"padding": 8} if kind == "dots" else {}  # no dot on the names beside the axis
        scale = alt.Scale(zero=kind in ("bars", "histogram", "shares"), nice=True, **room)
        if kind == "shares":
            scale = alt.Scale(domain=[0, 1])
        elif domain is not None:
            scale = alt.Scale(domain=domain, nice=True)
        written = {} if form is None else {"format": form}
        axis = alt.Axis(grid=True, tickCount=ticks, labelOverlap=True, **written)
        self.value: dict[str, Any] = {"title": y, "scale": scale, "axis": axis}
        self.place = x

    def layers(
        self, rows: pl.DataFrame, fits: pl.DataFrame | None, series: list[str], lines: list[str]
    ) -> list[Any]:
        base = alt.Chart(rows)
        colour = self._colour(series)
        across = self.kind in ("bars", "shares", "dots")
        marks: list[Any] = getattr(self, f"_{self.kind}")(base, rows, series, colour)
        if fits is not None:
            told: dict[str, Any] = {"title": None, "sort": lines, "legend": LINES}
            dashes = [[1, 0], [6, 4], [2, 3]]
            shades = [named(name) for name in ("ink", "muted", "run-2")]
            marks.append(
                alt.Chart(fits)
                .mark_line(strokeWidth=2, clip=True)
                .encode(
                    x=alt.X("x:Q", title=self.place),
                    y=alt.Y("value:Q", **self.value),
                    color=alt.Color("of:N", scale=alt.Scale(domain=lines, range=shades), **told),
                    strokeDash=alt.StrokeDash("of:N", scale=alt.Scale(domain=lines, range=dashes), **told),
                )
            )
        if self.balance is not None:
            marks.insert(0, zero_line("x" if across else "y", self.balance))
        return marks

    def _colour(self, series: list[str], **more: Any) -> dict[str, Any]:
        """Nothing for a single series."""
        if not series:
            return {}
        if self.colours:
            shades = [named(self.colours[name]) for name in series]
        elif set(series) <= _GENDERS:
            shades = group_colours(series)
        else:
            shades = [named(RUNS[i % len(RUNS)]) for i in range(len(series))]
        if len(series) == 1:
            more["legend"] = None
        scale = alt.Scale(domain=series, range=shades)
        return {"color": alt.Color("of:N", title=None, sort=series, scale=scale, **more)}

    def _mark(self, series: list[str]) -> dict[str, Any]:
        """The colour of what stands alone."""
        return {} if series else {"color": named("run-2")}

    def _beside(self, rows: pl.DataFrame, series: list[str]) -> dict[str, Any]:
        """Room for each series at a place, unless each place has but one."""
        if len(series) < 2 or rows["x"].n_unique() == rows.height:
            return {}
        return {"yOffset": alt.YOffset("of:N", sort=series)}

    def _names(self, rows: pl.DataFrame) -> alt.Y:
        order = [str(name) for name in rows["x"].unique(maintain_order=True)]
        axis = alt.Axis(labelLimit=170, domain=False, ticks=False)
        return alt.Y("x:N", sort=order, title=self.place or None, axis=axis)

    def _bars(self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]) -> list[Any]:
        side = self._beside(rows, series)
        y = self._names(rows)
        result = [
            base.mark_bar(**self._mark(series)).encode(
                x=alt.X("value:Q", **self.value), y=y, **side, **colour
            )
        ]
        if "low" in rows.columns:
            rule = base.mark_rule(color=named("ink"), strokeWidth=1.25)
            result.append(rule.encode(x=alt.X("low:Q", **self.value), x2="high:Q", y=y, **side))
        return result

    def _shares(self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]) -> list[Any]:
        order = alt.Order("place:Q")
        ranked = alt.Chart(
            rows.with_columns(place=pl.col("of").replace_strict({s: i for i, s in enumerate(series)}))
        )
        x = alt.X("value:Q", stack="zero", **self.value)
        return [
            ranked.mark_bar(height=15, cornerRadius=0).encode(x=x, y=self._names(rows), order=order, **colour)
        ]

    def _dots(self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]) -> list[Any]:
        side = self._beside(rows, series)
        y, result = self._names(rows), []
        if "low" in rows.columns:
            rule = base.mark_rule(strokeWidth=2.25, **self._mark(series))
            result.append(rule.encode(x=alt.X("low:Q", **self.value), x2="high:Q", y=y, **side, **colour))
        shape = {"shape": _of(run_shape(series))} if len(series) > 1 else {}
        mark = base.mark_point(size=70, filled=True, opacity=1, **self._mark(series))
        result.append(mark.encode(x=alt.X("value:Q", **self.value), y=y, **side, **colour, **shape))
        return result

    def _lines(self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]) -> list[Any]:
        colour = self._colour(series, legend=LINES) if len(series) > 1 else colour
        places = rows["x"].unique().sort().to_list()
        few = len(places) <= 8 and all(round(place, 2) == place for place in places)
        # In full: formats round to the distance of ticks.
        ticks = {"values": places, "labelExpr": "datum.value"} if few else {"tickCount": 6}
        axis = alt.Axis(grid=False, labelOverlap=True, **ticks)
        x = alt.X("x:Q", title=self.place, axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
        y = alt.Y("value:Q", **self.value)
        dash = {"strokeDash": _of(run_dash(series))} if len(series) > 1 else {}
        items = []
        if "low" in rows.columns and _banded(series):
            band = base.mark_area(opacity=0.13, **self._mark(series))
            items.append(band.encode(x=x, y=alt.Y("low:Q", **self.value), y2="high:Q", **colour))
        ordered = alt.Chart(rows.with_row_index("place")).mark_line(strokeWidth=2, **self._mark(series))
        items.append(ordered.encode(x=x, y=y, order="place:Q", **colour, **dash))
        points = base.mark_point(size=26, opacity=1, filled=True, **self._mark(series))
        return [*items, points.encode(x=x, y=y, **colour)]

    def _points(self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]) -> list[Any]:
        x = alt.X(
            "x:Q",
            title=self.place,
            axis=alt.Axis(grid=False, tickCount=5),
            scale=alt.Scale(zero=False, nice=True),
        )
        mark = base.mark_circle(size=34, opacity=0.7, **self._mark(series))
        return [mark.encode(x=x, y=alt.Y("value:Q", **self.value), **colour)]

    def _histogram(
        self, base: Any, rows: pl.DataFrame, series: list[str], colour: dict[str, Any]
    ) -> list[Any]:
        x = alt.X("x:Q", title=self.place, axis=alt.Axis(grid=False, tickCount=6))
        mark = base.mark_bar(opacity=0.55, binSpacing=1, cornerRadius=0, **self._mark(series))
        return [
            mark.encode(
                x=x, x2="end:Q", y=alt.Y("value:Q", stack=None, **self.value), y2=alt.datum(0), **colour
            )
        ]


def _of(channel: Any) -> Any:
    """A channel of runs, read from the column `of`."""
    result = channel.copy()
    result.shorthand = "of:N"
    return result
