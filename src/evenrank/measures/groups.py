"""Groups of documents, the shares they should have, and what measures of groups have in common.

Groups come from a table of labels, or are inferred from a tally by majority of words. A document may be 0.7
female and 0.3 unknown: labels are rows of document, attribute, group and share. Crossed groups (gender ×
field) have the product of the shares, as in the TREC Fair Ranking track of 2022. Without a label a document
shows no group; where a measure names an attribute, `unknown` is a group of its own.

Measures of one group against the rest (rND, rKL, rRD, FAIR) count a document without a label as one of the
rest; measures of all groups (Skew, NDKL, exposure, AWRF) take shares of the labelled documents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo
from numpy.typing import NDArray

from evenrank.data.read import as_frame, fingerprint, is_frame, is_path, read_table
from evenrank.data.schema import DOC_ID, Path, Table, listing, pick, show
from evenrank.errors import InputError, choice_hint
from evenrank.measures.base import BiasMeasure, Param, PerQuery
from evenrank.measures.lists import WHOLE_LIST, Floats, Ints, RankedLists, find_rows
from evenrank.measures.rank_bias import check_group
from evenrank.show.numbers import counted

if TYPE_CHECKING:
    from evenrank.text.tally import Tally

QUERY_COLUMNS = ("query", "query_id", "qid", "topic")
"""What the column of queries may be called; the first that is there wins."""
POPULATION = "population"
FULL = "full"
GROUP_COLUMNS = ("group", "gender", "label", "sex")
"""What a column of labels may be called; the first that is there wins."""
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
    where the labels come from, `unknown` names the groups of documents of which something is unknown.
    """

    frame: pl.DataFrame
    groups: tuple[str, ...]
    how: str
    inferred: bool = False
    unknown: frozenset[str] = frozenset()

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
        """Whether each group holds documents of which something is unknown."""
        return np.array([group in self.unknown for group in self.groups], bool)

    @property
    def labelled(self) -> pl.Series:
        """The documents that show a group."""
        known = [group for group in self.groups if group not in self.unknown]
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
        ``{doc_id: group}``, ``{doc_id: {group: share}}`` or ``{doc_id: {attribute: group}}``.
        """
        if labels is None:
            raise InputError("an attribute is a column of the labels of documents; give labels")
        table = _label_table(labels)
        frame = table.frame
        if SHARE & {*frame.columns}:
            return cls(_by_shares(table), table, soft=True)
        table.require_unique("doc_id")
        main = next((name for name in GROUP_COLUMNS if name in frame.columns), None)
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
            pick(self.table.frame.columns, GROUP_COLUMNS, path=path, line=None if path is None else 1)
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
        shares, crossed = np.ones((len(doc_ids), 1)), [tuple[str, ...]()]
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
            crossed = [(*each, group) for each in crossed for group in (*groups, UNKNOWN)]
        hidden = frozenset(CROSS.join(each) for each in crossed if UNKNOWN in each)
        return DocumentGroups.of(
            doc_ids, [*map(CROSS.join, crossed)], shares, f"given, {attribute}", unknown=hidden
        )


def _label_table(labels: Any) -> Table:
    """Labels as a table with names in lower case: doc_id and a column for each attribute, or with a share."""
    if isinstance(labels, Mapping):
        labels = [row for doc_id, of in labels.items() for row in _label_rows(str(doc_id), of)]
    elif not (is_path(labels) or is_frame(labels) or isinstance(labels, Table)):
        labels = [*labels]
        if labels and type(labels[0]) in (tuple, list):
            labels = Table(as_frame(labels, {"doc_id": DOC_ID, "group": GROUP_COLUMNS}))
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
    """Return the rows of one document of a dict: its group, its groups by attribute, or shares of groups."""
    if not isinstance(of, Mapping):
        return [{"doc_id": doc_id, "group": of}]
    if any(isinstance(each, Real) for each in of.values()):
        return [{"doc_id": doc_id, "group": group, "share": share} for group, share in of.items()]
    return [{"doc_id": doc_id, **of}]


def _by_shares(table: Table) -> dict[str, pl.DataFrame]:
    """Rows of doc_id, group and share by attribute: no group of a document twice, together at most 1."""
    frame = table.frame
    share = next(name for name in frame.columns if name in SHARE)
    group = pick(frame.columns, GROUP_COLUMNS, path=table.path, line=None if table.line is None else 1)
    attribute = pl.col("attribute").cast(pl.String) if "attribute" in frame.columns else pl.lit(group)
    rows = frame.select(
        pl.int_range(pl.len()).alias("row"),
        "doc_id",
        attribute.str.to_lowercase().alias("attribute"),
        pl.col(group).alias("group"),
        pl.col(share).cast(pl.Float64, strict=False).alias("share"),
    )
    table.refuse(
        ~rows["share"].is_between(0, 1).fill_null(False),
        lambda row: f"share is {show(frame[share][row])}; it must be a number between 0 and 1",
    )
    parts = {
        str(name): part.with_columns(normal_labels(part["group"]))
        for (name,), part in rows.partition_by("attribute", as_dict=True, maintain_order=True).items()
    }
    rows = pl.concat(parts.values()).sort("row")
    table.refuse(
        ~rows.select(pl.struct("doc_id", "attribute", "group").is_first_distinct()).to_series(),
        lambda row: f"document {show(rows['doc_id'][row])} has the same group twice",
    )
    table.refuse(
        rows.select(pl.col("share").cum_sum().over("doc_id", "attribute") > 1 + _ROUNDING)["share"],
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
        padded = np.pad(self.shares, (0, 1), constant_values=np.nan)  # at −1: no target
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
    query = pick(table.frame.columns, QUERY_COLUMNS, path=table.path)
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
GROUP = Param(dtype=str, default=None, desc="the group that is compared with the rest")


TARGETS = {
    "list": "the query's whole list",
    "collection": "the shares in the collection",
    "equal": "equal shares",
    "relevant": "the shares among the judged relevant documents",
}
"""What a measure can compare with, unless shares are given, and how a note calls it."""


def check_labelled(name: str, run: pl.DataFrame, lists_of: Mapping[BiasMeasure, RankedLists]) -> None:
    """Refuse a run without any labelled document, and measures that would be 0 for any ranking."""
    labels = next(iter(lists_of.values())).labels
    if not run["doc_id"].is_in(labels.labelled.implode()).any():
        raise InputError(
            f"{name}: none of its documents has a group; check that labels and run belong together"
        )
    for measure, lists in lists_of.items():
        cutoff = measure.params.get("cutoff") or WHOLE_LIST
        needs_more = measure.needs_more_than_the_top(targets=lists.targets is not None)
        if needs_more and (lists.lengths <= cutoff).all():
            raise InputError(
                f"{measure} compares the top of each list with the whole of it, but no list of {name} is "
                "longer than the cut-off, so it is 0 for any ranking; retrieve more documents, name a "
                f"cut-off, as in {measure.NAME}@10, or give targets"
            )


def group_notes(measure: Any, lists: RankedLists, defined: NDArray[np.bool_]) -> list[str]:
    """Return notes on where groups and target come from; `defined` marks the lists that have a value."""
    notes = []
    if "target" in measure.SUPPORTED_PARAMS:
        notes.append(f"target: {measure.target_in_words(lists)}")
    cutoff = measure.params.get("cutoff") or WHOLE_LIST
    short = int((lists.lengths[defined] <= cutoff).sum())
    if short and measure.needs_more_than_the_top(targets=lists.targets is not None):
        lists_are = counted(short, "list is", "lists are")
        notes.append(f"{lists_are} no longer than the cut-off: the value is 0 whatever they show")
    entries, looked = lists.top(cutoff)
    entries = entries[np.repeat(defined, looked)]
    unknown = (1 - lists.counts()[entries][:, ~lists.labels.hidden].sum(axis=1)).sum()
    if unknown:
        phrase = "are unknown, which is a group of its own" if lists.labels.unknown else "show no group"
        notes.append(f"{unknown / len(entries):.1%} of the documents looked at {phrase}")
    return notes


class GroupMeasure(BiasMeasure):
    """A measure of how ranked lists treat groups of documents, computed list by list.

    `per_list` gives the value of one list; NaN where it has none, and `UNDEFINED` says why.
    """

    NEEDS: frozenset[str] = frozenset({"groups"})
    UNDEFINED: ClassVar[str] = "undefined"
    AGAINST_REST: ClassVar[bool] = False  # shares of all documents, not only of the labelled ones
    DEFAULT_TARGET: ClassVar[str] = "list"  # the target, unless one is given
    relevant_weights: ClassVar[Any] = None  # for target='relevant', see `relevant_shares`
    WHOLE_LABELS: ClassVar[bool] = False  # looks at documents that show a group or do not, never at shares
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": CUTOFF,
        "target": TARGET,
        "attribute": ATTRIBUTE,
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**with_attribute(params))
        if "target" in self.SUPPORTED_PARAMS:
            check_target(self.NAME, self["target"])
            if self["target"] == "relevant":
                self.NEEDS = self.NEEDS | {"qrels"}

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
        """Return the shares to compare with: one of `TARGETS`, ``given`` by a table, or {group: share}."""
        return self["target"] or ("given" if given else self.DEFAULT_TARGET)

    def target_in_words(self, lists: RankedLists) -> str:
        """Return in words which shares the measure compares with."""
        target = self.target_named(given=lists.targets is not None)
        if isinstance(target, Mapping):
            return str(target)
        return TARGETS.get(target, "the given shares of each query")

    def cut(self, n: int) -> int:
        """Return how many of n documents count."""
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
        """Return the column of the group that a measure is about: the first of two, unless named."""
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
        """Return for each list the groups of its documents, documents × groups, best first."""
        shown = lists.counts()
        if self.WHOLE_LABELS and shown.dtype.kind == "f":
            raise InputError(f"{self} counts documents that show a group or do not; these labels are shares")
        return np.split(shown, lists.starts[1:])

    def list_at(self, lists: RankedLists, query: int) -> tuple[Ints, Floats]:
        """Return one of the lists and its target, as for `per_list`."""
        start, n = int(lists.starts[query]), int(lists.lengths[query])
        return lists.counts()[start : start + n], self.targets(lists)[query]

    def per_list(self, shown: Ints, target: Floats, groups: tuple[str, ...]) -> float:
        """Value of one list: `shown` is 1 where a document (row) shows a group (column).

        The target holds a share for each group, NaN where there is none.
        """
        raise NotImplementedError

    def undefined(self, lists: RankedLists) -> str:
        """Return why a list has no value."""
        by_query = self.target_named(given=lists.targets is not None) in ("given", "relevant")
        return f"no target, or {self.UNDEFINED}" if by_query else self.UNDEFINED

    def targets(self, lists: RankedLists) -> Floats:
        """Return the target share of each group for each list, lists × groups; NaN where there is none."""
        return lists.cached(("targets", self), lambda: self._targets(lists))

    def _targets(self, lists: RankedLists) -> Floats:
        target = self.target_named(given=lists.targets is not None)
        if target == "list":
            return own_shares(lists, of_all=self.AGAINST_REST)
        if target == "given":
            return np.asarray(lists.targets)
        if target == "relevant":
            return relevant_shares(lists, of_all=self.AGAINST_REST, weights=self.relevant_weights)
        shares, hidden = np.tile(self.shares(lists), (len(lists.query_ids), 1)), lists.labels.hidden
        names_unknown = isinstance(target, Mapping) and not {*target}.isdisjoint(
            group for group, out in zip(lists.groups, hidden, strict=True) if out
        )
        if target == "collection" or names_unknown:
            return shares
        own = own_shares(lists)  # what is unknown keeps its share of the list
        return np.where(hidden, own, shares * (1 - own[:, hidden].sum(axis=1, keepdims=True)))

    def shares(self, lists: RankedLists) -> Floats:
        """Return the shares that the target parameter names: equal, of the collection, or written out."""
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
    """Return the parameters with attribute and crossed groups in normal form."""
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


def relevant_shares(lists: RankedLists, *, of_all: bool = False, weights: Any = None) -> Floats:
    """Return the groups' shares among the judged relevant documents of each query.

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
    unlisted = np.zeros((1, len(groups)))  # the last row is for documents without a label
    unlisted[0, -1] = bool(labels.unknown)  # unknown in every attribute
    shown = np.vstack([labels.frame.select(groups).to_numpy(), unlisted])
    shown = shown[find_rows(judged["doc_id"], labels.frame["doc_id"])]
    queries, starts = np.unique(judged["query"].to_numpy(), return_index=True)
    each = np.ones(len(judged))
    if weights is not None:
        each = np.concatenate([*map(weights, np.split(judged["relevance"].to_numpy(), starts[1:]))])
    total = np.add.reduceat(shown * each[:, None], starts)
    whole = np.add.reduceat(each, starts) if of_all else total.sum(axis=1)
    shares = np.divide(total, whole[:, None], out=np.full(total.shape, np.nan), where=whole[:, None] > 0)
    result[queries] = shares
    return result


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
