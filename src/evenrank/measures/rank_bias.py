"""RaB and ARaB: which group the top of a ranking favours.

N. Rekabsaz and M. Schedl, Do Neural Ranking Models Intensify Gender Bias?, SIGIR 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank.data.schema import listing
from evenrank.errors import InputError, choice_hint
from evenrank.measures.base import BiasMeasure, LinearMeasure, Param, PerQuery, register
from evenrank.measures.lists import Floats, RankedLists, find_rows, magnitude_of
from evenrank.text.tally import MAGNITUDES

if TYPE_CHECKING:
    from evenrank.measures.inputs import Inputs


def rab_weights(n: int, t: int) -> Floats:
    """What each of n ranked documents weighs in RaB_t: 1/m for the first m = min(n, t), then 0."""
    m = min(n, t)
    return np.where(np.arange(n) < m, 1 / max(m, 1), 0.0)


def arab_weights(n: int, t: int) -> Floats:
    """What each of n ranked documents weighs in ARaB_t.

    The document at rank i weighs (1/m) Σ_{x=i..m} 1/x for i ≤ m = min(n, t), then 0. This is the mean
    over x = 1..m of the mean over the first x documents, collected by document.
    """
    m = min(n, t)
    weights = np.zeros(n)
    weights[:m] = np.cumsum(1 / np.arange(m, 0, -1))[::-1] / max(m, 1)
    return weights


def check_group(measure: BiasMeasure, group: str, groups: tuple[str, ...]) -> None:
    """Refuse a group that is none of those there are."""
    if group not in groups:
        raise InputError(f"{measure}: there is no group {group!r}; {choice_hint(group, groups)}")


def two_groups(measure: BiasMeasure, groups: tuple[str, ...]) -> tuple[str, str]:
    """The groups `of` and `against` that a measure compares; of two groups the second and the first."""
    of, against = measure["of"], measure["against"]
    for group in filter(None, (of, against)):
        check_group(measure, group, groups)
    if len(groups) == 2:
        first, second = groups
        of = of or (second if against in (None, first) else first)
        against = against or (first if of == second else second)
    if of is None or against is None:
        at = "" if measure["cutoff"] is None else f"@{measure['cutoff']}"
        raise InputError(
            f"{measure}: the groups are {listing(groups)}; name two of them, "
            f"as in {measure.NAME}(of={groups[-1]!r}, against={groups[0]!r}){at}"
        )
    if of == against:
        raise InputError(f"{measure}: of and against are both {of!r}")
    return of, against


class PairMeasure(LinearMeasure):
    """A weighted sum of how much documents show of one group, minus how much they show of another."""

    PREFERRED = "zero"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold"),
        "of": Param(dtype=str, default=None, desc="group that positive values point to"),
        "against": Param(dtype=str, default=None, desc="group that negative values point to"),
    }

    def pair(self, groups: tuple[str, ...]) -> tuple[str, str]:
        """The two groups (of, against) that the measure compares."""
        return two_groups(self, groups)

    def check_groups(self, groups: tuple[str, ...]) -> None:
        self.pair(groups)

    def shown(self, lists: RankedLists, group: str) -> Floats:
        """How much each document shows of a group."""
        raise NotImplementedError

    def values(self, lists: RankedLists) -> Floats:
        of, against = self.pair(lists.groups)
        return self.shown(lists, of) - self.shown(lists, against)

    def per_query(self, lists: RankedLists) -> PerQuery:
        """The value for each list, and the part of each of the two groups in it."""
        of, against = self.pair(lists.groups)
        weighing = self.weighing(lists)
        chosen = [group for group in lists.groups if group in (of, against)]
        parts = {group: weighing.total(self.shown(lists, group)) for group in chosen}
        return PerQuery(parts[of] - parts[against], parts)


class RankBias(PairMeasure):
    SIGN_NAMES_GROUP = True
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": PairMeasure.SUPPORTED_PARAMS["cutoff"],
        "magnitude": Param(
            dtype=str, choices=MAGNITUDES, default="tf", desc="how strongly a group shows in a document"
        ),
        **PairMeasure.SUPPORTED_PARAMS,
    }

    def shown(self, lists: RankedLists, group: str) -> Floats:
        return lists.magnitude(self["magnitude"], group)

    def words(self, groups: tuple[str, ...]) -> tuple[str, dict[str, float]]:
        of, against = self.pair(groups)
        return self["magnitude"], {of: 1.0, against: -1.0}

    def curves(self) -> list[BiasMeasure]:
        """Return RaB and ARaB of the same groups, whichever was measured."""
        return [family(**one.params) for one in super().curves() for family in (_RaB, _ARaB)]

    def backgrounds(self, inputs: Inputs, query_ids: pl.Series, values: Floats) -> dict[str, dict[str, Any]]:
        """The same difference over the whole collection and over the relevant documents of each query.

        No bias says where it comes from: a collection about soldiers leans to one side whatever the ranker
        does. The first is what a random ranking gets on average, the second what a perfect one gets; it is
        over the queries that have relevant documents, counted in `queries`.
        """
        tally, results = inputs.tally, dict[str, dict[str, Any]]()
        if len(tally) and len(values):
            means = [
                magnitude_of(self["magnitude"], group, lambda name: tally[name].to_numpy()).mean()
                for group in self.pair(tally.groups)
            ]
            collection = float(means[0] - means[1])
            results["collection"] = {"value": collection, "difference": float(values.mean()) - collection}
        if inputs.qrels is None:
            return results
        relevant = inputs.relevant
        row = find_rows(query_ids, relevant.query_ids)
        judged = row >= 0
        if judged.any():
            sums = np.add.reduceat(self.values(relevant), relevant.starts)
            theirs = float((sums / relevant.lengths)[row[judged]].mean())
            results["qrels"] = {
                "value": theirs,
                "difference": float(values[judged].mean()) - theirs,
                "queries": int(judged.sum()),
            }
        return results


class _RaB(RankBias):
    """Rank bias: how much more strongly one group shows in the top t documents than the other.

    RaB_t = (1/m) Σ_{i≤m} [magnitude_of(d_i) − magnitude_against(d_i)], m = min(t, n): a list of n < t
    documents averages over what it has, as in the released code. Positive values lean toward `of`,
    negative ones toward `against`; 0 is balance. With two groups `of` is the second and `against` the
    first (male − female), with more both must be named. The range is that of the magnitude
    (see `magnitude` in text/tally.py); `boolean` and `length` stay within [−1, 1].

    Rekabsaz and Schedl, SIGIR 2020, Eqs. 2 and 3.
    """

    __name__ = NAME = "RaB"
    SHORT_DESC = "Mean difference of two groups' magnitudes over the top t documents."
    MEANING = "How much more present {of} words are than {against} words in the top {k} documents."
    ORDER_MATTERS = False
    weights = staticmethod(rab_weights)


class _ARaB(RankBias):
    """Average rank bias: RaB averaged over the cut-offs 1..t, so that the top ranks weigh most.

    ARaB_t = (1/m) Σ_{x=1..m} RaB_x, m = min(t, n), computed as one dot product with `arab_weights`.
    Sign, groups and range as for RaB. The two can differ in sign: a female document at rank 2 may
    outweigh two male ones at ranks 8 and 10.

    Rekabsaz and Schedl, SIGIR 2020, Eqs. 4 and 5.
    """

    __name__ = NAME = "ARaB"
    SHORT_DESC = "RaB averaged over the cut-offs 1..t."
    MEANING = (
        "How much more present {of} words are than {against} words in the first documents, averaged over the "
        "cut-offs 1 to {k}, so that the first results count most."
    )
    weights = staticmethod(arab_weights)


RaB = register(_RaB())
ARaB = register(_ARaB())
