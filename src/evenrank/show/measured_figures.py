"""Figures of what an audit measured: values, cut-offs, changes, words, stereotypes."""

from __future__ import annotations

from typing import Any

import polars as pl

from evenrank.auditing.result import Audit
from evenrank.measures.base import direction, good, is_bias, leans, short
from evenrank.measures.measurements import Measurement
from evenrank.measures.reinforcement import Reinforcement
from evenrank.show import charts
from evenrank.show.figures import Figure, slug

RUNS = 6
"""Runs that get figures of their own; tables have all."""
SHARED = 12
"""Runs that a shared chart draws: more cannot be told apart. Its numbers have all."""


def first_runs(audit: Audit, most: int) -> list[str]:
    """The baseline and the first of the other runs, in their order; all if they are few."""
    others = [run for run in audit.runs if run != audit.baseline]
    shown = set(others[: most - 1] if audit.baseline in audit.runs else others[:most]) | {audit.baseline}
    return [run for run in audit.runs if run in shown]


def value_figures(audit: Audit) -> list[Figure]:
    rows = pl.DataFrame(
        [
            (short(m.measure), m.run, m.value, m.low, m.high, _family(m))
            for m in _by_measure(audit)
            if m.value is not None
        ],
        schema=["measure", "run", "value", "low", "high", "family"],
        orient="row",
        infer_schema_length=None,
    )
    found: list[Figure] = []
    for family, title, axis, caption in (
        (
            "lean",
            "Lean toward a group",
            "value",
            "Dots are values, lines their intervals. A line that crosses 0 leaves the side open.",
        ),
        ("share", "Effectiveness and fairness, from 0 to 1", "value", "Further right is better."),
    ):
        frame = rows.filter(pl.col("family") == family).drop("family")
        if frame.is_empty():
            continue
        drawn, few = _first(audit, frame)
        chart = charts.intervals(drawn, balance=0.0 if family == "lean" else None, title=axis)
        alt = f"Values with intervals of {_listed(frame['measure'])} for {_listed(drawn['run'])}."
        found.append(Figure(f"values-{family}", title, caption + few, alt, chart, frame))
    return found


def _family(m: Measurement) -> str:
    if leans(m.measure):
        return "lean"
    return "share" if good(m.measure) == "high" and 0 <= (m.value or 0) <= 1 else "other"


def _by_measure(audit: Audit) -> list[Measurement]:
    return [audit.measured[run, measure] for measure in audit.measures for run in audit.runs]


def cutoff_figures(audit: Audit) -> list[Figure]:
    found: list[Figure] = []
    if audit.curves.is_empty() or audit.curves["cutoff"].n_unique() < 2:
        return []
    for (name,), frame in audit.curves.group_by(["measure"], maintain_order=True):
        balance = None if name == "NFaiRR" else 0.0
        frame = frame.drop("measure").drop_nulls("value")
        if frame.is_empty():
            continue
        says = "higher is fairer" if name == "NFaiRR" else _sides(audit, audit.headline)
        drawn, few = _first(audit, frame)
        ends = "; ".join(
            f"{run} goes from {rows['value'][0]:+.3f} at {rows['cutoff'][0]} "
            f"to {rows['value'][-1]:+.3f} at {rows['cutoff'][-1]}"
            for (run,), rows in drawn.group_by(["run"], maintain_order=True)
        )
        found.append(
            Figure(
                f"cutoff-{slug(str(name))}",
                f"{name} by cut-off",
                f"{says[:1].upper()}{says[1:]}. Bands are intervals.{few}",
                f"{name} against the cut-off: {ends}.",
                charts.bias_by_cutoff(drawn, balance=balance, title=str(name)),
                frame,
            )
        )
    return found


def change_figures(audit: Audit) -> list[Figure]:
    found: list[Figure] = []
    useful = next((m for m in audit.measures if not is_bias(m)), None)
    for measure in (audit.headline, useful):
        if measure is None:
            continue
        sides = None
        if leans(measure):
            of, against = measure.pair(audit.groups)
            sides = (against, of)
        for one in [c for c in audit.comparisons if c.measure == measure][:RUNS]:
            if not len(one.changes):
                continue
            frame = charts.waterfall_data(one.query_ids, one.changes, dict(audit.queries))
            rises, falls = int((one.changes > 0).sum()), int((one.changes < 0).sum())
            same = len(one.changes) - rises - falls
            caption = f"{rises:,} queries rise, {falls:,} fall, {same:,} stay."
            if frame["queries"].max() != 1:
                caption += " Neighbours share a bar."
            found.append(
                Figure(
                    f"change-{slug(short(measure))}-{slug(one.run)}-{len(found)}",
                    f"{short(measure)}: {one.run} against {one.baseline}",
                    caption,
                    f"Change of {short(measure)} from {one.baseline} to {one.run} by query: {caption}",
                    charts.waterfall(frame, measure=short(measure), sides=sides),
                    frame,
                )
            )
    return found


def word_figures(audit: Audit) -> list[Figure]:
    found: list[Figure] = []
    for run, attribution in list(audit.attributions.items())[:RUNS]:
        if attribution.words is None or attribution.words.is_empty():
            continue
        frame = attribution.words.head(14).select("word", "group", "contribution")
        top = ", ".join(f"{word} {value:+.3f}" for word, _, value in frame.head(5).iter_rows())
        found.append(
            Figure(
                f"words-{slug(run)}-{len(found)}",
                f"{short(audit.headline) if audit.headline else ''} of {run}, by word",
                f"Over all words contributions add up to {attribution.value:+.3f}.",
                f"Words that add most: {top}.",
                charts.word_bars(frame, list(audit.groups)),
                frame,
            )
        )
    return found


def stereotype_figures(audit: Audit) -> list[Figure]:
    from evenrank.measures.stereotype_analysis import scatter

    found: list[Figure] = []
    for m in audit.measured:
        if not isinstance(m, Reinforcement) or m.line is None or len(found) >= RUNS:
            continue
        drawn = scatter(m)
        points = drawn.points.with_columns(
            query=drawn.points["query_id"].replace_strict(
                dict(audit.queries), default=drawn.points["query_id"]
            )
            if audit.queries
            else drawn.points["query_id"]
        ).select(pl.col("query").str.slice(0, 90), "x", "y", "contribution")
        shown = charts.sampled(points)
        low, high = float(points["x"].min()), float(points["x"].max())  # type: ignore[arg-type]
        lines = [("this run", drawn.line), ("perfect engine", drawn.perfect)]
        ends = pl.DataFrame(
            [
                (engine, x, line.intercept + line.slope * x)
                for engine, line in lines
                if line is not None
                for x in (low, high)
            ],
            schema=["engine", "x", "y"],
            orient="row",
        )
        perfect = "" if drawn.perfect is None else f" A perfect engine has {drawn.perfect.slope:+.3f}."
        few = (
            ""
            if shown.height == points.height
            else f" {shown.height:,} of {points.height:,} queries are drawn."
        )
        found.append(
            Figure(
                f"stereotype-{slug(m.run)}-{len(found)}",
                f"{short(m.measure)} of {m.run}: {m.value:+.3f}",
                f"Each point is a query: purple sounds female, orange male. The steeper the line, the more "
                f"results follow.{perfect}{few}",
                f"Genderedness of results against queries for {m.run}; the slope is {m.value:+.3f}.{perfect}",
                charts.stereotype_scatter(shown, ends),
                shown,
            )
        )
    return found


def _first(audit: Audit, frame: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows that a shared chart draws, and a sentence where these are not all."""
    if len(audit.runs) <= SHARED:
        return frame, ""
    shown = frame.filter(pl.col("run").is_in(first_runs(audit, SHARED)))
    return shown, f" {SHARED} of {len(audit.runs):,} runs are drawn."


def _sides(audit: Audit, measure: Any) -> str:
    return direction(measure, audit.groups) if measure is not None else ""


def _listed(names: pl.Series) -> str:
    return ", ".join(names.unique(maintain_order=True).to_list())
