"""Representation bias: its distribution, and target against shown (Lipani, Piroi & Yilmaz 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.show.charts.theme import finished, named, zero_line
from evenrank.show.figure import RUNS, Figure, Section, asked, slug


def representation_histogram(
    frame: pl.DataFrame, *, feature: str, at: int, highest: int | None = None
) -> Any:
    """How many queries show a group too seldom (left) or too often (right).

    Parameters
    ----------
    frame
        bias, queries: one row for each step of 1/n.
    highest
        End of the scale of queries, where several charts share one.
    """
    bars = (
        alt.Chart(frame.with_columns(low=pl.col("bias") - 0.42 / at, high=pl.col("bias") + 0.42 / at))
        .mark_bar(cornerRadius=0)
        .encode(
            x=alt.X(
                "low:Q",
                title=f"share of {feature} in the top {at}, minus its target",
                axis=alt.Axis(format="+.1f", tickCount=5, labelOverlap=True),
                scale=alt.Scale(nice=False, padding=6),
            ),
            x2="high:Q",
            y=alt.Y(
                "queries:Q",
                title="queries",
                axis=alt.Axis(tickMinStep=1, format="d"),
                scale=alt.Undefined if highest is None else alt.Scale(domain=[0, highest]),
            ),
            y2=alt.datum(0),
            color=alt.condition(
                "abs(datum.bias) < 1e-9", alt.value(named("muted")), alt.value(named("run-2"))
            ),
            tooltip=[
                alt.Tooltip("bias:Q", title="bias", format="+.2f"),
                alt.Tooltip("queries:Q", title="queries", format="d"),
            ],
        )
    )
    return finished(alt.layer(bars, zero_line("x")), height=220)


def target_grid(frame: pl.DataFrame, *, feature: str, at: int) -> Any:
    """Target against what is shown, on the grid of 1/n; on the diagonal a query is free of bias.

    Parameters
    ----------
    frame
        query, target, model, and x, y: the same with jitter.
    """
    axis: dict[str, Any] = {"values": [i / at for i in range(at + 1)], "format": ".1f", "grid": True}
    scale = alt.Scale(domain=[-0.5 / at, 1 + 0.5 / at], nice=False)
    line = (
        alt.Chart(alt.Data(values=[{"a": 0, "b": 0}, {"a": 1, "b": 1}]))
        .mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=named("muted"))
        .encode(x=alt.X("a:Q", scale=scale), y=alt.Y("b:Q", scale=scale))
    )
    dots = (
        alt.Chart(frame)
        .mark_circle(size=60, opacity=0.75, color=named("run-2"))
        .encode(
            x=alt.X("x:Q", title=f"target share of {feature}", scale=scale, axis=alt.Axis(**axis)),
            y=alt.Y("y:Q", title=f"share in the top {at}", scale=scale, axis=alt.Axis(**axis)),
            tooltip=[
                alt.Tooltip("query:N", title="query"),
                alt.Tooltip("target:Q", title="target", format=".2f"),
                alt.Tooltip("model:Q", title="shown", format=".2f"),
            ],
        )
    )
    return finished(alt.layer(dots, line), height=340)


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "representation",
        "Representation",
        "Do the top results show a group as often as they should?",
        representation_figures(more.get("representation") or audit.representation),
    )


def representation_figures(given: Any, *, feature: str | None = None, named: str = " of {}") -> list[Figure]:
    """A histogram and a grid for each run and group; of two groups one will do: `feature`, or the first."""
    if not given:
        return []
    by_run = given if isinstance(given, Mapping) else {"": given}
    items: list[Figure] = []
    drawn = [shown for _, shown in list(by_run.items())[:RUNS]]
    highest = max(
        (most for one in drawn for f in one.features for most in one.histogram(f).values()), default=1
    )
    for run, shown in list(by_run.items())[:RUNS]:
        of = named.format(run) if run else ""
        chosen = [feature] if feature is not None and feature in shown.features else list(shown.features)
        for group in chosen[:1] if len(shown.features) == 2 else chosen:
            summary = shown.summary(group)
            if not summary["queries"]:
                continue
            rows = list(shown.histogram(group).items())
            counts = pl.DataFrame(rows, schema=["bias", "queries"], orient="row")
            mean, size, queries = summary["MB"], summary["MAB"], summary["queries"]
            says = f"Mean {mean:+.3f}, mean of absolute values {size:.3f}, over {queries:,} queries."
            name = f"{slug(run)}-{slug(group)}-{len(items)}"
            items.append(
                Figure(
                    f"representation-{name}",
                    f"{group} in the top {shown.at}{of}",
                    f"Left: shown less than it should be; right: more. {says}",
                    f"Histogram of representation bias toward {group}{of}. {says}",
                    representation_histogram(counts, feature=group, at=shown.at, highest=highest),
                    counts,
                )
            )
            grid = shown.grid(group)
            items.append(
                Figure(
                    f"grid-{name}",
                    f"{group}: target and shown{of}",
                    "On the dashed line a query has no bias; above it the group is shown too often. "
                    f"{asked([queries])}; overlapping points are moved apart.",
                    f"Target share of {group} against the share shown{of}. {says}",
                    target_grid(grid, feature=group, at=shown.at),
                    grid.select("query", "target", "model", "x", "y"),
                )
            )
    return items
