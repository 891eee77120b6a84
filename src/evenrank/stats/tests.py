"""Comparisons of two samples, with differences, intervals and effect sizes; Holm's correction."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenrank.errors import InputError, check_choice
from evenrank.stats.intervals import (
    CELLS,
    ROUNDING,
    Floats,
    bootstrap,
    finite,
    is_constant,
    largest_magnitude,
    mean_interval,
)

EXACT = 1_000_000  # permutation tests enumerate up to this many arrangements
DRAWS = 10_000  # and draw this many beyond it: p = 0.05 is then known to ± 0.004


def share_of_sign_flips(d: Floats, draws: int, seed: int) -> float:
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


def share_of_splits(x: Floats, y: Floats, alternative: str, draws: int, seed: int) -> float:
    """Share of splits of the pooled values whose means are at least as far apart as the observed ones.

    The smaller sample's sum is enough, and the pool is sorted: neither the order of the values nor
    which sample comes first changes the draws.
    """
    smaller = x if len(x) <= len(y) else y
    pool = np.sort(np.concatenate([x, y]))
    n, k = len(pool), len(smaller)
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
    differences, observed = sums - expected, math.fsum(smaller) - expected
    if alternative == "two-sided":
        differences, observed = np.abs(differences), abs(observed)
    elif smaller is y:
        differences, observed = -differences, -observed
    beyond = differences >= observed - ROUNDING * float(np.abs(pool).sum())
    return float(beyond.mean()) if exact else (int(beyond.sum()) + 1) / (draws + 1)


@dataclass(frozen=True)
class Comparison:
    """The difference between two samples, with its interval, p and effect size.

    Attributes
    ----------
    difference, low, high
        Mean of ``a`` minus mean of ``b``, and its confidence interval.
    p
        Two-sided, unless another alternative is given. Uncorrected: see `holm`.
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
    """Compare two runs on the same queries, query by query; positive if ``a`` is higher.

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
    check_choice("test", test, ("t", "wilcoxon", "permutation"))
    d = np.sort(x - y)
    if is_constant(d, scale=largest_magnitude(x, y)):  # differences that differ by rounding alone
        d = np.full_like(
            d, 0.0 if largest_magnitude(d) <= ROUNDING * largest_magnitude(x, y) else math.fsum(d) / len(d)
        )
    interval = mean_interval(d, confidence=confidence, seed=seed, method="t" if test == "t" else "bootstrap")
    name = "rank-biserial" if test == "wilcoxon" else "d_z"
    result = Comparison(interval.value, interval.low, interval.high, None, None, name, test, len(d))
    if result.difference is None or len(d) < 2:
        return result
    if not d.any():
        return replace(result, p=1.0, effect=0.0, statistic=0.0)
    if test == "wilcoxon":
        from scipy.stats import rankdata, wilcoxon

        outcome = wilcoxon(d)
        nonzero = d[d != 0]
        ranks = rankdata(np.abs(nonzero))
        effect = float(ranks @ np.sign(nonzero) / ranks.sum())
        return replace(result, p=float(outcome.pvalue), effect=effect, statistic=float(outcome.statistic))
    spread = float(np.std(d, ddof=1))
    if spread > 0 and not is_constant(d):
        result = replace(result, effect=result.difference / spread)
    if test == "permutation":
        return replace(result, p=share_of_sign_flips(d, draws, seed), statistic=result.difference)
    if result.effect is None:
        return result
    from scipy.special import stdtr

    t = result.effect * math.sqrt(len(d))
    return replace(result, p=float(2 * stdtr(len(d) - 1, -abs(t))), statistic=t)


def welch(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> Comparison:
    """Compare the means of two different sets of queries by Welch's t-test; spreads may differ.

    The effect is Hedges' g. With fewer than two values on a side, or no spread at all but two
    different values, p is ``None``; all values equal: p = 1, g = 0.
    """
    x, y = finite(a, "a"), finite(b, "b")
    result = Comparison(_difference(x, y), None, None, None, None, "g", "welch", len(x) + len(y))
    if min(len(x), len(y)) < 2:
        return result
    result = replace(result, effect=_hedges(x, y))
    if is_constant(x) and is_constant(y):
        result = replace(result, low=result.difference, high=result.difference)
        return replace(result, p=1.0, statistic=0.0) if result.effect == 0 else result
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():  # scipy warns of a side without spread, which Welch's test can bear
        warnings.simplefilter("ignore", RuntimeWarning)
        outcome = ttest_ind(x, y, equal_var=False)
    low, high = map(float, outcome.confidence_interval(confidence))
    p, t = float(outcome.pvalue), float(outcome.statistic)
    return replace(result, low=low, high=high, p=p, statistic=t)


def rank_sum(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Compare two different sets of queries by Mann–Whitney's U: is ``a`` mostly above ``b``?

    The effect is Cliff's delta, P(a > b) − P(a < b), which also is the
    rank-biserial correlation; the difference is that of the means, with a bootstrap interval.
    """
    x, y = finite(a, "a"), finite(b, "b")
    result = _unpaired(x, y, "Cliff's delta", "rank-sum", confidence, seed)
    pairs = len(x) * len(y)
    if pairs == 0:
        return result
    if is_constant(np.concatenate([x, y])):
        return replace(result, p=1.0, effect=0.0, statistic=pairs / 2)
    from scipy.stats import mannwhitneyu

    u, p = map(float, mannwhitneyu(x, y))
    return replace(result, p=p, effect=2 * u / pairs - 1, statistic=u)


def permutation(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Literal["two-sided", "greater"] = "two-sided",
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare the means of two different sets of queries by a permutation test.

    All splits up to `EXACT`, else ``draws`` random ones with p = (b + 1) / (draws + 1). The effect
    is Hedges' g; the interval of the difference is a bootstrap. ``greater`` asks one-sidedly
    whether ``a`` is higher, for an expectation that was stated beforehand.
    """
    x, y = finite(a, "a"), finite(b, "b")
    check_choice("alternative", alternative, ("two-sided", "greater"))
    result = _unpaired(x, y, "g", "permutation", confidence, seed)
    if result.difference is None or result.n < 3:
        return result
    p = share_of_splits(x, y, alternative, draws, seed)
    return replace(result, p=p, effect=_hedges(x, y), statistic=result.difference)


def _unpaired(x: Floats, y: Floats, name: str, test: str, confidence: float, seed: int) -> Comparison:
    """Difference of two means, each sample resampled on its own; mirrored when the two are swapped."""

    def difference(x: Floats, y: Floats, axis: int) -> Any:
        return x.mean(axis=axis) - y.mean(axis=axis)

    first, second = np.sort(x), np.sort(y)
    if swap := [len(x), *first.tolist()] > [len(y), *second.tolist()]:
        first, second = second, first
    interval = bootstrap(difference, first, second, confidence=confidence, seed=seed, paired=False)
    low, high = interval.low, interval.high
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
    if is_constant(x) and is_constant(y):
        return 0.0 if abs(difference) <= ROUNDING * largest_magnitude(x, y) else None
    squares = sum(float(np.sum((s - s.mean()) ** 2)) for s in (x, y))
    gamma = gammaln(freedom / 2) - gammaln((freedom - 1) / 2)
    shrink = float(math.exp(gamma) / math.sqrt(freedom / 2))
    return shrink * difference / math.sqrt(squares / freedom)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Correct p-values, so that any false alarm in the whole family is as rare as each p says.

    Holm (1979), in the order given; undefined values (None, NaN) stay ``None`` and do not count.
    """
    adjusted = np.array([math.nan if x is None else x for x in p], dtype=np.float64)
    if ((adjusted < 0) | (adjusted > 1)).any():
        raise InputError("p-values must lie between 0 and 1")
    order = np.argsort(adjusted, kind="stable")[: int((~np.isnan(adjusted)).sum())]  # NaN is last
    steps = np.maximum.accumulate(adjusted[order] * np.arange(len(order), 0, -1))
    adjusted[order] = np.minimum(steps, 1.0)
    return [None if math.isnan(x) else x for x in adjusted.tolist()]
