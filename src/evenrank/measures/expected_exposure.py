"""EEL, EED and EER: do groups get the exposure that they should, over several rankings of a query?

F. Diaz, B. Mitra, M. D. Ekstrand, A. J. Biega and B. Carterette, Evaluating Stochastic Rankings with Expected
Exposure, CIKM 2020; over groups, with the target of M. D. Ekstrand, G. McDonald, A. Raj and I. Johnson,
Overview of the TREC 2022 Fair Ranking Track, Task 2.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank.measures.base import Param, PerQuery, register
from evenrank.measures.exposure import attention, relevance_of
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, RankedLists


def deserved(relevances: Ints) -> Floats:
    """What relevant documents, the most relevant first, should get: equals the same.

    In an ideal ranking they stand by relevance, and those of one relevance in any order, each as often: all
    of them get the mean attention of the ranks they share. Diaz et al., Section 4.1.
    """
    each = attention(np.arange(1, len(relevances) + 1))
    starts = np.flatnonzero(np.diff(relevances, prepend=relevances[:1] + 1))
    sizes = np.diff(starts, append=len(relevances))
    return np.repeat(np.add.reduceat(each, starts) / sizes, sizes)


class ExpectedExposure(GroupMeasure):
    """What EEL, EED and EER share: the exposure of each group, as it is and as it should be."""

    SEQUENCES = True
    DEFAULT_TARGET = "relevant"
    UNDEFINED = "nothing is judged relevant"
    relevant_weights = staticmethod(deserved)
    NEEDS = frozenset({"groups", "qrels"})
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **GroupMeasure.SUPPORTED_PARAMS,
        "only_relevant": Param(dtype=bool, default=True, desc="count exposure of relevant documents only"),
    }

    def depth(self) -> int:
        return WHOLE_LIST

    def per_query(self, lists: RankedLists) -> PerQuery:
        values = np.full(len(lists.lengths), np.nan)
        seq = pl.repeat("", len(lists.rows), dtype=pl.String) if lists.seq is None else lists.seq
        entries = pl.DataFrame({"list": np.repeat(np.arange(len(values)), lists.lengths)})
        entries = entries.with_columns(seq=seq).select(
            place=pl.int_range(1, pl.len() + 1).over("list", "seq"),
            rankings=pl.col("seq").n_unique().over("list"),
        )
        each_place, rankings = (column.to_numpy() for column in entries)
        relevant, each_target = relevance_of(lists) > 0, self.targets(lists)
        for query, (start, shown) in enumerate(
            zip(lists.starts.tolist(), self.each_list(lists), strict=True)
        ):
            target, places = each_target[query], each_place[start : start + len(shown)]
            if np.isnan(target).any() or not target.sum():
                continue
            ranks = int(places.max()) if self["cutoff"] is None else int(self["cutoff"])
            weights = np.where(places <= ranks, attention(places), 0.0)
            if self["only_relevant"]:
                weights = weights * relevant[start : start + len(shown)]
            system = np.dot(1.0 * shown.T, weights) / rankings[start]
            values[query] = self.compared(system, target * attention(np.arange(1, ranks + 1)).sum())
        return PerQuery(values, undefined=self.UNDEFINED)

    def compared(self, system: Floats, target: Floats) -> float:
        """The value, from the exposures of groups in the mean over rankings, and those they should have."""
        raise NotImplementedError


class _EEL(ExpectedExposure):
    """Expected exposure loss: the squared distance of groups' exposures from those they should have.

    EEL = ‖ε − ε*‖² = EED − 2 EER + ‖ε*‖². ε_g is the exposure of a group, Σ over the ranks of
    1/log2(max(rank, 2)) times the share that the document shows of the group, averaged over the rankings of
    the query (a column seq; one ranking is enough); only relevant documents count, unless
    `only_relevant=False`. ε*_g is the group's share in the target times the attention that k ranks have. 0 is
    fair; higher is less fair, up to twice the square of that attention, without saying whom it favours.

    The target is that of TREC Fair Ranking 2022: the groups' shares among the relevant documents, each with
    what an ideal ranking gives it, averaged with `world` where that is given; or any `target`.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EEL"
    PRETTY_NAME = "Expected exposure loss"
    SHORT_DESC = "Squared distance of groups' expected exposures from the target."
    PREFERRED = "low"
    MEANING = "How far the exposures of groups, over all rankings of a query, are from what they should be."

    def compared(self, system: Floats, target: Floats) -> float:
        return float(np.dot(system - target, system - target))


class _EED(ExpectedExposure):
    """Expected exposure disparity: how unevenly exposure is spread over groups, whoever deserves it.

    EED = ‖ε‖², with ε as for EEL. From 0 to the square of the attention that k ranks have (all of it on one
    group); lower is more even, and also lower where less relevant is shown: read it beside EER.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EED"
    PRETTY_NAME = "Expected exposure disparity"
    SHORT_DESC = "Squared size of groups' expected exposures."
    PREFERRED = "low"
    MEANING = "How unevenly exposure is spread over groups, over all rankings of a query."

    def compared(self, system: Floats, target: Floats) -> float:
        return float(np.dot(system, system))


class _EER(ExpectedExposure):
    """Expected exposure relevance: how much exposure goes to the groups that should have it.

    EER = ε · ε*, with ε and ε* as for EEL. From 0, higher is better.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EER"
    PRETTY_NAME = "Expected exposure relevance"
    SHORT_DESC = "Groups' expected exposures times those they should have."
    PREFERRED = "high"
    MEANING = "How much exposure goes to the groups that should have it, over all rankings of a query."

    def compared(self, system: Floats, target: Floats) -> float:
        return float(np.dot(system, target))


EEL = _EEL()
EED = _EED()
EER = _EER()
for _measure in (EEL, EED, EER):
    register(_measure)
