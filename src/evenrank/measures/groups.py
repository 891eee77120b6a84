"""What measures of ranked groups share: groups of documents, a target to compare with, lists one by one.

A document shows one group or none. Measures of one group against the rest (rND, rKL, rRD, FAIR) count a
document without a label as one of the rest; measures of all groups (Skew, NDKL, exposure, AWRF) take shares
of the labelled documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank.data.columns import listing
from evenrank.errors import InputError, choices
from evenrank.measures.base import BiasMeasure, Context, Param, PerQuery
from evenrank.measures.document_groups import group_targets, targets_fingerprint
from evenrank.measures.lists import WHOLE, Floats, Ints
from evenrank.measures.parts import Seen
from evenrank.measures.results import Measurement, Options
from evenrank.measures.views import View, counted

Shares = list[Fraction | None]
"""A share for each group, None where it is not known."""
TARGETS = ("list", "collection", "equal")

CUTOFF = Param(dtype=int, default=None, minimum=1, desc="ranking cutoff threshold; without it the whole list")
TARGET = Param(
    dtype=(str, dict),
    default=None,
    desc="wished-for shares: list, collection, equal or {group: share}; the table of targets, else list",
)
GROUP = Param(dtype=str, default=None, desc="the group that is compared with the rest")


_TARGETS = {
    "list": "the query's whole list",
    "collection": "the shares in the collection",
    "equal": "equal shares",
    "given": "the given shares of each query",
}


class Groups(View):
    """Documents as the groups they show: given by labels, or inferred from the tally."""

    NEEDED = "labels, or a tally to infer groups from"
    PARTS = True

    @cached_property
    def tally(self) -> Any:
        return self.inputs.groups

    @property
    def missing(self) -> str:
        # A document without a given label shows no group; one that a tally lacks may be a mistake.
        return self.inputs.missing if self.tally.inferred else "unlabelled"

    @cached_property
    def targets(self) -> Mapping[str, Mapping[str, Fraction]] | None:
        given = self.inputs.given.get("targets")
        return None if given is None else group_targets(given, self.tally.groups)

    @property
    def name(self) -> str:
        wished = "" if self.targets is None else targets_fingerprint(self.targets)[:8]
        return self._looked_at(self.inputs.queries) + wished

    def provenance(self) -> dict[str, Any]:
        return {
            **({"tally": self.inputs.tally.provenance} if self.tally.inferred else {}),
            "groups": self.tally.provenance,
            **({} if self.targets is None else {"targets": targets_fingerprint(self.targets)}),
        }

    def seen(self, name: str, run: pl.DataFrame, options: Options) -> Seen:
        labelled = self.tally.frame.filter(pl.Series(self.tally.known))["doc_id"]
        held = int(run["doc_id"].is_in(labelled.implode()).sum())
        return replace(super().seen(name, run, options), held=held)

    def counts(self, measure: BiasMeasure, context: Context) -> dict[str, Ints]:
        """And how many stand above the cut-off, and how many of these show no group."""
        lists, cutoff = context.lists, measure.params.get("cutoff")
        known = np.append(self.tally.known, False)  # the last for rows that are −1
        above, unknown = counted(lists, WHOLE if cutoff is None else cutoff, ~known[lists.rows])
        return {**super().counts(measure, context), "above": above, "unknown": unknown}

    def told(self, name: str, seen: Seen, options: Options) -> list[Measurement]:
        if not seen.held:
            raise InputError(
                f"{name}: none of its documents has a group; check that labels and run belong together"
            )
        return super().told(name, seen, options)

    def target_of(self, measure: Any) -> str:
        """Which shares a measure compares with, in words."""
        target = measure["target"] or ("list" if self.targets is None else "given")
        return _TARGETS[target] if isinstance(target, str) else str(target)

    def notes(self, measure: Any, seen: Seen, defined: np.ndarray, options: Options) -> tuple[str, ...]:
        """Says where groups and target come from, too."""
        notes = [f"group labels: {self.tally.how}", *super().notes(measure, seen, defined, options)]
        if "target" in measure.SUPPORTED_PARAMS:
            notes.append(f"target: {self.target_of(measure)}")
        looked, unknown = (int(seen.counts[measure][what][defined].sum()) for what in ("above", "unknown"))
        if unknown:
            notes.append(f"{unknown / looked:.1%} of the documents looked at show no group")
        return tuple(notes)


class GroupMeasure(BiasMeasure):
    """A measure of how ranked lists treat groups of documents, computed list by list.

    `per_list` gives the value of one list; NaN where it has none, and `UNDEFINED` says why.
    """

    VIEW = Groups
    NEEDS: frozenset[str] = frozenset({"groups"})
    TIES = False
    UNDEFINED: ClassVar[str] = "undefined"
    AGAINST_REST: ClassVar[bool] = False  # shares of all documents, not only of the labelled ones
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {"cutoff": CUTOFF, "target": TARGET}  # noqa: RUF012

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if "target" in self.SUPPORTED_PARAMS:
            check_target(self.NAME, self["target"])

    def depth(self) -> int:
        whole = self["cutoff"] is None or self["target"] in (None, "list")
        return WHOLE if whole else int(self["cutoff"])

    def cut(self, n: int) -> int:
        """How many of n documents count."""
        return n if self["cutoff"] is None else min(n, int(self["cutoff"]))

    def check_groups(self, groups: tuple[str, ...]) -> None:
        if len(groups) < 2 and not self.AGAINST_REST:
            raise InputError(f"{self} compares groups, but there is only {', '.join(groups)}")
        if isinstance(self["target"], Mapping):
            for group in self["target"]:
                _known(self, group, groups)

    def per_query(self, context: Context) -> PerQuery:
        values = [
            self.per_list(shown, target, context.groups)
            for shown, target in zip(each_list(context), self.targets(context), strict=True)
        ]
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.undefined(context))

    def list_at(self, context: Context, query: int) -> tuple[Ints, Shares | None]:
        """One of the context's lists and its target, as `per_list` gets them."""
        start, n = int(context.lists.starts[query]), int(context.lists.lengths[query])
        targets = context.cached(("targets", self), lambda: list(self.targets(context)))
        return context.lists.counts()[start : start + n], targets[query]

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        """Value of one list: `shown` is 1 where a document (row) shows a group (column).

        The target holds a share for each group, or is None: the shares in the list itself.
        """
        raise NotImplementedError

    def undefined(self, context: Context) -> str:
        """Why a list has no value."""
        by_query = self["target"] is None and context.targets is not None
        return f"no target, or {self.UNDEFINED}" if by_query else self.UNDEFINED

    def wished(self, shown: Ints, target: Shares | None) -> Floats:
        """The target as numbers, NaN where there is none."""
        if target is not None:
            return np.array([math.nan if share is None else float(share) for share in target])
        total = len(shown) if self.AGAINST_REST else shown.sum()
        return shown.sum(axis=0) / total if total else np.zeros(shown.shape[1])

    def targets(self, context: Context) -> Iterator[Shares | None]:
        """The target of each list."""
        if self["target"] is None and context.targets is not None:
            for query in context.lists.query_ids.to_list():
                shares = context.targets.get(query, {})
                yield [shares.get(group) for group in context.groups]
        else:
            yield from [self.shares(context)] * len(context.lists.query_ids)

    def shares(self, context: Context) -> Shares | None:
        """The share of each group that the measure itself names; None where each list has its own."""
        target, groups = self["target"], context.groups
        if target in (None, "list"):
            return None
        if target == "equal":
            return [Fraction(1, len(groups))] * len(groups)
        if target == "collection":
            frame = context.lists.tally
            counts = [int(frame[group].sum()) for group in groups]
            total = len(frame) if self.AGAINST_REST else sum(counts)
            return [Fraction(count, max(total, 1)) for count in counts]
        shares: Shares = [Fraction(str(target[group])) if group in target else None for group in groups]
        if shares.count(None) == 1:
            rest = 1 - sum((share for share in shares if share is not None), Fraction(0))
            shares[shares.index(None)] = max(rest, Fraction(0))
        if None in shares and not self.AGAINST_REST:
            raise InputError(f"{self}: the target must name a share for each group: {', '.join(groups)}")
        return shares


class AgainstRest(GroupMeasure):
    """A measure of one group against all other documents; with two groups the first unless named."""

    AGAINST_REST = True
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {**GroupMeasure.SUPPORTED_PARAMS, "group": GROUP}  # noqa: RUF012

    def group(self, groups: tuple[str, ...]) -> int:
        return one_group(self, groups)

    def check_groups(self, groups: tuple[str, ...]) -> None:
        super().check_groups(groups)
        chosen = groups[self.group(groups)]
        target = self["target"]
        if isinstance(target, Mapping) and chosen not in target and len(target) + 1 < len(groups):
            raise InputError(f"{self}: the target names no share for {chosen}")


def check_target(name: str, target: Any) -> None:
    """Refuse a target that names no shares."""
    if target is None:
        return
    if isinstance(target, str):
        if target not in TARGETS:
            raise InputError(
                f"{name}: target cannot be {target!r}; {choices(target, TARGETS)}, or {{group: share}}"
            )
        return
    shares = list(target.values())
    numbers = all(isinstance(s, int | float) and not isinstance(s, bool) and 0 <= s <= 1 for s in shares)
    if not shares or not numbers or sum(shares) > 1 + 1e-9:
        raise InputError(
            f"{name}: target is {target!r}, but must give shares between 0 and 1, together at most 1"
        )


def one_group(measure: GroupMeasure, groups: tuple[str, ...]) -> int:
    """The column of the group that a measure is about."""
    group = measure["group"]
    if group is None:
        if len(groups) > 2:
            raise InputError(
                f"{measure}: the groups are {listing(groups)}; name one, as in "
                f"{measure.NAME}(group={groups[0]!r})@{measure['cutoff'] or 10}"
            )
        return 0
    _known(measure, group, groups)
    return groups.index(group)


def _known(measure: GroupMeasure, group: str, groups: tuple[str, ...]) -> None:
    if group not in groups:
        raise InputError(f"{measure}: no document shows {group!r}; {choices(group, groups)}")


def each_list(context: Context) -> Iterator[Ints]:
    """For each list the groups of its documents, documents × groups, best first."""
    shown = context.lists.counts()
    for start, length in zip(context.lists.starts.tolist(), context.lists.lengths.tolist(), strict=True):
        yield shown[start : start + length]
