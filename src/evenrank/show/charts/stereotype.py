"""Queries' gender against that of their results (Fabris et al. 2020, Figs. 8 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.base import short
from evenrank.measures.gsr.results import Reinforcement
from evenrank.show.charts.theme import LINES, finished, named, reach, zero_line
from evenrank.show.figure import RUNS, Figure, Section, first_of, slug
from evenrank.show.numbers import counted

POINTS = 700
"""Most points drawn; those that contribute most, and a seeded sample of the others."""


def sampled(points: pl.DataFrame, most: int = POINTS, seed: int = 0) -> pl.DataFrame:
    """The points to draw: a fifth for the largest contributions, the rest drawn from the others."""
    if points.height <= most:
        return points
    order = np.argsort(-points["contribution"].abs().to_numpy(), kind="stable")
    first, rest = order[: most // 5], order[most // 5 :]
    drawn = np.random.default_rng(seed).choice(rest, most - len(first), replace=False)
    return points[np.sort(np.concatenate([first, drawn]))]


def stereotype_scatter(
    points: pl.DataFrame, lines: pl.DataFrame, domain: Sequence[float] | None = None
) -> Any:
    """Each query a point; the run's line, and dashed that of a perfect engine.

    Parameters
    ----------
    points
        query, x (genderedness of the query, positive is male), y (that of its list), contribution.
    lines
        engine (`this run`, `perfect engine`), x, y: two rows for each line.
    domain
        Ends of the scale of results, where several charts share one.
    """
    engines = lines["engine"].unique(maintain_order=True).to_list()
    x = alt.X(
        "x:Q",
        title=f"query: {_ends(points['x'])}",
        axis=alt.Axis(grid=False, tickCount=6),
        scale=alt.Scale(nice=True),
    )
    y = alt.Y(
        "y:Q",
        title="genderedness of the results",
        scale=alt.Scale(zero=False, nice=True, domain=alt.Undefined if domain is None else list(domain)),
        axis=alt.Axis(tickCount=6),
    )
    dots = (
        alt.Chart(points)
        .mark_circle(size=42, opacity=0.55)
        .encode(
            x=x,
            y=y,
            color=alt.condition("datum.x > 0", alt.value(named("male")), alt.value(named("female"))),
            tooltip=[
                alt.Tooltip("query:N", title="query"),
                alt.Tooltip("x:Q", title="query", format="+.3f"),
                alt.Tooltip("y:Q", title="results", format="+.3f"),
                alt.Tooltip("contribution:Q", title="contribution", format="+.3f"),
            ],
        )
    )
    fits = (
        alt.Chart(lines)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            strokeDash=alt.StrokeDash(
                "engine:N",
                title=None,
                sort=engines,
                scale=alt.Scale(domain=engines, range=[[1, 0], [6, 4]]),
                legend=LINES,
            ),
            color=alt.Color(
                "engine:N",
                title=None,
                sort=engines,
                scale=alt.Scale(domain=engines, range=[named("ink"), named("muted")]),
                legend=LINES,
            ),
        )
    )
    lines_at_zero = [zero_line(axis) for axis in ("x", "y") if _crosses(points[axis])]
    return finished(alt.layer(*lines_at_zero, dots, fits), height=300)


def _ends(values: pl.Series) -> str:
    """What both ends of an axis mean; where all values lean one way, the other end is only less of it."""
    low, high = values.min(), values.max()
    left, right = "female", "male"
    if isinstance(low, float) and low > 0:
        left, right = "least male", "most male"
    elif isinstance(high, float) and high < 0:
        left, right = "most female", "least female"
    return f"{left} ← genderedness → {right}"


def _crosses(values: pl.Series) -> bool:
    """Whether balance lies among the values; a line elsewhere would only squeeze them."""
    low, high = values.min(), values.max()
    return isinstance(low, float) and isinstance(high, float) and low <= 0 <= high


def section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "stereotype",
        "Stereotypes",
        "Do results for a query that sounds female sound female too? GSR is the slope of that line. The "
        "dashed line is that of a perfect engine, which returns all and only the relevant documents: what "
        "lies above it is the ranker’s own. All charts share one scale." + first_of(audit, RUNS),
        stereotype_figures(audit),
    )


def stereotype_figures(audit: Audit) -> list[Figure]:
    from evenrank.measures.gsr.results import scatter

    found: list[Figure] = []
    each = [m for m in audit.measured if isinstance(m, Reinforcement) and m.line is not None][:RUNS]
    scatters = [scatter(m) for m in each]  # where positive is female; a report has one sign: positive is male
    domain = reach((-y for drawn in scatters for y in drawn.points["y"].to_list()), zero=False)
    for m, drawn in zip(each, scatters, strict=True):
        points = drawn.points.with_columns(
            query=drawn.points["query_id"].replace_strict(
                dict(audit.queries), default=drawn.points["query_id"]
            )
            if audit.queries
            else drawn.points["query_id"]
        ).select(
            pl.col("query").str.slice(0, 90), x=-pl.col("x"), y=-pl.col("y"), contribution="contribution"
        )
        shown = sampled(points)
        low, high = float(points["x"].min()), float(points["x"].max())  # type: ignore[arg-type]
        lines = [("this run", drawn.line), ("perfect engine", drawn.perfect)]
        ends = pl.DataFrame(
            [
                (engine, x, line.slope * x - line.intercept)
                for engine, line in lines
                if line is not None
                for x in (low, high)
            ],
            schema=["engine", "x", "y"],
            orient="row",
        )
        perfect = ""
        if drawn.perfect is not None:
            judged = counted(m.baselines["perfect"].queries, "query", "queries")
            perfect = f" A perfect engine has {drawn.perfect.slope:+.3f} ({judged})."
        few = (
            ""
            if shown.height == points.height
            else f" {shown.height:,} of {points.height:,} queries are drawn."
        )
        found.append(
            Figure(
                f"stereotype-{slug(m.run)}-{len(found)}",
                f"{short(m.measure)} of {m.run}: {m.value:+.3f}, {counted(m.queries, 'query', 'queries')}",
                f"Each point is a query: purple sounds female, orange male; the higher it stands, the more "
                f"male its results. The steeper the line, the more results follow.{perfect}{few}",
                f"Genderedness of results against queries for {m.run}; the slope is {m.value:+.3f}.{perfect}",
                stereotype_scatter(shown, ends, domain),
                shown,
            )
        )
    return found
