"""Effectiveness of a run, through ir_measures and the evaluation tools behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank.arithmetic import settled
from evenrank.errors import InputError
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats
from evenrank.measures.results import Bootstrap, Measurement, Options, Summary, left_out
from evenrank.measures.views import NOT_LINEAR


def measure_effectiveness(
    name: str, run: pl.DataFrame, measures: Sequence[Measure], inputs: Inputs, options: Options
) -> list[Measurement]:
    """Each effectiveness measure of a normalised run, over the judged queries, 0 where nothing was returned.

    Gender labels restrict it only when a subset was asked for by name.
    """
    if inputs.qrels is None:
        raise InputError(f"{measures[0]} needs relevance judgments; give qrels")
    only = options.only or "all"
    ranked = run.filter(pl.col("rank") == 1)["query_id"].to_list()
    judged, values = effectiveness(run, inputs.qrels, measures)
    chosen = np.array([only == "all" or (inputs.genders or {}).get(query) == only for query in judged], bool)
    expected = [] if inputs.queries is None else inputs.queries["query_id"].to_list()
    unmeasured = left_out(
        dict.fromkeys([*expected, *judged, *ranked]),
        set(judged),
        labels=inputs.genders,
        only=only,
        otherwise="not judged",
    )
    silent = len({query for query, one in zip(judged, chosen, strict=True) if one}.difference(ranked))
    notes = [f"judged queries with nothing returned, counted as 0: {silent:,}"] if silent else []
    if inputs.ties == "expected":
        notes.append(NOT_LINEAR)
    results = []
    for measure in measures:
        found = values[measure]
        undefined = int((chosen & np.isnan(found)).sum())
        defined = chosen & ~np.isnan(found)
        results.append(
            Measurement(
                run=name,
                measure=measure,
                summary=_summary(measure, found, chosen, options),
                left_out=unmeasured | ({"undefined": undefined} if undefined else {}),
                query_ids=pl.Series(judged, dtype=pl.String).filter(pl.Series(defined)),
                values=found[defined],
                only=options.only,
                notes=tuple(notes),
            )
        )
    return results


def _summary(measure: Measure, values: Floats, chosen: NDArray[np.bool_], options: Options) -> Summary:
    if isinstance(measure.aggregator(), ir_measures.MeanAgg):
        return Summary.over(values, {}, chosen, signed=False, bootstrap=options.bootstrap)
    # NumQ, NumRet and their like are sums over queries: no mean, no interval around one.
    counted = Summary.over(values, {}, chosen, signed=False, bootstrap=Bootstrap(confidence=None))
    return replace(counted, value=float(np.nansum(values[chosen])) if counted.queries else None)


def effectiveness(
    run: pl.DataFrame, qrels: pl.DataFrame, measures: Sequence[Measure]
) -> tuple[list[str], dict[Measure, Floats]]:
    """The judged queries, in the order of the qrels, and each measure's values for them.

    0 where nothing was returned; NaN where something was, but the measure is undefined.
    """
    judged = qrels["query_id"].unique(maintain_order=True)
    # Queries go by number: some of the tools behind ir_measures (gdeval) know no other ids.
    number = pl.DataFrame({"query_id": judged, "number": pl.int_range(len(judged), eager=True)})
    # Scores that fall by one, down to 1: every tool then ranks as we do, to the last tie, and those that
    # give a document that was not returned a score of 0 (Compat) rank it below all others.
    ranked = run.join(number, on="query_id", maintain_order="left").with_columns(
        score=pl.col("rank").max().over("number") - pl.col("rank") + 1
    )
    relevance = _nested(qrels.join(number, on="query_id", maintain_order="left"), "relevance")
    # What no tool gives a value for is undefined, as Accuracy where nothing relevant was returned.
    unless_found = np.zeros(len(judged))
    unless_found[ranked["number"].unique().to_numpy()] = np.nan
    values = {measure: unless_found.copy() for measure in measures}
    try:
        scores = _nested(ranked, "score")
        for together in _by_tool(values):
            for metric in ir_measures.iter_calc(together, relevance, scores):
                values[metric.measure][int(metric.query_id)] = settled(metric.value)
    except (ArithmeticError, TypeError, ValueError) as error:  # a measure or parameter no tool can compute
        names = ", ".join(map(str, values))
        raise InputError(f"ir_measures cannot compute {names}: {' '.join(str(error).split())}") from None
    return judged.to_list(), values


def _by_tool(measures: Iterable[Measure]) -> list[list[Measure]]:
    """The measures, apart by the tool that computes them: ir_measures turns undefined into 0 for several."""
    found: dict[str | None, list[Measure]] = {}
    for measure in measures:
        tools = (p for p in ir_measures.DefaultPipeline.providers if p.is_available() and p.supports(measure))
        found.setdefault(next((tool.NAME for tool in tools), None), []).append(measure)
    return list(found.values())


def _nested(table: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for query, document, number in table.select("number", "doc_id", value).iter_rows():
        nested.setdefault(str(query), {})[document] = number
    return nested
