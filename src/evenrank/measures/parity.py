"""rND, rKL, rRD and FAIR: is a group's share in every prefix of a ranking what it should be?

K. Yang and J. Stoyanovich, Measuring Fairness in Ranked Outputs, SSDBM 2017. M. Zehlike et al., FA*IR: A Fair
Top-k Ranking Algorithm, CIKM 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.measures.base import Param, PerQuery, register
from evenrank.measures.groups import AgainstRest
from evenrank.measures.lists import Floats, Ints, RankedLists

# term(s, i, p): how far s of the first i documents is from the share p.
Term = Callable[[Ints, int, float], Floats]


def difference(s: Ints, i: int, p: float) -> Floats:
    """rND: |s/i − p|."""
    return np.abs(s / i - p)


def divergence(s: Ints, i: int, p: float) -> Floats:
    """rKL: Kullback–Leibler divergence of (s/i, 1 − s/i) from (p, 1 − p)."""
    share = s / i
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(share > 0, share * np.log(share / p), 0.0)
        outside = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - p)), 0.0)
    # Rounding must not make a divergence negative.
    return np.maximum(inside + outside, 0.0)


def ratio_difference(s: Ints, i: int, p: float) -> Floats:
    """rRD: |s/(i − s) − p/(1 − p)|; a ratio with 0 above or below is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((s > 0) & (s < i), s / (i - s), 0.0)
    whole = p / (1 - p) if 0 < p < 1 else 0.0
    return np.abs(ratio - whole)


def ranked_parity(
    member: NDArray[np.bool_], term: Term, *, k: int | None = None, step: int = 10, share: float | None = None
) -> float:
    """The discounted sum of a term over prefixes of `step`, 2·step, … ≤ k documents, over its highest value.

    (1/Z) Σ_i term(s_i, i, p) / log2 i, where s_i of the first i documents are in the group, p is its share in
    the whole list (or `share`), and Z the highest possible value of the sum for a list with as many documents
    and members (with `share`: for any list). From 0 (every prefix is as the whole) to 1 (as far as can be).
    NaN where no prefix is long enough, or where nothing but 0 is possible.
    """
    n, members = len(member), int(np.sum(member))
    points = tuple(range(step, min(n, n if k is None else k) + 1, step))
    if not points:
        return float("nan")
    p = members / n if share is None else share
    supply = (members, n - members) if share is None else (n, n)
    highest = _highest(term, points, p, *supply)
    if not 0 < highest < np.inf:
        return float("nan")
    counts = np.cumsum(member)
    total = sum(float(term(counts[i - 1], i, p)) / np.log2(i) for i in points)
    return total / highest


@lru_cache(maxsize=4096)
def _highest(term: Term, points: tuple[int, ...], p: float, members: int, others: int) -> float:
    """The highest possible sum: the best way from prefix to prefix, by dynamic programming.

    The extreme orders (all members first, or last) need not be the highest: rRD grows with the ratio.
    """
    best: Floats = np.array([0.0])  # best[s]: highest sum so far with s members
    before = 0
    for i in points:
        step = i - before
        size = min(i, members) + 1
        reached = np.full(size, -np.inf)
        for more in range(step + 1):
            width = min(len(best), size - more)
            if width > 0:
                reached[more : more + width] = np.maximum(reached[more : more + width], best[:width])
        s = np.arange(size)
        reached[i - s > others] = -np.inf
        possible = reached > -np.inf
        best = reached + np.where(possible, term(s, i, p), 0.0) / np.log2(i)
        before = i
    return float(best.max())


class RankedParity(AgainstRest):
    WHOLE_LABELS = True
    PREFERRED = "low"
    UNDEFINED = "list shorter than the step, or all of one kind"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **AgainstRest.SUPPORTED_PARAMS,
        "step": Param(dtype=int, default=10, minimum=2, desc="prefixes of step, 2 step, … documents count"),
    }
    term: Term = staticmethod(difference)

    def per_query(self, lists: RankedLists) -> PerQuery:
        column = self.group(lists.groups)
        own = self.target_named(given=lists.targets is not None) == "list"
        shares = [None] * len(lists.lengths) if own else self.targets(lists)[:, column].tolist()
        values = [
            ranked_parity(shown[:, column] > 0, self.term, k=self["cutoff"], step=self["step"], share=share)
            for shown, share in zip(self.each_list(lists), shares, strict=True)
        ]
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.undefined(lists))


class _rND(RankedParity):
    """Normalised discounted difference of a group's share in the prefixes from its share in the whole.

    (1/Z) Σ_{i=10,20,…} |s_i/i − S/N| / log2 i, see `ranked_parity`. In [0, 1], 0 is fair; it does not say
    whether the group stands too high or too low.

    Yang and Stoyanovich, SSDBM 2017.
    """

    __name__ = NAME = "rND"
    SHORT_DESC = "Distance of a group's share in the prefixes from its share in the whole."
    term = staticmethod(difference)


class _rKL(RankedParity):
    """Normalised discounted KL divergence of the prefixes' shares from those of the whole.

    (1/Z) Σ_{i=10,20,…} D_KL((s_i/i, 1 − s_i/i) ‖ (S/N, 1 − S/N)) / log2 i, see `ranked_parity`. In [0, 1],
    0 is fair; smoother than rND.

    Yang and Stoyanovich, SSDBM 2017.
    """

    __name__ = NAME = "rKL"
    SHORT_DESC = "Divergence of the prefixes' shares from those of the whole."
    MEANING = "How far a group's share in the top ranks is from its share in the whole list."
    term = staticmethod(divergence)


class _rRD(RankedParity):
    """Normalised discounted ratio difference: as rND, with ratios of the group to the rest.

    (1/Z) Σ_{i=10,20,…} |s_i/(i − s_i) − S/(N − S)| / log2 i, a ratio with 0 above or below being 0. In
    [0, 1], 0 is fair. The authors advise it only where the group is the smaller part.

    Yang and Stoyanovich, SSDBM 2017.
    """

    __name__ = NAME = "rRD"
    SHORT_DESC = "Distance of a group's ratio to the rest in the prefixes from that of the whole."
    term = staticmethod(ratio_difference)


rND = register(_rND())  # noqa: N816 (the paper's names)
rKL = register(_rKL())  # noqa: N816
rRD = register(_rRD())  # noqa: N816


def minimum_counts(k: int, p: float, alpha: float) -> Ints:
    """How many members of the group each prefix 1..k needs at least.

    m(i) is the smallest m with F(m; i, p) > α, F being the binomial distribution function: fewer would be
    rejected as unlikely for a ranking that puts a member at each rank with probability p.
    """
    return np.array([np.searchsorted(cdf, alpha, side="right") for cdf in _binomials(k, p)], dtype=np.int64)


def failure_probability(minimums: Ints, p: float) -> float:
    """How likely a fair ranking (each document a member with probability p) has a prefix with too few."""
    alive = np.array([1.0])  # alive[s]: probability of s members so far and no failure
    for needed in minimums:
        longer = np.zeros(len(alive) + 1)
        longer[:-1] += alive * (1 - p)
        longer[1:] += alive * p
        longer[: int(needed)] = 0
        alive = longer
    return float(1 - alive.sum())


@lru_cache(maxsize=4096)
def adjusted_alpha(k: int, p: float, alpha: float) -> float:
    """The significance of each prefix test with which a fair ranking fails with probability at most α.

    k tests at α reject far too often. The largest adjusted value is searched among those at which the table
    of minimum counts changes, so the result is exact.
    """
    every = np.unique(np.concatenate(_binomials(k, p)))
    steps = np.concatenate([[0.0], every[every <= alpha]])
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if failure_probability(minimum_counts(k, p, float(steps[middle])), p) <= alpha:
            low = middle
        else:
            high = middle - 1
    return float(steps[low])


@lru_cache(maxsize=256)
def _binomials(k: int, p: float) -> tuple[Floats, ...]:
    """F(0..i; i, p) for i = 1..k, each from the one before: k distributions in k steps."""
    result, mass = [], np.array([1.0])
    for _ in range(k):
        mass = np.append(mass * (1 - p), 0.0) + np.append(0.0, mass * p)
        result.append(np.minimum(np.cumsum(mass), 1.0))
    return tuple(result)


def passes(member: NDArray[np.bool_], p: float, alpha: float = 0.1, *, adjust: bool = True) -> bool:
    """Whether every prefix holds as many members of the group as the test asks for."""
    k = len(member)
    level = adjusted_alpha(k, p, alpha) if adjust else alpha
    return bool((np.cumsum(member) >= minimum_counts(k, p, level)).all())


class _FAIR(AgainstRest):
    """Ranked group fairness (FA*IR): 1 if every prefix of the top k holds enough of the group, else 0.

    Enough is what a ranking that draws the group with probability p (its target share) falls short of
    nowhere, up to the significance `alpha`, adjusted for k tests unless `adjust=False`. The mean over queries
    is the share of lists that pass. The test is one-sided: too many of the group never fail.

    Zehlike et al., CIKM 2017, Section 3.
    """

    __name__ = NAME = "FAIR"
    SHORT_DESC = "1 if every prefix of the top k holds enough documents of a group."
    WHOLE_LABELS = True
    PREFERRED = "high"
    BEST = 1.0
    UNDEFINED = "target share of 0 or 1"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **AgainstRest.SUPPORTED_PARAMS,
        "alpha": Param(dtype=float, default=0.1, desc="significance of the whole test"),
        "adjust": Param(dtype=bool, default=True, desc="adjust the significance for the number of prefixes"),
    }

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        if not 0 < self["alpha"] < 1:
            raise InputError(f"{self.NAME}: alpha is {self['alpha']!r}, but must lie between 0 and 1")

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        column = self.group(groups)
        p = float(target[column])
        if not 0 < p < 1:
            return float("nan")
        member = shown[: self.cut(len(shown)), column] > 0
        return float(passes(member, p, self["alpha"], adjust=self["adjust"]))


FAIR = register(_FAIR())
