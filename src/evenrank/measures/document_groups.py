"""Which group each document shows: given by a table of labels, or inferred from a tally by majority."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank.data import door
from evenrank.data.columns import DOC_ID, listing, pick, refuse_repeats
from evenrank.errors import InputError
from evenrank.measures.fingerprint import fingerprint

if TYPE_CHECKING:
    from evenrank.text.tally import Tally

GROUP = ("group", "gender", "label")
"""What a column of labels may be called; the first that is there wins."""
UNKNOWN = "unknown"
_GENDERS = {"f": "female", "female": "female", "m": "male", "male": "male"}
_NONE = {"", "unknown", "none", "null", "nan", "n/a", "na", "-", "–", "?"}


@dataclass(frozen=True, eq=False)
class DocumentGroups:
    """Documents and the groups they show: 1 in the column of their group, 0 in the others.

    A document that shows none has 0 in all of them. `how` says where the labels come from.
    """

    frame: pl.DataFrame
    groups: tuple[str, ...]
    how: str
    inferred: bool = False

    @property
    def known(self) -> np.ndarray:
        """For each document, whether it shows a group."""
        found: np.ndarray = self.frame.select(self.groups).to_numpy().sum(axis=1) > 0
        return found

    @property
    def provenance(self) -> dict[str, str]:
        """Where the labels come from, and their fingerprint."""
        return {"labels": self.how, "fingerprint": fingerprint([self.frame])}


def normal_groups(labels: Iterable[str | None]) -> list[str | None]:
    """Labels as groups: None for what says that the group is not known; f and m in full.

    f, m, Female and Male become female and male where no other label occurs (sizes may be s, m and l).
    """
    plain = [None if label is None or label.strip().lower() in _NONE else label.strip() for label in labels]
    if all(label is None or label.lower() in _GENDERS for label in plain):
        return [None if label is None else _GENDERS[label.lower()] for label in plain]
    return plain


def ordered_groups(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The groups that occur: female before male, others in the order of the alphabet."""
    return tuple(sorted({label for label in labels if label is not None}))


def given_groups(labels: Any) -> DocumentGroups:
    """Groups from a table of labels: doc_id and group (or gender, or label), each document once.

    `labels` is a path (TSV or CSV with a header, Parquet), a frame, a dict ``{doc_id: group}`` or rows.
    """
    path, line = None, None
    names = {"doc_id": DOC_ID, "group": GROUP}
    if isinstance(labels, str | os.PathLike):
        path = labels
        table, line = door.read(path)
        table = door.rename(_lower(table, path), names, path=path)
    else:
        table = door.as_frame(labels, names, part="docs")
    if table.is_empty():
        raise InputError("the labels table has no rows", path=path)
    table = table.cast(pl.String)
    empty = table["doc_id"].fill_null("") == ""
    if empty.any():
        at = int(empty.arg_true()[0])
        if line is None:
            raise InputError(f"row {at + 1}: doc_id is empty", path=path)
        raise InputError("doc_id is empty", path=path, line=line + at)
    refuse_repeats(table, ["doc_id"], path=path, line=line)
    found = normal_groups(table["group"].to_list())
    groups = ordered_groups(found)
    if not groups:
        raise InputError("no document has a label", path=path)
    return DocumentGroups(_one_hot(table["doc_id"], found, groups), groups, "given")


def _lower(table: pl.DataFrame, path: str | os.PathLike[str]) -> pl.DataFrame:
    lower = [name.lower() for name in table.columns]
    if len(set(lower)) < len(lower):
        raise InputError(f"two columns differ only in case: {listing(table.columns)}", path=path)
    pick(lower, DOC_ID, path=path, line=1)
    return table.rename(dict(zip(table.columns, lower, strict=True)))


def _one_hot(doc_ids: pl.Series, labels: list[str | None], groups: tuple[str, ...]) -> pl.DataFrame:
    group = pl.Series("group", labels, dtype=pl.String)
    return pl.DataFrame(
        [
            doc_ids.alias("doc_id"),
            *((group == name).fill_null(False).cast(pl.Int64).alias(name) for name in groups),
        ]
    )


def inferred_groups(tally: Tally) -> DocumentGroups:
    """Groups by majority of words: a document shows the group whose words it has most of.

    None where it has no such word, or where two groups share the first place.
    """
    counts = tally.frame.select(tally.groups).to_numpy()
    most = counts.max(axis=1, initial=0)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    shown = (counts == most[:, None]) & (alone & (most > 0))[:, None]
    frame = pl.DataFrame(
        [
            tally.frame["doc_id"],
            *(pl.Series(g, shown[:, i].astype(np.int64)) for i, g in enumerate(tally.groups)),
        ]
    )
    words = "" if tally.lexicon is None else f" (lexicon {tally.lexicon.name})"
    return DocumentGroups(frame, tally.groups, f"inferred, the group with most words{words}", inferred=True)
