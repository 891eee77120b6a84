"""Skew, MinSkew, MaxSkew and NDKL: are groups shown in the shares they should have?

S. C. Geyik, S. Ambler and K. Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems with
Application to LinkedIn Talent Search, KDD 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.arithmetic import dot, exp, log, log2
from evenrank.errors import InputError
from evenrank.measures.base import register
from evenrank.measures.groups import GROUP, GroupMeasure, Shares, one_group
from evenrank.measures.lists import Alternatives, Floats, Ints, RankedLists, Row, between, holds, strict

if TYPE_CHECKING:
    from evenrank.measures.parse import Condition

_STEEP = 50.0  # no share of a list is e to this times another
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
        return np.where(target > 0, log(shares / target), np.nan)


def ndkl(shown: Ints, target: Floats) -> float:
    """Normalised discounted KL divergence: (1/Z) Σ_i D_KL(shares of the first i ‖ target) / log2(i + 1).

    Z = Σ_i 1/log2(i + 1). 0: every prefix has the wished-for shares; no upper bound but max(−ln target).
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
        terms = np.where(shares > 0, shares * log(shares / target), 0.0).sum(axis=1)
    weights = 1 / log2(np.arange(1, len(shown) + 1) + 1)[labelled]
    value = float(dot(np.maximum(terms, 0.0), weights) / weights.sum())
    return value if np.isfinite(value) else float("nan")


class SkewMeasure(GroupMeasure):
    """What Skew, MinSkew and MaxSkew share: as limits they bound shares among the labelled documents."""

    ORDERED = False
    SIGNED = True

    def columns(self, groups: tuple[str, ...]) -> Sequence[int]:
        """The groups whose skew is looked at."""
        return range(len(groups))

    def limit(self, condition: Condition, lists: RankedLists, query: int) -> Alternatives | None:
        """Bounds on the shares of groups, with alternatives: an absent group counts as half a document."""
        shown, target = self.list_at(lists, query)
        labelled, wished = shown.sum(axis=1), self.wished(shown, target)
        counted = [g for g in self.columns(lists.groups) if wished[g] > 0]
        if not labelled.any() or not counted:
            return None
        t = self.cut(len(shown))
        choices = [_within(condition, t, shown[:, g], labelled, float(wished[g])) for g in counted]
        return [[row for part in each for row in part] for each in product(*choices)]


def _within(condition: Condition, t: int, group: Any, labelled: Any, target: float) -> Alternatives:
    """Skew within its bounds: with the group present its share is bounded, absent the number labelled."""
    ones = np.ones(t)
    below = condition.absolute or condition.op.startswith("<")
    soft = labelled.dtype.kind == "f"
    least = float(group[group > 0].min(initial=1.0))  # of a document that shows the group at all
    present = [Row(ones, -1.0 * group, -least)]
    bounds = []
    if below:
        bounds.append((1.0, condition.bound))
    if condition.absolute or not below:
        bounds.append((-1.0, -condition.bound if condition.absolute else condition.bound))
    for side, at in bounds:
        row = Row(ones, side * (group - target * exp(min(max(at, -_STEEP), _STEEP)) * labelled), 0.0)
        present.append(strict(row, condition))
    # How many labelled documents there may be when none shows the group: these numbers are contiguous.
    smallest = float(labelled[labelled > 0].min(initial=1.0))
    absent = _absent_totals(condition, target, smallest, t) if soft else [
        x for x in range(1, t + 1) if holds(condition, _absent(x, target))
    ]  # fmt: skip
    if not absent:
        return [present]
    if len(bounds) == 1 and below and absent[0] <= smallest:
        return [[*present[1:], Row(ones, -1.0 * labelled, -smallest)]]
    none = [Row(ones, 1.0 * group, 0.0), *between(ones, labelled, absent[0], absent[-1], t)]
    return [present, none]


def _absent_totals(condition: Condition, target: float, smallest: float, t: int) -> list[float]:
    """How much may be labelled, at least and at most, when nothing of it shows the group; or nothing.

    The skew is then ln ½ up to 1/target, and falls as ln(½ / (labelled · target)) beyond.
    """
    if condition.absolute or condition.op.startswith(">"):
        bound = -condition.bound if condition.absolute else condition.bound
        if not holds(condition, _absent(smallest, target)):
            return []
        most = ABSENT / (target * exp(max(bound, -_STEEP)))
        return [smallest, min(most, float(t))]
    if holds(condition, _absent(smallest, target)):
        return [smallest, float(t)]
    least = ABSENT / (target * exp(max(condition.bound, -_STEEP)))
    return [least, float(t)] if least <= t else []


def _absent(labelled: float, target: float) -> float:
    """Skew of a group that none of so many labelled documents shows."""
    return float(skews(np.array([0, labelled]), np.array([target, 1.0]))[0])


class _Skew(SkewMeasure):
    """Skew@k of a group: ln of its share in the top k over its target share.

    Positive: the top k show the group more often than they should, negative: less often, 0: as they should;
    ln 2 = 0.69 is twice as often. Shares are of the labelled documents; a group that is absent from the top k
    counts as half a document. With two groups the first is meant unless `group` names one.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "Skew"
    PRETTY_NAME = "Skew"
    SHORT_DESC = "Logarithm of a group's share in the top k over its target share."
    UNDEFINED = "no labelled document in the top, or the target is 0"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {**GroupMeasure.SUPPORTED_PARAMS, "group": GROUP}  # noqa: RUF012

    def check_groups(self, groups: tuple[str, ...]) -> None:
        super().check_groups(groups)
        one_group(self, groups)

    def columns(self, groups: tuple[str, ...]) -> Sequence[int]:
        return [one_group(self, groups)]

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        found = skews(shown[: self.cut(len(shown))].sum(axis=0), self.wished(shown, target))
        return float(found[one_group(self, groups)])


class _MinSkew(SkewMeasure):
    """MinSkew@k: the Skew of the group that is worst off. At most 0; 0 is fair.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "MinSkew"
    PRETTY_NAME = "Minimum skew"
    SHORT_DESC = "Skew of the group that is worst off in the top k."
    UNDEFINED = "no labelled document in the top"
    pick = staticmethod(np.nanmin)

    def limited(self, condition: Condition) -> Condition:
        condition = super().limited(_signed(condition))
        if condition.op.startswith("<"):
            raise InputError(f"{condition}: limit it from below with >=")
        return condition

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        found = skews(shown[: self.cut(len(shown))].sum(axis=0), self.wished(shown, target))
        return float("nan") if np.isnan(found).all() else float(self.pick(found))


class _MaxSkew(_MinSkew):
    """MaxSkew@k: the Skew of the group that is best off. At least 0; 0 is fair.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "MaxSkew"
    PRETTY_NAME = "Maximum skew"
    SHORT_DESC = "Skew of the group that is best off in the top k."
    pick = staticmethod(np.nanmax)

    def limited(self, condition: Condition) -> Condition:
        condition = SkewMeasure.limited(self, _signed(condition))
        if condition.op.startswith(">"):
            raise InputError(f"{condition}: limit it from above with <=")
        return condition


def _signed(condition: Condition) -> Condition:
    if condition.absolute:
        raise InputError(f"{condition}: its sign is known; write MinSkew@10>=-0.2 or MaxSkew@10<=0.2")
    return condition


class _NDKL(GroupMeasure):
    """NDKL: how far the shares of groups in the prefixes of a ranking are from the target, top ranks most.

    (1/Z) Σ_{i≤k} D_KL(shares of the first i ‖ target) / log2(i + 1). 0 is fair, higher is less fair; it does
    not say which group is favoured. A single document is never fair, so even the best order is above 0.

    Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    __name__ = NAME = "NDKL"
    PRETTY_NAME = "Normalised discounted KL divergence"
    SHORT_DESC = "Divergence of the prefixes' group shares from the target."
    GOOD = "low"
    MEANING = "How far the groups' shares in the top ranks are from the target."
    UNDEFINED = "no labelled document in the top, or one whose target is 0"

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        return ndkl(shown[: self.cut(len(shown))], self.wished(shown, target))


Skew = _Skew()
MinSkew = _MinSkew()
MaxSkew = _MaxSkew()
NDKL = _NDKL()
for _measure in (Skew, MinSkew, MaxSkew, NDKL):
    register(_measure)
