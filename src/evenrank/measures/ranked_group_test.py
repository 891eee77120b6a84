"""FAIR: the ranked group fairness test of FA*IR, with its adjusted significance.

M. Zehlike, F. Bonchi, C. Castillo, S. Hajian, M. Megahed and R. Baeza-Yates, FA*IR: A Fair Top-k Ranking
Algorithm, CIKM 2017; tables are searched as in M. Zehlike, T. Sühr and C. Castillo, A Note on the
Significance Adjustment for FA*IR with Two Protected Groups, 2020.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.measures.base import Param, register
from evenrank.measures.groups import AgainstRest, Shares
from evenrank.measures.lists import Floats, Ints


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
    found, mass = [], np.array([1.0])
    for _ in range(k):
        mass = np.append(mass * (1 - p), 0.0) + np.append(0.0, mass * p)
        found.append(np.minimum(np.cumsum(mass), 1.0))
    return tuple(found)


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
    PRETTY_NAME = "Ranked group fairness test"
    SHORT_DESC = "1 if every prefix of the top k holds enough documents of a group."
    GOOD = "high"
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

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        column = self.group(groups)
        p = float(self.wished(shown, target)[column])
        if not 0 < p < 1:
            return float("nan")
        member = shown[: self.cut(len(shown)), column] > 0
        return float(passes(member, p, self["alpha"], adjust=self["adjust"]))


FAIR = _FAIR()
register(FAIR)
