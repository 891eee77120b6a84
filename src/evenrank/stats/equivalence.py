"""Equivalence tests, power and the number of queries.

An interval that contains 0 proves nothing: with few queries it contains everything. That a mean is *small*
has to be shown: by rejecting that it is δ or more, and that it is −δ or less. D. J. Schuirmann, A comparison
of the two one-sided tests procedure and the power approach for assessing the equivalence of average
bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987; R. L. Berger and J. C. Hsu,
Bioequivalence trials, intersection-union tests and equivalence confidence sets, Statistical Science 11, 1996.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenrank.errors import InputError
from evenrank.stats.intervals import finite, is_constant, mean_interval, quantile_of_t

ALPHA = 0.05
POWER = 0.8
MAX_QUERIES = 10**9
"""Plans that need more queries are refused."""


@dataclass(frozen=True)
class Equivalence:
    """Whether a mean lies within ±δ.

    Attributes
    ----------
    low, high
        Bootstrap interval of the mean at the level 1 − 2α (90 % for α = 0.05).
    t_low, t_high
        Student's, at the same level. It lies within ±δ exactly where both one-sided t-tests reject.
    p
        The larger p of the two one-sided t-tests against −δ and δ; None without δ.
    smallest
        The smallest δ that would pass: the larger bound of both intervals, whatever its sign.
    passed
        Both intervals lie within ±δ; None where that cannot be known: no δ, fewer than two queries, or no
        spread at all, from which nobody can tell how far other queries would lie.
    """

    delta: float | None
    n: int
    low: float | None
    high: float | None
    t_low: float | None
    t_high: float | None
    p: float | None
    smallest: float | None
    passed: bool | None


def equivalence(
    values: ArrayLike,
    delta: float | None = None,
    *,
    alpha: float = ALPHA,
    resamples: int = 2000,
    seed: int = 0,
) -> Equivalence:
    """Test whether the mean of the values lies within ±δ.

    The null hypothesis is that it does not, so that few queries leave it open. The bootstrap makes no
    assumption on the shape, t holds its level better with few queries; both have to agree.

    Parameters
    ----------
    values
        One finite number per query; for two runs, their differences.
    delta
        What is small enough, above 0. Without it only `smallest` is of use.
    """
    x = finite(values, "values")
    if delta is not None:
        check_delta(delta)
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha must lie between 0 and 0.5, found {alpha}; 0.05 is usual")
    if len(x) < 2 or is_constant(x):
        return Equivalence(delta, len(x), None, None, None, None, None, None, None)
    level = 1 - 2 * alpha
    boot = mean_interval(x, confidence=level, resamples=resamples, seed=seed)
    t = mean_interval(x, confidence=level, method="t")
    bounds = [bound for bound in (boot.low, boot.high, t.low, t.high) if bound is not None]
    smallest = max(abs(bound) for bound in bounds)
    passed = None if delta is None else smallest < delta
    p = None
    if delta is not None:
        from scipy.special import stdtr

        error = float(np.std(x, ddof=1)) / math.sqrt(len(x))
        nearest = min(delta - t.value, t.value + delta)  # type: ignore[operator]
        p = float(stdtr(len(x) - 1, -nearest / error))
    return Equivalence(delta, len(x), boot.low, boot.high, t.low, t.high, p, smallest, passed)


def check_delta(delta: float) -> None:
    """Refuse a bound that is not a number above 0."""
    if not (math.isfinite(delta) and delta > 0):
        raise InputError(f"delta is {delta}; it must be a number above 0")


def _power(noncentrality: float, n: int, alpha: float) -> float:
    """Return the power of a two-sided t-test at level α (noncentral t)."""
    from scipy.special import nctdtr, ndtr

    critical = quantile_of_t(n, 1 - alpha)
    if n > 1000:  # the noncentral t of scipy grows slow and loses digits; it is normal by then
        return float(ndtr(noncentrality - critical) + ndtr(-noncentrality - critical))
    below = nctdtr(n - 1, noncentrality, critical)
    far = nctdtr(n - 1, noncentrality, -critical)
    return float(1 - below + (far if math.isfinite(far) else 0.0))


def detectable(sd: float, n: int, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """Return the smallest mean that n queries detect with this power; None for fewer than two.

    Computed from the observed spread, not from the observed mean: power "after the fact" at the observed mean
    would only say p again (Hoenig & Heisey, The American Statistician 55, 2001).
    """
    _check_chances(alpha, power)
    if n < 2:
        return None
    low, high = 0.0, 8.0
    while _power(high, n, alpha) < power:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, n, alpha) < power else (low, middle)
    return float(high * sd / math.sqrt(n))


def queries_for(effect: float, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return how many queries it takes to detect a mean of this size with this power."""

    def is_enough(n: int) -> bool:
        smallest = detectable(sd, n, alpha=alpha, power=power)
        return smallest is not None and smallest <= effect

    return _smallest_n(is_enough, effect, sd)


def queries_for_equivalence(delta: float, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Return how many queries it takes to show with this power that a mean lies within ±δ, if it is 0.

    The chance that both one-sided tests reject at a true mean of 0 is 2·P(T ≤ δ√n/sd − t) − 1.
    """
    from scipy.special import stdtr

    _check_chances(alpha, power)

    def is_enough(n: int) -> bool:
        reach = delta * math.sqrt(n) / sd if sd else math.inf
        return 2 * float(stdtr(n - 1, reach - quantile_of_t(n, 1 - 2 * alpha))) - 1 >= power

    return _smallest_n(is_enough, delta, sd)


def _smallest_n(is_enough: Callable[[int], bool], effect: float, sd: float) -> int:
    """Return the first n from 2 on that is enough; every larger n is enough too."""
    if not (math.isfinite(effect) and effect > 0):
        raise InputError(f"the effect is {effect}; it must be a number above 0")
    if not (math.isfinite(sd) and sd >= 0):
        raise InputError(f"the standard deviation is {sd}; it must be a number, 0 or more")
    high = 2
    while not is_enough(high):
        high *= 2
        if high > MAX_QUERIES:
            raise InputError(f"that takes more than {MAX_QUERIES:,} queries; a larger effect needs fewer")
    return bisect_left(range(high), True, lo=2, key=is_enough)


def _check_chances(alpha: float, power: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, found {alpha}; 0.05 is usual")
    if not alpha < power < 1:
        raise InputError(f"the power must lie between alpha and 1, found {power}; 0.8 is usual")
