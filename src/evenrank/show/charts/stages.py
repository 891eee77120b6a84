"""Where bias enters, as a waterfall of stages; and what a ranker prefers, apart from what the texts bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from evenrank.auditing.result import Audit
from evenrank.auditing.stages import Trace
from evenrank.measures.base import preferred_direction
from evenrank.measures.parse import parse
from evenrank.mitigate.mirror import Mirror
from evenrank.show.charts.theme import finished, named, zero_line
from evenrank.show.charts.values import intervals
from evenrank.show.figure import Figure, Section, slug
from evenrank.show.numbers import counted


def stage_waterfall(
    frame: pl.DataFrame, *, measure: str, colours: tuple[str, str] = ("male", "female")
) -> Any:
    """Bars from the value of one stage to that of the next, whiskers for what the next adds.

    Parameters
    ----------
    frame
        stage, before, value, added, low, high (of what the stage adds), in the order of stages.
    colours
        Of a rise, and of a fall.
    """
    order = frame["stage"].to_list()
    y = alt.Y("stage:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, domain=False, ticks=False))
    base = alt.Chart(frame)
    bars = base.mark_bar(height=16, cornerRadius=0).encode(
        x=alt.X("before:Q", title=measure, axis=alt.Axis(grid=True, tickCount=6)),
        x2="value:Q",
        y=y,
        color=alt.condition("datum.value >= datum.before", *(alt.value(named(each)) for each in colours)),
        tooltip=[
            alt.Tooltip("stage:N", title="stage"),
            alt.Tooltip("value:Q", title="value", format="+.4f"),
            alt.Tooltip("added:Q", title="adds", format="+.4f"),
            alt.Tooltip("low:Q", title="adds from", format="+.4f"),
            alt.Tooltip("high:Q", title="to", format="+.4f"),
        ],
    )
    ends = base.transform_calculate(
        from_="datum.low === null ? null : datum.before + datum.low",
        to="datum.high === null ? null : datum.before + datum.high",
    )
    lines = ends.mark_rule(strokeWidth=2, color=named("ink")).encode(x="from_:Q", x2="to:Q", y=y)
    return finished(alt.layer(zero_line("x"), bars, lines), height=max(90, 34 * len(order)))


def stage_figures(found: Trace) -> list[Figure]:
    """A waterfall for each measure."""
    figures = []
    for measure in found.measures:
        rows, before = [], 0.0
        for stage in found.of(measure):
            added = stage.value if stage.added is None else stage.added
            rows.append((stage.name, before, stage.value, added, stage.added_low, stage.added_high))
            before = stage.value
        frame = pl.DataFrame(
            rows, schema=["stage", "before", "value", "added", "low", "high"], orient="row",
            infer_schema_length=None,
        )  # fmt: skip
        count = found.of(measure)[0].queries
        told = ", ".join(f"{name} {added:+.3f}" for name, _, _, added, _, _ in rows)
        lines = "; lines are the intervals of what a stage adds" if frame["low"].count() else ""
        figures.append(
            Figure(
                f"stages-{slug(measure)}",
                f"{measure}: what each stage adds",
                f"Bars go from the value of one stage to that of the next, {_over(count)}{lines}.",
                f"What each stage adds to {measure}: {told}.",
                stage_waterfall(frame, measure=measure, colours=_colours(measure)),
                frame,
            )
        )
    return figures


def _over(count: int) -> str:
    return "over one query" if count == 1 else f"over the same {count:,} queries"


def _colours(measure: str) -> tuple[str, str]:
    """Groups where the sign points to them; else good and bad."""
    wanted = parse(measure)
    groups = ("male", "female") if wanted.params.get("of") != "female" else ("female", "male")
    return {"high": ("good", "bad"), "low": ("bad", "good")}.get(preferred_direction(wanted), groups)


def preference_figures(found: Mirror) -> list[Figure]:
    """Preference and content of each ranker, with their intervals."""
    parts = [
        found.summary.select(
            pl.lit(part).alias("measure"),
            run="ranker",
            value=part,
            low=f"{part}_low",
            high=f"{part}_high",
            queries="queries",
        )
        for part in ("preference", "content")
    ]
    frame = pl.concat(parts).drop_nulls("value")
    if frame.is_empty():
        return []
    measure, of, against = found.summary.select("measure", "positive", "negative").row(0)
    told = "; ".join(
        f"{ranker} {value or 0:+.3f}" for ranker, value in found.summary.select("ranker", "preference").rows()
    )
    return [
        Figure(
            "preference",
            f"Preference and content, {measure}",
            "Preference: half the sum of the leans on the texts and on their mirror image. Content: half the "
            f"difference. Over {_spanned(found.summary['queries'].to_list())}; above 0 {of}.",
            f"Preference of each ranker in {measure}: {told}.",
            intervals(frame, title=f"{measure}: ← {against} · {of} →"),
            frame,
        )
    ]


def _spanned(counts: list[int]) -> str:
    """How many queries: one number, or the fewest and the most."""
    few, many = min(counts), max(counts)
    return counted(few, "query", "queries") if few == many else f"{few:,} to {many:,} queries"


def stages_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    result = more.get("stages") or audit.stages
    if result is None:
        return None
    lead = "What each stage adds. Documents without an order count with their mean over all orders."
    return Section.of("stages", "Where bias enters", lead, stage_figures(result))


def preference_section(audit: Audit, more: Mapping[str, Any]) -> Section | None:
    result = more.get("preference") or audit.preference
    if result is None:
        return None
    verdicts = result.summary.select("ranker", "verdict", "queries").rows()
    said = "; ".join(
        f"{ranker}: {verdict} ({counted(queries, 'query', 'queries')})"
        for ranker, verdict, queries in verdicts
    )
    lead = f"The collection, ranked as it is and with women and men swapped. {said}."
    return Section.of("preference", "The ranker or the texts", lead, preference_figures(result))
