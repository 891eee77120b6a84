"""One result list whose results have groups by attribute: gender, field, and two of them crossed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from evenrank.errors import InputError
from evenrank.measures.alignments import CROSS, Alignments, normal_attribute
from evenrank.measures.base import BiasMeasure, Context
from evenrank.measures.document_groups import normal_groups
from evenrank.measures.exposure import AWRF
from evenrank.measures.lists import RankedLists, single_list
from evenrank.measures.skew import NDKL
from evenrank.server.models import ATTRIBUTES

QUERY = "query"
MOST = 400
"""Groups that are told apart in one list: crossings multiply."""


def alignments(attributes: Sequence[Mapping[str, str]]) -> Alignments | None:
    """Groups by attribute, of results that go by their place in the list; None where nothing is said."""
    given: dict[str, dict[str, dict[str, float]]] = {}
    names: set[str] = set()
    for rank, of in enumerate(attributes):
        mine = [normal_attribute(name) for name in of]
        if twice := [name for name in mine if mine.count(name) > 1]:
            raise InputError(f"result {rank + 1} has the attribute {twice[0]} twice")
        names.update(mine)
        for name, group in zip(mine, normal_groups(of.values()), strict=True):
            if group is not None:
                given.setdefault(str(rank), {})[name] = {group: 1.0}
    if len(names) > ATTRIBUTES:
        raise InputError(f"the results have {len(names)} attributes; at most {ATTRIBUTES} are measured")
    return Alignments.of(given) if given else None


def measured_attributes(
    known: Alignments, size: int, at: int, more: Sequence[BiasMeasure]
) -> Iterator[tuple[BiasMeasure, Context]]:
    """AWRF and NDKL of every attribute, and of two crossed; `more` are measures that name one of these."""
    names = list(known.axes)
    for attribute in [*names, *([CROSS.join(names)] if len(names) == 2 else [])]:
        context = _context(known, attribute, size)
        always: list[BiasMeasure] = [measure(attribute=attribute) @ at for measure in (AWRF, NDKL)]
        asked = [measure for measure in more if measure.params.get("attribute") == attribute]
        yield from ((measure, context) for measure in dict.fromkeys([*always, *asked]))


def _context(known: Alignments, attribute: str, size: int) -> Context:
    """The list as groups of an attribute, or of two crossed; what is not said is a group, `unknown`."""
    many = math.prod(len(known.axes[name].groups) for name in attribute.split(CROSS))
    if many > MOST:
        raise InputError(f"{attribute} has {many:,} groups; at most {MOST} are told apart in one list")
    groups = known.groups(attribute)
    ranks = pl.DataFrame({"doc_id": [str(rank) for rank in range(size)]})
    unlisted = ranks.join(groups.frame, on="doc_id", how="anti")["doc_id"]
    if len(unlisted):
        groups = groups.with_unknown(unlisted)
    ordered = ranks.join(groups.frame, on="doc_id", maintain_order="left")
    columns = {group: ordered[group].to_numpy() for group in groups.groups}
    return Context(one_list(columns, groups.groups), labels=groups)


def one_list(columns: Mapping[str, np.ndarray], groups: tuple[str, ...]) -> RankedLists:
    """One ranked list: the rows of these columns, in their order."""
    frame = pl.DataFrame(dict(columns))
    rows = np.arange(len(frame))
    return single_list(QUERY, frame, groups, rows, -rows.astype(float))
