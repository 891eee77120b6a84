"""nDCGxAWRF: is a ranking relevant and fair at once?

M. D. Ekstrand, G. McDonald, A. Raj and I. Johnson, Overview of the TREC 2022 Fair Ranking Track, Task 1.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.arithmetic import dot, log2
from evenrank.measures.base import Context, PerQuery, register
from evenrank.measures.exposure import awrf, relevance_of
from evenrank.measures.groups import GroupMeasure, each_list
from evenrank.measures.lists import Floats


def gained(relevant: Floats, ideal: int, k: int) -> float:
    """nDCG as in TREC Fair Ranking: relevant or not, a rank is worth 1/log2(max(rank, 2)).

    The first two ranks are worth the same, unlike in trec_eval. `ideal` is how many relevant documents there
    are.
    """
    worth = 1 / log2(np.maximum(np.arange(1, k + 1), 2))
    best = worth[: min(k, ideal)].sum()
    return float(dot(relevant[:k], worth[: len(relevant[:k])]) / best) if best else 0.0


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
    GOOD = "high"
    BEST = 1.0
    MEANING = "How relevant and at once how near to the target the top {k} are: nDCG times AWRF."
    NEEDS = frozenset({"groups", "qrels"})
    UNDEFINED = "not judged, or no labelled document in the top"

    def per_query(self, context: Context) -> PerQuery:
        relevant = (relevance_of(context) > 0).astype(np.float64)
        judged = context.qrels.group_by("query_id").agg((pl.col("relevance") > 0).sum())  # type: ignore[union-attr]
        known = dict(judged.iter_rows())
        starts, values = context.lists.starts.tolist(), []
        each = zip(
            context.lists.query_ids.to_list(), starts, each_list(context), self.targets(context), strict=True
        )
        for query, start, shown, target in each:
            fair = awrf(shown[: self.cut(len(shown))], self.wished(shown, target))
            if query not in known:
                values.append(float("nan"))
                continue
            k = len(shown) if self["cutoff"] is None else int(self["cutoff"])
            values.append(gained(relevant[start : start + len(shown)], known[query], k) * fair)
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.UNDEFINED)


nDCGxAWRF = _nDCGxAWRF()  # noqa: N816 (as the track writes it)
register(nDCGxAWRF)
