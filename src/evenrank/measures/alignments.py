"""Labels as shares, several attributes and their crossings: which part of each document shows which group.

A document may be 0.7 female and 0.3 unknown, or female and a physicist. What a table does not say of a
document is `unknown`, which is a group like the others wherever an attribute is named. Crossed groups
(gender × field) are shown in the product of the shares, as in the TREC Fair Ranking track of 2022.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.read import read_table
from evenrank.data.schema import DOC_ID, Table, listing, pick, show
from evenrank.errors import InputError, choices
from evenrank.measures.document_groups import (
    GROUP,
    SHARE,
    UNKNOWN,
    DocumentGroups,
    given_attributes,
    normal_groups,
    ordered_groups,
)
from evenrank.measures.lists import Floats, find_rows

ATTRIBUTE = "attribute"
CROSS = " × "
_ROUNDING = 1e-6


def crossed_name(text: str) -> str:
    """`male*law` and `male×law` as `male × law`."""
    return CROSS.join(part.strip() for part in re.split(r"[*×]", text))


def normal_attribute(text: str) -> str:
    """`Gender*field` as `gender × field`."""
    return crossed_name(text).lower()


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute: its groups, `unknown` last, and the share of each in every document that is listed."""

    name: str
    doc_ids: pl.Series
    groups: tuple[str, ...]
    shares: Floats


@dataclass(frozen=True, eq=False)
class Alignments:
    """Labels by attribute, read once; `groups` makes the groups of one attribute or of a crossing."""

    axes: Mapping[str, Axis]
    _made: dict[str, DocumentGroups] = field(default_factory=dict)

    @classmethod
    def of(cls, labels: Any) -> Alignments:
        """Labels as given: a column for each attribute, or rows of doc_id, (attribute,) group and share.

        Or a dict: ``{doc_id: {group: share}}``, ``{doc_id: {attribute: group}}``, or
        ``{doc_id: {attribute: {group: share}}}``.
        """
        if labels is None:
            raise InputError("an attribute is a column of the labels of documents; give labels")
        long = shares_of(labels)
        if long is None:
            table, _ = given_attributes(labels)
            if table["doc_id"].is_duplicated().any():
                twice = table["doc_id"].filter(table["doc_id"].is_duplicated())[0]
                raise InputError(f"document {show(twice)} has two rows of labels and no share")
            found = {}
            for name in table.columns[1:]:
                rows = pl.DataFrame({"doc_id": table["doc_id"], "group": table[name], "share": 1.0})
                found[name] = _axis(name, rows)
            return cls(found)
        parts = long.partition_by(ATTRIBUTE, as_dict=True, maintain_order=True)
        return cls({str(name): _axis(str(name), part) for (name,), part in parts.items()})

    def groups(self, attribute: str) -> DocumentGroups:
        """The groups of an attribute, or of several crossed."""
        if attribute not in self._made:
            self._made[attribute] = self._crossed(attribute)
        return self._made[attribute]

    def _crossed(self, attribute: str) -> DocumentGroups:
        names = attribute.split(CROSS)
        for name in names:
            if name not in self.axes:
                raise InputError(f"the labels have no attribute {name!r}; {choices(name, self.axes)}")
        if len(set(names)) < len(names):
            raise InputError(f"{attribute} crosses an attribute with itself")
        axes = [self.axes[name] for name in names]
        doc_ids = pl.concat([axis.doc_ids for axis in axes]).unique(maintain_order=True)
        parts = [_placed(axis, doc_ids) for axis in axes]
        crossed = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), parts)
        columns = [CROSS.join(each) for each in product(*(axis.groups for axis in axes))]
        values = crossed.astype(np.int64) if (crossed % 1 == 0).all() else crossed
        frame = pl.DataFrame({"doc_id": doc_ids, **dict(zip(columns, values.T, strict=True))})
        how = f"given, {attribute}"
        return DocumentGroups(frame, tuple(columns), how, axes=tuple((a.name, a.groups) for a in axes))


def shares_of(labels: Any) -> pl.DataFrame | None:
    """Rows of doc_id, attribute, group (None: unknown) and share; None if the labels name no shares."""
    if isinstance(labels, Mapping):
        rows = _nested(labels)
        if rows is None:
            return None
        table = Table(pl.DataFrame(rows, schema=["doc_id", ATTRIBUTE, "group", "share"], orient="row"))
    else:
        table = read_table(labels)
    frame = table.frame.rename({name: name.lower() for name in table.frame.columns})
    share = next((name for name in frame.columns if name in SHARE), None)
    if share is None:
        return None
    doc_id = pick(frame.columns, DOC_ID, path=table.path, line=1)
    group = pick(frame.columns, GROUP, path=table.path, line=1)
    name = pl.col(ATTRIBUTE).cast(pl.String) if ATTRIBUTE in frame.columns else pl.lit(group)
    found = frame.select(
        pl.col(doc_id).cast(pl.String).alias("doc_id"),
        name.str.to_lowercase().alias(ATTRIBUTE),
        pl.col(group).cast(pl.String).alias("group"),
        pl.col(share).cast(pl.Float64, strict=False).alias("share"),
    )
    table.refuse(found["doc_id"].fill_null("") == "", "doc_id is empty")
    good = found["share"].is_between(0, 1).fill_null(False)
    table.refuse(
        ~good, lambda row: f"share is {show(frame[share][row])}; it must be a number between 0 and 1"
    )
    named = found.group_by(ATTRIBUTE, maintain_order=True).agg("group")
    plain = {(name, label): of for name, labels in named.iter_rows()
             for label, of in zip(labels, normal_groups(labels), strict=True)}  # fmt: skip
    groups = [plain[name, label] for name, label in found.select(ATTRIBUTE, "group").iter_rows()]
    found = found.with_columns(group=pl.Series(groups, dtype=pl.String))
    keys = ["doc_id", ATTRIBUTE, "group"]
    twice = ~found.select(pl.struct(keys).is_first_distinct()).to_series()
    table.refuse(twice, lambda row: f"document {show(found['doc_id'][row])} has the same group twice")
    sums = found.select(pl.col("share").cum_sum().over("doc_id", ATTRIBUTE))["share"]
    table.refuse(
        sums > 1 + _ROUNDING,
        lambda row: f"the shares of document {show(found['doc_id'][row])} add up to more than 1",
    )
    return found


def soft_groups(labels: Any) -> DocumentGroups:
    """Groups out of labels that name shares of one attribute; what is unknown shows no group."""
    found = Alignments.of(labels)
    if len(found.axes) > 1:
        names = list(found.axes)
        raise InputError(
            f"the labels are about {listing(names)}; name one, as in AWRF(attribute={names[0]!r})"
        )
    (axis,) = found.axes.values()
    shares = axis.shares[:, :-1]
    values = shares.astype(np.int64) if (shares % 1 == 0).all() else shares
    groups = axis.groups[:-1]
    frame = pl.DataFrame({"doc_id": axis.doc_ids, **dict(zip(groups, values.T, strict=True))})
    return DocumentGroups(frame, groups, "given")


def _nested(labels: Mapping[Any, Any]) -> list[tuple[str, str, str, float]] | None:
    """Rows out of ``{doc_id: {group: share}}`` or ``{doc_id: {attribute: {group: share}}}``."""
    first = next((of for of in labels.values() if isinstance(of, Mapping)), None)
    inner = None if first is None else next(iter(first.values()), None)
    if inner is None or isinstance(inner, str):
        return None
    found = []
    for doc, of in labels.items():
        if not isinstance(of, Mapping):
            raise InputError(f"the label of {show(doc)} is {show(of)}; others are given as shares")
        by = of if isinstance(inner, Mapping) else {"group": of}
        found += [(str(doc), str(a), str(g), float(s)) for a, each in by.items() for g, s in each.items()]
    return found


def _axis(name: str, rows: pl.DataFrame) -> Axis:
    """One attribute of the table; what is left of a document's shares is unknown."""
    groups = ordered_groups(rows["group"].to_list())
    if not groups:
        raise InputError(f"no document has a label: {name}")
    doc_ids = rows["doc_id"].unique(maintain_order=True)
    at = dict(zip(doc_ids.to_list(), range(len(doc_ids)), strict=True))
    column = {group: number for number, group in enumerate(groups)}
    shares = np.zeros((len(doc_ids), len(groups) + 1))
    for doc, group, share in rows.select("doc_id", "group", "share").iter_rows():
        if group is not None:
            shares[at[doc], column[group]] += share
    shares[:, -1] = np.maximum(1 - shares.sum(axis=1), 0.0)
    shares[:, -1][shares[:, -1] < _ROUNDING] = 0.0
    return Axis(name, doc_ids, (*groups, UNKNOWN), shares)


def _placed(axis: Axis, doc_ids: pl.Series) -> Floats:
    """The shares of these documents; those that are not listed are unknown."""
    rows = find_rows(doc_ids, axis.doc_ids)
    found = axis.shares[rows]
    found[rows < 0] = [0.0] * (len(axis.groups) - 1) + [1.0]
    return found


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
    made = grid.copy()
    for case in product((True, False), repeat=len(chosen)):
        if not any(case):
            continue
        where = [slice(None)] * len(axes)
        background = np.ones([1] * len(axes))
        for at, known in zip(chosen, case, strict=True):
            where[at] = slice(0, -1) if known else slice(-1, None)
            if known:
                name, groups = axes[at]
                part = np.array([world[name][group] for group in groups[:-1]])
                background = background * part.reshape([-1 if i == at else 1 for i in range(len(axes))])
        here = tuple(where)
        made[here] = (grid[here] + background * spread[here] * grid[here].sum()) / 2
    return made.ravel()


def checked_world(
    world: Mapping[str, Any], axes: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, dict[str, float]]:
    """Shares in the world by attribute: each of its known groups, together 1."""
    nested = all(isinstance(of, Mapping) for of in world.values())
    by = dict(world) if nested else {axes[0][0]: world} if len(axes) == 1 else None
    if by is None:
        names = ", ".join(name for name, _ in axes)
        raise InputError(
            f"world must name the attribute, one of {names}: {{'{axes[0][0]}': {{group: share}}}}"
        )
    known = dict(axes)
    for name, of in by.items():
        if name not in known:
            raise InputError(f"world is about {name!r}; {choices(name, known)}")
        groups = known[name][:-1]
        if set(of) != set(groups):
            raise InputError(f"world must name a share for each of {listing(groups)}, and no other group")
        if abs(sum(of.values()) - 1) > 1e-3:
            raise InputError(f"the shares of {name} in the world add up to {sum(of.values()):g}, not to 1")
    return {name: {g: float(s) / sum(of.values()) for g, s in of.items()} for name, of in by.items()}
