"""Every run against every other, and letters that say which of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ir_measures.measures import Measure

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.base import compare
from evenrank.measures.results import Measurements
from evenrank.stats import Comparison

LEVEL = 0.05
"""Corrected p below which two runs are said to differ."""
LETTERS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
"""The letters that runs are called by, and how they look as a mark; there is no raised q."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A measure of two runs.

    Attributes
    ----------
    comparison
        `run` − `other` over the queries that both have: difference, interval, p (uncorrected), effect.
        Student's paired test; for GSR a permutation test on refitted slopes.
    p_holm
        p, corrected (Holm) over all pairs and measures.
    """

    run: str
    other: str
    measure: Measure
    comparison: Comparison
    p_holm: float | None = None

    @property
    def significant(self) -> bool:
        return significant(self.p_holm)

    def to_dict(self) -> dict[str, Any]:
        names = {"run": self.run, "other": self.other, "measure": str(self.measure)}
        return names | comparison_to_dict(self.comparison, self.p_holm)


def comparison_to_dict(c: Comparison, p_holm: float | None) -> dict[str, Any]:
    """A comparison as JSON knows it."""
    return {
        "difference": c.difference,
        "low": c.low,
        "high": c.high,
        "p": c.p,
        "p_holm": p_holm,
        "effect": c.effect,
        "effect_name": c.effect_name,
        "test": c.test,
        "queries": c.n,
        "significant": significant(p_holm),
    }


def significant(p_holm: float | None) -> bool:
    """Whether a difference is called one."""
    return p_holm is not None and p_holm < LEVEL


def with_pairs(measured: Measurements, *, confidence: float = 0.95, seed: int = 0) -> Measurements:
    """The measurements with every pair of runs compared, measure by measure."""
    if len(measured.runs) < 2:
        raise InputError("pairs need at least two runs")
    if len(measured.runs) > len(LETTERS):
        raise InputError(f"{len(measured.runs)} runs are too many for pairs; give at most {len(LETTERS)}")
    measures = [m.measure for m in next(iter(measured.runs.values()))]
    rows = []
    for measure in measures:
        for run, other in combinations(measured.runs, 2):
            mine, theirs = measured[run, measure], measured[other, measure]
            change = compare(mine, theirs, confidence=confidence, seed=seed)
            rows.append(Pair(run, other, measure, change.comparison))
    corrected = stats.holm([pair.comparison.p for pair in rows])
    return replace(
        measured, pairs=tuple(replace(pair, p_holm=p) for pair, p in zip(rows, corrected, strict=True))
    )


def letters(runs: Iterable[str]) -> dict[str, str]:
    """The letter of each run, in their order.

    >>> letters(["bm25", "dense"])
    {'bm25': 'a', 'dense': 'b'}
    """
    return dict(zip(runs, LETTERS, strict=False))


def differing(pairs: Iterable[Pair], run: str, measure: Measure) -> list[str]:
    """The runs that a run differs from in a measure."""
    mine = [pair for pair in pairs if pair.measure == measure and pair.significant]
    return [pair.other if pair.run == run else pair.run for pair in mine if run in (pair.run, pair.other)]


def marks(pairs: Sequence[Pair], runs: Mapping[str, Any], run: str, measure: Measure) -> str:
    """Raised letters of the runs that a run differs from: `ᵃᶜ`."""
    by_run = letters(runs)
    return "".join(
        LETTERS[letter] for letter in sorted(by_run[other] for other in differing(pairs, run, measure))
    )


def legend(pairs: Sequence[Pair], runs: Iterable[str]) -> str:
    """What the letters mean, and how many comparisons they are corrected for."""
    named = ", ".join(f"{letter} {run}" for run, letter in letters(runs).items())
    tested = sum(pair.comparison.p is not None for pair in pairs)
    return (
        f"{named}. A raised letter marks a difference from that run: paired test, p < {LEVEL:g} after Holm's "
        f"correction over {tested:,} comparisons."
    )
