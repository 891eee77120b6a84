"""Bias against utility: what less bias costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.errors import InputError
from evenrank.mitigate.tradeoff import TradeOff
from evenrank.show.charts.theme import finished, named
from evenrank.show.figure import Figure, Section, as_frame


def pareto(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a column `front`: no other row is as good in both and better in one.

    Less bias is better, whatever its sign, and more utility.

    Examples
    --------
    >>> frame = pl.DataFrame({"bias": [0.3, 0.1, 0.2], "utility": [0.5, 0.4, 0.3]})
    >>> pareto(frame)["front"].to_list()
    [True, True, False]
    """
    size, utility = frame["bias"].abs().to_numpy(), frame["utility"].to_numpy()
    beaten = [
        bool(np.any((size <= s) & (utility >= u) & ((size < s) | (utility > u))))
        for s, u in zip(size, utility, strict=True)
    ]
    return frame.with_columns(front=~pl.Series(beaten, dtype=pl.Boolean))


def tradeoff_scatter(frame: pl.DataFrame, *, bias: str = "bias", utility: str = "utility") -> Any:
    """Each setting a point; the Pareto front is joined by a line, intervals of the utility are bars.

    Parameters
    ----------
    frame
        bias, utility, and perhaps name, method, strength, low, high (interval of the utility). Several
        methods have different marks.
    bias, utility
        What the axes are called.
    """
    found = pareto(frame.with_columns(size=pl.col("bias").abs()))
    base = alt.Chart(found)
    x = alt.X(
        "size:Q",
        title=f"|{bias}| (lower is fairer)",
        axis=alt.Axis(grid=True, tickCount=6),
        scale=alt.Scale(zero=True),
    )
    y = alt.Y("utility:Q", title=utility, scale=alt.Scale(zero=False))
    tooltip = [
        alt.Tooltip(f"{name}:N", title=name)
        for name in ("method", "name", "strength")
        if name in found.columns
    ]
    tooltip += [
        alt.Tooltip("bias:Q", title=bias, format="+.4f"),
        alt.Tooltip("utility:Q", title=utility, format=".4f"),
    ]
    layers = []
    if {"low", "high"} <= set(found.columns):
        layers.append(
            base.mark_rule(opacity=0.4, strokeWidth=2, color=named("muted")).encode(
                x=x, y=alt.Y("low:Q", title=utility), y2="high:Q"
            )
        )
    layers.append(
        base.transform_filter("datum.front")
        .mark_line(interpolate="step-after", color=named("run-2"), strokeWidth=2)
        .encode(x=x, y=y, order="size:Q")
    )
    labels = ["on the front", "beaten by another setting"]
    methods = found["method"].unique(maintain_order=True).to_list() if "method" in found.columns else []
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
            color=alt.Color(
                "standing:N",
                title=None,
                sort=labels,
                scale=alt.Scale(domain=labels, range=[named("run-2"), named("muted")]),
            ),
            shape=shape,
            tooltip=tooltip,
        )
    )
    label = next((name for name in ("name", "strength") if name in found.columns), None)
    if label is not None:
        layers.append(
            base.transform_filter("datum.front")
            .mark_text(dx=9, dy=9, align="left", fontSize=11, color=named("muted"))
            .encode(x=x, y=y, text=alt.Text(f"{label}:N"))
        )
    return finished(alt.layer(*layers), height=300)


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "tradeoff",
        "Trade-off",
        "What less bias costs. Settings on the line are worth choosing from; all others are beaten by one "
        "that is as useful and less biased, or as fair and more useful.",
        tradeoff_figures(more.get("tradeoff")),
    )


def tradeoff_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    swept = [given] if isinstance(given, TradeOff) else given
    axes: dict[str, str] = {}
    if isinstance(swept, list) and swept and all(isinstance(each, TradeOff) for each in swept):
        for of in ("bias", "utility"):
            if len({getattr(each, of) for each in swept}) > 1:
                raise InputError(f"the trade-offs have different measures of {of}; give one report each")
        table = pl.concat([_settings(each) for each in swept])
        axes = {"bias": swept[0].bias, "utility": swept[0].utility}
    else:
        table = as_frame(given, "tradeoff", ("bias", "utility"))
    found = pareto(table)
    front = int(found["front"].sum())
    caption = f"{front} of {found.height} settings are on the Pareto front: no other is as good in both."
    said = f"Bias against utility. {caption}"
    return [
        Figure("tradeoff", "Bias and utility", caption, said, tradeoff_scatter(table, **axes), found, True)
    ]


def _settings(swept: TradeOff) -> pl.DataFrame:
    """The points of a sweep; the unmitigated run, which no bound holds, has a name and no strength."""
    sign = "λ = " if not swept.method.startswith("constrain") else "≤ " if swept.lower_is_fairer else "≥ "
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
