"""Results of measuring: values with intervals, their spread over queries, and what was left out.

Which queries count is part of it: all, or those that a label calls neutral (or female, or male). The papers
measure bias on queries that name no gender: leaning to one side is no bias where the query asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank.errors import InputError
from evenrank.measures.lists import Floats
from evenrank.show.grid import Drawn

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Which quantiles of the values of single queries are kept."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A measure over a set of queries. None stands for undefined, never NaN.

    Attributes
    ----------
    value, low, high
        The mean over the queries and its interval.
    queries
        How many queries have a value.
    parts
        The mean part of each group in the value, where the measure has parts.
    abs, spread, quantiles
        The mean of absolute values, where the sign says something; standard deviation and quantiles of the
        queries' values.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    queries: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    abs: float | None = None
    spread: float | None = None
    quantiles: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("value", "low", "high", "queries", "parts")}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Measurement(Summary):
    """One measure of one run, over the queries that count.

    Attributes
    ----------
    left_out
        How many queries have no value, by reason.
    ties
        Share of the measured queries where the ids of documents, not the ranker, decide what is measured:
        those with a tie across the cut-off, and, for measures that weigh ranks differently (all but RaB
        and its like), with any tie that touches the documents above it. None where it does not apply.
    background
        The same difference over the whole collection and over the judged-relevant documents, and how
        far the run is from each; computed on first use.
    only, subsets
        The label of the measured queries, and the same measure over queries with other labels.
    baselines
        The same measure of other rankings to compare with, for measures that have any.
    """

    run: str
    measure: Measure
    left_out: dict[str, int]
    query_ids: pl.Series
    values: Floats
    part_values: Mapping[str, Floats] = field(default_factory=dict)
    ties: float | None = None
    compare: Callable[[], dict[str, dict[str, Any]]] = dict
    only: str | None = None
    subsets: dict[str, Summary] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    attribution: Any = None

    @cached_property
    def background(self) -> dict[str, dict[str, Any]]:
        return self.compare()

    @property
    def baselines(self) -> Mapping[str, Summary]:
        return {}

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __str__(self) -> str:
        return f"{self.run}  {self.measure}  {_interval(self)}  {self.queries:,} queries"

    def __repr__(self) -> str:
        return str(self)

    def per_query(self) -> dict[str, float]:
        """Value of each measured query."""
        return dict(zip(self.query_ids.to_list(), self.values.tolist(), strict=True))

    def beside(self, other: Measurement) -> tuple[pl.Series, Floats, Floats]:
        """The queries that both measured, and the values of each."""
        left = pl.DataFrame({"query_id": self.query_ids, "a": self.values})
        right = pl.DataFrame({"query_id": other.query_ids, "b": other.values})
        both = left.join(right, on="query_id", maintain_order="left")
        return both["query_id"], both["a"].to_numpy(), both["b"].to_numpy()

    def beyond(self, bound: float) -> float | None:
        """Share of the measured queries whose value is larger than `bound`, whatever its sign."""
        return float((np.abs(self.values) > bound).mean()) if len(self.values) else None

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """JSON-ready dict; optional entries are there only where they say something."""
        signed = getattr(self.measure, "SIGNED", False)
        row: dict[str, Any] = {
            "measure": str(self.measure),
            **super().to_dict(),
            "left_out": self.left_out,
        }
        measure: Any = self.measure
        if getattr(measure, "SIGN_NAMES_GROUP", False) and len(self.parts) == 2:
            row["positive"] = measure.pair(tuple(self.parts))[0]
        if signed:
            row |= {"abs": self.abs, "beyond": {"0.1": self.beyond(0.1)}}
        row |= {"spread": self.spread, "quantiles": self.quantiles}
        if self.ties is not None:
            row["ties"] = self.ties
        if self.background:
            row["background"] = self.background
        if self.only is not None:
            row["only"] = self.only
        if self.subsets:
            row["subsets"] = {
                label: subset.to_dict() | ({"abs": subset.abs} if signed else {})
                for label, subset in self.subsets.items()
            }
        if self.notes:
            row["notes"] = list(self.notes)
        if self.attribution is not None:
            row["attribution"] = self.attribution.to_dict()
        if per_query:
            row["per_query"] = self.per_query()
        return row


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Drawn):
    """Measures of runs, in the order in which they were given.

    `measurements["bm25", "ARaB@10"]` is one of them (`measurements["ARaB@10"]` where there is one run),
    iteration goes over all.
    """

    runs: Mapping[str, tuple[Measurement, ...]]
    warnings: tuple[str, ...] = ()
    describe: Callable[[], dict[str, Any]] = dict

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """What the numbers were computed from, and how; fingerprints are computed on first use."""
        return self.describe()

    def __iter__(self) -> Iterator[Measurement]:
        for measurements in self.runs.values():
            yield from measurements

    def __getitem__(self, key: int | str | Measure | tuple[str, str | Measure]) -> Measurement:
        """One measurement: by measure, by run and measure, or by its place among all."""
        if isinstance(key, int):
            return tuple(self)[key]
        run, wanted = key if isinstance(key, tuple) else (None, key)
        if run is None:
            if len(self.runs) > 1:
                raise InputError(f"there are several runs; name one: {', '.join(self.runs)}")
            run = next(iter(self.runs))
        if run not in self.runs:
            raise InputError(f"there is no run {run!r}; one of {', '.join(self.runs)}")
        from evenrank.measures.parse import parse  # which knows all measures, and they know their results

        measure = parse(wanted)
        for measurement in self.runs[run]:
            if measurement.measure == measure:
                return measurement
        raise InputError(
            f"{measure} was not measured; {', '.join(str(m.measure) for m in self.runs[run])} were"
        )

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "runs": [
                {"run": run, "measures": [m.to_dict(per_query) for m in measurements]}
                for run, measurements in self.runs.items()
            ],
            "warnings": list(self.warnings),
            "provenance": self.provenance,
        }

    def frame(self) -> pl.DataFrame:
        """One row for each run and measure: value, interval, queries, and a column for each group's part."""
        parts = dict.fromkeys(name for m in self for name in m.parts)
        schema = {
            **dict.fromkeys(("run", "measure"), pl.String),
            **dict.fromkeys(("value", "low", "high"), pl.Float64),
            **dict.fromkeys(("queries", "left_out"), pl.Int64),
            **dict.fromkeys(("abs", "spread", "ties", *parts), pl.Float64),
        }
        rows = []
        for m in self:
            counted = (m.value, m.low, m.high, m.queries, sum(m.left_out.values()))
            rows.append((m.run, str(m.measure), *counted, m.abs, m.spread, m.ties, *map(m.parts.get, parts)))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def per_query(self) -> pl.DataFrame:
        """One row for each run, measure and measured query: the value, and a column for each group's part."""
        parts = dict.fromkeys(name for m in self for name in m.part_values)
        schema = {"run": pl.String, "measure": pl.String, "query_id": pl.String, "value": pl.Float64}
        frames = [
            pl.DataFrame(
                {
                    "run": [m.run] * len(m.values),
                    "measure": [str(m.measure)] * len(m.values),
                    "query_id": m.query_ids,
                    "value": m.values,
                    **{name: m.part_values.get(name, [None] * len(m.values)) for name in parts},
                },
                schema={**schema, **dict.fromkeys(parts, pl.Float64)},
            )
            for m in self
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=schema)

    def __str__(self) -> str:
        rows = [f"{m.run}  {m.measure}  {_interval(m)}" for m in self]
        return "\n".join([*rows, *self.warnings])


def _interval(m: Measurement) -> str:
    if m.value is None:
        return "undefined"
    form = "+.4f" if getattr(m.measure, "SIGNED", False) else ".4f"
    bounds = "" if m.low is None or m.high is None else f" [{m.low:{form}}, {m.high:{form}}]"
    return f"{m.value:{form}}{bounds}"


@dataclass(frozen=True)
class Options:
    """How runs are measured, see `measure`; no intervals when `confidence` is None."""

    only: str | None = None
    explain: bool = False
    confidence: float | None = 0.95
    resamples: int = 2000
    seed: int = 0
