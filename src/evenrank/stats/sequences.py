"""Has a mean changed? Confidence sequences: intervals that hold at all looks at once, however many.

A test that is repeated every day finds something sooner or later. A confidence sequence does not: with
probability 1 − α it covers the truth at all looks together. Here the values come one per look, and the
looks up to a cut are compared with those after it:

    |D_k| > s √g,   g = ν (c − 1) / (1/v − c/(v + τ²)),   c = (√((v + τ²)/v) / α)^(2/(ν+1)),
    v = f (1/b + 1/k)

D_k is the mean of k looks after the cut less that of the b before, s² the variance of single looks around
the two means and ν its degrees of freedom. It is the mixture over all shifts, N(0, τ²s²), of the likelihood
ratio that knows neither the level nor the spread: a martingale while nothing changes, so that it reaches 1/α
with probability α at most (Ville). Both means are in it, so the error of the baseline is too. For normal,
independent looks it is exact: H. Robbins, Statistical methods related to the law of the iterated logarithm,
Annals of Mathematical Statistics 41, 1970; T. L. Lai, On confidence sequences, Annals of Statistics 4, 1976;
M. F. Pérez-Ortiz, T. Lardy, R. de Heide and P. Grünwald, E-statistics, group invariance and anytime-valid
testing, Annals of Statistics 52, 2024. For other looks it holds in the limit of many: I. Waudby-Smith,
D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, Time-uniform central limit theory and asymptotic confidence
sequences, Annals of Statistics 52, 2024; sums of dependent looks follow a Brownian motion with the long-run
variance f s². f = (1 + φ)/(1 − φ) is that of an AR(1) series; φ is estimated around both means, corrected
for its bias (M. G. Kendall, Biometrika 41, 1954), and never taken below 0; ν is divided by f.

Looks at what hardly ever moves are far from that limit: most are alike, and one that is not says little.
Where more than half of the baseline are the same value, half of α goes to another question: have looks that
differ from it become more, or less, frequent at some look? The likelihood of two rates, mixed over both and
over all cuts, reaches 2/α times that of the best single rate with probability α/2 at most (Jeffreys' mixture
over the maximum, an e-process; L. Wasserman, A. Ramdas and S. Balakrishnan, Universal inference, PNAS 117,
2020). With the other half means are compared as above, but an interval counts only if at its cut the rates
differ too.
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
"""Looks before the first comparison: a month of days."""
SHORTEST = 10
"""Looks that a baseline has at least: with fewer the dependence of looks cannot be estimated."""
TYPICAL = 0.5
"""τ, the shift that is looked for most closely, in standard deviations of a look."""
_HIGHEST = 0.98  # of φ


class Sequence(NamedTuple):
    """The looks after a cut: by how much their mean differs from that before, give or take ``reach``."""

    difference: Floats
    reach: Floats
    correlation: Floats


@dataclass(frozen=True)
class Change:
    """Whether the mean of the looks has changed, at any time so far.

    Attributes
    ----------
    looks, baseline
        How many looks there are, and how many come before the first comparison.
    alpha
        The probability of any alarm while nothing changes.
    cut
        The looks up to this one are compared with those after it; None if nothing is judged yet.
    until
        The look at which this was compared: that of the alarm, or the last one.
    difference, low, high
        The mean after the cut less that before, and its interval; None where looks are too few, or too much
        alike, for one.
    alarm
        The look at which an interval excluded 0 for the first time, or unusual looks became more or less
        frequent.
    correlation
        φ: how far a look resembles the one before.
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


def change(values: ArrayLike, *, baseline: int = BASELINE, alpha: float = ALPHA) -> Change:
    """Has the mean of the looks changed?

    Looks are compared at cuts: after ``baseline`` looks, twice as many, three times as many …; all up to the
    cut with all after it. The j-th cut has the share α / (j (j + 1)) of α, so that all together have α: the
    baseline may grow without a price, and a late change is not lost among the looks before it.

    Parameters
    ----------
    values
        One finite number per look, in order of time.
    """
    x = finite(values, "values")
    _check(baseline, alpha)
    found = Change(len(x), baseline, alpha)
    best: tuple[int, float, int, Sequence] | None = None
    for cut, share in _cuts(x, baseline, alpha):
        seen = sequence(x, cut, alpha=share)
        found = found if cut > baseline else _compared(found, cut, len(x), seen)
        outside = np.abs(seen.difference) > seen.reach
        if outside.any():
            first = int(outside.argmax())
            margin = float(seen.reach[first] / abs(seen.difference[first]))
            candidate = (cut + first + 1, margin, cut, seen)
            best = candidate if best is None or candidate[:2] < best[:2] else best
    if (rarely := _turned(x, baseline, alpha / 2)) and (best is None or rarely[0] < best[0]):
        best = (rarely[0], 0.0, rarely[1], sequence(x, rarely[1], alpha=alpha))
    if best is None:
        return found
    return _compared(Change(len(x), baseline, alpha, alarm=best[0]), best[2], best[0], best[3])


def first_alarms(values: ArrayLike, *, baseline: int = BASELINE, alpha: float = ALPHA) -> NDArray[np.int64]:
    """The look of the first alarm in each row of looks; 0 where there is none. As `change`, for many rows."""
    x = np.asarray(values, np.float64)
    _check(baseline, alpha)
    found = np.zeros(x.shape, bool)
    if x.shape[-1] <= baseline:
        return np.zeros(x.shape[:-1], np.int64)
    steady = _is_steady(x, baseline)
    for rows in (steady, ~steady):
        if rows.any():
            some = found[rows]
            for cut, share in _cuts(x[rows], baseline, alpha):
                seen = sequence(x[rows], cut, alpha=share)
                some[..., cut:] |= np.abs(seen.difference) > seen.reach
            found[rows] = some
    for row in np.argwhere(steady):
        if turned := _turned(x[tuple(row)], baseline, alpha / 2):
            found[(*row, turned[0] - 1)] = True
    return np.where(found.any(axis=-1), found.argmax(axis=-1) + 1, 0)


def sequence(values: ArrayLike, cut: int, *, alpha: float = ALPHA, typical: float = TYPICAL) -> Sequence:
    """The confidence sequence of a shift after the first ``cut`` looks, for each look that follows.

    ``reach`` is infinite where there are too few looks for any interval. The last axis is that of the looks.
    """
    x = np.asarray(values, np.float64)
    before, after = x[..., :cut], x[..., cut:]
    level = before.mean(axis=-1, keepdims=True)
    before, after = before - level, after - level
    k = np.arange(1.0, after.shape[-1] + 1)
    n = cut + k
    total = np.cumsum(after, axis=-1)
    mean = total / k
    squares = (before**2).sum(axis=-1, keepdims=True) + np.maximum(
        np.cumsum(after**2, axis=-1) - k * mean**2, 0.0
    )
    # Looks whose spread is only rounding have none.
    largest = np.maximum(np.abs(x).max(axis=-1, keepdims=True), np.finfo(float).tiny)
    squares = np.where(squares <= n * (ROUNDING * largest) ** 2, 0.0, squares)
    mean = np.where(np.abs(mean) <= ROUNDING * largest, 0.0, mean)
    steps = np.zeros_like(after)
    steps[..., 1:] = np.cumsum(after[..., 1:] * after[..., :-1], axis=-1)
    neighbours = (before[..., 1:] * before[..., :-1]).sum(axis=-1, keepdims=True) + (
        steps - mean * ((total - after[..., :1]) + (total - after)) + (k - 1) * mean**2
    )
    spread = squares > 0
    phi = np.where(spread, neighbours / np.where(spread, squares, 1.0), 0.0)
    phi = np.clip(np.where(spread, (n * phi + 1) / (n - 3), 0.0), 0.0, _HIGHEST)
    inflation = (1 + phi) / (1 - phi)
    freedom = n - 2 * inflation
    variance = squares / np.maximum(freedom, 1.0)
    nu = np.maximum(freedom / inflation, 1.0)
    v = inflation * (1 / k + 1 / cut)
    wide = (v + typical**2) / v
    c = np.exp(2 / (nu + 1) * (0.5 * np.log(wide) - np.log(alpha)))
    below = 1 / v - c / (v + typical**2)
    bounded = (below > 0) & (freedom > 1)
    reach = np.sqrt(variance * nu * (c - 1) / np.where(bounded, below, 1.0))
    unsure = ~bounded | (
        (np.abs(mean) > reach) & ((squares == 0) | _may_be_rare(before, after, largest, alpha))
    )
    return Sequence(mean, np.where(unsure, np.inf, reach), phi)


def _may_be_rare(before: Floats, after: Floats, largest: Floats, alpha: float) -> NDArray[np.bool_]:
    """Are most looks before the cut the same, and those that differ perhaps no more frequent after it?"""
    cut = before.shape[-1]
    usual = _usual(before)
    k = np.arange(1, after.shape[-1] + 1)
    earlier, later = (_running(np.abs(part - usual) > ROUNDING * largest) for part in (before, after))
    earlier = earlier[..., -1:]
    evidence = _mixed(earlier, np.full_like(k, cut)) + _mixed(later, k) - _best(earlier + later, cut + k)
    return np.asarray((2 * earlier < cut) & (evidence < -np.log(alpha)))


def _turned(x: Floats, baseline: int, alpha: float) -> tuple[int, int] | None:
    """The look at which the rate of unusual looks has changed, and after which one; None if it has not."""
    if len(x) <= baseline or not _is_steady(x, baseline):
        return None
    unusual = np.concatenate([[0], _running(_differs(x, _usual(x[:baseline])))])
    cuts = np.arange(baseline, len(x))
    nth = cuts - baseline + 1.0
    earlier = _mixed(unusual[cuts], cuts) - np.log(nth * (nth + 1))
    best = _best(unusual[cuts + 1], cuts + 1)
    for looked, n in enumerate((cuts + 1).tolist()):
        own = cuts[: looked + 1]
        terms = earlier[: looked + 1] + _mixed(unusual[n] - unusual[own], n - own)
        highest = terms.max()
        if highest + np.log(np.exp(terms - highest).sum()) - best[looked] >= -np.log(alpha):
            return n, int(own[terms.argmax()])
    return None


def _running(odd: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many there were up to each look."""
    return np.asarray(np.cumsum(odd, axis=-1), np.int64)


def _usual(looks: Floats) -> Floats:
    """The value of more than half of the looks, if they have one."""
    return np.asarray(np.sort(looks, axis=-1)[..., (looks.shape[-1] - 1) // 2, None])


def _differs(x: Floats, usual: Floats) -> NDArray[np.bool_]:
    largest = np.abs(x).max(axis=-1, keepdims=True)
    return np.asarray(np.abs(x - usual) > ROUNDING * largest)


def _is_steady(x: Floats, baseline: int) -> NDArray[np.bool_]:
    """Are more than half of the looks of the baseline the same?"""
    first = x[..., :baseline]
    return np.asarray(2 * _differs(x, _usual(first))[..., :baseline].sum(axis=-1) < first.shape[-1])


def _mixed(count: NDArray[np.int64], n: NDArray[np.int64]) -> Floats:
    """The logarithm of ∫ p^count (1 − p)^(n − count) over Jeffreys' distribution of p."""
    halves, wholes = _sums_of_logarithms(1 << int(n.max()).bit_length())  # few sizes, each made once
    found: Floats = halves[count] + halves[n - count] - wholes[n]
    return found


@lru_cache(maxsize=8)
def _sums_of_logarithms(most: int) -> tuple[Floats, Floats]:
    steps = np.arange(most)
    halves, wholes = (np.concatenate([[0.0], np.cumsum(np.log(steps + more))]) for more in (0.5, 1.0))
    return halves, wholes


def _best(count: NDArray[np.int64], n: NDArray[np.int64]) -> Floats:
    """The logarithm of the largest p^count (1 − p)^(n − count)."""

    def part(of: NDArray[np.int64]) -> Floats:
        found: Floats = of * np.log(np.maximum(of, 1) / n)
        return found

    return part(count) + part(n - count)


def _cuts(x: Floats, baseline: int, alpha: float) -> list[tuple[int, float]]:
    """Where looks are compared, and each cut's share of α, or of half of it if looks hardly ever differ."""
    if x.shape[-1] <= baseline:
        return []
    own = alpha / 2 if _is_steady(x, baseline).all() else alpha
    cuts = enumerate(range(baseline, x.shape[-1], baseline), start=1)
    return [(cut, own / (j * (j + 1))) for j, cut in cuts]


def _compared(found: Change, cut: int, until: int, seen: Sequence) -> Change:
    at = until - cut - 1
    middle, reach = float(seen.difference[at]), float(seen.reach[at])
    low, high = (middle - reach, middle + reach) if np.isfinite(reach) else (None, None)
    phi = float(seen.correlation[at])
    return Change(found.looks, found.baseline, found.alpha, cut, until, middle, low, high, found.alarm, phi)


def _check(baseline: int, alpha: float) -> None:
    if baseline < SHORTEST:
        raise InputError(f"a baseline has at least {SHORTEST} looks, found {baseline}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, found {alpha}; 0.05 is usual")


def paired_changes(values: ArrayLike, baseline: int) -> Floats:
    """For each look the mean change of the queries against their own means over the baseline.

    ``values`` has a row for each look and a column for each query (further axes may stand in front); NaN
    where a query had none. A query without any value in the baseline is left aside. NaN where no query
    is left.
    """
    x = np.asarray(values, np.float64)
    known = np.isfinite(x)
    first = known[..., :baseline, :]
    counts = first.sum(axis=-2, keepdims=True)
    filled = np.where(known, x, 0.0)
    usual = filled[..., :baseline, :].sum(axis=-2, keepdims=True) / np.maximum(counts, 1)
    used = known & (counts > 0)
    moved = np.where(used, filled - usual, 0.0)
    number = used.sum(axis=-1)
    largest = np.abs(filled).max(axis=(-1, -2), initial=0.0)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(number > 0, moved.sum(axis=-1) / number, np.nan)
    return np.where(np.abs(found) <= ROUNDING * largest, 0.0, found)
