"""By the gender of the query: what its documents are like, how close they stand, which gender they speak of.

Psychological characteristics; association; queries' gender against that of their results (Fabris et al. 2020,
Figs. 8 and 9); and what neutral queries resemble: the lists of their female or of their male variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from evenrank.auditing.black_box import VariantAudit, VariantLean
from evenrank.auditing.result import Audit
from evenrank.measures.base import short
from evenrank.measures.compare import LEVEL
from evenrank.measures.disparity import MIN_QUERIES
from evenrank.measures.gsr.measure import Reinforcement
from evenrank.psychology import PsychologyAudit
from evenrank.show.charts.theme import LINES, finished, group_colour, named, reach, told_apart, zero_line
from evenrank.show.charts.values import intervals
from evenrank.show.figure import RUNS, SHARED, Figure, Section, first_of, slug
from evenrank.show.numbers import counted


def process_bars(frame: pl.DataFrame) -> Any:
    """Grouped bars: percent of words of each characteristic, a bar for each gender.

    Parameters
    ----------
    frame
        characteristic, gender, percent; one process.
    """
    order = frame["characteristic"].unique(maintain_order=True).to_list()
    genders = [g for g in ("female", "male", "neutral", "other") if g in frame["gender"].to_list()]
    chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("characteristic:N", sort=order, title=None, axis=alt.Axis(labelLimit=120)),
            yOffset=alt.YOffset("gender:N", sort=genders),
            x=alt.X("percent:Q", title="% of words", axis=alt.Axis(grid=True, tickCount=5)),
            color=group_colour(genders, "gender:N"),
            tooltip=[
                alt.Tooltip("characteristic:N", title="characteristic"),
                alt.Tooltip("gender:N", title="queries"),
                alt.Tooltip("percent:Q", title="% of words", format=".3f"),
            ],
        )
    )
    return finished(chart, height=max(80, (14 * len(genders) + 8) * len(order)))


def psychology_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    means = [
        (row["process"], row["characteristic"], gender, row[gender])
        for row in given.characteristics.iter_rows(named=True)
        for gender in given.queries
    ]
    bars = pl.DataFrame(means, ["process", "characteristic", "gender", "percent"], orient="row")
    counts = ", ".join(f"{count:,} {gender}" for gender, count in given.queries.items())
    caption = f"Share of words, mean over the queries of each gender: {counts}."
    if min(given.queries.get(gender, 0) for gender in ("female", "male")) < MIN_QUERIES:
        caption += f" Fewer than {MIN_QUERIES} on one side: do not compare them."
    rows: list[Figure] = []
    for (process,), frame in bars.group_by(["process"], maintain_order=True):
        name = str(process) or "other"
        parts = frame.filter(pl.col("characteristic") != process)
        frame = (parts if not parts.is_empty() else frame).select("characteristic", "gender", "percent")
        rows.append(
            Figure(
                f"psychology-{slug(name)}",
                name.capitalize(),
                caption,
                f"Percent of words of each characteristic of {name}, by the gender of the query.",
                process_bars(frame),
                frame,
            )
        )
    return rows


def psychology_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    """The characteristics of the judged documents, or of the baseline's top results."""
    given: PsychologyAudit | None = more.get("psychology") or audit.psychology
    figures = psychology_figures(given)
    if given is None or not figures:
        return None
    compared = given.mirrored()
    if given.at is not None:
        compared = compared.filter(run=given.baseline)
    rows = compared.sort(pl.col("g").fill_null(0).abs(), descending=True, maintain_order=True).to_dicts()
    content = {
        "where": given.baseline if given.at is None else f"top {given.at} results of {given.baseline}",
        "queries": given.queries,
        "characteristics": rows,
        "established": [row for row in rows if row["p_holm"] is not None and row["p_holm"] < LEVEL],
    }
    return Section("psychology", "Psychological characteristics", "", figures, "psychology.html", content)


def association_histogram(frame: pl.DataFrame) -> Any:
    """Two overlaid histograms of the scores γ, as shares of each gender's pairs.

    Parameters
    ----------
    frame
        gender, low, high, pairs, share: what :meth:`Association.frame` gives.
    """
    genders = [g for g in ("female", "male") if g in frame["gender"].to_list()]
    chart = (
        alt.Chart(frame)
        .mark_bar(opacity=0.55, binSpacing=1, cornerRadius=0)
        .encode(
            x=alt.X("low:Q", title="association γ of query and document"),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of pairs", axis=alt.Axis(format="%")),
            y2=alt.datum(0),
            color=group_colour(genders, "gender:N"),
            tooltip=[
                alt.Tooltip("gender:N", title="queries"),
                alt.Tooltip("low:Q", title="from", format=".2f"),
                alt.Tooltip("high:Q", title="to", format=".2f"),
                alt.Tooltip("share:Q", title="share", format=".1%"),
                alt.Tooltip("pairs:Q", title="pairs", format=",d"),
            ],
        )
    )
    return finished(chart, height=240)


def association_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "association",
        "Association",
        "How close queries are to their own relevant documents. Rankers learn the easier association better.",
        association_figures(more.get("association")),
    )


def association_figures(given: Any) -> list[Figure]:
    if given is None:
        return []
    frame = given if isinstance(given, pl.DataFrame) else given.frame()
    caption = "Where the two differ, the queries of one gender are closer to their own relevant documents."
    if not isinstance(given, pl.DataFrame):
        caption += (
            f" Means: female {given.means['female']:.2f}, male {given.means['male']:.2f}; "
            f"overlap {given.overlap:.0%}."
        )
    pairs = {gender: int(rows["pairs"].sum()) for (gender,), rows in frame.group_by(["gender"])}
    if pairs:
        said = " and ".join(f"{pairs[gender]:,} {gender}" for gender in ("female", "male") if gender in pairs)
        caption += f" n = {said} pairs."
    chart = association_histogram(frame)
    title = "Association of queries with their documents"
    return [Figure("association", title, caption, caption, chart, frame, True)]


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
            color=told_apart("engine:N", engines, [named("ink"), named("muted")], legend=LINES),
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


def stereotype_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    return Section.of(
        "stereotype",
        "Stereotypes",
        "Do results for a query that sounds female sound female too? GSR is the slope of that line. The "
        "dashed line is that of a perfect engine, which returns all and only the relevant documents: what "
        "lies above it is the ranker’s own doing. All charts share one scale." + first_of(audit, RUNS),
        stereotype_figures(audit),
    )


def stereotype_figures(audit: Audit) -> list[Figure]:
    rows: list[Figure] = []
    each = [m for m in audit.measured if isinstance(m, Reinforcement) and m.line is not None][:RUNS]
    domain = reach((-y for m in each for y in m.points["y"].to_list()), zero=False)
    for m in each:
        ids = m.points["query_id"]
        query = ids.replace_strict(dict(audit.queries), default=ids) if audit.queries else ids
        # In `points` positive is female; a report has one sign: positive is male.
        points = m.points.select(
            query.str.slice(0, 90).alias("query"), x=-pl.col("x"), y=-pl.col("y"), contribution="contribution"
        )
        shown = sampled(points)
        low, high = float(points["x"].min()), float(points["x"].max())  # type: ignore[arg-type]
        perfect_line = m.baselines["perfect"].line if "perfect" in m.baselines else None
        lines = [("this run", m.line), ("perfect engine", perfect_line)]
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
        if perfect_line is not None:
            judged = counted(m.baselines["perfect"].queries, "query", "queries")
            perfect = f" A perfect engine has {perfect_line.slope:+.3f} ({judged})."
        few = (
            ""
            if shown.height == points.height
            else f" {shown.height:,} of {points.height:,} queries are drawn."
        )
        rows.append(
            Figure(
                f"stereotype-{slug(m.run)}-{len(rows)}",
                f"{short(m.measure)} of {m.run}: {m.value:+.3f}, {counted(m.queries, 'query', 'queries')}",
                f"Each point is a query: purple sounds female, orange male; the higher it is, the more "
                f"male its results. The steeper the line, the more results follow their queries."
                f"{perfect}{few}",
                f"Genderedness of results against queries for {m.run}; the slope is {m.value:+.3f}.{perfect}",
                stereotype_scatter(shown, ends, domain),
                shown,
            )
        )
    return rows


_SAID = {
    "male": ("← like the female variant · like the male variant →", "toward the male variants"),
    "stereotype": ("← against the stereotype · with it →", "toward the stereotype"),
}


def variant_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    result = more.get("variants") or audit.variants
    if result is None:
        return None
    lead = (
        "What an engine returns for a query without gender, compared with its results for women and for men. "
    )
    said = "; ".join(
        f"{row.engine} {row.verdict} ({row.measure}, {row.triples:,} triples)" for row in _main(result)
    )
    return Section.of("variants", "Query variants", f"{lead}{said}.", variant_figures(result))


def _main(found: VariantAudit) -> list[VariantLean]:
    """What is told first: VarARaB, toward the stereotype where there is one."""
    rows = [row for row in found.overall() if row.measure.startswith("VarARaB")]
    return [row for row in rows if row.toward == "stereotype"] or rows


def variant_figures(found: VariantAudit) -> list[Figure]:
    """Values over all triples, toward men and toward the stereotype; then topic by topic."""
    figures: list[Figure] = []
    for toward, (axis, said) in _SAID.items():
        rows = [row for row in found.overall() if row.toward == toward and row.value is not None]
        if rows:
            figures.append(_figure(f"variants-{toward}", f"All triples, {said}", axis, rows))
    topics = [row for row in found.topics() if row.measure.startswith("VarARaB") and row.value is not None]
    if topics:
        name = f"{topics[0].measure} by topic, toward the male variants"
        figures.append(_figure("variants-topics", name, _SAID["male"][0], topics))
    return figures


def _figure(name: str, title: str, axis: str, rows: Iterable[VariantLean]) -> Figure:
    frame = pl.DataFrame(
        [(r.topic or r.measure, r.engine, r.value, r.low, r.high, r.triples) for r in rows],
        schema=["measure", "run", "value", "low", "high", "triples"],
        orient="row",
        infer_schema_length=None,
    )
    few = frame.filter(pl.col("run").is_in(frame["run"].unique(maintain_order=True).head(SHARED).implode()))
    counts = frame["triples"].unique(maintain_order=True).to_list()
    over = f"{counts[0]:,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
    caption = f"Dots are means over triples ({over}), lines their intervals; no line where fewer than five."
    alt = f"{title}: " + ", ".join(
        f"{e} {m} {v:+.3f}" for m, e, v in few.select("measure", "run", "value").iter_rows()
    )
    return Figure(name, title, caption, f"{alt}.", intervals(few, title=axis), frame)
