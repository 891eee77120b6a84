"""How sure can one be? Intervals, paired and unpaired comparisons, corrections for many tests.

The unit is the query: values come one per query, and every interval and test speaks about the
queries one might have drawn instead. A comparison never is a bare p-value: it carries the
difference, its interval and an effect size. What cannot be known is ``None``, never NaN.

The order of the values never changes a result, and neither does the side one looks from:
comparing b with a gives the same p as a with b, and everything signed turns its sign.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import InputError

Floats = NDArray[np.float64]

EXACT = 1_000_000  # permutation tests enumerate up to this many arrangements
DRAWS = 10_000  # and draw this many beyond it: p = 0.05 is then known to ± 0.004
CELLS = 2**16  # resampled numbers at a time: what stays in the cache is twice as quick
ROUNDING = 1e-12  # what sums of the same numbers in another order may differ by, relatively


@dataclass(frozen=True)
class Interval:
    """A value and the range that the queries, as a sample, leave open. ``None``: cannot be known."""

    value: float | None
    low: float | None
    high: float | None


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


def mean_interval(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    method: Literal["bootstrap", "t"] = "bootstrap",
) -> Interval:
    """The mean over the queries, and where it would lie for other queries of the same kind.

    Parameters
    ----------
    values
        One finite number per query. None at all gives an empty interval; a single one gives a mean
        without an interval; constant values give an interval of width 0.
    method
        ``bootstrap`` (the default) makes no assumption on the shape, and per-query values have odd
        ones: many exact zeros, two heavy sides, a wall at 1. It is the *expanded percentile* interval
        (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", The American Statistician
        69(4)): the plain percentile interval is too narrow for few queries, and the expansion repairs
        just that. BCa, the usual refinement, was left aside: on half-zero values (30 queries) it
        covers the truth in 87 % of samples where this one does in 93 %.
        ``t`` is Student's interval.

    Notes
    -----
    Each resample is used together with its mirror image (antithetic resampling, on the sorted
    values), so that the interval of −x is exactly the mirrored interval of x.
    """
    x = np.sort(_finite(values, "values"))
    _one_of(method, "bootstrap", "t")
    if len(x) == 0:
        return Interval(None, None, None)
    mean = math.fsum(x) / len(x)
    if len(x) == 1:
        return Interval(mean, None, None)
    if _constant(x):
        return Interval(mean, mean, mean)
    if method == "t":
        reach = _quantile_of_t(len(x), confidence) * float(np.std(x, ddof=1)) / math.sqrt(len(x))
        return Interval(mean, mean - reach, mean + reach)
    means = _resample(_both_means, (x, x[::-1]), resamples, seed, paired=True)
    return Interval(mean, *_percentiles(means, len(x), confidence))


def bootstrap(
    statistic: Callable[..., Any],
    *arrays: ArrayLike,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    paired: bool = True,
) -> Interval:
    """Any statistic of the queries, and where it would lie for other queries (percentile, expanded).

    Parameters
    ----------
    statistic
        Called as ``statistic(*arrays, axis=-1)`` on arrays that may have further axes in front, one
        row per resample. NaN where it is undefined.
    arrays
        One value per query each. With ``paired`` the same queries are drawn from all of them, so
        that a slope is refitted on whole queries; without, each is resampled on its own.

    Notes
    -----
    Resamples without a value are left out. When they are more than one in twenty, the statistic
    hangs on single queries and there is no honest interval: the bounds are ``None``.
    """
    data = tuple(_finite(a, "values") for a in arrays)
    if paired and len({len(a) for a in data}) > 1:
        raise InputError("paired arrays must be equally long: one value per query in each")
    n = min(len(a) for a in data)
    if n == 0:
        return Interval(None, None, None)
    order = np.lexsort(data) if paired else None
    data = tuple(np.sort(a) if order is None else a[order] for a in data)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(*data, axis=-1))
        if n == 1 or not math.isfinite(value):
            return Interval(value if math.isfinite(value) else None, None, None)
        found = _resample(statistic, data, resamples, seed, paired=paired)
    defined = found[np.isfinite(found)]
    if len(defined) < 0.95 * resamples:
        return Interval(value, None, None)
    return Interval(value, *_percentiles(defined, n, confidence))


def quantiles(
    values: ArrayLike, at: Sequence[float] = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
) -> dict[float, float | None]:
    """The value below which each share of the queries lies (linear between neighbours)."""
    x = _finite(values, "values")
    if len(x) == 0:
        return dict.fromkeys(at)
    return dict(zip(at, np.quantile(x, at).tolist(), strict=True))


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
    x, y = _finite(a, "a"), _finite(b, "b")
    if len(x) != len(y):
        raise InputError(f"paired values must be equally many, found {len(x)} and {len(y)}")
    _one_of(test, "t", "wilcoxon", "permutation")
    d = np.sort(x - y)
    if _constant(d, scale=_largest(x, y)):  # differences that differ by rounding alone
        d = np.full_like(d, 0.0 if _largest(d) <= ROUNDING * _largest(x, y) else math.fsum(d) / len(d))
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
        effect = float(ranks @ np.sign(moved) / ranks.sum())
        return replace(found, p=float(outcome.pvalue), effect=effect, statistic=float(outcome.statistic))
    if not _constant(d):
        found = replace(found, effect=found.difference / float(np.std(d, ddof=1)))
    if test == "permutation":
        return replace(found, p=_sign_flips(d, draws, seed), statistic=found.difference)
    if found.effect is None:
        return found
    from scipy.special import stdtr

    t = found.effect * math.sqrt(len(d))
    return replace(found, p=2 * float(stdtr(len(d) - 1, -abs(t))), statistic=t)


def welch(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> Comparison:
    """Two different sets of queries: is the mean of ``a`` higher? Spreads may differ (Welch's t).

    The effect is Hedges' g. With fewer than two values on a side, or no spread at all but two
    different values, p is ``None``; all values equal: p = 1, g = 0.
    """
    x, y = _finite(a, "a"), _finite(b, "b")
    found = Comparison(_difference(x, y), None, None, None, None, "g", "welch", len(x) + len(y))
    if min(len(x), len(y)) < 2:
        return found
    found = replace(found, effect=_hedges(x, y))
    if _constant(x) and _constant(y):
        found = replace(found, low=found.difference, high=found.difference)
        return replace(found, p=1.0, statistic=0.0) if found.effect == 0 else found
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():  # scipy warns of a side without spread, which Welch's test can bear
        warnings.simplefilter("ignore", RuntimeWarning)
        outcome = ttest_ind(x, y, equal_var=False)
    low, high = map(float, outcome.confidence_interval(confidence))
    return replace(found, low=low, high=high, p=float(outcome.pvalue), statistic=float(outcome.statistic))


def rank_sum(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Two different sets of queries: does a value of ``a`` tend to be above one of ``b``?

    Mann–Whitney's U. The effect is Cliff's delta, P(a > b) − P(a < b), which also is the
    rank-biserial correlation; the difference is that of the means, with a bootstrap interval.
    """
    x, y = _finite(a, "a"), _finite(b, "b")
    found = _unpaired(x, y, "Cliff's delta", "rank-sum", confidence, seed)
    pairs = len(x) * len(y)
    if pairs == 0:
        return found
    if _constant(np.concatenate([x, y])):
        return replace(found, p=1.0, effect=0.0, statistic=pairs / 2)
    from scipy.stats import mannwhitneyu

    u, p = map(float, mannwhitneyu(x, y))
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
    x, y = _finite(a, "a"), _finite(b, "b")
    _one_of(alternative, "two-sided", "greater")
    found = _unpaired(x, y, "g", "permutation", confidence, seed)
    if found.difference is None or found.n < 3:
        return found
    p = _splits(x, y, alternative, draws, seed)
    return replace(found, p=p, effect=_hedges(x, y), statistic=found.difference)


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


def _sign_flips(d: Floats, draws: int, seed: int) -> float:
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


def _splits(x: Floats, y: Floats, alternative: str, draws: int, seed: int) -> float:
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


def _resample(
    statistic: Callable[..., Any], data: tuple[Floats, ...], resamples: int, seed: int, *, paired: bool
) -> Floats:
    """The statistic of each resample, a bounded number of rows in memory at a time."""
    rng = np.random.default_rng(seed)
    step = max(1, CELLS // max(map(len, data)))
    found = []
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = [rng.integers(0, len(a), (rows, len(a))) for a in data[: 1 if paired else None]]
        picked = zip(data, drawn * len(data) if paired else drawn, strict=True)
        found.append(statistic(*(a[i] for a, i in picked), axis=-1))
    return np.concatenate(found, axis=-1, dtype=np.float64)


def _both_means(x: Floats, mirrored: Floats, axis: int) -> Floats:
    return np.stack([x.mean(axis=axis), mirrored.mean(axis=axis)])


def _percentiles(found: Floats, n: int, confidence: float) -> tuple[float, float]:
    """Hesterberg's expanded percentiles: as far out as Student's t is beyond the normal curve."""
    from scipy.special import ndtr

    tail = float(ndtr(-math.sqrt(n / (n - 1)) * _quantile_of_t(n, confidence)))
    low, high = np.quantile(found, [tail, 1 - tail]).tolist()
    return low, high


def _quantile_of_t(n: int, confidence: float) -> float:
    from scipy.special import stdtrit

    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, found {confidence}; 0.95 is usual")
    return float(stdtrit(n - 1, (1 + confidence) / 2))


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
    if _constant(x) and _constant(y):
        return 0.0 if abs(difference) <= ROUNDING * _largest(x, y) else None
    squares = sum(float(np.sum((s - s.mean()) ** 2)) for s in (x, y))
    shrink = math.exp(gammaln(freedom / 2) - gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return shrink * difference / math.sqrt(squares / freedom)


def _largest(*arrays: Floats) -> float:
    return max((float(np.abs(a).max()) for a in arrays if len(a)), default=0.0)


def _constant(x: Floats, scale: float | None = None) -> bool:
    """No spread beyond the rounding of numbers as large as ``scale``."""
    return len(x) > 0 and float(np.ptp(x)) <= ROUNDING * (_largest(x) if scale is None else scale)


def _one_of(choice: str, *legal: str) -> None:
    if choice not in legal:
        raise InputError(f"unknown choice {choice!r}; choose one of {', '.join(legal)}")


def _finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} must be one number per query, found an array of {array.ndim} dimensions")
    if undefined := int((~np.isfinite(array)).sum()):
        raise InputError(
            f"{name} holds {undefined} undefined numbers; leave those queries out and count them"
        )
    return array
