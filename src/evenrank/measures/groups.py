"""What measures of ranked groups share: groups of documents, a target to compare with, lists one by one.

A document shows one group or none, or several by shares. Measures of one group against the rest (rND, rKL,
rRD, FAIR) count a document without a label as one of the rest; measures of all groups (Skew, NDKL, exposure,
AWRF) take shares of the labelled documents. With an attribute, what is unknown is a group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.data.schema import listing
from evenrank.errors import InputError, choice_hint
from evenrank.measures.base import BiasMeasure, Param, PerQuery, unwrap_abs
from evenrank.measures.document_groups import (
    CROSS,
    UNKNOWN,
    Targets,
    crossed_name,
    read_targets,
)
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, RankedLists, View, find_rows
from evenrank.measures.rank_bias import check_group
from evenrank.show.numbers import counted

CUTOFF = Param(dtype=int, default=None, minimum=1, desc="ranking cutoff threshold; without it the whole list")
TARGET = Param(
    dtype=(str, dict),
    default=None,
    desc="target shares: list, collection, equal, relevant or {group: share}; the table of targets, else "
    "list",
)
ATTRIBUTE = Param(
    dtype=str, default=None, desc="the labels that are meant: a column, or several crossed, gender*field"
)
WORLD = Param(
    dtype=dict,
    default=None,
    desc="for target='relevant': shares in the world, averaged with those of the relevant documents",
)
GROUP = Param(dtype=str, default=None, desc="the group that is compared with the rest")


TARGETS = {
    "list": "the query's whole list",
    "collection": "the shares in the collection",
    "equal": "equal shares",
    "relevant": "the shares among the judged relevant documents",
}
"""What a measure can compare with, unless shares are given, and how a note calls it."""


class Groups(View):
    """Documents as the groups they show: given by labels, or inferred from the tally.

    Where the measures name an attribute, or several crossed, what is unknown is a group.
    """

    NEEDED = "labels (with the attribute that it names, if any), or a tally to infer groups from"

    @cached_property
    def attribute(self) -> str | None:
        """The same for all measures of a view, see `view_key`."""
        name: str | None = unwrap_abs(self.measures[0]).params.get("attribute")
        return name

    @cached_property
    def tally(self) -> Any:
        return self.inputs.groups if self.attribute is None else self.inputs.labels.groups(self.attribute)

    def lists(self, run: pl.DataFrame, *given: Any, **named: Any) -> RankedLists:
        """As usual; with an attribute, documents that the labels do not list are unknown."""
        lists = super().lists(run, *given, **named)
        targets = None
        if self.given_targets is not None:
            targets = self.given_targets.of(lists.query_ids, lists.groups)
        lists = replace(lists, labels=self.tally, targets=targets)
        if self.attribute is None:
            return lists
        last = {name: int(name == lists.groups[-1]) for name in lists.groups}  # unknown in every attribute
        everyone = pl.concat([lists.tally, pl.DataFrame({"doc_id": None, **last}, schema=lists.tally.schema)])
        return replace(lists, tally=everyone, rows=np.where(lists.rows < 0, len(lists.tally), lists.rows))

    @property
    def missing(self) -> str:
        # A document without a given label shows no group; one that a tally lacks may be a mistake.
        return self.inputs.missing if self.tally.inferred else "unlabelled"

    @cached_property
    def given_targets(self) -> Targets | None:
        """The table of targets, if there is one and a measure asks for it."""
        given = self.inputs.given.get("targets")
        requested = any(
            "target" in m.SUPPORTED_PARAMS and m["target"] is None for m in map(unwrap_abs, self.measures)
        )
        return read_targets(given, self.tally.groups) if given is not None and requested else None

    def provenance(self) -> dict[str, Any]:
        return {
            **({"tally": self.inputs.tally.provenance} if self.tally.inferred else {}),
            "groups": self.tally.provenance,
            **({} if self.given_targets is None else {"targets": self.given_targets.fingerprint}),
        }

    def check_lists(self, name: str, run: pl.DataFrame, lists_of: Mapping[Any, RankedLists]) -> None:
        """Refuse a run whose groups are unknown, and measures that are 0 whatever it shows."""
        if not run["doc_id"].is_in(self.tally.labelled.implode()).any():
            raise InputError(
                f"{name}: none of its documents has a group; check that labels and run belong together"
            )
        for measure, lists in lists_of.items():
            cutoff = measure.params.get("cutoff") or WHOLE_LIST
            if self._needs_more_than_the_top(measure) and (lists.lengths <= cutoff).all():
                raise InputError(
                    f"{measure} compares the top of each list with the whole of it, but no list of {name} is "
                    "longer than the cut-off, so it is 0 for any ranking; retrieve more documents, name a "
                    f"cut-off, as in {measure.NAME}@10, or give targets"
                )

    def _needs_more_than_the_top(self, measure: Any) -> bool:
        return bool(measure.needs_more_than_the_top(targets=self.given_targets is not None))

    def target_of(self, measure: Any) -> str:
        """Which shares a measure compares with, in words."""
        target = measure.target_named(given=self.given_targets is not None)
        said = str(target)
        if isinstance(target, str):
            said = TARGETS.get(target, "the given shares of each query")
        return said if measure.params.get("world") is None else f"{said}, averaged with those in the world"

    def notes(self, measure: Any, lists: RankedLists, defined: NDArray[np.bool_]) -> list[str]:
        """Says where groups and target come from, too."""
        notes = [f"group labels: {self.tally.how}", *super().notes(measure, lists, defined)]
        if "target" in measure.SUPPORTED_PARAMS:
            notes.append(f"target: {self.target_of(measure)}")
        cutoff = measure.params.get("cutoff") or WHOLE_LIST
        short = int((lists.lengths[defined] <= cutoff).sum())
        if self._needs_more_than_the_top(measure) and short:
            said = counted(short, "list is", "lists are")
            notes.append(f"{said} no longer than the cut-off: the value is 0 whatever they show")
        entries, looked = lists.top(cutoff)
        entries = entries[np.repeat(defined, looked)]
        unknown = (1 - lists.counts()[entries][:, ~self.tally.hidden].sum(axis=1)).sum()
        if unknown:
            said = "show no group" if self.attribute is None else "are unknown, which is a group of its own"
            notes.append(f"{unknown / len(entries):.1%} of the documents looked at {said}")
        return notes


class GroupMeasure(BiasMeasure):
    """A measure of how ranked lists treat groups of documents, computed list by list.

    `per_list` gives the value of one list; NaN where it has none, and `UNDEFINED` says why.
    """

    NEEDS: frozenset[str] = frozenset({"groups"})
    VIEW = Groups
    UNDEFINED: ClassVar[str] = "undefined"
    AGAINST_REST: ClassVar[bool] = False  # shares of all documents, not only of the labelled ones
    DEFAULT_TARGET: ClassVar[str] = "list"  # the target, unless one is given
    relevant_weights: ClassVar[Any] = None  # for target='relevant', see `relevant_shares`
    WHOLE_LABELS: ClassVar[bool] = False  # looks at documents that show a group or do not, never at shares
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": CUTOFF,
        "target": TARGET,
        "attribute": ATTRIBUTE,
        "world": WORLD,
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**with_attribute(params))
        if "target" in self.SUPPORTED_PARAMS:
            check_target(self.NAME, self["target"])
            if self["target"] == "relevant":
                self.NEEDS = self.NEEDS | {"qrels"}
            elif self.params.get("world") is not None:
                raise InputError(f"{self.NAME}: world is averaged with target='relevant'; name that too")

    def depth(self) -> int:
        target = self["target"]
        # An attribute has a group for what is unknown, which keeps its share of the whole list.
        own = target in (None, "list") or (
            self.params.get("attribute") is not None and target not in ("collection", "relevant")
        )
        whole = self["cutoff"] is None or own
        return WHOLE_LIST if whole else int(self["cutoff"])

    def needs_more_than_the_top(self, *, targets: bool) -> bool:
        """Whether shares above the cut-off are compared with those in the query's whole list.

        The value is then 0 for a list that is no longer than the cut-off, whatever it shows. `targets` says
        whether a table of targets is given.
        """
        if self.ORDER_MATTERS or "target" not in self.SUPPORTED_PARAMS:
            return False
        return self.target_named(given=targets) == "list"

    def target_named(self, *, given: bool) -> Any:
        """Which shares are compared with: one of `TARGETS`, ``given`` by a table, or {group: share}."""
        return self["target"] or ("given" if given else self.DEFAULT_TARGET)

    def cut(self, n: int) -> int:
        """How many of n documents count."""
        return n if self["cutoff"] is None else min(n, int(self["cutoff"]))

    def check_groups(self, groups: tuple[str, ...]) -> None:
        if len(groups) < 2 and not self.AGAINST_REST:
            raise InputError(f"{self} compares groups, but there is only {', '.join(groups)}")
        if isinstance(self["target"], Mapping):
            for group in self["target"]:
                check_group(self, group, groups)
        if "group" in self.SUPPORTED_PARAMS:
            self.group(groups)

    def group(self, groups: tuple[str, ...]) -> int:
        """The column of the one group that a measure is about: of two the first, unless named."""
        name = self["group"]
        if name is None:
            if len(groups) > 2:
                raise InputError(
                    f"{self}: the groups are {listing(groups)}; name one, as in "
                    f"{self.NAME}(group={groups[0]!r})@{self['cutoff'] or 10}"
                )
            return 0
        check_group(self, name, groups)
        return groups.index(name)

    def per_query(self, lists: RankedLists) -> PerQuery:
        values = [
            self.per_list(shown, target, lists.groups)
            for shown, target in zip(self.each_list(lists), self.targets(lists), strict=True)
        ]
        return PerQuery(np.array(values, dtype=np.float64), undefined=self.undefined(lists))

    def each_list(self, lists: RankedLists) -> list[Ints]:
        """For each list the groups of its documents, documents × groups, best first."""
        shown = lists.counts()
        if self.WHOLE_LABELS and shown.dtype.kind == "f":
            raise InputError(f"{self} counts documents that show a group or do not; these labels are shares")
        return np.split(shown, lists.starts[1:])

    def list_at(self, lists: RankedLists, query: int) -> tuple[Ints, Floats]:
        """One of the lists and its target, as `per_list` gets them."""
        start, n = int(lists.starts[query]), int(lists.lengths[query])
        return lists.counts()[start : start + n], self.targets(lists)[query]

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        """Value of one list: `shown` is 1 where a document (row) shows a group (column).

        The target holds a share for each group, NaN where there is none.
        """
        raise NotImplementedError

    def undefined(self, lists: RankedLists) -> str:
        """Why a list has no value."""
        by_query = self.target_named(given=lists.targets is not None) in ("given", "relevant")
        return f"no target, or {self.UNDEFINED}" if by_query else self.UNDEFINED

    def targets(self, lists: RankedLists) -> Floats:
        """The share of each group that each list should have, lists × groups; NaN where there is none."""
        return lists.cached(("targets", self), lambda: self._targets(lists))

    def _targets(self, lists: RankedLists) -> Floats:
        target = self.target_named(given=lists.targets is not None)
        if target == "list":
            return own_shares(lists, of_all=self.AGAINST_REST)
        if target == "given":
            return np.asarray(lists.targets)
        if target == "relevant":
            world = self.params.get("world")
            return relevant_shares(lists, world, of_all=self.AGAINST_REST, weights=self.relevant_weights)
        shares, hidden = np.tile(self.shares(lists), (len(lists.query_ids), 1)), lists.labels.hidden
        names_unknown = isinstance(target, Mapping) and not {*target}.isdisjoint(
            group for group, out in zip(lists.groups, hidden, strict=True) if out
        )
        if target == "collection" or names_unknown:
            return shares
        own = own_shares(lists)  # what is unknown keeps its share of the list
        return np.where(hidden, own, shares * (1 - own[:, hidden].sum(axis=1, keepdims=True)))

    def shares(self, lists: RankedLists) -> Floats:
        """The share of each group that the measure itself names: equal, in the collection, or written."""
        target, groups, labels = self["target"], lists.groups, lists.labels
        if target == "equal":
            return np.where(labels.hidden, 0.0, 1 / (~labels.hidden).sum())
        if target == "collection":
            sums = labels.frame.select(groups).sum().to_numpy().ravel()
            total = len(labels.frame) if self.AGAINST_REST else sums.sum()
            return np.asarray(sums / (total or 1))
        shares = np.where(labels.hidden, 0.0, np.nan)
        for group, share in target.items():
            shares[groups.index(group)] = share
        missing = np.isnan(shares)
        if missing.sum() == 1:
            shares[missing] = max(1 - np.nansum(shares), 0.0)
        elif missing[self.group(groups)] if self.AGAINST_REST else missing.any():
            raise InputError(f"{self}: the target must name a share for each group: {', '.join(groups)}")
        return shares


def own_shares(lists: RankedLists, *, of_all: bool = False) -> Floats:
    """The share of each group in each list, lists × groups: of all its documents, or of the labelled ones."""
    shown = lists.counts()
    sums = np.add.reduceat(shown, lists.starts) if len(lists.starts) else shown[:0]
    totals = (lists.lengths if of_all else sums.sum(axis=1))[:, None]
    return np.divide(sums, totals, out=np.zeros(sums.shape), where=totals > 0)


def with_attribute(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, the attribute and the groups of a crossing written in one way."""
    given = params.get("attribute")
    if not isinstance(given, str):
        return params
    built = {**params, "attribute": crossed_name(given).lower()}
    if CROSS in built["attribute"]:
        for name in ("group", "of", "against"):
            if isinstance(params.get(name), str):
                built[name] = crossed_name(params[name])
        if isinstance(params.get("target"), Mapping):
            built["target"] = {crossed_name(str(name)): share for name, share in params["target"].items()}
    return built


def relevant_shares(
    lists: RankedLists, world: Mapping[str, Any] | None, *, of_all: bool = False, weights: Any = None
) -> Floats:
    """The groups' shares among the judged relevant documents of each query, averaged with the world.

    `weights` says what the relevant documents of a query weigh, from their relevances, highest first; alike
    unless given. NaN for each group where nothing is judged relevant, or nothing is labelled.
    """
    groups, labels = lists.groups, lists.labels
    query = find_rows(lists.qrels["query_id"], lists.query_ids)  # type: ignore[index]
    judged = lists.qrels.select("doc_id", "relevance", query=query)  # type: ignore[union-attr]
    judged = judged.filter(pl.col("relevance") > 0, pl.col("query") >= 0)
    judged = judged.sort("query", "relevance", descending=[False, True], maintain_order=True)
    result = np.full((len(lists.query_ids), len(groups)), np.nan)
    if judged.is_empty():
        return result
    unlisted = np.zeros((1, len(groups)))  # found at −1
    unlisted[0, -1] = bool(labels.axes)  # unknown in every attribute
    shown = np.vstack([labels.frame.select(groups).to_numpy(), unlisted])
    shown = shown[find_rows(judged["doc_id"], labels.frame["doc_id"])]
    queries, starts = np.unique(judged["query"].to_numpy(), return_index=True)
    each = np.ones(len(judged))
    if weights is not None:
        each = np.concatenate([*map(weights, np.split(judged["relevance"].to_numpy(), starts[1:]))])
    total = np.add.reduceat(shown * each[:, None], starts)
    whole = np.add.reduceat(each, starts) if of_all else total.sum(axis=1)
    shares = np.divide(total, whole[:, None], out=np.full(total.shape, np.nan), where=whole[:, None] > 0)
    if world is not None:
        axes = labels.axes or (("group", (*groups, UNKNOWN)),)
        world = checked_world(world, axes)
        known = shares if labels.axes else np.column_stack([shares, 1 - shares.sum(axis=1)])
        shares = np.array([averaged(row, axes, world) for row in known])[:, : len(groups)]
    result[queries] = shares
    return result


def averaged(
    shares: Floats, axes: Sequence[tuple[str, tuple[str, ...]]], world: Mapping[str, Mapping[str, float]]
) -> Floats:
    """Shares of (crossed) groups, each attribute whose shares in the world are given averaged with these.

    What is unknown keeps its share, and so does what is known of some attributes only: for each such case the
    known part is averaged with the product of the world's shares. Attributes without a share in the world are
    spread as they are within each group, where there is none as they are over all. The target of TREC Fair
    Ranking 2022.
    """
    grid = shares.reshape([len(groups) for _, groups in axes])
    chosen = [at for at, (name, _) in enumerate(axes) if name in world]
    others = tuple(at for at in range(len(axes)) if at not in chosen)
    mass = grid.sum(axis=others, keepdims=True)
    spread = np.where(mass > 0, grid, grid.sum(axis=tuple(chosen), keepdims=True))
    total = spread.sum(axis=others, keepdims=True)
    spread = np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)
    background = np.ones([1] * len(axes))
    for at in chosen:
        name, groups = axes[at]
        size = [-1 if i == at else 1 for i in range(len(axes))]
        background = background * np.array([*(world[name][group] for group in groups[:-1]), 1]).reshape(size)
        known = np.array([group != UNKNOWN for group in groups]).reshape(size)
        mass = np.where(known, (mass * known).sum(axis=at, keepdims=True), mass)
    return np.asarray((grid + background * mass * spread) / 2).ravel()


def checked_world(
    world: Mapping[str, Any], axes: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, dict[str, float]]:
    """Shares in the world by attribute: each of its known groups, together 1."""
    known = dict(axes)
    if len(axes) == 1 and not all(isinstance(of, Mapping) for of in world.values()):
        world = {axes[0][0]: world}
    for name, of in world.items():
        if name not in known or not isinstance(of, Mapping):
            example = f"{{{axes[0][0]!r}: {{group: share}}}}"
            raise InputError(f"world must name the attribute, one of {', '.join(known)}: {example}")
        groups = known[name][:-1]
        if set(of) != set(groups):
            raise InputError(f"world must name a share for each of {listing(groups)}, and no other group")
        if abs(sum(of.values()) - 1) > 1e-3:
            raise InputError(f"the shares of {name} in the world add up to {sum(of.values()):g}, not to 1")
    return {name: {g: float(s) / sum(of.values()) for g, s in of.items()} for name, of in world.items()}


class AgainstRest(GroupMeasure):
    """A measure of one group against all other documents; with two groups the first unless named."""

    AGAINST_REST = True
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {**GroupMeasure.SUPPORTED_PARAMS, "group": GROUP}  # noqa: RUF012


def check_target(name: str, target: Any) -> None:
    """Refuse a target that names no shares."""
    if target is None:
        return
    if isinstance(target, str):
        if target not in TARGETS:
            raise InputError(
                f"{name}: target cannot be {target!r}; {choice_hint(target, TARGETS)}, or {{group: share}}"
            )
        return
    shares = list(target.values())
    numbers = all(isinstance(s, int | float) and not isinstance(s, bool) and 0 <= s <= 1 for s in shares)
    if not shares or not numbers or sum(shares) > 1 + 1e-9:
        raise InputError(
            f"{name}: target is {target!r}, but must give shares between 0 and 1, together at most 1"
        )
