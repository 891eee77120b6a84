"""Neutrality, FaiRR and NFaiRR: do neutral documents stand at the top?

N. Rekabsaz, S. Kopeinik and M. Schedl, Societal Biases in Retrieved Contents: Measurement Framework and
Adversarial Mitigation of BERT Rankers, SIGIR 2021. Published values use their list of 326 words;
values with another lexicon cannot be compared with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.measures.base import LinearMeasure, Param, register
from evenrank.measures.lists import Floats, RankedLists, find_rows, log_discount
from evenrank.measures.rank_bias import check_group


def neutrality(counts: NDArray[Any], threshold: int = 1, target: Sequence[float] | None = None) -> Floats:
    """How close a document comes to the target shares of the groups: 1 neutral, 0 skewed toward one group.

    1 if the total count is at most `threshold`; else 1 − Σ_g |share_g − target_g| / (2 (1 − min target)),
    where share_g is the group's part of the total count. The divisor is 1 for two groups at ½, the
    published case, and keeps the value in [0, 1] for any number of groups and any targets.

    Parameters
    ----------
    counts
        Occurrences of each group's words, documents × groups.
    threshold
        Documents with no more gendered words than this are neutral whatever the words are.
    target
        The target share of each group; equal shares unless given.
    """
    counts = np.asarray(counts, dtype=np.float64)
    groups = counts.shape[-1]
    if groups < 2:
        raise InputError("neutrality compares groups; it needs a lexicon with at least two")
    shares = np.full(groups, 1 / groups) if target is None else np.asarray(target, dtype=np.float64)
    total = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(counts / total[..., None] - shares).sum(axis=-1)
    value = 1 - distance / (2 * (1 - shares.min()))
    return np.where(total <= threshold, 1.0, np.clip(value, 0.0, 1.0))


class _FaiRR(LinearMeasure):
    """Fairness of retrieval results: how much neutral content the top t documents give, top ranks most.

    FaiRR_t = Σ_{i ≤ min(t, n)} neutrality(d_i) / log2(i + 1). From 0 (every document is one-sided) to
    Σ_{i≤t} 1/log2(i + 1) (all neutral); higher is fairer. Not comparable between cut-offs: see NFaiRR.

    Rekabsaz, Kopeinik and Schedl, SIGIR 2021.
    """

    __name__ = NAME = "FaiRR"
    SHORT_DESC = "Discounted sum of the neutrality of the top t documents."
    PREFERRED = "high"
    CURVE = False  # values of different cut-offs cannot be compared
    MEANING = "How much neutral content the top {k} documents offer; the first results count most."
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold"),
        "threshold": Param(
            dtype=int, default=1, minimum=0, desc="documents with at most this many group words are neutral"
        ),
        "target": Param(
            dtype=(dict, tuple), default=None, desc="target share of each group; equal by default"
        ),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        target = self["target"]
        if target is not None:
            shares = list(target.values() if isinstance(target, Mapping) else target)
            numbers = all(isinstance(s, int | float) and not isinstance(s, bool) and s >= 0 for s in shares)
            if len(shares) < 2 or not numbers or not math.isclose(sum(shares), 1, abs_tol=1e-9):
                raise InputError(f"{self.NAME}: target is {target!r}, but must give shares that add up to 1")

    def shares(self, groups: tuple[str, ...]) -> tuple[float, ...] | None:
        """The target as one share for each group, in their order."""
        target = self["target"]
        if target is None:
            return None
        if isinstance(target, Mapping):
            for group in target:
                check_group(self, group, groups)
            target = tuple(target.get(group, math.nan) for group in groups)
        if len(target) != len(groups) or any(math.isnan(share) for share in target):
            raise InputError(f"{self}: the target must name a share for each group: {', '.join(groups)}")
        return tuple(map(float, target))

    def check_groups(self, groups: tuple[str, ...]) -> None:
        if len(groups) < 2:
            raise InputError(f"{self} compares groups; it needs a lexicon with at least two")
        self.shares(groups)

    weights = staticmethod(log_discount)

    def values(self, lists: RankedLists) -> Floats:
        return neutrality(lists.counts(), self["threshold"], self.shares(lists.groups))


class _NFaiRR(_FaiRR):
    """FaiRR divided by the best that the background documents allow: 1 is as fair as it can be.

    NFaiRR_t(q) = FaiRR_t(q) / IFaiRR_t(q), where IFaiRR_t sums over the query's background documents,
    the top `depth` (200, as in the released code) of one run, sorted by neutrality. In [0, 1] where the
    background holds the ranked documents; higher is fairer. Undefined where no background document is
    neutral at all. Values with different backgrounds cannot be compared. A `depth` below the cut-off is
    refused: the best of fewer documents is no bound.

    Rekabsaz, Kopeinik and Schedl, SIGIR 2021.
    """

    __name__ = NAME = "NFaiRR"
    SHORT_DESC = "FaiRR relative to the fairest order of the background documents."
    BEST = 1.0
    CURVE = True
    MEANING = (
        "How neutral the top {k} documents are, compared with the fairest order of the background documents."
    )
    NEEDS = frozenset({"tally", "background"})
    UNDEFINED = "no neutral document in the background"
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        **_FaiRR.SUPPORTED_PARAMS,
        "depth": Param(dtype=int, default=200, minimum=1, desc="number of background documents of a query"),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        cutoff = self.params.get("cutoff")
        if cutoff is not None and self["depth"] < cutoff:
            raise InputError(
                f"{self.NAME}: depth is {self['depth']}, but must be at least the cut-off, "
                f"as in {self.NAME}(depth={cutoff})@{cutoff}"
            )

    def background_depth(self) -> int:
        return int(self["depth"])

    def scale(self, lists: RankedLists) -> Floats:
        """IFaiRR of each list."""
        background = lists.background
        if background is None:
            raise InputError(f"{self} needs a background run")
        rows = find_rows(lists.query_ids, background.query_ids)
        absent = lists.query_ids.filter(pl.Series(rows < 0))
        if len(absent):
            more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
            raise InputError(
                f"query {absent[0]}{more} is missing from the background run; "
                "give a background that ranks documents for every query"
            )
        return background.cached(("ideal", self), lambda: self._ideal(background))[rows]

    def _ideal(self, background: RankedLists) -> Floats:
        """FaiRR of each list's background documents, the most neutral first."""
        entries, lengths = background.top(self["depth"])
        best = np.zeros((len(lengths), int(lengths.max(initial=0))))
        best[np.arange(best.shape[1]) < lengths[:, None]] = self.each_value(background)[entries]
        best = -np.sort(-best, axis=1)[:, : self["cutoff"]]
        ideal: Floats = np.dot(best, log_discount(best.shape[1]))
        return ideal


FaiRR = register(_FaiRR())
NFaiRR = register(_NFaiRR())
