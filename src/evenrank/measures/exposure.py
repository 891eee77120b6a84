"""Exposure of groups: who gets the attention that goes with rank?

A. Singh and T. Joachims, Fairness of Exposure in Rankings, KDD 2018. P. Sapiezynski et al., Quantifying the
Impact of User Attention on Fair Group Representation in Ranked Lists, WWW Companion 2019; as used by the TREC
Fair Ranking tracks of 2021 and 2022. M. D. Ekstrand, G. McDonald, A. Raj and I. Johnson, Overview of the TREC
2022 Fair Ranking Track, Task 1: is a ranking relevant and fair at once?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.measures.base import BiasMeasure, Param, PerQuery, register
from evenrank.measures.groups import (
    ATTRIBUTE,
    CUTOFF,
    GROUP,
    GroupMeasure,
    Groups,
    with_attribute,
)
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, RankedLists, log_discount
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
    PRETTY_NAME = "Exposure of a group"
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
    PRETTY_NAME = "Gap of exposure"
    SHORT_DESC = "Share of attention for one group's documents, minus the other's."
    MEANING = "The share of attention in the top {k} that one group's documents get, minus the other group's."
    INTERPRETATION = "above 0 the second group gets more attention, below 0 the first"
    NEEDS = GroupMeasure.NEEDS
    VIEW = Groups
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

    def curves(self) -> tuple[BiasMeasure, ...]:
        return ()


class _DemographicParity(GroupMeasure):
    """Ratio of two groups' mean exposures: 1 is parity, above 1 the group `of` is favoured.

    Exposure(of) / Exposure(against). With two groups `of` is the second and `against` the first
    (male / female), with more both must be named. Undefined where a list lacks one of the groups, or where
    `against` has no exposure.

    Singh and Joachims, KDD 2018, Section 4.1.
    """

    __name__ = NAME = "DemographicParity"
    PRETTY_NAME = "Demographic parity ratio of exposure"
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
    PRETTY_NAME = "Disparate treatment ratio"
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
    PRETTY_NAME = "Attention-weighted rank fairness"
    SHORT_DESC = "1 minus the divergence of attention shares from the target."
    PREFERRED = "high"
    BEST = 1.0
    MEANING = "How close the groups' shares of attention are to the target."
    UNDEFINED = "no labelled document in the top"

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        return awrf(shown[: self.cut(len(shown))], target)


def gained(relevant: Floats, ideal: int, k: int) -> float:
    """nDCG as in TREC Fair Ranking: relevant or not, a rank is worth 1/log2(max(rank, 2)).

    The first two ranks are worth the same, unlike in trec_eval. `ideal` is how many relevant documents there
    are.
    """
    worth = attention(np.arange(1, k + 1))
    best = worth[: min(k, ideal)].sum()
    return float(np.dot(relevant[:k], worth[: len(relevant[:k])]) / best) if best else 0.0


class _nDCGxAWRF(GroupMeasure):
    """nDCG times AWRF: the score of Task 1 of TREC Fair Ranking 2022. From 0 to 1, higher is better.

    nDCG@k · AWRF@k. A document is relevant or not, a rank is worth 1/log2(max(rank, 2)) in both; AWRF as for
    the measure of that name. The track's target is ``target='relevant'``, averaged with `world`. A product
    hides which of the two is low: look at both. Queries without judgments have no value; judged ones without
    relevant documents have 0.

    Ekstrand, McDonald, Raj and Johnson, TREC 2022.
    """

    __name__ = NAME = "nDCGxAWRF"
    PRETTY_NAME = "nDCG × attention-weighted rank fairness"
    SHORT_DESC = "nDCG times AWRF, the score of TREC Fair Ranking 2022, Task 1."
    PREFERRED = "high"
    BEST = 1.0
    MEANING = "How relevant the top {k} are, and how close to the target: nDCG times AWRF."
    NEEDS = frozenset({"groups", "qrels"})
    UNDEFINED = "not judged, or no labelled document in the top"

    def per_query(self, lists: RankedLists) -> PerQuery:
        relevant = (relevance_of(lists) > 0).astype(np.float64)
        judged = lists.qrels.group_by("query_id").agg((pl.col("relevance") > 0).sum())  # type: ignore[union-attr]
        known = dict(judged.iter_rows())
        starts, values = lists.starts.tolist(), []
        each = zip(lists.query_ids.to_list(), starts, self.each_list(lists), self.targets(lists), strict=True)
        for query, start, shown, target in each:
            fair = awrf(shown[: self.cut(len(shown))], target)
            if query not in known:
                values.append(float("nan"))
                continue
            k = len(shown) if self["cutoff"] is None else int(self["cutoff"])
            values.append(gained(relevant[start : start + len(shown)], known[query], k) * fair)
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.UNDEFINED)


Exposure = _Exposure()
ExposureGap = _ExposureGap()
DemographicParity = _DemographicParity()
DisparateTreatment = _DisparateTreatment()
AWRF = _AWRF()
nDCGxAWRF = _nDCGxAWRF()  # noqa: N816 (as the track writes it)
for _measure in (Exposure, ExposureGap, DemographicParity, DisparateTreatment, AWRF, nDCGxAWRF):
    register(_measure)
