"""Bias against utility: what less bias costs; and sweeps over feedback (Figures 4.1 to 4.3 of the thesis)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.errors import InputError
from evenrank.mitigate.tradeoff import TradeOff
from evenrank.show.charts.theme import RUNS, finished, named, told_apart
from evenrank.show.figure import Figure, Section, as_frame

if TYPE_CHECKING:
    from evenrank.mitigate.feedback import FeedbackSweep


def pareto(frame: pl.DataFrame, *, lower_is_fairer: bool = True) -> pl.DataFrame:
    """The frame with a column `front`: no other row is as good in both and better in one.

    Less bias is better, whatever its sign, and more utility. Of measures such as NFaiRR more is better: say
    so with `lower_is_fairer`.

    Examples
    --------
    >>> frame = pl.DataFrame({"bias": [0.3, 0.1, 0.2], "utility": [0.5, 0.4, 0.3]})
    >>> pareto(frame)["front"].to_list()
    [True, True, False]
    """
    size = (frame["bias"].abs() if lower_is_fairer else -frame["bias"]).to_numpy()
    utility = frame["utility"].to_numpy()
    beaten = [
        bool(np.any((size <= s) & (utility >= u) & ((size < s) | (utility > u))))
        for s, u in zip(size, utility, strict=True)
    ]
    return frame.with_columns(front=~pl.Series(beaten, dtype=pl.Boolean))


NEAR = (0.12, 0.07)
"""Shares of both axes that a label takes; a point nearer to a labelled one stays without."""


def apart(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a column `labelled`: points on the front whose labels do not cover one another.

    The ends of the front come first, then the others by growing bias; `frame` has size, utility and front.
    """
    size, utility = frame["size"].to_numpy(), frame["utility"].to_numpy()
    wide, high = (float(np.ptp(axis)) or 1.0 if len(axis) else 1.0 for axis in (size, utility))
    front = [int(i) for i in np.argsort(size, kind="stable") if frame["front"][int(i)]]
    kept: list[int] = []
    for i in dict.fromkeys([*front[:1], *front[-1:], *front]):
        clear = (
            abs(size[i] - size[j]) / wide >= NEAR[0] or abs(utility[i] - utility[j]) / high >= NEAR[1]
            for j in kept
        )
        if all(clear):
            kept.append(i)
    return frame.with_columns(labelled=pl.Series([i in kept for i in range(frame.height)], dtype=pl.Boolean))


def tradeoff_scatter(
    frame: pl.DataFrame, *, bias: str = "|bias|", utility: str = "utility", lower_is_fairer: bool = True
) -> Any:
    """Each setting a point; the Pareto front is joined by a line, intervals of the utility are bars.

    Parameters
    ----------
    frame
        bias, utility, and perhaps name, method, strength, low, high (interval of the utility). Several
        methods have different marks.
    bias, utility
        What the axes are called.
    """
    size = pl.col("bias").abs() if lower_is_fairer else pl.col("bias")
    table = apart(pareto(frame.with_columns(size=size), lower_is_fairer=lower_is_fairer))
    base = alt.Chart(table)
    x = alt.X(
        "size:Q",
        title=f"{bias} ({'lower' if lower_is_fairer else 'higher'} is fairer)",
        axis=alt.Axis(grid=True, tickCount=6),
        scale=alt.Scale(zero=lower_is_fairer),
    )
    y = alt.Y("utility:Q", title=utility, scale=alt.Scale(zero=False))
    tooltip = [
        alt.Tooltip(f"{name}:N", title=name)
        for name in ("method", "name", "strength")
        if name in table.columns
    ]
    tooltip += [
        alt.Tooltip("bias:Q", title=bias, format="+.4f"),
        alt.Tooltip("utility:Q", title=utility, format=".4f"),
    ]
    layers = []
    if {"low", "high"} <= set(table.columns):
        layers.append(
            base.mark_rule(opacity=0.4, strokeWidth=2, color=named("muted")).encode(
                x=x, y=alt.Y("low:Q", title=utility), y2="high:Q"
            )
        )
    layers.append(
        base.transform_filter("datum.front")
        .mark_line(
            interpolate="step-after" if lower_is_fairer else "step-before",
            color=named("run-2"),
            strokeWidth=2,
        )
        .encode(x=x, y=y, order="size:Q")
    )
    labels = ["on the front", "beaten by another setting"]
    methods = table["method"].unique(maintain_order=True).to_list() if "method" in table.columns else []
    shape = (
        alt.Shape("method:N", title=None, sort=methods, scale=alt.Scale(domain=methods))
        if len(methods) > 1
        else alt.Shape(
            "standing:N", title=None, sort=labels, scale=alt.Scale(domain=labels, range=["circle", "cross"])
        )
    )
    layers.append(
        base.transform_calculate(standing=f"datum.front ? '{labels[0]}' : '{labels[1]}'")
        .mark_point(size=90, filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=told_apart("standing:N", labels, [named("run-2"), named("muted")]),
            shape=shape,
            tooltip=tooltip,
        )
    )
    label = next((name for name in ("name", "strength") if name in table.columns), None)
    if label is not None:
        layers.append(
            base.transform_filter("datum.labelled")
            .mark_text(dx=9, dy=9, align="left", fontSize=11, color=named("muted"))
            .encode(x=x, y=y, text=alt.Text(f"{label}:N"))
        )
    return finished(alt.layer(*layers), height=300)


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "tradeoff",
        "Trade-off",
        "What less bias costs. Settings on the line are worth choosing from; any other is beaten by one "
        "that is as useful and less biased, or as fair and more useful.",
        tradeoff_figures(more.get("tradeoff")),
    )


def tradeoff_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    swept = [given] if isinstance(given, TradeOff) else given
    axes: dict[str, Any] = {}
    if isinstance(swept, list) and swept and all(isinstance(each, TradeOff) for each in swept):
        for of in ("bias", "utility"):
            if len({getattr(each, of) for each in swept}) > 1:
                raise InputError(f"the trade-offs have different measures of {of}; give one report each")
        table = pl.concat([_settings(each) for each in swept])
        axes = {
            "bias": swept[0].bias,
            "utility": swept[0].utility,
            "lower_is_fairer": swept[0].lower_is_fairer,
        }
    else:
        table = as_frame(given, "tradeoff", ("bias", "utility"))
    result = pareto(table, lower_is_fairer=axes.get("lower_is_fairer", True))
    front = int(result["front"].sum())
    caption = (
        f"{front} of {result.height} settings are on the Pareto front: no other is at least as good in both."
    )
    if apart(result.with_columns(size=pl.col("bias").abs()))["labelled"].sum() < front:
        caption += " Where labels would overlap, only some are shown."
    said = f"Bias against utility. {caption}"
    return [
        Figure("tradeoff", "Bias and utility", caption, said, tradeoff_scatter(table, **axes), result, True)
    ]


def _settings(swept: TradeOff) -> pl.DataFrame:
    """The points of a sweep; the unmitigated run, which no bound holds, has a name and no strength."""
    sign = "λ = " if swept.method in ("interpolate", "feedback", "negatives") else ""
    if swept.method.startswith("constrain"):
        sign = "≤ " if swept.lower_is_fairer else "≥ "
    bounded = pl.col("strength").is_finite() & (pl.int_range(pl.len()) > 0)
    return swept.frame().select(
        "method",
        name=pl.when(bounded)
        .then(pl.concat_str(pl.lit(sign), pl.col("strength").round_sig_figs(2)))
        .otherwise(pl.lit("none")),
        bias="bias",
        utility="utility",
        low="utility_low",
        high="utility_high",
    )


def feedback_figures(swept: FeedbackSweep) -> list[Figure]:
    """Each measure against λ, with its interval (Figures 4.1 to 4.3).

    Filled points differ significantly from λ = 0 after Holm's correction. For RaB and ARaB the mean of
    absolute values is drawn, without an interval.
    """
    rows = swept.frame().with_columns(
        shown=pl.coalesce("abs", "value"),
        low=pl.when(pl.col("abs").is_null()).then("low"),
        high=pl.when(pl.col("abs").is_null()).then("high"),
        significant=pl.col("p_holm").fill_null(1.0) < 0.05,
    )
    figures: list[Figure] = []
    for one in swept.measured.runs["0"]:
        name = str(one.measure)
        values = rows.filter(pl.col("measure") == name)
        title = name if values["abs"].is_null().all() else f"mean |{name}|"
        base = alt.Chart(values).encode(
            x=alt.X("lambda:Q", title="λ"), y=alt.Y("shown:Q", title=title, scale=alt.Scale(zero=False))
        )
        colour = named(RUNS[1])
        points = base.mark_point(size=45, color=colour).encode(
            fill=alt.condition("datum.significant", alt.value(colour), alt.value(named("surface"))),
            tooltip=["lambda:Q", "shown:Q", "low:Q", "high:Q", "p_holm:Q"],
        )
        area = base.mark_area(opacity=0.15, color=colour).encode(y="low:Q", y2="high:Q")
        parts = [area, base.mark_line(color=colour), points]
        chart = finished(alt.layer(*(parts if values["abs"].is_null().all() else parts[1:])), height=200)
        says = f"{title} against λ; filled points differ significantly from λ = 0 (Holm)."
        figures.append(Figure(f"feedback-{len(figures)}", title, says, says, chart, values))
    return figures
