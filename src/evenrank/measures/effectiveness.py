"""Effectiveness: measures of ir_measures over the judged queries, 0 where nothing was returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.measures.base import summarise
from evenrank.measures.lists import WHOLE_LIST, Floats
from evenrank.measures.results import Options, Summary
from evenrank.stats.rounding import round_significant


def score_effectiveness(
    run: pl.DataFrame, qrels: pl.DataFrame, measures: Sequence[Measure]
) -> tuple[pl.Series, NDArray[np.bool_], dict[Measure, Floats]]:
    """The judged queries in the order of the qrels, for which something was returned, and their values.

    0 where nothing was returned; NaN where something was, but the measure is undefined.
    """
    judged = qrels["query_id"].unique(maintain_order=True)
    # The tools read a run document by document: leave out those that no measure looks at.
    top = run.filter(pl.col("rank") <= max(map(effectiveness_depth, measures)))
    # Queries go by number: some of the tools behind ir_measures (gdeval) know no other ids.
    number = pl.DataFrame({"query_id": judged, "number": pl.int_range(len(judged), eager=True)})
    # Scores that fall by one, down to 1: every tool then ranks as we do, to the last tie, and those that
    # give a document that was not returned a score of 0 (Compat) rank it below all others.
    ranked = top.join(number, on="query_id", maintain_order="left").with_columns(
        score=pl.col("rank").max().over("number") - pl.col("rank") + 1
    )
    relevance = _nested(qrels.join(number, on="query_id", maintain_order="left"), "relevance")
    # What no tool gives a value for is undefined, as Accuracy where nothing relevant was returned.
    unless_found = np.zeros(len(judged))
    unless_found[ranked["number"].unique().to_numpy()] = np.nan
    values = {measure: unless_found.copy() for measure in measures}
    try:
        scores = _nested(ranked, "score")
        for together in _by_tool(values) if scores else ():
            for metric in ir_measures.iter_calc(together, relevance, scores):
                values[metric.measure][int(metric.query_id)] = metric.value
    except (ArithmeticError, TypeError, ValueError) as error:  # a measure or parameter no tool can compute
        names = ", ".join(map(str, values))
        raise InputError(f"ir_measures cannot compute {names}: {' '.join(str(error).split())}") from None
    # Differences that are equal but for their last digits are ties in tests of ranks.
    rounded = {measure: round_significant(each, 12) for measure, each in values.items()}
    return judged, np.isnan(unless_found), rounded


def summarise_effectiveness(
    measure: Measure, values: Floats, chosen: NDArray[np.bool_], options: Options
) -> Summary:
    """The mean over the chosen queries; of NumQ, NumRet and their like the sum, which has no interval."""
    if isinstance(measure.aggregator(), ir_measures.MeanAgg):
        return summarise(values, {}, chosen, signed=False, options=options)
    counted = summarise(values, {}, chosen, signed=False, options=Options(confidence=None))
    return replace(counted, value=float(np.nansum(values[chosen])) if counted.queries else None)


def effectiveness_depth(measure: Measure) -> int:
    """How far down an effectiveness measure looks; with ``judged_only`` others move up, so all of a run."""
    return (
        WHOLE_LIST if measure.params.get("judged_only") else int(measure.params.get("cutoff") or WHOLE_LIST)
    )


def _by_tool(measures: Iterable[Measure]) -> list[list[Measure]]:
    """The measures, apart by the tool that computes them: ir_measures turns undefined into 0 for several."""
    result: dict[str | None, list[Measure]] = {}
    for measure in measures:
        tools = (p for p in ir_measures.DefaultPipeline.providers if p.is_available() and p.supports(measure))
        result.setdefault(next((tool.NAME for tool in tools), None), []).append(measure)
    return list(result.values())


def _nested(table: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for query, document, number in table.select("number", "doc_id", value).iter_rows():
        nested.setdefault(str(query), {})[document] = number
    return nested
