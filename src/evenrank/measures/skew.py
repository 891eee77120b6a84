"""Skew, MinSkew, MaxSkew and NDKL: are groups shown in the shares they should have?

S. C. Geyik, S. Ambler and K. Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems with
Application to LinkedIn Talent Search, KDD 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.measures.base import register
from evenrank.measures.groups import GROUP, GroupMeasure
from evenrank.measures.lists import Floats, Ints, RankedLists, log_discount

ABSENT = 0.5
"""What a group that is absent is counted as: the logarithm of 0 is no number, and to leave out the worst
lists would flatter."""


def skews(counts: Ints, target: Floats) -> Floats:
    """Skew of each group: ln(share among the counted documents / target share).

    Positive: shown more often than it should be, negative: less often, 0: as it should. A group that is
    not there counts as half a document, or as half of what it should have if that is less. NaN for a group
    that should not be there, or if nothing is counted.
    """
    total = counts.sum()
    if not total:
        return np.full(len(counts), np.nan)
    shares = np.where(counts > 0, counts, np.minimum(ABSENT, ABSENT * target * total)) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(target > 0, np.log(shares / target), np.nan)


def ndkl(shown: Ints, target: Floats) -> float:
    """Normalised discounted KL divergence: (1/Z) Σ_i D_KL(shares of the first i ‖ target) / log2(i + 1).

    Z = Σ_i 1/log2(i + 1). 0: every prefix has the target shares; no upper bound but max(−ln target).
    Prefixes in which no document has a label do not count. NaN if no label is there at all, or one that
    should not be.
    """
    counts = np.cumsum(shown, axis=0)
    totals = counts.sum(axis=1)
    labelled = totals > 0
    if not labelled.any():
        return float("nan")
    shares = counts[labelled] / totals[labelled, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0, shares * np.log(shares / target), 0.0).sum(axis=1)
    weights = log_discount(len(shown))[labelled]
    value = float(np.dot(np.maximum(terms, 0.0), weights) / weights.sum())
    return value if np.isfinite(value) else float("nan")


class ShareInTop(NamedTuple):
    """What the skew of a group depends on: who shows it, who has a label, its target, the cut-off."""

    group: Any
    labelled: Any
    target: float
    n: int


class SkewMeasure(GroupMeasure):
    """What Skew, MinSkew and MaxSkew share: as limits they bound shares among the labelled documents."""

    ORDER_MATTERS = False
    PREFERRED = "zero"
    pick = staticmethod(np.nanmin)  # of the groups whose skew is looked at

    def columns(self, groups: tuple[str, ...]) -> Sequence[int]:
        """The groups whose skew is looked at."""
        return range(len(groups))

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        values = skews(shown[: self.cut(len(shown))].sum(axis=0), target)[list(self.columns(groups))]
        return float("nan") if np.isnan(values).all() else float(self.pick(values))

    def shares_in_top(self, lists: RankedLists, query: int) -> list[ShareInTop]:
        """What the value of a list depends on, for each group; nothing where it is undefined."""
        shown, target = self.list_at(lists, query)
        labelled = shown.sum(axis=1)
        if not labelled.any():
            return []
        n = self.cut(len(shown))
        columns = [g for g in self.columns(lists.groups) if target[g] > 0]
        return [ShareInTop(shown[:, g], labelled, float(target[g]), n) for g in columns]


class _Skew(SkewMeasure):
    """Skew@k of a group: ln of its share in the top k over its target share.

    Positive: the top k show the group more often than they should, negative: less often, 0: as they should;
    ln 2 = 0.69 is twice as often. Shares are of the labelled documents; a group that is absent from the top k
    counts as half a document. With two groups the first is meant unless `group` names one.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "Skew"
    SHORT_DESC = "Logarithm of a group's share in the top k over its target share."
    UNDEFINED = "no labelled document in the top, or the target is 0"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {**GroupMeasure.SUPPORTED_PARAMS, "group": GROUP}  # noqa: RUF012

    def columns(self, groups: tuple[str, ...]) -> Sequence[int]:
        return [self.group(groups)]


class _MinSkew(SkewMeasure):
    """MinSkew@k: the Skew of the group that is worst off. At most 0; 0 is fair.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "MinSkew"
    SHORT_DESC = "Skew of the group that is worst off in the top k."
    UNDEFINED = "no labelled document in the top"
    LIMIT_REFUSED = ("<", "limit it from below with >=")  # as a limit: what is refused, and what to write


class _MaxSkew(_MinSkew):
    """MaxSkew@k: the Skew of the group that is best off. At least 0; 0 is fair.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "MaxSkew"
    SHORT_DESC = "Skew of the group that is best off in the top k."
    pick = staticmethod(np.nanmax)
    LIMIT_REFUSED = (">", "limit it from above with <=")


class _NDKL(GroupMeasure):
    """NDKL: how far the shares of groups in the prefixes of a ranking are from the target, top ranks most.

    (1/Z) Σ_{i≤k} D_KL(shares of the first i ‖ target) / log2(i + 1). 0 is fair, higher is less fair; it does
    not say which group is favoured. A single document is never fair, so even the best order is above 0.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "NDKL"
    SHORT_DESC = "Divergence of the prefixes' group shares from the target."
    PREFERRED = "low"
    MEANING = "How far the groups' shares in the top ranks are from the target."
    UNDEFINED = "no labelled document in the top, or one whose target is 0"

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        return ndkl(shown[: self.cut(len(shown))], target)


Skew = register(_Skew())
MinSkew = register(_MinSkew())
MaxSkew = register(_MaxSkew())
NDKL = register(_NDKL())
