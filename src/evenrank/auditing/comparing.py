"""Each run against the baseline, query by query: is the difference more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.measures.base import compare
from evenrank.measures.pairs import significant, told
from evenrank.measures.results import Measurement, Measurements
from evenrank.stats import Comparison


@dataclass(frozen=True, eq=False)
class Compared:
    """How a measure changes from the baseline to a run.

    Attributes
    ----------
    comparison
        Run − baseline over the queries that both have: difference, interval, p (uncorrected), effect.
        Student's paired test; for GSR a permutation test on refitted slopes.
    p_holm
        p, corrected over all runs and measures of the audit.
    query_ids, changes
        The difference of each query, for charts; empty for GSR, whose values by query are contributions.
    """

    run: str
    baseline: str
    measure: Measure
    comparison: Comparison
    query_ids: pl.Series
    changes: np.ndarray
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        return significant(self.p_holm)

    def to_dict(self) -> dict[str, Any]:
        names = {"run": self.run, "baseline": self.baseline, "measure": str(self.measure)}
        return names | told(self.comparison, self.p_holm)


def compare_runs(
    measured: Measurements, baseline: str, *, confidence: float = 0.95, seed: int = 0
) -> tuple[Compared, ...]:
    """Every measure of every other run against the baseline, p corrected (Holm) over all of them."""
    found = [
        _compare(m, measured[baseline, m.measure], confidence, seed) for m in measured if m.run != baseline
    ]
    corrected = stats.holm([one.comparison.p for one in found])
    return tuple(replace(one, p_holm=p) for one, p in zip(found, corrected, strict=True))


def _compare(mine: Measurement, theirs: Measurement, confidence: float, seed: int) -> Compared:
    return Compared(
        mine.run, theirs.run, mine.measure, *compare(mine, theirs, confidence=confidence, seed=seed)
    )


@dataclass(frozen=True)
class Offered:
    """What the same queries were offered: a yardstick for the lean of a run.

    Attributes
    ----------
    kind
        `relevant documents`: those judged relevant for the same queries, the mean of each query's.
        `candidates`: all documents that the run ranks for them, where that are more than it is measured on.
    value, queries
        Their lean, over the queries that have any.
    difference, low, high
        Run − yardstick over these queries, query by query, with Student's interval; not corrected.
    """

    kind: str
    value: float
    queries: int
    difference: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, kind: str, values: np.ndarray, theirs: np.ndarray, confidence: float) -> Offered | None:
        """Values of a run against those of the yardstick, for the same queries in the same order."""
        if not len(values):
            return None
        found = stats.paired(values, theirs, confidence=confidence)
        assert found.difference is not None
        low, high = (found.low, found.high) if len(values) > 1 else (None, None)
        return cls(kind, float(theirs.mean()), len(values), found.difference, low, high)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def between(found: Sequence[Compared], run: str, measure: Measure) -> Compared | None:
    """The comparison of one run and measure, if there is one."""
    return next((one for one in found if one.run == run and one.measure == measure), None)
