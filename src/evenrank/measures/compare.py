"""Compare runs: paired tests over the queries that both have, corrected for the number of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import polars as pl

from evenrank import stats
from evenrank.data.read import read_table
from evenrank.data.schema import QUERY_ID
from evenrank.errors import InputError, check_choice
from evenrank.measures.lists import Floats
from evenrank.measures.results import Measurement, Measurements
from evenrank.show.grid import Displayed

LEVEL = 0.05
"""Corrected p below which the difference between two runs is called significant."""
_SCHEMA = {
    **dict.fromkeys(("run", "baseline", "measure"), pl.String),
    **dict.fromkeys(("difference", "low", "high", "p", "p_holm", "effect"), pl.Float64),
    **dict.fromkeys(("effect_name", "test"), pl.String),
    "queries": pl.Int64,
    "significant": pl.Boolean,
}


class Change(NamedTuple):
    """One run minus another: the comparison, and the difference of each query, if there is one."""

    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats


@dataclass(frozen=True, eq=False)
class RunComparison:
    """How a measure differs between two runs.

    Attributes
    ----------
    measure
        What was measured; for values of one's own the name in their column measure, else ``value``.
    comparison
        `run` − `baseline` over the queries that both have: difference, interval, p (uncorrected), effect.
        Student's paired test; for GSR a permutation test on refitted slopes.
    p_holm
        p, corrected (Holm) over all comparisons that were made together.
    query_ids, changes
        The difference of each query; empty for GSR, whose values by query are contributions.
    """

    run: str
    baseline: str
    measure: Any
    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected p is below 0.05."""
        return self.p_holm is not None and self.p_holm < LEVEL

    def to_dict(self) -> dict[str, Any]:
        c = self.comparison
        return {
            "run": self.run,
            "baseline": self.baseline,
            "measure": str(self.measure),
            "difference": c.difference,
            "low": c.low,
            "high": c.high,
            "p": c.p,
            "p_holm": self.p_holm,
            "effect": c.effect,
            "effect_name": c.effect_name,
            "test": c.test,
            "queries": c.n,
            "significant": self.significant,
        }


@dataclass(frozen=True, repr=False, eq=False)
class Comparisons(Displayed):
    """The comparisons of :func:`compare`, run by run and in each run measure by measure."""

    rows: tuple[RunComparison, ...]

    def __iter__(self) -> Iterator[RunComparison]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def frame(self) -> pl.DataFrame:
        """One row for each comparison."""
        return pl.DataFrame([one.to_dict() for one in self], schema=_SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        return {"comparisons": [one.to_dict() for one in self]}


def compare(
    values: Any,
    baseline: str | None = None,
    *,
    correction: Literal["holm", "none"] = "holm",
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparisons:
    """Compare runs with a baseline, query by query; a positive difference means that the run is higher.

    Each comparison is a paired t-test over the queries that both runs have, with the interval of the mean
    difference and the effect size d_z = mean / standard deviation of the differences. GSR, a slope over
    queries, is compared by a permutation test, and its interval is a bootstrap.

    Parameters
    ----------
    values
        Values by query: a mapping ``{run: {query: value}}``; a table (a frame, rows or a file) with the
        columns run, query_id, value and optionally measure; or the result of :func:`evenrank.measure`.
    baseline
        The run that the others are compared with. Without it every run is compared with every other.
    correction
        ``holm``: p is corrected over all comparisons of the call. ``none``: it is not.
    confidence, seed
        Level of the intervals, and seed of the tests that draw.

    Examples
    --------
    >>> values = {"old": {"q1": 0.4, "q2": 0.5, "q3": 0.3}, "new": {"q1": 0.6, "q2": 0.6, "q3": 0.6}}
    >>> (row,) = compare(values, baseline="old")
    >>> round(row.comparison.difference, 3), round(row.p_holm, 3)
    (0.2, 0.074)
    """
    check_choice("correction", correction, ("holm", "none"))
    runs = values.runs if isinstance(values, Measurements) else _read_values(values)
    if baseline is not None and baseline not in runs:
        raise InputError(f"there is no run {baseline!r}; one of {', '.join(runs)}")
    if len(runs) < 2:
        raise InputError(f"there is nothing to compare {', '.join(runs)} with; give at least two runs")
    others = [(run, baseline) for run in runs if run != baseline] if baseline else combinations(runs, 2)
    rows = []
    for run, other in others:
        theirs = {m.measure: m for m in runs[other]}
        for mine in runs[run]:
            if mine.measure in theirs:
                change = difference(mine, theirs[mine.measure], confidence=confidence, seed=seed)
                rows.append(RunComparison(run, other, mine.measure, *change))
    if correction == "holm":
        corrected = stats.holm([one.comparison.p for one in rows])
        rows = [replace(one, p_holm=p) for one, p in zip(rows, corrected, strict=True)]
    return Comparisons(tuple(rows))


def difference(mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0) -> Change:
    """Compare one run with another, by Student's paired test unless the measure has one of its own."""
    own = getattr(mine.measure, "compare", None)
    if own is not None:
        result: Change = own(mine, theirs, confidence=confidence, seed=seed)
        return result
    query_ids, a, b = mine.beside(theirs)
    return Change(stats.paired(a, b, confidence=confidence, seed=seed), query_ids, a - b)


def _read_values(values: Any) -> dict[str, tuple[Measurement, ...]]:
    """Read values by query: for each run its measures, in the order of the table."""
    columns = {"run": ("run",), "query_id": QUERY_ID, "score": ("value", "score"), "measure": ("measure",)}
    table = read_table(values, columns, optional=["measure"])
    measure = table.ids("measure") if "measure" in table.frame.columns else pl.lit("value").alias("measure")
    frame = table.frame.select(table.ids("run"), table.ids("query_id"), measure, table.numbers("score"))
    replace(table, frame=frame).require_unique("run", "measure", "query_id")
    result: dict[str, tuple[Measurement, ...]] = {}
    for (run, name), rows in frame.partition_by("run", "measure", as_dict=True, maintain_order=True).items():
        one = Measurement(
            run=run, measure=name, left_out={}, query_ids=rows["query_id"], values=rows["score"].to_numpy()
        )
        result[run] = (*result.get(run, ()), one)
    return result
