"""`er.trace`: where does bias enter? What each stage of a ranking adds, over the same queries.

Collection → candidates → first-stage order → re-ranked list → mitigated list. A set without an order counts
with its expectation over all orders, so that candidates appear twice: as a set, and in order. What the stages
add up to is the difference of the last from the first, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data.schema import RUN_SCHEMA
from evenrank.errors import InputError
from evenrank.measures.base import LinearMeasure, is_sum
from evenrank.measures.evaluate import listed_measures, measured
from evenrank.measures.inputs import Inputs, MeasureInputs, named_runs
from evenrank.measures.lists import WHOLE_LIST, Floats, RankedLists
from evenrank.measures.results import Options
from evenrank.show import numbers
from evenrank.show.grid import Grid, Recorded

MEASURES = ("ARaB@10", "NFaiRR@10", "ExposureGap@10")
COLLECTION = "collection"


@dataclass(frozen=True)
class Stage:
    """One stage, as one measure sees it.

    Attributes
    ----------
    value, low, high
        Mean over the queries and its interval; none where every query has the same value, as the collection.
    added, added_low, added_high, p, p_holm
        What the stage adds to the one before, query by query, with Student's interval and p, corrected (Holm)
        over all stages and measures. None for the first.
    """

    measure: str
    name: str
    queries: int
    value: float
    low: float | None
    high: float | None
    added: float | None = None
    added_low: float | None = None
    added_high: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, eq=False)
class Trace(Recorded):
    """What each stage of a ranking adds to each measure.

    Attributes
    ----------
    stages
        Stage by stage, measure by measure.
    left_out
        By measure: queries that lack a value at some stage.
    values
        ``measure, stage, query_id, value``.
    """

    stages: tuple[Stage, ...]
    left_out: Mapping[str, int]
    values: pl.DataFrame
    confidence: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stage.measure for stage in self.stages))

    def of(self, measure: str) -> tuple[Stage, ...]:
        """The stages of one measure, in their order."""
        return tuple(stage for stage in self.stages if stage.measure == measure)

    def frame(self) -> pl.DataFrame:
        """One row for each measure and stage."""
        return pl.DataFrame([asdict(stage) for stage in self.stages], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of single queries, as JSON knows it."""
        return {
            "stages": [asdict(stage) for stage in self.stages],
            "left_out": dict(self.left_out),
            "confidence": self.confidence,
            "provenance": dict(self.provenance),
        }

    def grid(self) -> Grid:
        """The stages as a table for people."""
        level = numbers.level(self.confidence)
        rows: list[list[str]] = []
        for measure in self.measures:
            rows += [[]] if rows else []
            for stage in self.of(measure):
                rows.append(
                    [
                        measure if stage.added is None else "",
                        stage.name,
                        f"{stage.value:+.3f}",
                        numbers.interval(stage.low, stage.high),
                        "" if stage.added is None else f"{stage.added:+.3f}",
                        numbers.interval(stage.added_low, stage.added_high),
                        "" if stage.added is None else numbers.p_value(stage.p_holm),
                        f"{stage.queries:,}",
                    ]
                )
        heads = ["measure", "stage", "value", f"{level} interval", "adds", f"{level} interval", "corrected p"]
        return Grid([*heads, "queries"], rows, left=2)

    def remarks(self) -> list[str]:
        """What a reader of the table has to know."""
        return [
            f"{measure}: {numbers.counted(count, 'query', 'queries')} left out, without a value at some stage"
            for measure, count in self.left_out.items()
            if count
        ]

    def __str__(self) -> str:
        return "\n".join([self.grid().text(), *self.remarks()])


def trace(
    stages: Any,
    measures: str | Measure | Iterable[str | Measure] = MEASURES,
    *,
    collection: bool = True,
    only: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Trace:
    """What each stage of a ranking adds to bias, over the same queries.

    Parameters
    ----------
    stages
        Runs by name, in order: the candidates of the first stage, then what later stages made of them
        (re-ranked, mitigated, the passages that a language model was given).
    measures
        Measures that are sums over documents: RaB, ARaB, FaiRR, NFaiRR, ExposureGap, LIWC.
    collection
        Begin with the collection: all its documents, in expectation over all orders.
    background
        What NFaiRR compares with, the same at every stage; the first stage unless given.
    docs, tally, genders, labels, only, …
        As for :func:`evenrank.measure`.

    Notes
    -----
    For documents without an order the value is the exact mean over all their orders: each document gets the
    mean weight of the ranks. Added values telescope: their sum is the last value minus the first.
    """
    named = named_runs(stages)
    wanted = listed_measures(measures)
    for one in wanted:
        if not is_sum(one):
            raise InputError(f"{one} is no sum over documents, so its mean over all orders is not known; "
                             "RaB, ARaB, FaiRR, NFaiRR, ExposureGap and LIWC are")  # fmt: skip
    if COLLECTION in named and collection:
        raise InputError("a stage is called 'collection', as is the first of all; give it another name")
    inputs = Inputs.open(named, tally=tally, **given)
    first = next(iter(inputs.runs))
    if not set.intersection(*({*run["query_id"].to_list()} for run in inputs.runs.values())):
        raise InputError("no query is ranked at every stage; are these runs of the same queries?")
    if inputs.background is None:
        inputs = replace(inputs, background=inputs.runs[first])
    result = measured(inputs, wanted, Options(only, confidence=None))
    rows: list[Stage] = []
    left_out: dict[str, int] = {}
    values: list[pl.DataFrame] = []
    for measure in wanted:
        assert is_sum(measure)
        at: dict[str, dict[str, float]] = _unordered(inputs, measure, inputs.runs[first], first)
        if not collection:
            del at[COLLECTION]
        for number, name in enumerate(inputs.runs):
            at[f"{name}, in order" if number == 0 else name] = result[name, measure].per_query()
        everywhere = [q for q in result[first, measure].per_query() if all(q in each for each in at.values())]
        requested = {query for each in result.runs.values() for m in each if m.measure == measure
                 for query in m.per_query()}  # fmt: skip
        left_out[str(measure)] = len(requested) - len(everywhere)
        if not everywhere:
            raise InputError(f"no query has a value of {measure} at every stage")
        table = {name: np.array([each[q] for q in everywhere]) for name, each in at.items()}
        rows += _stages(str(measure), table, confidence, seed)
        values += [
            pl.DataFrame({"measure": str(measure), "stage": name, "query_id": everywhere, "value": each})
            for name, each in table.items()
        ]
    corrected = stats.holm([row.p for row in rows])
    if inputs.docs is not None:
        inputs.docs.forget()
    return Trace(
        stages=tuple(replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)),
        left_out=left_out,
        values=pl.concat(values),
        confidence=confidence,
        provenance=result.provenance,
    )


def _unordered(
    inputs: Inputs, measure: LinearMeasure, candidates: pl.DataFrame, name: str
) -> dict[str, dict[str, float]]:
    """The collection and the candidates without their order: by query, in expectation over all orders."""
    lists = inputs.lists(candidates, [measure], name, depth=WHOLE_LIST)
    queries = lists.query_ids.to_list()
    documents = lists.tally["doc_id"]
    everything = pl.DataFrame(
        {
            "query_id": pl.repeat(COLLECTION, len(documents), eager=True, dtype=pl.String),
            "doc_id": documents,
            "score": -np.arange(1.0, len(documents) + 1),
            "rank": np.arange(1, len(documents) + 1),
        },
        schema=RUN_SCHEMA,
    )
    everywhere = inputs.lists(everything, [measure], COLLECTION, depth=WHOLE_LIST)
    alike = float(_expected(measure, everywhere)[0]) if len(documents) else 0.0
    sums = {
        COLLECTION: np.full(len(queries), alike),
        f"{name}, as a set": _expected(measure, lists),
    }
    return {
        stage: {q: v for q, v in zip(queries, measure.scaled(each, lists).tolist(), strict=True) if v == v}
        for stage, each in sums.items()
    }


def _expected(measure: LinearMeasure, lists: RankedLists) -> Floats:
    """The sum of each whole list in expectation over all orders of its documents.

    That is (Σ weights / n) · Σ values; `LinearMeasure.scaled` makes values of it.
    """
    cutoff = int(measure["cutoff"])
    lengths, which = np.unique(lists.lengths, return_inverse=True)
    means = np.array([measure.weights(n, min(n, cutoff)).sum() / n for n in lengths.tolist()])
    return np.add.reduceat(measure.each_value(lists), lists.starts) * means[which]


def _stages(measure: str, table: Mapping[str, np.ndarray], confidence: float, seed: int) -> list[Stage]:
    rows: list[Stage] = []
    before: np.ndarray | None = None
    for name, each in table.items():
        between: Any = stats.Interval(None, None, None)
        if len(each) > 1 and not stats.intervals.is_constant(each):
            between = stats.mean_interval(each, confidence=confidence, seed=seed)
        row = Stage(measure, name, len(each), float(each.mean()), between.low, between.high)
        if before is not None:
            change = stats.paired(each, before, confidence=confidence)
            low, high = (change.low, change.high) if len(each) > 1 else (None, None)
            row = replace(row, added=change.difference, added_low=low, added_high=high, p=change.p)
        rows.append(row)
        before = each
    return rows
