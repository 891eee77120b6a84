"""Which group each document shows, and which share each group should have.

Groups are given by a table of labels, or inferred from a tally by majority. A document may be 0.7 female and
0.3 unknown, or female and a physicist: labels are read as rows of document, attribute, group and share, and
crossed groups (gender × field) are shown in the product of the shares, as in the TREC Fair Ranking track of
2022. What labels do not say of a document is `unknown`, a group like the others wherever an attribute is
named. Targets are the true share of each group for each query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data.read import as_frame, fingerprint, is_frame, is_path, read_table
from evenrank.data.schema import DOC_ID, Path, Table, listing, pick, show
from evenrank.errors import InputError, choice_hint
from evenrank.measures.lists import Floats, find_rows

if TYPE_CHECKING:
    from evenrank.text.tally import Tally

QUERY = ("query", "query_id", "qid", "topic")
"""What the column of queries may be called; the first that is there wins."""
POPULATION = "population"
FULL = "full"
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
    where the labels come from, `axes` the attributes and their groups where these are named.
    """

    frame: pl.DataFrame
    groups: tuple[str, ...]
    how: str
    inferred: bool = False
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(
        cls, doc_ids: pl.Series, groups: Sequence[str], shown: NDArray[Any], how: str, **more: Any
    ) -> DocumentGroups:
        """Groups out of an array, documents × groups; whole numbers where no share is given."""
        values = shown.astype(np.int64) if (shown % 1 == 0).all() else shown
        frame = pl.DataFrame({"doc_id": doc_ids, **dict(zip(groups, values.T, strict=True))})
        return cls(frame, tuple(groups), how, **more)

    @property
    def soft(self) -> bool:
        """Whether documents show groups by shares."""
        return any(self.frame[group].dtype.is_float() for group in self.groups)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """For each group, whether it stands for documents of which something is unknown."""
        if not self.axes:
            return np.zeros(len(self.groups), bool)
        return np.array([UNKNOWN in parts for parts in product(*(groups for _, groups in self.axes))])

    @property
    def labelled(self) -> pl.Series:
        """The documents that show a group."""
        known = [name for name, hidden in zip(self.groups, self.hidden, strict=True) if not hidden]
        return self.frame.filter(pl.sum_horizontal(known) > 0)["doc_id"]

    @property
    def provenance(self) -> dict[str, str]:
        """Where the labels come from, and their fingerprint."""
        return {"labels": self.how, "fingerprint": fingerprint([self.frame])}

    def labels(self, doc_ids: pl.Series) -> pl.Series:
        """The group that each of these documents shows; null where it shows none, or is not listed."""
        if self.soft:
            raise InputError("these labels are shares; each document has to show one group, or none")
        shown = self.frame.select(self.groups).to_numpy()
        shown = np.vstack([shown, np.zeros((1, len(self.groups)))])  # the last for those not listed
        columns = np.where(shown.any(axis=1), shown.argmax(axis=1), -1)
        names = np.array([*self.groups, None], dtype=object)
        shown_by = names[columns[find_rows(doc_ids, self.frame["doc_id"])]]
        return pl.Series(shown_by.tolist(), dtype=pl.String)


def normal_groups(labels: Iterable[str | None]) -> list[str | None]:
    """Labels as groups: None for what says that the group is not known; f and m in full.

    f, m, Female and Male become female and male where no other label occurs (sizes may be s, m and l).
    """
    plain = [None if label is None or label.strip().lower() in _NONE else label.strip() for label in labels]
    if all(label is None or label.lower() in _GENDERS for label in plain):
        return [None if label is None else _GENDERS[label.lower()] for label in plain]
    return plain


def normal_labels(labels: pl.Series) -> pl.Series:
    """A column of labels as groups, each spelling looked at once."""
    labels = labels.cast(pl.String)
    values = labels.unique().to_list()
    return labels.replace_strict(values, normal_groups(values), return_dtype=pl.String)


def ordered_groups(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The groups that occur: female before male, others in the order of the alphabet."""
    return tuple(sorted({label for label in labels if label is not None}))


def crossed_name(text: str) -> str:
    """`male*law` and `male×law` as `male × law`."""
    return CROSS.join(part.strip() for part in re.split(r"[*×]", text))


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of documents, read once.

    Attributes
    ----------
    attributes
        For each attribute its rows: doc_id, group (null where it is not known) and share.
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
            return cls(_by_shares(table), table, soft=True)
        table.require_unique("doc_id")
        main = next((name for name in GROUP if name in frame.columns), None)
        attributes, left_aside = {}, []
        for name, kind in frame.schema.items():
            if name == "doc_id" or (name != main and (kind.is_nested() or kind in (pl.Object, pl.Binary))):
                continue
            group = normal_labels(frame[name])
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
        doc_ids = pl.concat(self.attributes[name]["doc_id"] for name in names).unique(maintain_order=True)
        shares, axes = np.ones((len(doc_ids), 1)), []
        for name in names:
            rows = self.attributes[name].filter(pl.col("group").is_not_null())
            groups = ordered_groups(rows["group"].unique())
            if not groups:
                raise InputError("no document has a label", path=self.table.path)
            column = rows["group"].replace_strict(groups, range(len(groups)), return_dtype=pl.Int64)
            own = np.zeros((len(doc_ids), len(groups) + 1))
            own[find_rows(rows["doc_id"], doc_ids), column.to_numpy()] = rows["share"].to_numpy()
            unknown = 1 - own.sum(axis=1)
            own[:, -1] = np.where(unknown < _ROUNDING, 0.0, unknown)
            shares = (shares[:, :, None] * own[:, None, :]).reshape(len(doc_ids), -1)
            axes.append((name, (*groups, UNKNOWN)))
        crossed = [CROSS.join(each) for each in product(*(groups for _, groups in axes))]
        return DocumentGroups.of(doc_ids, crossed, shares, f"given, {attribute}", axes=tuple(axes))


def _label_table(labels: Any) -> Table:
    """Labels as a table with names in lower case: doc_id and a column for each attribute, or with a share."""
    if isinstance(labels, Mapping):
        labels = [row for doc_id, of in labels.items() for row in _label_rows(str(doc_id), of)]
    elif not (is_path(labels) or is_frame(labels) or isinstance(labels, Table)):
        labels = [*labels]
        if labels and type(labels[0]) in (tuple, list):
            labels = Table(as_frame(labels, {"doc_id": DOC_ID, "group": GROUP}))
    table = read_table(labels)
    names = [name.lower() for name in table.frame.columns]
    if len(set(names)) < len(names):
        raise table.error(f"two columns differ only in case: {listing(table.frame.columns)}")
    if table.frame.is_empty():
        raise table.error("the labels table has no rows")
    doc_id = pick(names, DOC_ID, path=table.path, line=None if table.line is None else 1)
    new = ["doc_id" if name == doc_id else name for name in names]
    table = replace(table, frame=table.frame.rename(dict(zip(table.frame.columns, new, strict=True))))
    return replace(table, frame=table.frame.with_columns(table.ids("doc_id")))


def _label_rows(doc_id: str, of: Any) -> list[dict[str, Any]]:
    """The rows of one document, out of a dict: its group, its groups by attribute, or their shares."""
    if not isinstance(of, Mapping):
        return [{"doc_id": doc_id, "group": of}]
    if any(isinstance(each, Real) for each in of.values()):
        of = {"group": of}
    if not any(isinstance(each, Mapping) for each in of.values()):
        return [{"doc_id": doc_id, **of}]
    return [
        {"doc_id": doc_id, ATTRIBUTE: attribute, "group": group, "share": share}
        for attribute, each in of.items()
        for group, share in (each if isinstance(each, Mapping) else {each: 1.0}).items()
    ]


def _by_shares(table: Table) -> dict[str, pl.DataFrame]:
    """Rows of doc_id, group and share by attribute: no group of a document twice, together at most 1."""
    frame = table.frame
    share = next(name for name in frame.columns if name in SHARE)
    group = pick(frame.columns, GROUP, path=table.path, line=None if table.line is None else 1)
    attribute = pl.col(ATTRIBUTE).cast(pl.String) if ATTRIBUTE in frame.columns else pl.lit(group)
    rows = frame.select(
        pl.int_range(pl.len()).alias("row"),
        "doc_id",
        attribute.str.to_lowercase().alias(ATTRIBUTE),
        pl.col(group).alias("group"),
        pl.col(share).cast(pl.Float64, strict=False).alias("share"),
    )
    table.refuse(
        ~rows["share"].is_between(0, 1).fill_null(False),
        lambda row: f"share is {show(frame[share][row])}; it must be a number between 0 and 1",
    )
    parts = {
        str(name): part.with_columns(normal_labels(part["group"]))
        for (name,), part in rows.partition_by(ATTRIBUTE, as_dict=True, maintain_order=True).items()
    }
    rows = pl.concat(parts.values()).sort("row")
    table.refuse(
        ~rows.select(pl.struct("doc_id", ATTRIBUTE, "group").is_first_distinct()).to_series(),
        lambda row: f"document {show(rows['doc_id'][row])} has the same group twice",
    )
    table.refuse(
        rows.select(pl.col("share").cum_sum().over("doc_id", ATTRIBUTE) > 1 + _ROUNDING)["share"],
        lambda row: f"the shares of document {show(rows['doc_id'][row])} add up to more than 1",
    )
    return {name: part.select("doc_id", "group", "share") for name, part in parts.items()}


def listed_groups(
    doc_ids: pl.Series, labels: Sequence[str | None], more: Iterable[str] = ()
) -> DocumentGroups:
    """Groups from one label for each document; `more` are groups that need not occur."""
    groups = ordered_groups([*labels, *more])
    shown = np.array([[label == group for group in groups] for label in labels], np.int64)
    return DocumentGroups.of(doc_ids, groups, shown.reshape(len(labels), len(groups)), "given")


def inferred_groups(tally: Tally) -> DocumentGroups:
    """Groups by majority of words: a document shows the group whose words it has most of.

    None where it has no such word, or where two groups share the first place.
    """
    counts = tally.frame.select(tally.groups).to_numpy()
    most = counts.max(axis=1, initial=0)[:, None]
    alone = (counts == most).sum(axis=1, keepdims=True) == 1
    words = "" if tally.lexicon is None else f" (lexicon {tally.lexicon.name})"
    how = f"inferred, the group with most words{words}"
    shown = (counts == most) & alone & (most > 0)
    return DocumentGroups.of(tally.frame["doc_id"], tally.groups, shown, how, inferred=True)


@dataclass(frozen=True, eq=False)
class Targets:
    """True shares of groups (columns) by query (rows), NaN where there is none.

    `how` says where they come from; `populations` how many there are of each query, where that is known.
    """

    query_ids: pl.Series
    groups: tuple[str, ...]
    shares: Floats
    how: str
    populations: pl.Series | None = None

    def of(self, query_ids: pl.Series, groups: Sequence[str]) -> Floats:
        """The shares of these groups for these queries, queries × groups; of two, one is enough."""
        padded = np.pad(self.shares, (0, 1), constant_values=np.nan)  # what is not there is found at −1
        columns = [self.groups.index(group) if group in self.groups else -1 for group in groups]
        shares = padded[find_rows(query_ids, self.query_ids)][:, columns]
        if len(groups) == 2:
            shares = np.where(np.isnan(shares), 1 - shares[:, ::-1], shares)
        return np.asarray(shares)

    @property
    def fingerprint(self) -> str:
        """A short name: equal targets, equal names."""
        shares = pl.DataFrame(self.shares, schema=list(self.groups))
        return fingerprint([self.query_ids.to_frame(), shares])


def read_targets(targets: Any, shown: Sequence[str]) -> Targets:
    """Targets out of a table (query and a column for each group), or ``{query: {group: share}}``.

    `shown` are the groups that documents show.
    """
    if isinstance(targets, str) and targets == FULL:
        raise InputError("'full' is no table of targets here; leave targets out, or write target='list'")
    if isinstance(targets, Mapping):
        targets = [_target_row(query, of) for query, of in targets.items()]
    table = read_table(targets)
    query = pick(table.frame.columns, QUERY, path=table.path)
    table = replace(table, frame=table.frame.rename({query: "query"}))
    query_ids = table.ids("query")
    table.require_unique("query")
    names = [name for name in table.frame.columns if name not in ("query", POPULATION)]
    given = _matched(names, shown, table.path)
    groups = ordered_groups([*shown, *given.values()])
    shares = np.full((len(query_ids), len(groups)), np.nan)
    for name, group in given.items():
        shares[:, groups.index(group)] = _shares(table, name, group)
    total = np.nansum(shares, axis=1)
    rounding = 0.005 * np.isfinite(shares).sum(axis=1)  # shares may have been rounded to hundredths
    table.refuse(
        pl.Series(np.round(total - rounding, 9) > 1),
        lambda row: f"the targets add up to {total[row]:g}; they must not exceed 1",
    )
    sizes = None
    if POPULATION in table.frame.columns:
        sizes = table.frame[POPULATION].cast(pl.Float64, strict=False)
        table.refuse(~((sizes >= 0) & sizes.is_finite()).fill_null(False), "population is not a number")
    how = "given" if table.path is None else PurePath(table.path).name
    return Targets(query_ids, groups, shares, how, sizes)


def _target_row(query: Any, of: Any) -> dict[str, str | None]:
    if not isinstance(of, Mapping):
        raise InputError(f"the target of {show(query)} is {show(of)}; expected {{group: share}}")
    shares = {str(group): None if share is None else str(share) for group, share in of.items()}
    return {"query": str(query), **shares}


def _matched(names: list[str], shown: Sequence[str], path: Path | None) -> dict[str, str]:
    """The group that each column of targets is about; labels may be written in another case."""
    if not names:
        raise InputError("the targets have no column but the query; add one for each group", path=path)
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


def _shares(table: Table, name: str, group: str) -> Floats:
    """A column of targets as numbers between 0 and 1; an empty cell is no target."""
    texts = table.frame[name].cast(pl.String).str.strip_chars().replace("", None)
    shares = texts.map_elements(_number, return_dtype=pl.Float64)
    table.refuse(
        ~shares.is_between(0, 1).fill_null(True),
        lambda row: (
            f"the target of {group} is {show(table.frame[name][row])}; "
            "it must be a number between 0 and 1, as in 0.15 or 1/3"
        ),
    )
    return shares.fill_null(np.nan).to_numpy()


def _number(text: str) -> float:
    """A number or a fraction as it is written, 0.15 or 1/3; NaN if it is none."""
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return math.nan
