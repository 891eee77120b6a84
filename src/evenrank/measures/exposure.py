"""Exposure of groups: who gets the attention that goes with rank?

A. Singh and T. Joachims, Fairness of Exposure in Rankings, KDD 2018. P. Sapiezynski et al., Quantifying the
Impact of User Attention on Fair Group Representation in Ranked Lists, WWW Companion 2019; as used by the TREC
Fair Ranking tracks of 2021 and 2022. M. D. Ekstrand, G. McDonald, A. Raj and I. Johnson, Overview of the TREC
2022 Fair Ranking Track: Task 1, is a ranking relevant and fair at once? Task 2, do groups get the exposure
that they should over several rankings of a query, as F. Diaz, B. Mitra, M. D. Ekstrand, A. J. Biega and
B. Carterette, Evaluating Stochastic Rankings with Expected Exposure, CIKM 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.measures.base import Param, PerQuery, register
from evenrank.measures.groups import ATTRIBUTE, CUTOFF, GROUP, GroupMeasure, with_attribute
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, RankedLists, find_rows, log_discount
from evenrank.measures.rank_bias import PairMeasure, two_groups


def attention(ranks: Ints) -> Floats:
    """What documents at these ranks get of a reader's attention: 1/log2(max(rank, 2)), as in TREC."""
    values: Floats = 1 / np.log2(np.maximum(ranks, 2))
    return values


def attention_weights(n: int, t: int) -> Floats:
    """Weights of n ranked documents: 1/log2(i + 1) for i ≤ m = min(n, t), divided by their sum."""
    weights = log_discount(n, min(n, t))
    return weights / weights.sum() if n else weights


def group_exposure(shown: Ints, k: int | None = None) -> Floats:
    """Mean exposure of each group's documents; NaN for a group without any.

    Exposure(G) = (1/|G|) Σ_{d ∈ G} 1/log2(1 + rank(d)), Section 4 of Singh and Joachims. Documents below
    rank k belong to their group and have no exposure.
    """
    return _ratio(np.dot(shown.T, log_discount(len(shown), k)), shown.sum(axis=0))


def treatment(shown: Ints, relevance: Floats, k: int | None = None) -> Floats:
    """Exposure of each group over its merit, the mean relevance of its documents; NaN without merit."""
    return _ratio(group_exposure(shown, k), _ratio(np.dot(shown.T, relevance), shown.sum(axis=0)))


def _ratio(above: Floats, below: NDArray[Any]) -> Floats:
    """One over the other; NaN where that is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def js_divergence(p: Floats, q: Floats) -> float:
    """Jensen–Shannon divergence of two distributions, natural logarithm: from 0 (equal) to ln 2."""
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / middle), 0.0) + np.where(q > 0, q * np.log(q / middle), 0.0)
    return max(float(terms.sum()) / 2, 0.0)


def awrf(shown: Ints, target: Floats) -> float:
    """Attention-weighted rank fairness, 1 − D_JS(shares of attention ‖ target): from 1 − ln 2 to 1, fair."""
    if not shown.any():
        return float("nan")
    total = np.dot(shown.T, attention(np.arange(1, len(shown) + 1)))
    return 1 - js_divergence(total / total.sum(), target)


class _Exposure(GroupMeasure):
    """Mean exposure of a group's documents: 1/log2(1 + rank) each, 0 below the cut-off.

    From 0 (none of them in the top k) to 1. It depends on the length of the list; compare groups of the same
    list, as DemographicParity does. With two groups the first is meant unless `group` names one.

    Singh and Joachims, KDD 2018, Section 4.
    """

    __name__ = NAME = "Exposure"
    SHORT_DESC = "Mean of 1/log2(1 + rank) over the documents of a group."
    PREFERRED = "high"
    INTERPRETATION = "compare with the other groups of the same lists"
    REFERENCE = "the exposure of the other groups"
    UNDEFINED = "no document of the group"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": CUTOFF,
        "group": GROUP,
        "attribute": ATTRIBUTE,
    }

    def depth(self) -> int:
        return WHOLE_LIST

    def check_groups(self, groups: tuple[str, ...]) -> None:
        self.group(groups)

    def per_query(self, lists: RankedLists) -> PerQuery:
        column = self.group(lists.groups)
        values = [group_exposure(shown, self["cutoff"])[column] for shown in self.each_list(lists)]
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.UNDEFINED)


class _ExposureGap(PairMeasure):
    """The share of the readers' attention that one group's documents get, minus the other's.

    ExposureGap_t = Σ_{i≤m} w_i [d_i shows `of`] − Σ_{i≤m} w_i [d_i shows `against`], with the attention
    w_i = 1/log2(i + 1) of Singh and Joachims, normalised over m = min(t, n). From −1 to 1; positive: `of`
    (with two groups the second, male) gets more. Unlike `Exposure` it does not depend on the length of the
    list, and it is linear in the documents, so that stages of a ranking can be compared.

    Singh and Joachims, KDD 2018, Section 4.
    """

    __name__ = NAME = "ExposureGap"
    SHORT_DESC = "Share of attention for one group's documents, minus the other's."
    MEANING = "The share of attention in the top {k} that one group's documents get, minus the other group's."
    INTERPRETATION = "above 0 the second group gets more attention, below 0 the first"
    NEEDS = GroupMeasure.NEEDS
    CURVE = False
    # Its sign names no group: labels may not be the groups of the words that a verdict speaks about.
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **PairMeasure.SUPPORTED_PARAMS,
        "attribute": ATTRIBUTE,
    }
    weights = staticmethod(attention_weights)

    def __init__(self, **params: Any) -> None:
        super().__init__(**with_attribute(params))

    def shown(self, lists: RankedLists, group: str) -> Floats:
        return 1.0 * lists.column(group)


class _DemographicParity(GroupMeasure):
    """Ratio of two groups' mean exposures: 1 is parity, above 1 the group `of` is favoured.

    Exposure(of) / Exposure(against). With two groups `of` is the second and `against` the first
    (male / female), with more both must be named. Undefined where a list lacks one of the groups, or where
    `against` has no exposure.

    Singh and Joachims, KDD 2018, Section 4.1.
    """

    __name__ = NAME = "DemographicParity"
    SHORT_DESC = "Ratio of two groups' mean exposures."
    PREFERRED = "one"
    UNDEFINED = "one of the groups is absent or has no exposure"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": CUTOFF,
        "of": Param(dtype=str, default=None, desc="group above the line"),
        "against": Param(dtype=str, default=None, desc="group below the line"),
        "attribute": ATTRIBUTE,
    }

    def depth(self) -> int:
        return WHOLE_LIST

    def pair(self, groups: tuple[str, ...]) -> tuple[str, str]:
        """The two groups (of, against) that the measure compares."""
        return two_groups(self, groups)

    def check_groups(self, groups: tuple[str, ...]) -> None:
        self.pair(groups)

    def per_query(self, lists: RankedLists) -> PerQuery:
        received = np.array([*self.received(lists)]).reshape(-1, len(lists.groups))
        parts = {group: received[:, lists.groups.index(group)] for group in self.pair(lists.groups)}
        return PerQuery(_ratio(*parts.values()), parts, undefined=self.UNDEFINED)

    def received(self, lists: RankedLists) -> Iterator[Floats]:
        """What each group gets in each list."""
        return (group_exposure(shown, self["cutoff"]) for shown in self.each_list(lists))


class _DisparateTreatment(_DemographicParity):
    """Ratio of two groups' exposures, each over its merit: 1 is treatment as deserved (the authors' DTR).

    (Exposure(of)/U(of)) / (Exposure(against)/U(against)), where U is the mean relevance of a group's ranked
    documents (not judged: 0). Above 1 the group `of` gets more exposure than its relevance earns. Undefined
    where a group is absent or has no relevant document, or `against` no exposure.

    Singh and Joachims, KDD 2018, Section 4.2.
    """

    __name__ = NAME = "DisparateTreatment"
    SHORT_DESC = "Ratio of two groups' exposures over their mean relevance."
    NEEDS = frozenset({"groups", "qrels"})
    UNDEFINED = "one of the groups is absent, has no relevant document or no exposure"

    def received(self, lists: RankedLists) -> Iterator[Floats]:
        relevance = relevance_of(lists)
        for shown, start in zip(self.each_list(lists), lists.starts.tolist(), strict=True):
            yield treatment(shown, relevance[start : start + len(shown)], self["cutoff"])


def relevance_of(lists: RankedLists) -> Floats:
    """Relevance of every entry of the lists; 0 where it is not judged, or below 0."""
    if lists.qrels is None:
        return np.zeros(len(lists.doc_ids))
    queries = lists.query_ids.gather(np.repeat(np.arange(len(lists.lengths)), lists.lengths))
    entries = pl.DataFrame({"query_id": queries, "doc_id": lists.doc_ids})
    judged = entries.join(lists.qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return np.maximum(judged["relevance"].fill_null(0).to_numpy().astype(np.float64), 0.0)


class _AWRF(GroupMeasure):
    """Attention-weighted rank fairness: how near the groups' shares of attention are to the target.

    1 − D_JS(shares of attention in the top k ‖ target), natural logarithm as in the released code of TREC.
    1 is fair; the least possible is 1 − ln 2 = 0.307. Attention falls as 1/log2(max(rank, 2)); documents
    without a label are left out.

    Sapiezynski et al., WWW Companion 2019; TREC Fair Ranking 2021 and 2022.
    """

    __name__ = NAME = "AWRF"
    SHORT_DESC = "1 minus the divergence of attention shares from the target."
    PREFERRED = "high"
    BEST = 1.0
    MEANING = "How close the groups' shares of attention are to the target."
    UNDEFINED = "no labelled document in the top"

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        return awrf(shown[: self.cut(len(shown))], target)


class _nDCGxAWRF(_AWRF):
    """nDCG times AWRF: the score of Task 1 of TREC Fair Ranking 2022. From 0 to 1, higher is better.

    nDCG@k · AWRF@k. A document is relevant or not, a rank is worth 1/log2(max(rank, 2)) in both; AWRF as for
    the measure of that name. The track's target starts from ``target='relevant'``. A product
    hides which of the two is low: look at both. Queries without judgments have no value; judged ones without
    relevant documents have 0.

    Ekstrand, McDonald, Raj and Johnson, TREC 2022.
    """

    __name__ = NAME = "nDCGxAWRF"
    SHORT_DESC = "nDCG times AWRF, the score of TREC Fair Ranking 2022, Task 1."
    MEANING = "How relevant the top {k} are, and how close to the target: nDCG times AWRF."
    NEEDS = frozenset({"groups", "qrels"})
    UNDEFINED = "not judged, or no labelled document in the top"

    def per_query(self, lists: RankedLists) -> PerQuery:
        fair = super().per_query(lists)
        return PerQuery(fair.values * trec_ndcg(lists, self["cutoff"]), undefined=fair.undefined)


def trec_ndcg(lists: RankedLists, cutoff: int | None = None) -> Floats:
    """nDCG as in TREC Fair Ranking: relevant or not, a rank is worth 1/log2(max(rank, 2)).

    The first two ranks are worth the same, unlike in trec_eval. NaN for queries without judgments, 0 for
    those without relevant documents.
    """
    k = lists.lengths if cutoff is None else np.full(len(lists.lengths), cutoff)
    counted = (relevance_of(lists) > 0) & (lists.positions <= np.repeat(k, lists.lengths))
    gain = np.add.reduceat(counted * attention(lists.positions), lists.starts)
    judged = lists.qrels.group_by("query_id").agg((pl.col("relevance") > 0).sum())  # type: ignore[union-attr]
    rows = find_rows(lists.query_ids, judged["query_id"])
    relevant = judged["relevance"].to_numpy()[rows]
    best = np.cumsum(attention(np.arange(1, k.max(initial=1) + 1)))
    ideal = best[np.maximum(np.minimum(relevant, k), 1) - 1]
    return np.where(rows < 0, np.nan, gain / ideal)


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
        seq = lists.columns["seq"] if "seq" in lists.columns.columns else ""
        entries = pl.DataFrame({"list": np.repeat(np.arange(len(lists.lengths)), lists.lengths), "seq": seq})
        places = entries.select(pl.int_range(1, pl.len() + 1).over("list", "seq")).to_series().to_numpy()
        rankings = entries.group_by("list", maintain_order=True).agg(pl.col("seq").n_unique())["seq"]
        k = np.maximum.reduceat(places, lists.starts) if self["cutoff"] is None else self["cutoff"]
        k = np.broadcast_to(k, len(lists.lengths))
        gets = np.where(places <= np.repeat(k, lists.lengths), attention(places), 0.0)
        if self["only_relevant"]:
            gets = gets * (relevance_of(lists) > 0)
        system = np.add.reduceat(lists.counts() * gets[:, None], lists.starts) / rankings.to_numpy()[:, None]
        whole = np.cumsum(attention(np.arange(1, k.max() + 1)))[k - 1]
        target = self.targets(lists) * whole[:, None]
        values = self.compared(system, target).sum(axis=1)
        values[~(target.sum(axis=1) > 0)] = np.nan
        return PerQuery(values, undefined=self.UNDEFINED)

    def compared(self, system: Floats, target: Floats) -> Floats:
        """What each group adds, of its mean exposure over the rankings and that which it should have."""
        raise NotImplementedError


class _EEL(ExpectedExposure):
    """Expected exposure loss: the squared distance of groups' exposures from those they should have.

    EEL = ‖ε − ε*‖² = EED − 2 EER + ‖ε*‖². ε_g is the exposure of a group, Σ over the ranks of
    1/log2(max(rank, 2)) times the share that the document shows of the group, averaged over the rankings of
    the query (a column seq; one ranking is enough); only relevant documents count, unless
    `only_relevant=False`. ε*_g is the group's share in the target times the attention that k ranks have. 0 is
    fair; higher is less fair, up to twice the square of that attention, without saying whom it favours.

    The target is that of TREC Fair Ranking 2022: the groups' shares among the relevant documents, each with
    what an ideal ranking gives it; or any `target`.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EEL"
    SHORT_DESC = "Squared distance of groups' expected exposures from the target."
    PREFERRED = "low"
    MEANING = "How far the exposures of groups, over all rankings of a query, are from what they should be."

    def compared(self, system: Floats, target: Floats) -> Floats:
        return (system - target) ** 2


class _EED(ExpectedExposure):
    """Expected exposure disparity: how unevenly exposure is spread over groups, whoever deserves it.

    EED = ‖ε‖², with ε as for EEL. From 0 to the square of the attention that k ranks have (all of it on one
    group); lower is more even, and also lower where less relevant is shown: read it beside EER.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EED"
    SHORT_DESC = "Squared size of groups' expected exposures."
    PREFERRED = "low"
    MEANING = "How unevenly exposure is spread over groups, over all rankings of a query."

    def compared(self, system: Floats, target: Floats) -> Floats:
        return system**2


class _EER(ExpectedExposure):
    """Expected exposure relevance: how much exposure goes to the groups that should have it.

    EER = ε · ε*, with ε and ε* as for EEL. From 0, higher is better.

    Diaz et al., CIKM 2020, Section 4; TREC Fair Ranking 2022, Task 2.
    """

    __name__ = NAME = "EER"
    SHORT_DESC = "Groups' expected exposures times those they should have."
    PREFERRED = "high"
    MEANING = "How much exposure goes to the groups that should have it, over all rankings of a query."

    def compared(self, system: Floats, target: Floats) -> Floats:
        return system * target


Exposure = register(_Exposure())
ExposureGap = register(_ExposureGap())
DemographicParity = register(_DemographicParity())
DisparateTreatment = register(_DisparateTreatment())
AWRF = register(_AWRF())
EEL = register(_EEL())
EED = register(_EED())
EER = register(_EER())
nDCGxAWRF = register(_nDCGxAWRF())  # noqa: N816 (as the track writes it)
