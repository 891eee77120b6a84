"""What measuring gives: values with intervals, their spread over queries, and what was left out.

Which queries count is part of it: all, or those that a label calls neutral (or female, or male). The papers
measure bias on queries that name no gender: leaning to one side is no bias where the query asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank import stats
from evenrank.data.read import read_genders
from evenrank.errors import InputError, choice_hint
from evenrank.measures.lists import Floats
from evenrank.show.grid import Drawn

if TYPE_CHECKING:
    from evenrank.measures.pairs import Pair


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """One measure of one run.

    Attributes
    ----------
    summary
        Value, interval, number of queries, parts (one for each group), mean of absolute values, standard
        deviation over queries (`spread`) and quantiles.
    left_out
        How many queries have no value, by reason.
    ties
        Share of the measured queries where the ids of documents, not the ranker, decide what is measured:
        those with a tie across the cut-off, and, for measures that weigh ranks differently (all but RaB
        and its like), with any tie that touches the documents above it. None where it does not apply.
    background
        The same difference over the whole collection and over the judged-relevant documents, and how
        far the run is from each; computed when first asked for.
    only, subsets
        The label of the measured queries, and the same measure over queries with other labels.
    baselines
        The same measure of rankings that serve as yardsticks, for measures that have any; computed when
        first asked for.
    """

    run: str
    measure: Measure
    summary: Summary
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
    yardsticks: Callable[[], dict[str, Summary]] = dict

    @cached_property
    def background(self) -> dict[str, dict[str, Any]]:
        return self.compare()

    @cached_property
    def baselines(self) -> dict[str, Summary]:
        return self.yardsticks()

    @property
    def value(self) -> float | None:
        return self.summary.value

    @property
    def low(self) -> float | None:
        return self.summary.low

    @property
    def high(self) -> float | None:
        return self.summary.high

    @property
    def queries(self) -> int:
        return self.summary.queries

    @property
    def parts(self) -> dict[str, float]:
        return self.summary.parts

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
        """As JSON knows it; optional entries are there only where they say something."""
        signed = getattr(self.measure, "SIGNED", False)
        row: dict[str, Any] = {
            "measure": str(self.measure),
            **self.summary.to_dict(),
            "left_out": self.left_out,
        }
        measure: Any = self.measure
        if getattr(measure, "SIGN_NAMES_GROUP", False) and len(self.parts) == 2:
            row["positive"] = measure.pair(tuple(self.parts))[0]
        if signed:
            row |= {"abs": self.summary.abs, "beyond": {"0.1": self.beyond(0.1)}}
        row |= {"spread": self.summary.spread, "quantiles": self.summary.quantiles}
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
    """Measures of runs, in the order they were asked for.

    `measurements["bm25", "ARaB@10"]` is one of them (`measurements["ARaB@10"]` where there is one run),
    iteration goes over all. `pairs` compares every run with every other, if that was asked for.
    """

    runs: Mapping[str, tuple[Measurement, ...]]
    cautions: tuple[str, ...] = ()
    describe: Callable[[], dict[str, Any]] = dict
    pairs: tuple[Pair, ...] = ()

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """What the numbers were made from and how; fingerprints are computed when first asked for."""
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
        """Everything, as JSON knows it."""
        return {
            "runs": [
                {"run": run, "measures": [m.to_dict(per_query) for m in measurements]}
                for run, measurements in self.runs.items()
            ],
            **({"pairs": [pair.to_dict() for pair in self.pairs]} if self.pairs else {}),
            "cautions": list(self.cautions),
            "provenance": self.provenance,
        }

    def marks(self, m: Measurement) -> str:
        """Raised letters of the runs that a run differs from, where pairs were compared."""
        if not self.pairs:
            return ""
        from evenrank.measures.pairs import marks

        return marks(self.pairs, self.runs, m.run, m.measure)

    def remarks(self) -> list[str]:
        """What the marks mean."""
        if not self.pairs:
            return []
        from evenrank.measures.pairs import legend

        return [legend(self.pairs, self.runs)]

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
            spread = (m.summary.abs, m.summary.spread, m.ties)
            rows.append((m.run, str(m.measure), *counted, *spread, *map(m.parts.get, parts)))
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
        rows = [f"{m.run}  {m.measure}  {_interval(m)} {self.marks(m)}".rstrip() for m in self]
        return "\n".join([*rows, *self.remarks(), *self.cautions])


def _interval(m: Measurement) -> str:
    if m.value is None:
        return "undefined"
    form = "+.4f" if getattr(m.measure, "SIGNED", False) else ".4f"
    bounds = "" if m.low is None or m.high is None else f" [{m.low:{form}}, {m.high:{form}}]"
    return f"{m.value:{form}}{bounds}"


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Options:
    """How runs are measured, see `measure`; no intervals when `confidence` is None."""

    only: str | None = None
    explain: bool = False
    confidence: float | None = 0.95
    resamples: int = 2000
    seed: int = 0

    def interval(self, values: Floats) -> tuple[float | None, float | None]:
        if self.confidence is None or len(values) < 2:
            return None, None
        result = stats.mean_interval(
            values, confidence=self.confidence, resamples=self.resamples, seed=self.seed
        )
        return result.low, result.high


class Change(NamedTuple):
    """One run against another: the comparison, and the difference of each query, if there is one."""

    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats


@dataclass(frozen=True)
class Summary:
    """A measure over a set of queries. None stands for undefined, never NaN."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    queries: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    abs: float | None = None
    spread: float | None = None
    quantiles: dict[str, float] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        values: Floats,
        parts: Mapping[str, Floats],
        chosen: NDArray[np.bool_],
        *,
        signed: bool,
        options: Options,
    ) -> Summary:
        """Summary of the chosen queries that have a value."""
        chosen = chosen & ~np.isnan(values)
        taken = values[chosen]
        if len(taken) == 0:
            return cls()
        low, high = options.interval(taken)
        return cls(
            value=float(taken.mean()),
            low=low,
            high=high,
            queries=len(taken),
            parts={name: float(part[chosen].mean()) for name, part in parts.items()},
            abs=float(np.abs(taken).mean()) if signed else None,
            spread=float(taken.std(ddof=1)) if len(taken) > 1 else None,
            quantiles={
                str(p): float(q) for p, q in zip(QUANTILES, np.quantile(taken, QUANTILES), strict=True)
            },
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "queries": self.queries,
            "parts": self.parts,
        }


SUBSETS = ("neutral", "female", "male", "other", "all")


def gender_labels(genders: Any) -> dict[str, str]:
    """Label of each query: neutral, female, male or other; from anything `read_genders` reads."""
    return dict(read_genders(genders).iter_rows())


def check_subset(only: str | None, labels: Mapping[str, str] | None) -> None:
    """Refuse a subset that cannot be formed."""
    if only is not None and only not in SUBSETS:
        raise InputError(f"only cannot be {only!r}; {choice_hint(only, SUBSETS)}")
    if only not in (None, "all") and labels is None:
        raise InputError(f"only {only!r} needs gender labels for the queries; give genders")


def labels_of(query_ids: pl.Series, labels: Mapping[str, str] | None) -> pl.Series:
    """Label of each query, null where it has none."""
    rows = [None if labels is None else labels.get(query) for query in query_ids.to_list()]
    return pl.Series("label", rows, dtype=pl.String)


NOT_IN_QUERIES = "not among the queries given"
"""Why a query that is ranked or judged has no value."""


def left_out(
    known: Iterable[str],
    values: Collection[str],
    *,
    labels: Mapping[str, str] | None = None,
    only: str = "all",
    otherwise: str,
    reasons: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """How many of the known queries have no value, by reason.

    A query outside the subset counts under its label; one within it that is not in `values` under
    its own entry in `reasons`, or under `otherwise`.
    """
    result: Counter[str] = Counter()
    for query in known:
        label = None if labels is None else labels.get(query)
        if only != "all" and label != only:
            result["no gender label" if label is None else f"labelled {label}"] += 1
        elif query not in values:
            result[(reasons or {}).get(query, otherwise)] += 1
    return dict(sorted(result.items()))
