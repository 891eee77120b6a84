"""Comparisons of two samples, with differences, intervals and effect sizes; corrections for many tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenrank.errors import InputError
from evenrank.stats.intervals import (
    CELLS,
    ROUNDING,
    Floats,
    bootstrap,
    constant,
    finite,
    largest,
    mean_interval,
    one_of,
)

EXACT = 1_000_000  # permutation tests enumerate up to this many arrangements
DRAWS = 10_000  # and draw this many beyond it: p = 0.05 is then known to ± 0.004


def sign_flips(d: Floats, draws: int, seed: int) -> float:
    """Share of sign patterns whose sum is at least as far from 0 as the observed one.

    Ours, because scipy's permutation_test takes over 50 times as long for 10,000 pairs.
    """
    size = np.sort(np.abs(d[d != 0]))  # a zero has no sign to flip
    total = float(size.sum())
    far = abs(math.fsum(d)) - ROUNDING * total
    if 2 ** len(size) <= EXACT:
        sums = size[-1:]  # the other half of the patterns is the mirror image
        for x in size[:-1]:
            sums = np.concatenate([sums + x, sums - x])
        return float(np.mean(np.abs(sums) >= far))
    rng = np.random.default_rng(seed)
    step = max(1, CELLS // len(size))
    beyond = 0
    for start in range(0, draws, step):
        octets = rng.integers(0, 256, (min(step, draws - start), -(-len(size) // 8)), np.uint8)
        positive = np.unpackbits(octets, axis=1, count=len(size))
        beyond += int((np.abs(2 * (positive @ size) - total) >= far).sum())
    return (beyond + 1) / (draws + 1)


def splits(x: Floats, y: Floats, alternative: str, draws: int, seed: int) -> float:
    """Share of splits of the pooled values that part the means at least as far as the observed one.

    The smaller sample's sum tells everything, and the pool is sorted: neither the order of the
    values nor which sample comes first has a say in the draws.
    """
    few = x if len(x) <= len(y) else y
    pool = np.sort(np.concatenate([x, y]))
    n, k = len(pool), len(few)
    exact = math.comb(n, k) <= EXACT
    if exact:
        by_count = [np.zeros(1)] + [np.empty(0)] * k  # sums of all subsets of 0, 1 … k values
        for value in pool:
            for j in range(k, 0, -1):
                by_count[j] = np.concatenate([by_count[j], by_count[j - 1] + value])
        sums = by_count[k]
    else:
        rng = np.random.default_rng(seed)
        sums = np.array([pool[rng.choice(n, k, replace=False, shuffle=False)].sum() for _ in range(draws)])
    expected = k * math.fsum(pool) / n
    moved, observed = sums - expected, math.fsum(few) - expected
    if alternative == "two-sided":
        moved, observed = np.abs(moved), abs(observed)
    elif few is y:
        moved, observed = -moved, -observed
    beyond = moved >= observed - ROUNDING * float(np.abs(pool).sum())
    return float(beyond.mean()) if exact else (int(beyond.sum()) + 1) / (draws + 1)


@dataclass(frozen=True)
class Comparison:
    """How much more ``a`` has than ``b``, and whether chance could have done it.

    Attributes
    ----------
    difference, low, high
        Mean of ``a`` minus mean of ``b``, and its confidence interval.
    p
        Two-sided, unless another alternative was asked for. Uncorrected: see `holm`.
    effect, effect_name
        The difference without its unit: ``d_z`` and ``g`` in standard deviations, ``rank-biserial``
        and ``Cliff's delta`` in [−1, 1]. Positive: ``a`` is higher.
    test
        What was computed: t, wilcoxon, permutation, welch or rank-sum.
    n
        Pairs, or the values of both samples together.
    statistic
        t; W (the smaller rank sum) for wilcoxon; U of ``a`` for rank-sum; the difference for permutation.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    effect: float | None
    effect_name: str
    test: str
    n: int
    statistic: float | None = None


def paired(
    a: ArrayLike,
    b: ArrayLike,
    *,
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """Two runs on the same queries: is ``a`` higher than ``b``, query by query?

    Parameters
    ----------
    a, b
        The values of the same queries, in the same order.
    test
        ``t``: Student's paired test, effect d_z = mean / standard deviation of the differences,
        interval by t. ``wilcoxon``: signed ranks of the differences that are not zero, effect
        matched-pairs rank-biserial = (W₊ − W₋) / (W₊ + W₋). ``permutation``: the signs of the
        differences are flipped, in all ways up to `EXACT`, else in ``draws`` random ways with
        p = (b + 1) / (draws + 1) (Phipson & Smyth 2010); effect d_z. The last two have a
        bootstrap interval, see `mean_interval`.

    Notes
    -----
    All differences zero: p = 1, effect 0. All differences equal but not zero: the t statistic
    divides by zero, so p and d_z are ``None``; the other two tests still know.
    """
    x, y = finite(a, "a"), finite(b, "b")
    if len(x) != len(y):
        raise InputError(f"paired values must be equally many, found {len(x)} and {len(y)}")
    one_of(test, "t", "wilcoxon", "permutation")
    d = np.sort(x - y)
    if constant(d, scale=largest(x, y)):  # differences that differ by rounding alone
        d = np.full_like(d, 0.0 if largest(d) <= ROUNDING * largest(x, y) else math.fsum(d) / len(d))
    interval = mean_interval(d, confidence=confidence, seed=seed, method="t" if test == "t" else "bootstrap")
    name = "rank-biserial" if test == "wilcoxon" else "d_z"
    found = Comparison(interval.value, interval.low, interval.high, None, None, name, test, len(d))
    if found.difference is None or len(d) < 2:
        return found
    if not d.any():
        return replace(found, p=1.0, effect=0.0, statistic=0.0)
    if test == "wilcoxon":
        from scipy.stats import rankdata, wilcoxon

        outcome = wilcoxon(d)
        moved = d[d != 0]
        ranks = rankdata(np.abs(moved))
        effect = float(np.dot(ranks, np.sign(moved)) / ranks.sum())
        return replace(found, p=float(outcome.pvalue), effect=effect, statistic=float(outcome.statistic))
    if not constant(d):
        found = replace(found, effect=found.difference / float(np.std(d, ddof=1)))
    if test == "permutation":
        return replace(found, p=sign_flips(d, draws, seed), statistic=found.difference)
    if found.effect is None:
        return found
    from scipy.special import stdtr

    t = found.effect * math.sqrt(len(d))
    return replace(found, p=float(2 * stdtr(len(d) - 1, -abs(t))), statistic=t)


def welch(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> Comparison:
    """Two different sets of queries: is the mean of ``a`` higher? Spreads may differ (Welch's t).

    The effect is Hedges' g. With fewer than two values on a side, or no spread at all but two
    different values, p is ``None``; all values equal: p = 1, g = 0.
    """
    x, y = finite(a, "a"), finite(b, "b")
    found = Comparison(_difference(x, y), None, None, None, None, "g", "welch", len(x) + len(y))
    if min(len(x), len(y)) < 2:
        return found
    found = replace(found, effect=_hedges(x, y))
    if constant(x) and constant(y):
        found = replace(found, low=found.difference, high=found.difference)
        return replace(found, p=1.0, statistic=0.0) if found.effect == 0 else found
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():  # scipy warns of a side without spread, which Welch's test can bear
        warnings.simplefilter("ignore", RuntimeWarning)
        outcome = ttest_ind(x, y, equal_var=False)
    low, high = map(float, outcome.confidence_interval(confidence))
    p, t = float(outcome.pvalue), float(outcome.statistic)
    return replace(found, low=low, high=high, p=p, statistic=t)


def rank_sum(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Two different sets of queries: does a value of ``a`` tend to be above one of ``b``?

    Mann–Whitney's U. The effect is Cliff's delta, P(a > b) − P(a < b), which also is the
    rank-biserial correlation; the difference is that of the means, with a bootstrap interval.
    """
    x, y = finite(a, "a"), finite(b, "b")
    found = _unpaired(x, y, "Cliff's delta", "rank-sum", confidence, seed)
    pairs = len(x) * len(y)
    if pairs == 0:
        return found
    if constant(np.concatenate([x, y])):
        return replace(found, p=1.0, effect=0.0, statistic=pairs / 2)
    from scipy.stats import mannwhitneyu

    u, p = (float(each) for each in mannwhitneyu(x, y))
    return replace(found, p=p, effect=2 * u / pairs - 1, statistic=u)


def permutation(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Literal["two-sided", "greater"] = "two-sided",
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """Two different sets of queries: how often does dealing them out anew part the means this far?

    All splits up to `EXACT`, else ``draws`` random ones with p = (b + 1) / (draws + 1). The effect
    is Hedges' g; the interval of the difference is a bootstrap. ``greater`` asks one-sidedly
    whether ``a`` is higher, for an expectation that was stated beforehand.
    """
    x, y = finite(a, "a"), finite(b, "b")
    one_of(alternative, "two-sided", "greater")
    found = _unpaired(x, y, "g", "permutation", confidence, seed)
    if found.difference is None or found.n < 3:
        return found
    p = splits(x, y, alternative, draws, seed)
    return replace(found, p=p, effect=_hedges(x, y), statistic=found.difference)


def _unpaired(x: Floats, y: Floats, name: str, test: str, confidence: float, seed: int) -> Comparison:
    """Difference of two means, each sample resampled on its own; mirrored when the two are swapped."""

    def difference(x: Floats, y: Floats, axis: int) -> Any:
        return x.mean(axis=axis) - y.mean(axis=axis)

    first, second = np.sort(x), np.sort(y)
    if swap := [len(x), *first.tolist()] > [len(y), *second.tolist()]:
        first, second = second, first
    found = bootstrap(difference, first, second, confidence=confidence, seed=seed, paired=False)
    low, high = found.low, found.high
    if swap and low is not None and high is not None:
        low, high = -high, -low
    return Comparison(_difference(x, y), low, high, None, None, name, test, len(x) + len(y))


def _difference(x: Floats, y: Floats) -> float | None:
    return math.fsum(x) / len(x) - math.fsum(y) / len(y) if len(x) and len(y) else None


def _hedges(x: Floats, y: Floats) -> float | None:
    """Hedges' g: the difference in pooled standard deviations, without the bias of small samples."""
    from scipy.special import gammaln

    difference, freedom = _difference(x, y), len(x) + len(y) - 2
    if difference is None or freedom < 1:
        return None
    if constant(x) and constant(y):
        return 0.0 if abs(difference) <= ROUNDING * largest(x, y) else None
    squares = sum(float(np.sum((s - s.mean()) ** 2)) for s in (x, y))
    gamma = gammaln(freedom / 2) - gammaln((freedom - 1) / 2)
    shrink = math.exp(gamma) / math.sqrt(freedom / 2)
    return shrink * difference / math.sqrt(squares / freedom)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p-values made larger, so that any false alarm in the whole family is as rare as each p says.

    Holm (1979), in the order given; undefined values (None, NaN) stay ``None`` and do not count.
    """

    def adjust(p: Floats) -> Floats:
        order = np.argsort(p, kind="stable")
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        return np.minimum(steps, 1.0)[np.argsort(order, kind="stable")]

    return _adjust(p, adjust)


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """p-values made larger, so that p bounds the expected share of false alarms among the findings.

    Benjamini & Hochberg (1995), in the order given; undefined values (None, NaN) stay ``None`` and
    do not count.
    """
    from scipy.stats import false_discovery_control

    return _adjust(p, false_discovery_control)


def _adjust(p: Sequence[float | None], method: Callable[[Floats], Floats]) -> list[float | None]:
    adjusted = np.array([math.nan if x is None else x for x in p], dtype=np.float64)
    known = ~np.isnan(adjusted)
    if ((adjusted[known] < 0) | (adjusted[known] > 1)).any():
        raise InputError("p-values must lie between 0 and 1")
    if known.any():
        adjusted[known] = method(adjusted[known])
    return [None if math.isnan(x) else x for x in adjusted.tolist()]
