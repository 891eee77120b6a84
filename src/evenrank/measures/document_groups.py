"""Which group each document shows, and which share each group should have.

Groups are given by a table of labels, or inferred from a tally by majority. A document may be 0.7 female and
0.3 unknown, or female and a physicist: labels are read as rows of document, attribute, group and share, and
crossed groups (gender × field) are shown in the product of the shares, as in the TREC Fair Ranking track of
2022. What labels do not say of a document is `unknown`, a group like the others wherever an attribute is
named. Targets are the true share of each group for each query, as exact fractions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from numbers import Real
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank.data.read import as_frame, fingerprint, is_frame, is_path, read_table
from evenrank.data.schema import DOC_ID, Table, listing, pick, show
from evenrank.errors import InputError, choice_hint
from evenrank.measures.lists import Floats, find_rows

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
ATTRIBUTE = "attribute"
UNKNOWN = "unknown"
SHARE = {"share", "weight", "probability"}
"""What a column may be called that says how much of a document shows a group."""
VALUES = 50
"""A column of labels with more values than this tells documents apart, not groups of them."""
CROSS = " × "
_ROUNDING = 1e-6
_GENDERS = {"f": "female", "female": "female", "m": "male", "male": "male"}
_NONE = {"", "unknown", "none", "null", "nan", "n/a", "na", "-", "–", "?"}


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

    @classmethod
    def of(
        cls, doc_ids: pl.Series, groups: Iterable[str], shown: Floats, how: str, **more: Any
    ) -> DocumentGroups:
        """Groups out of an array, documents × groups; whole numbers where no share is given."""
        groups = tuple(groups)
        values = shown.astype(np.int64) if (shown % 1 == 0).all() else shown
        frame = pl.DataFrame({"doc_id": doc_ids, **dict(zip(groups, values.T, strict=True))})
        return cls(frame, groups, how, **more)

    @property
    def unknown(self) -> np.ndarray:
        """For each document, how much of what it shows is not known: from 0 to 1."""
        known = [name for name, hidden in zip(self.groups, self.hidden, strict=True) if not hidden]
        result: np.ndarray = 1 - self.frame.select(known).to_numpy().sum(axis=1)
        return result

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
        result: np.ndarray = self.unknown < 1
        return result

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


def crossed_name(text: str) -> str:
    """`male*law` and `male×law` as `male × law`."""
    return CROSS.join(part.strip() for part in re.split(r"[*×]", text))


def normal_attribute(text: str) -> str:
    """`Gender*field` as `gender × field`."""
    return crossed_name(text).lower()


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of documents, read once.

    Attributes
    ----------
    attributes
        For each attribute its rows: doc_id, group (None where it is not known) and share.
    soft
        Whether shares are given; else each document has one row of each attribute, with share 1.
    main
        The column that is meant where no attribute is named.
    left_aside
        Columns that tell documents apart, not groups of them.
    """

    attributes: Mapping[str, pl.DataFrame]
    table: Table
    soft: bool = False
    main: str | None = None
    left_aside: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: Any) -> Labels:
        """Labels as given: a path (TSV or CSV with a header, JSONL, Parquet), a frame, rows or a dict.

        They hold doc_id and a column for each attribute, or doc_id, (attribute,) group and share. A dict is
        ``{doc_id: group}``, ``{doc_id: {group: share}}``, ``{doc_id: {attribute: group}}``, or
        ``{doc_id: {attribute: {group: share}}}``.
        """
        if labels is None:
            raise InputError("an attribute is a column of the labels of documents; give labels")
        table = _label_table(labels)
        frame = table.frame
        if SHARE & {*frame.columns}:
            rows = _share_rows(table)
            parts = rows.partition_by(ATTRIBUTE, as_dict=True, maintain_order=True)
            return cls({str(name): part for (name,), part in parts.items()}, table, soft=True)
        table.require_unique("doc_id")
        main = next((name for name in GROUP if name in frame.columns), None)
        attributes, left_aside = {}, []
        for name, kind in frame.schema.items():
            if name == "doc_id" or (name != main and (kind.is_nested() or kind in (pl.Object, pl.Binary))):
                continue
            group = _normal(frame[name].cast(pl.String))
            if group.n_unique() > VALUES:
                left_aside.append(name)
            if name == main or (name not in left_aside and group.null_count() < len(group)):
                attributes[name] = pl.DataFrame({"doc_id": frame["doc_id"], "group": group, "share": 1.0})
        return cls(attributes, table, main=main, left_aside=tuple(left_aside))

    def one_attribute(self) -> DocumentGroups:
        """The groups where no attribute is named; what is unknown shows no group.

        Of the only attribute, or of the column that is called group, gender, label or sex.
        """
        names, path = list(self.attributes), self.table.path
        if self.soft and len(names) > 1:
            raise InputError(
                f"the labels are about {listing(names)}; name one, as in AWRF(attribute={names[0]!r})"
            )
        if self.main is None and not self.soft and (path is not None or len(names) != 1):
            pick(self.table.frame.columns, GROUP, path=path, line=None if path is None else 1)
        with_unknown = self.groups(self.main or names[0])
        return DocumentGroups(with_unknown.frame.drop(UNKNOWN), with_unknown.groups[:-1], "given")

    @cached_property
    def axes(self) -> dict[str, DocumentGroups]:
        """The groups of each attribute; `unknown` is the last."""
        return {name: self.groups(name) for name in self.attributes}

    def groups(self, attribute: str) -> DocumentGroups:
        """The groups of an attribute, or of several crossed; what is left of a document is unknown."""
        names = attribute.split(CROSS)
        for name in names:
            if name not in self.attributes:
                raise InputError(
                    f"the labels have no attribute {name!r}; {choice_hint(name, self.attributes)}"
                )
        if len(set(names)) < len(names):
            raise InputError(f"{attribute} crosses an attribute with itself")
        every = [self.attributes[name] for name in names]
        doc_ids = pl.concat(rows["doc_id"] for rows in every).unique(maintain_order=True)
        shares, axes = np.ones((len(doc_ids), 1)), []
        for name, rows in zip(names, every, strict=True):
            groups = ordered_groups(rows["group"].unique())
            if not groups:
                raise InputError("no document has a label", path=self.table.path)
            # Where no shares are given, each attribute has one row for each document.
            place = find_rows(rows["doc_id"], doc_ids) if self.soft else np.arange(len(doc_ids))
            column = rows["group"].replace_strict(
                groups, range(len(groups)), default=-1, return_dtype=pl.Int64
            )
            known = rows["group"].is_not_null().to_numpy()
            more = np.zeros((len(doc_ids), len(groups) + 1))
            np.add.at(more, (place[known], column.to_numpy()[known]), rows["share"].to_numpy()[known])
            unknown = np.maximum(1 - more.sum(axis=1), 0.0)
            more[:, -1] = np.where(unknown < _ROUNDING, 0.0, unknown)
            shares = (shares[:, :, None] * more[:, None, :]).reshape(len(doc_ids), -1)
            axes.append((name, (*groups, UNKNOWN)))
        columns_crossed = [CROSS.join(each) for each in product(*(groups for _, groups in axes))]
        how = f"given, {attribute}"
        return DocumentGroups.of(doc_ids, columns_crossed, shares, how, axes=tuple(axes))


def _label_table(labels: Any) -> Table:
    """Labels as a table with names in lower case: doc_id and a column for each attribute, or with a share."""
    table = _as_given(labels)
    names = [name.lower() for name in table.frame.columns]
    if len(set(names)) < len(names):
        raise table.error(f"two columns differ only in case: {listing(table.frame.columns)}")
    if table.frame.is_empty():
        raise table.error("the labels table has no rows")
    doc_id = pick(names, DOC_ID, path=table.path, line=None if table.line is None else 1)
    new = ["doc_id" if name == doc_id else name for name in names]
    frame = table.frame.rename(dict(zip(table.frame.columns, new, strict=True)))
    table = replace(table, frame=frame.with_columns(pl.col("doc_id").cast(pl.String)))
    table.refuse(table.frame["doc_id"].fill_null("") == "", "doc_id is empty")
    return table


def _as_given(labels: Any) -> Table:
    names = {"doc_id": DOC_ID, "group": GROUP}
    if isinstance(labels, Mapping):
        first = next((of for of in labels.values() if isinstance(of, Mapping)), None)
        if first is None:
            return Table(as_frame(labels, names, part="docs"))
        for doc, of in labels.items():
            if not isinstance(of, Mapping):
                raise InputError(f"the label of {show(doc)} is {show(of)}; others are given as shares")
        inner = next(iter(first.values()), None)
        if not isinstance(inner, Mapping | Real):
            rows = [{"doc_id": str(doc), **of} for doc, of in labels.items()]
            return Table(pl.DataFrame(rows, infer_schema_length=None))
        by = {doc: of if isinstance(inner, Mapping) else {"group": of} for doc, of in labels.items()}
        shares = []
        for doc, of in by.items():
            for attribute, each in of.items():
                for group, share in each.items():
                    if not isinstance(share, Real):
                        raise InputError(
                            f"the share of {group} in {show(doc)} is {show(share)}; give a number"
                        )
                    shares.append((str(doc), str(attribute), str(group), float(share)))
        return Table(pl.DataFrame(shares, schema=["doc_id", ATTRIBUTE, "group", "share"], orient="row"))
    if is_path(labels) or is_frame(labels):
        return read_table(labels)
    labels = list(labels) if isinstance(labels, Iterable) else labels
    pairs = isinstance(labels, list) and labels and type(labels[0]) in (tuple, list)
    return Table(as_frame(labels, names, part="docs")) if pairs else read_table(labels)


def _share_rows(table: Table) -> pl.DataFrame:
    """Rows of doc_id, attribute, group and share: no group of a document twice, together at most 1."""
    frame = table.frame
    share = next(name for name in frame.columns if name in SHARE)
    group = pick(frame.columns, GROUP, path=table.path, line=None if table.line is None else 1)
    attribute = pl.col(ATTRIBUTE).cast(pl.String) if ATTRIBUTE in frame.columns else pl.lit(group)
    rows = frame.select(
        "doc_id",
        attribute.str.to_lowercase().alias(ATTRIBUTE),
        pl.col(group).cast(pl.String).alias("group"),
        pl.col(share).cast(pl.Float64, strict=False).alias("share"),
    )
    table.refuse(
        ~rows["share"].is_between(0, 1).fill_null(False),
        lambda row: f"share is {show(frame[share][row])}; it must be a number between 0 and 1",
    )
    named = [ATTRIBUTE, "group"]
    spellings = rows.select(named).unique(maintain_order=True).partition_by(ATTRIBUTE)
    normal = pl.concat(each.with_columns(normal=_normal(each["group"])) for each in spellings)
    rows = rows.join(normal, on=named, how="left", maintain_order="left", nulls_equal=True)
    rows = rows.select("doc_id", ATTRIBUTE, pl.col("normal").alias("group"), "share")
    table.refuse(
        ~rows.select(pl.struct("doc_id", *named).is_first_distinct()).to_series(),
        lambda row: f"document {show(rows['doc_id'][row])} has the same group twice",
    )
    table.refuse(
        rows.select(pl.col("share").cum_sum().over("doc_id", ATTRIBUTE) > 1 + _ROUNDING)["share"],
        lambda row: f"the shares of document {show(rows['doc_id'][row])} add up to more than 1",
    )
    return rows


def _normal(labels: pl.Series) -> pl.Series:
    """Labels as groups, each spelling looked at once."""
    values = labels.unique().to_list()
    return labels.replace_strict(values, normal_groups(values), return_dtype=pl.String)


def given_groups(labels: Any) -> DocumentGroups:
    """Groups from labels where no attribute is named; labels as for :meth:`Labels.of`, or such groups."""
    return labels if isinstance(labels, DocumentGroups) else Labels.of(labels).one_attribute()


def inferred_groups(tally: Tally) -> DocumentGroups:
    """Groups by majority of words: a document shows the group whose words it has most of.

    None where it has no such word, or where two groups share the first place.
    """
    counts = tally.frame.select(tally.groups).to_numpy()
    most = counts.max(axis=1, initial=0)[:, None]
    alone = (counts == most).sum(axis=1, keepdims=True) == 1
    shown = np.asarray((counts == most) & alone & (most > 0), np.float64)
    words = "" if tally.lexicon is None else f" (lexicon {tally.lexicon.name})"
    how = f"inferred, the group with most words{words}"
    return DocumentGroups.of(tally.frame["doc_id"], tally.groups, shown, how, inferred=True)


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
        return replace(self, shares=shares)


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


def read_targets(targets: Any, shown: tuple[str, ...]) -> Targets:
    """Targets out of a table (query and a column for each group), or ``{query: {group: share}}``."""
    table, how, sizes = None, "given", None
    if isinstance(targets, Mapping):
        for query, shares in targets.items():
            if not isinstance(shares, Mapping):
                raise InputError(
                    f"the target of {show(query)} is {show(shares)}; expected {{feature: share}}"
                )
        rows = {str(q): {str(name): share for name, share in of.items()} for q, of in targets.items()}
    else:
        table = read_table(targets)
        query = pick(table.frame.columns, QUERY, path=table.path)
        frame = table.frame.rename({query: "query"}).with_columns(
            pl.col(query).cast(pl.String).alias("query")
        )
        table = replace(table, frame=frame)
        table.refuse(frame["query"].fill_null("") == "", "query is empty")
        table.require_unique("query")
        how = how if table.path is None else PurePath(table.path).name
        if POPULATION in frame.columns:
            sizes = _populations(table)
        rows = {row.pop("query"): row for row in frame.drop(POPULATION, strict=False).iter_rows(named=True)}
    names = list(dict.fromkeys(name for of in rows.values() for name in of))
    path = None if table is None else table.path
    given = _matched(names, shown, path)
    exact = {}
    for row, (query, of) in enumerate(rows.items()):
        try:
            exact[query] = _shares({given[name]: share for name, share in of.items()})
        except InputError as error:
            if table is None:
                raise InputError(f"query {show(query)}: {error.message}") from None
            raise table.error(error.message, row) from None
    return Targets(exact, tuple(given.values()), how, sizes)


def _matched(names: list[str], shown: tuple[str, ...], path: str | os.PathLike[str] | None) -> dict[str, str]:
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
    shares = {
        feature: _share(feature, value)
        for feature, value in given.items()
        if value is not None and str(value).strip()
    }
    rounding = Fraction(1, 200) * len(shares)  # shares may have been rounded to hundredths
    if sum(shares.values()) > 1 + rounding:
        raise InputError(f"the targets add up to {float(sum(shares.values())):g}; they must not exceed 1")
    return shares


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


def _populations(table: Table) -> dict[str, float]:
    sizes = table.frame[POPULATION].cast(pl.Float64, strict=False)
    table.refuse(~((sizes >= 0) & sizes.is_finite()).fill_null(False), "population is not a number")
    return dict(zip(table.frame["query"].to_list(), sizes.to_list(), strict=True))
