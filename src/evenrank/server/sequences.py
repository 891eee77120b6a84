"""Confidence sequences: has the mean of a series of observations changed?

A test that is repeated every day finds something sooner or later. A confidence sequence does not: with
probability 1 − α it covers the truth at all observations together. Observations up to a cut are compared with
those after it:

    |D_k| > s √g,   g = ν (c − 1) / (1/v − c/(v + τ²)),   c = (√((v + τ²)/v) / α)^(2/(ν+1)),
    v = f (1/b + 1/k)

D_k is the mean of k observations after the cut less that of the b before, s² the variance of single
observations around the two means and ν its degrees of freedom. It is the mixture over all shifts, N(0, τ²s²),
of the likelihood ratio that knows neither the level nor the spread: a martingale while nothing changes, so
that it reaches 1/α with probability α at most (Ville). Both means are in it, so the error of the baseline is
too. For normal, independent observations it is exact: H. Robbins, Statistical methods related to the law of
the iterated logarithm, Annals of Mathematical Statistics 41, 1970; T. L. Lai, On confidence sequences, Annals
of Statistics 4, 1976; M. F. Pérez-Ortiz, T. Lardy, R. de Heide and P. Grünwald, E-statistics, group
invariance and anytime-valid testing, Annals of Statistics 52, 2024. For others it holds in the limit of many:
I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, Time-uniform central limit theory and
asymptotic confidence sequences, Annals of Statistics 52, 2024; sums of dependent observations follow a
Brownian motion with the long-run variance f s². f = (1 + φ)/(1 − φ) is that of an AR(1) series; φ is
estimated around both means, corrected for its bias (M. G. Kendall, Biometrika 41, 1954), and never taken
below 0; ν is divided by f.

Series that hardly ever move are far from that limit: most observations are equal, and one that is not says
little. Where more than half of the baseline are the same value, half of α goes to another question: have
observations that differ from it become more, or less, frequent at some time? The likelihood of two rates,
mixed over both and over all cuts, reaches 2/α times that of the best single rate with probability α/2 at most
(Jeffreys' mixture over the maximum, an e-process; L. Wasserman, A. Ramdas and S. Balakrishnan, Universal
inference, PNAS 117, 2020). With the other half means are compared as above, but an interval counts only if at
its cut the rates differ too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import InputError
from evenrank.stats.equivalence import ALPHA
from evenrank.stats.intervals import ROUNDING, Floats, finite

BASELINE = 30
"""Observations before the first comparison: a month of days."""
MIN_BASELINE = 10
"""With fewer observations the autocorrelation cannot be estimated."""
TYPICAL_SHIFT = 0.5
"""τ, the shift for which the test is most sensitive, in standard deviations of an observation."""
MAX_AUTOCORRELATION = 0.98


class Sequence(NamedTuple):
    """The confidence sequence after a cut, for each observation that follows.

    ``difference`` is the mean so far less that before the cut, ``reach`` the half-width of its interval
    (infinite where there are too few observations for any), ``autocorrelation`` the estimate of φ.
    """

    difference: Floats
    reach: Floats
    autocorrelation: Floats


@dataclass(frozen=True)
class Change:
    """Whether the mean of the observations has changed, at any time so far.

    Attributes
    ----------
    looks, baseline
        How many observations there are, and how many come before the first comparison.
    alpha
        The probability of any alarm while nothing changes.
    cut
        The observations up to this one are compared with those after it; None if nothing is judged yet.
    until
        The observation at which this was compared: that of the alarm, or the last one.
    difference, low, high
        The mean after the cut less that before, and its interval; None where observations are too few, or
        too much alike, for one.
    alarm
        The observation at which an interval excluded 0 for the first time, or unusual observations became
        more or less frequent.
    correlation
        φ: how far an observation resembles the one before.
    """

    looks: int
    baseline: int
    alpha: float
    cut: int | None = None
    until: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    alarm: int | None = None
    correlation: float | None = None

    @property
    def judged(self) -> bool:
        return self.low is not None or self.alarm is not None


def check_plan(baseline: int, alpha: float) -> None:
    """Refuse a baseline that is too short, and a level that is no probability."""
    if baseline < MIN_BASELINE:
        raise InputError(f"a baseline has at least {MIN_BASELINE} looks, found {baseline}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, found {alpha}; 0.05 is usual")


def change(values: ArrayLike, *, baseline: int = BASELINE, alpha: float = ALPHA) -> Change:
    """Test whether the mean of a series of observations has changed.

    Observations are compared at cuts: after ``baseline`` observations, twice as many, three times as many …;
    all up to the cut with all after it. The j-th cut has the share α / (j (j + 1)) of α, so that all together
    have α: the baseline may grow without a price, and a late change is not lost among the observations
    before it.

    Parameters
    ----------
    values
        One finite number per observation, in order of time.
    """
    x = finite(values, "values")
    check_plan(baseline, alpha)
    if len(x) <= baseline:
        return Change(len(x), baseline, alpha)
    steady = _is_steady(x, baseline)
    first: Sequence | None = None
    best: tuple[int, float, int, Sequence] | None = None  # alarm, margin, cut
    for j, cut in enumerate(range(baseline, len(x), baseline), start=1):
        after = sequence(x, cut, alpha=(alpha / 2 if steady else alpha) / (j * (j + 1)))
        first = first or after
        outside = np.abs(after.difference) > after.reach
        if outside.any():
            at = int(outside.argmax())
            candidate = (cut + at + 1, float(after.reach[at] / abs(after.difference[at])), cut, after)
            best = candidate if best is None or candidate[:2] < best[:2] else best
    if steady and (rates := _changed_rate(x, baseline, alpha / 2)) and (best is None or rates[0] < best[0]):
        best = (rates[0], 0.0, rates[1], sequence(x, rates[1], alpha=alpha))
    assert first is not None
    alarm, _, cut, after = best or (None, 0.0, baseline, first)
    until = alarm or len(x)
    at = until - cut - 1
    difference, reach = float(after.difference[at]), float(after.reach[at])
    bounded = bool(np.isfinite(reach))
    return Change(
        looks=len(x),
        baseline=baseline,
        alpha=alpha,
        cut=cut,
        until=until,
        difference=difference,
        low=difference - reach if bounded else None,
        high=difference + reach if bounded else None,
        alarm=alarm,
        correlation=float(after.autocorrelation[at]),
    )


def sequence(x: Floats, cut: int, *, alpha: float = ALPHA) -> Sequence:
    """Compute the confidence sequence of a shift after the first ``cut`` observations."""
    before, after = x[:cut] - x[:cut].mean(), x[cut:] - x[:cut].mean()
    k = np.arange(1.0, len(after) + 1)
    n = cut + k
    total = np.cumsum(after)
    mean = total / k
    squares = before @ before + np.maximum(np.cumsum(after**2) - k * mean**2, 0.0)
    # Observations whose spread is only rounding have none.
    largest = max(float(np.abs(x).max()), np.finfo(float).tiny)
    squares = np.where(squares <= n * (ROUNDING * largest) ** 2, 0.0, squares)
    mean = np.where(np.abs(mean) <= ROUNDING * largest, 0.0, mean)
    products = np.concatenate([[0.0], np.cumsum(after[1:] * after[:-1])])
    neighbours = before[1:] @ before[:-1] + (
        products - mean * ((total - after[0]) + (total - after)) + (k - 1) * mean**2
    )
    spread = squares > 0
    phi = np.where(spread, neighbours / np.where(spread, squares, 1.0), 0.0)
    phi = np.clip(np.where(spread, (n * phi + 1) / (n - 3), 0.0), 0.0, MAX_AUTOCORRELATION)
    inflation = (1 + phi) / (1 - phi)
    freedom = n - 2 * inflation
    variance = squares / np.maximum(freedom, 1.0)
    nu = np.maximum(freedom / inflation, 1.0)
    v = inflation * (1 / k + 1 / cut)
    wide = v + TYPICAL_SHIFT**2
    c = np.exp(2 / (nu + 1) * (0.5 * np.log(wide / v) - np.log(alpha)))
    denominator = 1 / v - c / wide
    bounded = (denominator > 0) & (freedom > 1)
    reach = np.sqrt(variance * nu * (c - 1) / np.where(bounded, denominator, 1.0))
    outside = np.abs(mean) > reach
    unsure = ~bounded | (outside & ((squares == 0) | _may_be_rare(before, after, largest, alpha)))
    return Sequence(mean, np.where(unsure, np.inf, reach), phi)


def _may_be_rare(before: Floats, after: Floats, largest: float, alpha: float) -> NDArray[np.bool_]:
    """Whether most observations before the cut are equal, and others perhaps no more frequent after it."""
    cut, k = len(before), np.arange(1, len(after) + 1, dtype=np.int64)
    usual = _majority_value(before)
    earlier = int(np.count_nonzero(np.abs(before - usual) > ROUNDING * largest))
    if 2 * earlier >= cut:
        return np.zeros(len(after), np.bool_)
    later = np.cumsum(np.abs(after - usual) > ROUNDING * largest, dtype=np.int64)
    evidence = (
        _log_mixture(np.full_like(k, earlier), np.full_like(k, cut))
        + _log_mixture(later, k)
        - _log_maximum(earlier + later, cut + k)
    )
    return np.asarray(evidence < -np.log(alpha))


def _changed_rate(x: Floats, baseline: int, alpha: float) -> tuple[int, int] | None:
    """Return when the rate of unusual observations has changed, and the best cut; None if it has not."""
    unusual = np.concatenate([[0], np.cumsum(_is_unusual(x, baseline))])
    cuts = np.arange(baseline, len(x))
    nth = cuts - baseline + 1.0
    earlier = _log_mixture(unusual[cuts], cuts) - np.log(nth * (nth + 1))
    best = _log_maximum(unusual[cuts + 1], cuts + 1)
    for i, n in enumerate((cuts + 1).tolist()):
        own = cuts[: i + 1]
        terms = earlier[: i + 1] + _log_mixture(unusual[n] - unusual[own], n - own)
        highest = terms.max()
        if highest + np.log(np.exp(terms - highest).sum()) - best[i] >= -np.log(alpha):
            return n, int(own[terms.argmax()])
    return None


def _majority_value(x: Floats) -> float:
    """Return the value of more than half of the observations, if they have one."""
    return float(np.sort(x)[(len(x) - 1) // 2])


def _is_unusual(x: Floats, baseline: int) -> NDArray[np.bool_]:
    """Whether each observation differs from the usual value of the baseline."""
    return np.asarray(np.abs(x - _majority_value(x[:baseline])) > ROUNDING * np.abs(x).max())


def _is_steady(x: Floats, baseline: int) -> bool:
    """Whether more than half of the baseline are the same value."""
    return bool(2 * _is_unusual(x, baseline)[:baseline].sum() < baseline)


def _log_mixture(count: NDArray[np.int64], n: NDArray[np.int64]) -> Floats:
    """The logarithm of ∫ p^count (1 − p)^(n − count) over Jeffreys' distribution of p."""
    halves, wholes = _sums_of_logarithms(1 << int(n.max()).bit_length())  # a power of 2: few sizes to cache
    return np.asarray(halves[count] + halves[n - count] - wholes[n])


@lru_cache(maxsize=8)
def _sums_of_logarithms(size: int) -> tuple[Floats, Floats]:
    steps = np.arange(size)
    halves, wholes = (np.concatenate([[0.0], np.cumsum(np.log(steps + more))]) for more in (0.5, 1.0))
    return halves, wholes


def _log_maximum(count: NDArray[np.int64], n: NDArray[np.int64]) -> Floats:
    """The logarithm of the largest p^count (1 − p)^(n − count)."""
    other = n - count
    log_of_shares = count * np.log(np.maximum(count, 1) / n) + other * np.log(np.maximum(other, 1) / n)
    return np.asarray(log_of_shares)


def paired_changes(values: ArrayLike, baseline: int) -> Floats:
    """Return for each observation the mean change of the queries against their own means over the baseline.

    ``values`` has a row for each observation and a column for each query; NaN where a query had none. A
    query without any value in the baseline is left out. NaN where no query is left.
    """
    x = np.asarray(values, np.float64)
    known = np.isfinite(x)
    counts = known[:baseline].sum(axis=0)
    filled = np.where(known, x, 0.0)
    usual = filled[:baseline].sum(axis=0) / np.maximum(counts, 1)
    used = known & (counts > 0)
    number = used.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(number > 0, np.where(used, filled - usual, 0.0).sum(axis=1) / number, np.nan)
    return np.where(np.abs(means) <= ROUNDING * np.abs(filled).max(initial=0.0), 0.0, means)
