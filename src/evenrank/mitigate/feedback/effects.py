"""What debiasing does to one measure: the change against plain feedback, and for how many queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.base import amount, good
from evenrank.measures.results import Measurement

TIED = 1e-9
"""Changes of a query's value below this are none."""


@dataclass(frozen=True)
class Effect:
    """One measure at one setting, beside the same queries with λ = 0.

    Attributes
    ----------
    measurement
        Value, interval and values of the queries.
    change
        Paired comparison with λ = 0, this minus that, of |value| for RaB, ARaB and LIWC. None at λ = 0.
    p_holm
        Its p, corrected for the λs that were tried with the same k and n (Holm).
    reduction
        (before − after) / before of the mean of a bias measure, in absolute value; for RaB and ARaB it can be
        large where the lists of some queries lean one way and those of others the other way.
    abs_reduction
        The same of the mean of absolute values, for measures with a sign.
    improved, tied, hurt
        Shares of the queries whose value got better, stayed (within 1e-9), got worse.
    """

    measurement: Measurement
    change: stats.Comparison | None = None
    p_holm: float | None = None
    reduction: float | None = None
    abs_reduction: float | None = None
    improved: float | None = None
    tied: float | None = None
    hurt: float | None = None

    @property
    def measure(self) -> Measure:
        return self.measurement.measure

    def worse(self, alpha: float = 0.05) -> bool:
        """Is the mean significantly worse than with λ = 0, after correction?"""
        if self.change is None or self.change.difference is None or self.p_holm is None:
            return False
        difference = self.change.difference
        wrong_way = difference < 0 if _higher_is_better(self.measure) else difference > 0
        return wrong_way and self.p_holm < alpha

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        one = self.measurement
        row: dict[str, Any] = {
            "measure": str(one.measure),
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "queries": one.queries,
        }
        if getattr(one.measure, "SIGNED", False):
            row["abs"] = one.summary.abs
        if self.change is None:
            return row
        row |= {"change": asdict(self.change), "p_holm": self.p_holm, "reduction": self.reduction}
        if getattr(one.measure, "SIGNED", False):
            row["abs_reduction"] = self.abs_reduction
        return row | {"improved": self.improved, "tied": self.tied, "hurt": self.hurt}


def effects_of(before: Sequence[Measurement], after: Sequence[Measurement]) -> tuple[Effect, ...]:
    """Each measure beside its value without debiasing; p is not yet corrected."""
    return tuple(_effect(was, now) for was, now in zip(before, after, strict=True))


def _effect(before: Measurement, after: Measurement) -> Effect:
    _, was, now = paired_values(before, after)
    gain = gains(after.measure, was, now)
    better, worse = gain > TIED, gain < -TIED
    share = (
        {"improved": None, "tied": None, "hurt": None}
        if not len(gain)
        else {
            "improved": float(better.mean()),
            "tied": float((~better & ~worse).mean()),
            "hurt": float(worse.mean()),
        }
    )
    return Effect(
        after,
        change=stats.paired(now, was),
        reduction=None if _higher_is_better(after.measure) else _reduction(before.value, after.value),
        abs_reduction=_reduction(before.summary.abs, after.summary.abs),
        **share,
    )


def paired_values(
    before: Measurement, after: Measurement
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The queries that both have, and their values: how far from balance, where that is good."""
    was, now = before.per_query(), after.per_query()
    ids = [query for query in was if query in now]
    values = np.array([[was[query], now[query]] for query in ids]).reshape(-1, 2)
    values = amount(after.measure, values)
    return ids, values[:, 0], values[:, 1]


def gains(measure: Measure, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each query's value got better: less bias, more effectiveness or neutrality."""
    return after - before if _higher_is_better(measure) else before - after


def check_direction(measure: Measure) -> None:
    """Refuse a measure of which it cannot be said, query by query, what better is."""
    yardstick = getattr(measure, "YARDSTICK", "")
    if yardstick:
        raise InputError(
            f"feedback compares queries by measures that say what better is; {measure} has to be compared "
            f"with {yardstick}: write the runs to files and measure them with: evenrank measure"
        )


def _higher_is_better(measure: Measure) -> bool:
    return good(measure) == "high"


def _reduction(before: float | None, after: float | None) -> float | None:
    """(before − after) / before of two amounts of bias, each without its sign."""
    if before is None or after is None or before == 0:
        return None
    return (abs(before) - abs(after)) / abs(before)
