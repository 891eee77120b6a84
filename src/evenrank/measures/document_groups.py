"""Which group each document shows, and which share of each group is wished for.

Groups are given by a table of labels, or inferred from a tally by majority. Targets are the true share of
each group for each query, out of files, frames or dicts, as exact fractions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank.data import door
from evenrank.data.columns import refuse_repeats
from evenrank.data.read import as_frame, fingerprint, read_table
from evenrank.data.schema import DOC_ID, listing, pick, show
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.text.tally import Tally


QUERY = ("query", "query_id", "qid", "topic")
"""What the column of queries may be called; the first that is there wins."""
POPULATION = "population"
FULL = "full"
_ENDLESS = re.compile(r"[eE][-+]?\d{4}|.{60}", re.DOTALL)
"""1e-999999999 is short to write, and has a billion digits as a fraction."""
GROUP = ("group", "gender", "label", "sex")
"""What a column of labels may be called; the first that is there wins."""
UNKNOWN = "unknown"
SHARE = {"share", "weight", "probability"}
"""What a column may be called that says how much of a document shows a group."""
VALUES = 50
"""A column of labels with more values than this tells documents apart, not groups of them."""
_GENDERS = {"f": "female", "female": "female", "m": "male", "male": "male"}
_NONE = {"", "unknown", "none", "null", "nan", "n/a", "na", "-", "–", "?"}

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class DocumentGroups:
    """Documents and the groups they show: 1 in the column of their group, 0 in the others; or shares.

    A document that shows none has 0 in all of them, unless there is a group for what is unknown. `how` says
    where the labels come from, `axes` the attributes and their groups where these are named, `listed` how
    many of the documents are in the table of labels: those after them are unknown.
    """

    frame: pl.DataFrame
    groups: tuple[str, ...]
    how: str
    inferred: bool = False
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    listed: int | None = None

    @property
    def unknown(self) -> np.ndarray:
        """For each document, how much of what it shows is not known: from 0 to 1."""
        known = [name for name, hidden in zip(self.groups, self.hidden, strict=True) if not hidden]
        found: np.ndarray = 1 - self.frame.select(known).to_numpy().sum(axis=1)
        return found

    @property
    def soft(self) -> bool:
        """Whether documents show groups by shares."""
        return any(self.frame[group].dtype.is_float() for group in self.groups)

    @property
    def hidden(self) -> tuple[bool, ...]:
        """For each group, whether it stands for documents of which something is unknown."""
        if not self.axes:
            return (False,) * len(self.groups)
        return tuple(UNKNOWN in parts for parts in product(*(groups for _, groups in self.axes)))

    @property
    def known(self) -> np.ndarray:
        """For each document, whether it shows a group."""
        found: np.ndarray = self.unknown < 1
        return found

    def with_unknown(self, doc_ids: pl.Series) -> DocumentGroups:
        """With these documents, which have no label, as unknown."""
        last = self.groups[-1]  # unknown in every attribute
        more = {name: pl.Series(np.full(len(doc_ids), float(name == last))) for name in self.groups}
        extended = pl.DataFrame({"doc_id": doc_ids, **more}).cast(self.frame.schema)
        listed = len(self.frame) if self.listed is None else self.listed
        return replace(self, frame=pl.concat([self.frame, extended]), listed=listed)

    @property
    def provenance(self) -> dict[str, str]:
        """Where the labels come from, and their fingerprint."""
        table = self.frame if self.listed is None else self.frame.head(self.listed)
        return {"labels": self.how, "fingerprint": fingerprint([table], numbers=True)}


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

    `labels` is a path (TSV or CSV with a header, Parquet), a frame, a dict ``{doc_id: group}``, rows, or such
    groups already. Labels as shares (a document in several rows, and a column share) `alignments.py` reads.
    """
    path, line = None, None
    if isinstance(labels, DocumentGroups):
        return labels
    if by_attribute(labels):
        return _as_shares(labels)
    names = {"doc_id": DOC_ID, "group": GROUP}
    if isinstance(labels, str | os.PathLike):
        path = labels
        table, line = door.read(path)
        table = _lower(table, path)
        if SHARE & {*table.columns}:
            return _as_shares(labels)
        table = door.rename(table, names, path=path)
    elif SHARE & {str(name).lower() for name in getattr(labels, "columns", ())}:
        return _as_shares(labels)
    else:
        table = as_frame(labels, names, part="docs")
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


def by_attribute(labels: Any) -> bool:
    """Whether labels are a dict of dicts: shares of groups, or groups by attribute."""
    return isinstance(labels, Mapping) and isinstance(next(iter(labels.values()), None), Mapping)


def _as_shares(labels: Any) -> DocumentGroups:
    from evenrank.measures.alignments import soft_groups

    return soft_groups(labels)


def given_attributes(labels: Any) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Every column of a table of labels that tells groups apart: doc_id, then one column each.

    None where the group is not known. Also the names of columns with too many values for that. Labels as for
    :func:`given_groups`, which reads the first of these columns that it knows by name.
    """
    if isinstance(labels, str | os.PathLike):
        table = _lower(door.read(labels)[0], labels)
    elif by_attribute(labels):
        table = pl.DataFrame([{"doc_id": str(doc), **dict(of)} for doc, of in labels.items()])
    elif isinstance(labels, Mapping):
        table = as_frame(labels, {"doc_id": DOC_ID, "group": GROUP}, part="docs")
    else:
        table = read_table(labels).frame
    doc_id = next(name for name in DOC_ID if name in table.columns)
    table = table.cast(pl.String).rename({doc_id: "doc_id"})
    kept, many = [table["doc_id"]], []
    for name in table.columns:
        if name != "doc_id":
            found = pl.Series(name, normal_groups(table[name].to_list()), dtype=pl.String)
            if found.n_unique() > VALUES:
                many.append(name)
            elif found.null_count() < len(found):
                kept.append(found)
    return pl.DataFrame(kept), tuple(many)


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


@dataclass(frozen=True)
class Targets:
    """True shares of feature values, by query."""

    shares: dict[str, dict[str, Fraction]]
    given: tuple[str, ...]
    how: str
    populations: dict[str, float] | None = None

    def completed(self, features: tuple[str, ...]) -> Targets:
        """With two feature values, the target of one is 1 minus that of the other."""
        if len(features) != 2:
            return self
        first, second = features
        shares = {}
        for query, known in self.shares.items():
            shares[query] = dict(known)
            for one, other in ((first, second), (second, first)):
                if one not in known and other in known:
                    shares[query][one] = 1 - known[other]
        return Targets(shares, self.given, self.how, self.populations)


def group_targets(targets: Any, groups: tuple[str, ...]) -> dict[str, dict[str, Fraction]]:
    """The share that each of the groups should have, by query."""
    if isinstance(targets, str) and targets == FULL:
        raise InputError("'full' is no table of targets here; leave targets out, or write target='list'")
    return read_targets(targets, groups).completed(groups).shares


def targets_fingerprint(shares: Mapping[str, Mapping[str, Fraction]]) -> str:
    """A short name for the targets: equal ones, equal names."""
    rows = [(q, group, str(share)) for q, of in shares.items() for group, share in of.items()]
    schema = {"query": pl.String, "group": pl.String, "share": pl.String}
    return fingerprint([pl.DataFrame(rows, schema=schema, orient="row")])


def full_targets(lists: Mapping[str, list[str | None]], features: tuple[str, ...]) -> Targets:
    shares = {
        query: {feature: Fraction(values.count(feature), len(values)) for feature in features}
        for query, values in lists.items()
    }
    return Targets(shares, features, "the full result lists")


def read_targets(targets: Any, shown: tuple[str, ...]) -> Targets:
    if isinstance(targets, Mapping):
        return _of_mapping(targets, shown)
    opened = read_table(targets)
    table, path, line = opened.frame, opened.path, opened.line
    query_at = next((name for name in QUERY if name in table.columns), None)
    if query_at is None:
        raise InputError(f"no column query; found {listing(table.columns)}", path=path)
    table = table.rename({query_at: "query"}).with_columns(pl.col("query").cast(pl.String))
    refuse_where(table["query"].fill_null("") == "", "query is empty", path, line)
    refuse_repeats(table, ["query"], path=path, line=line)
    names = [name for name in table.columns if name not in ("query", POPULATION)]
    given = _matched(names, shown, path)
    shares: dict[str, dict[str, Fraction]] = {}
    for at, row in enumerate(table.iter_rows(named=True)):
        where = f"row {at + 1}: " if line is None else ""
        try:
            shares[row["query"]] = _shares({feature: row[name] for name, feature in given.items()})
        except InputError as error:
            raise InputError(
                f"{where}{error.message}", path=path, line=None if line is None else line + at
            ) from None
    how = "given" if path is None else os.path.basename(path)  # noqa: PTH119
    sizes = _populations(table, path, line) if POPULATION in table.columns else None
    return Targets(shares, tuple(given.values()), how, sizes)


def _of_mapping(targets: Mapping[Any, Any], shown: tuple[str, ...]) -> Targets:
    for query, shares in targets.items():
        if not isinstance(shares, Mapping):
            raise InputError(f"the target of {show(query)} is {show(shares)}; expected {{feature: share}}")
    names = list(dict.fromkeys(str(name) for shares in targets.values() for name in shares))
    given = _matched(names, shown, None)
    found = {}
    for query, shares in targets.items():
        try:
            found[str(query)] = _shares({given[str(name)]: share for name, share in shares.items()})
        except InputError as error:
            raise InputError(f"query {show(query)}: {error.message}") from None
    return Targets(found, tuple(given.values()), "given")


def _matched(names: list[str], shown: tuple[str, ...], path: Path | None) -> dict[str, str]:
    """The feature value that each column of targets is about; labels may be written in another case."""
    if not names:
        raise InputError(
            "the targets have no column but the query; add one for each feature value", path=path
        )
    genders = dict(zip(names, normal_groups(names), strict=True)) if set(shown) <= {"female", "male"} else {}
    by_case = {group.lower(): group for group in shown}
    given = {name: by_case.get(name.lower(), genders.get(name) or name) for name in names}
    if len(set(given.values())) < len(given):
        raise InputError(f"two columns of targets are about the same group: {listing(names)}", path=path)
    if len(shown) > 1 and not set(given.values()) & set(shown):
        raise InputError(
            f"the targets are about {listing(names)}, but the results show {listing(shown)}", path=path
        )
    return given


def _shares(given: Mapping[str, Any]) -> dict[str, Fraction]:
    """Shares as exact fractions, each between 0 and 1, together not above 1; an empty cell is no target."""
    shares = {feature: _share(feature, value) for feature, value in given.items() if not _empty(value)}
    rounding = Fraction(1, 200) * len(shares)  # shares may have been rounded to hundredths
    if sum(shares.values()) > 1 + rounding:
        raise InputError(f"the targets add up to {float(sum(shares.values())):g}; they must not exceed 1")
    return shares


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _share(feature: str, value: Any) -> Fraction:
    # A float means the decimal that it prints as: 0.15, not 0.1499999999999999944…
    try:
        if isinstance(value, str) and _ENDLESS.search(value.strip()):
            raise ValueError
        share = Fraction(value if isinstance(value, int | Fraction | Decimal) else str(value).strip())
    except (ValueError, OverflowError, ZeroDivisionError):
        raise InputError(f"the target of {feature} is {show(value)}; it must be a number") from None
    if not 0 <= share <= 1:
        raise InputError(f"the target of {feature} is {show(value)}; it must be between 0 and 1")
    return share


def _populations(table: pl.DataFrame, path: Path | None, line: int | None) -> dict[str, float]:
    sizes = table[POPULATION].cast(pl.Float64, strict=False)
    good = sizes.is_finite().fill_null(False) & (sizes >= 0).fill_null(False)
    refuse_where(~good, "population is not a number", path, line)
    return dict(zip(table["query"].to_list(), sizes.to_list(), strict=True))


def refuse_where(bad: pl.Series, problem: str, path: Path | None, line: int | None) -> None:
    if not bad.any():
        return
    at = int(bad.arg_true()[0])
    if line is None:
        raise InputError(f"row {at + 1}: {problem}", path=path)
    raise InputError(problem, path=path, line=line + at)


def is_path(x: Any) -> bool:
    return isinstance(x, str | os.PathLike)
