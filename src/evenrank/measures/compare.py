"""One run against another: paired tests over the queries of both, corrected for how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.lists import Floats
from evenrank.measures.results import Measurement, Measurements

LEVEL = 0.05
"""Corrected p below which two runs are said to differ."""
LETTERS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
"""The letters that runs are called by, and how they look as a mark; there is no raised q."""


class Change(NamedTuple):
    """One run against another: the comparison, and the difference of each query, if there is one."""

    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats


def compare(mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0) -> Change:
    """One run against another, by Student's paired test unless the measure has one of its own."""
    own = getattr(mine.measure, "compare", None)
    if own is not None:
        result: Change = own(mine, theirs, confidence=confidence, seed=seed)
        return result
    query_ids, a, b = mine.beside(theirs)
    return Change(stats.paired(a, b, confidence=confidence, seed=seed), query_ids, a - b)


@dataclass(frozen=True, eq=False)
class RunComparison:
    """How a measure differs between two runs.

    Attributes
    ----------
    comparison
        `run` − `baseline` over the queries that both have: difference, interval, p (uncorrected), effect.
        Student's paired test; for GSR a permutation test on refitted slopes.
    p_holm
        p, corrected (Holm) over all runs and measures that were compared.
    query_ids, changes
        The difference of each query; empty for GSR, whose values by query are contributions.
    """

    run: str
    baseline: str
    measure: Measure
    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the difference is called one."""
        return self.p_holm is not None and self.p_holm < LEVEL

    def to_dict(self, baseline: str = "baseline") -> dict[str, Any]:
        """JSON-ready dict, the run that it is compared with under this name."""
        c = self.comparison
        return {
            "run": self.run,
            baseline: self.baseline,
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


def compare_runs(
    measured: Measurements,
    pairs: Iterable[tuple[str, str]],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[RunComparison, ...]:
    """Every measure of each pair of runs, p corrected (Holm) over all of them."""
    rows = []
    for run, baseline in pairs:
        for mine in measured.runs[run]:
            change = compare(mine, measured[baseline, mine.measure], confidence=confidence, seed=seed)
            rows.append(RunComparison(run, baseline, mine.measure, *change))
    corrected = stats.holm([one.comparison.p for one in rows])
    return tuple(replace(one, p_holm=p) for one, p in zip(rows, corrected, strict=True))


def with_pairs(measured: Measurements, *, confidence: float = 0.95, seed: int = 0) -> Measurements:
    """The measurements with every pair of runs compared."""
    if len(measured.runs) < 2:
        raise InputError("pairs need at least two runs")
    if len(measured.runs) > len(LETTERS):
        raise InputError(f"{len(measured.runs)} runs are too many for pairs; give at most {len(LETTERS)}")
    pairs = compare_runs(measured, combinations(measured.runs, 2), confidence=confidence, seed=seed)
    place = {m.measure: number for number, m in enumerate(measured)}
    return replace(measured, pairs=tuple(sorted(pairs, key=lambda pair: place[pair.measure])))


def letters(runs: Iterable[str]) -> dict[str, str]:
    """The letter of each run, in their order.

    >>> letters(["bm25", "dense"])
    {'bm25': 'a', 'dense': 'b'}
    """
    return dict(zip(runs, LETTERS, strict=False))


def differing(pairs: Iterable[RunComparison], run: str, measure: Measure) -> list[str]:
    """The runs that a run differs from in a measure."""
    mine = [pair for pair in pairs if pair.measure == measure and pair.significant]
    both = [(pair.run, pair.baseline) for pair in mine if run in (pair.run, pair.baseline)]
    return [other if one == run else one for one, other in both]
