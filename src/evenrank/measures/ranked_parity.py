"""rND, rKL and rRD: is a group's share in every prefix of a ranking that of the whole?

K. Yang and J. Stoyanovich, Measuring Fairness in Ranked Outputs, SSDBM 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.arithmetic import log, log2
from evenrank.measures.base import Param, register
from evenrank.measures.groups import AgainstRest, Shares
from evenrank.measures.lists import Floats, Ints

# term(s, i, p): how far s of the first i documents is from the share p.
Term = Callable[[Ints, int, float], Floats]


def difference(s: Ints, i: int, p: float) -> Floats:
    """rND: |s/i − p|."""
    return np.abs(s / i - p)


def divergence(s: Ints, i: int, p: float) -> Floats:
    """rKL: Kullback–Leibler divergence of (s/i, 1 − s/i) from (p, 1 − p)."""
    share = s / i
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(share > 0, share * log(share / p), 0.0)
        outside = np.where(share < 1, (1 - share) * log((1 - share) / (1 - p)), 0.0)
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
    total = sum(float(term(counts[i - 1], i, p)) / log2(i) for i in points)
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
        best = reached + np.where(possible, term(s, i, p), 0.0) / log2(i)
        before = i
    return float(best.max())


class RankedParity(AgainstRest):
    GOOD = "low"
    UNDEFINED = "list shorter than the step, or all of one kind"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **AgainstRest.SUPPORTED_PARAMS,
        "step": Param(dtype=int, default=10, minimum=2, desc="prefixes of step, 2 step, … documents count"),
    }
    term: Term = staticmethod(difference)

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        column = self.group(groups)
        share = None if target is None else float(self.wished(shown, target)[column])
        return ranked_parity(
            shown[:, column] > 0, self.term, k=self["cutoff"], step=self["step"], share=share
        )


class _rND(RankedParity):
    """Normalised discounted difference of a group's share in the prefixes from its share in the whole.

    (1/Z) Σ_{i=10,20,…} |s_i/i − S/N| / log2 i, see `ranked_parity`. In [0, 1], 0 is fair; it does not say
    whether the group stands too high or too low.

    Yang and Stoyanovich, SSDBM 2017.
    """

    __name__ = NAME = "rND"
    PRETTY_NAME = "Normalised discounted difference"
    SHORT_DESC = "Distance of a group's share in the prefixes from its share in the whole."
    term = staticmethod(difference)


class _rKL(RankedParity):
    """Normalised discounted KL divergence of the prefixes' shares from those of the whole.

    (1/Z) Σ_{i=10,20,…} D_KL((s_i/i, 1 − s_i/i) ‖ (S/N, 1 − S/N)) / log2 i, see `ranked_parity`. In [0, 1],
    0 is fair; smoother than rND.

    Yang and Stoyanovich, SSDBM 2017.
    """

    __name__ = NAME = "rKL"
    PRETTY_NAME = "Normalised discounted KL divergence"
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
    PRETTY_NAME = "Normalised discounted ratio difference"
    SHORT_DESC = "Distance of a group's ratio to the rest in the prefixes from that of the whole."
    term = staticmethod(ratio_difference)


rND = _rND()  # noqa: N816 (the paper's names)
rKL = _rKL()  # noqa: N816
rRD = _rRD()  # noqa: N816
register(rND)
register(rKL)
register(rRD)
