"""Representation bias: does a result list show a group as often as it should?

A. Lipani, F. Piroi and E. Yilmaz, Towards More Accountable Search Engines: Online Evaluation of
Representation Bias, 2021. Numbers of results are rounded to nine decimals, so that 0.15 · 10 is one and a
half.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import evenrank
from evenrank.data.formats import first_line, is_parquet
from evenrank.data.read import fingerprint, is_path, read_table, refuse_after_fork
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, Table, listing
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.measures.base import PerQuery, register, summarise
from evenrank.measures.groups import (
    FULL,
    GROUP_COLUMNS,
    QUERY_COLUMNS,
    AgainstRest,
    Labels,
    Targets,
    inferred_groups,
    normal_labels,
    ordered_groups,
    read_targets,
)
from evenrank.measures.lists import WHOLE_LIST, Ints, RankedLists
from evenrank.measures.results import Options
from evenrank.show.grid import Drawn

ROWS = 11
"""Rows of each list of remarkable queries, as in the paper's Tables 2 and 3."""
_BARS = 10_000
_COLUMNS: Mapping[str, Sequence[str]] = {
    "query": QUERY_COLUMNS,
    "doc_id": DOC_ID,
    "rank": ("rank", "position"),
    "group": GROUP_COLUMNS,
}


def achievable(target: Any, n: Any, count: Any) -> Any:
    """How many of n results should show a group whose true share is `target`.

    With δ = target · n − ⌊target · n⌋: ⌊target · n⌋ if δ < ½, ⌈target · n⌉ if δ > ½. If δ = ½ both are
    equally right, and the one nearer to `count`, the number that is shown, is taken: the engine gets the
    benefit of the doubt. Definition 2.3 of the paper. Numbers or arrays.
    """
    wanted = np.round(np.asarray(target, np.float64) * n, 9)
    below = np.floor(wanted)
    delta = wanted - below
    return below + ((delta > 0.5) | ((delta == 0.5) & (count > below)))


def representation_bias(count: Any, n: Any, target: Any) -> Any:
    """β@n: the share of n results that show a group, minus the share that should.

    (count − achievable) / n. From −1 to 1; positive: the list leans toward the group, negative: against it,
    0: as often as it should. Definition 2.4 of the paper; its Eq. 5 prints the opposite sign, its text and
    its tables use this one. Numbers or arrays.
    """
    return (count - achievable(target, n, count)) / n


@dataclass(frozen=True, repr=False, eq=False)
class Representation(Drawn):
    """Representation bias of result lists, by query and over queries.

    Attributes
    ----------
    at
        The cut-off n.
    features
        The groups that were measured, in order.
    rows
        One for each query and group: query, feature, the shares that are shown (`model`) and that should be
        (`target`), their difference (`bias`), and population where that is known.
    short
        Lists with fewer than n results, and `unknown`: the share of the top results that show no group (they
        count in n).
    labels
        Where the groups of the results come from: given, or inferred and how.
    targets
        Where the targets come from.
    left_out
        How many queries have no value, by reason.
    """

    at: int
    features: tuple[str, ...]
    rows: pl.DataFrame
    lists: int
    short: int
    unknown: float
    labels: str
    targets: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    divisor: str = "length"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def of(self, feature: str) -> pl.DataFrame:
        """The rows of one group."""
        return self.rows.filter(pl.col("feature") == feature)

    def summary(self, feature: str) -> dict[str, float | int | None]:
        """MB (mean) with its 95 % interval over queries (low, high), SB (standard deviation, ddof 1), MAB
        (mean absolute bias), min, max, queries."""
        values = self.of(feature)["bias"].to_numpy()
        mean = summarise(values, {}, np.ones(len(values), bool), signed=True, options=Options())
        return {
            "MB": mean.value,
            "low": mean.low,
            "high": mean.high,
            "SB": mean.spread,
            "MAB": mean.abs,
            "min": float(values.min()) if len(values) else None,
            "max": float(values.max()) if len(values) else None,
            "queries": mean.queries,
        }

    def histogram(self, feature: str) -> dict[float, int]:
        """How many queries have each bias −1, …, −1/n, 0, 1/n, …, 1 (of a short list: the nearest).

        For an n beyond 10,000 only of those that some query has: nobody looks at more bars.
        """
        steps = np.rint(np.round(self.of(feature)["bias"].to_numpy() * self.at, 9))
        counts = Counter(steps.astype(np.int64).tolist())
        shown = range(-self.at, self.at + 1) if self.at <= _BARS else sorted(counts)
        return {step / self.at: counts[step] for step in shown}

    def grid(self, feature: str, *, seed: int = 0) -> pl.DataFrame:
        """Target against model, with jitter: query, target, model, and x, y within the square around them.

        Points on the diagonal are free of bias. The jitter only keeps points apart that fall on one
        another, and never leads below 0 or above 1; the same seed gives the same points.
        """
        rows = self.of(feature).select("query", "target", "model")
        jitter = (np.random.default_rng(seed).random((len(rows), 2)) - 0.5) * 0.8 / self.at
        return rows.with_columns(
            x=(pl.col("target") + jitter[:, 0]).clip(0, 1), y=(pl.col("model") + jitter[:, 1]).clip(0, 1)
        )

    def remarkable(self, feature: str) -> dict[str, pl.DataFrame]:
        """The queries most biased `against` a group and `toward` it, the worst first, and those `unbiased`.

        Without bias: one for each target there is, then others, by target. Of several with the same target
        the one with the largest population comes first, where populations are known, else the first given.
        """
        rows = self.of(feature).sort("bias", maintain_order=True)
        free = rows.filter(pl.col("bias") == 0)
        free = free.sort("population", descending=True, nulls_last=True, maintain_order=True)
        first = free.filter(pl.col("target").is_first_distinct())
        others = free.filter(~pl.col("target").is_first_distinct()).head(max(0, ROWS - len(first)))
        toward = rows.filter(pl.col("bias") > 0).sort("bias", descending=True, maintain_order=True)
        return {
            "against": rows.filter(pl.col("bias") < 0).head(ROWS),
            "unbiased": pl.concat([first, others]).sort("target", maintain_order=True),
            "toward": toward.head(ROWS),
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "at": self.at,
            "features": {feature: self.summary(feature) for feature in self.features},
            "queries": self.frame().to_dicts(),
            "labels": self.labels,
            "targets": self.targets,
            "lists": self.lists,
            "short_lists": {"count": self.short, "divided_by": self.divisor},
            "unknown": self.unknown,
            "left_out": dict(self.left_out),
            "histograms": {
                feature: [{"bias": bias, "queries": n} for bias, n in self.histogram(feature).items()]
                for feature in self.features
            },
            "most": {
                feature: {
                    name: rows.drop("population").to_dicts()
                    for name, rows in self.remarkable(feature).items()
                }
                for feature in self.features
            },
            "grids": {feature: self.grid(feature).to_dicts() for feature in self.features},
            "provenance": dict(self.provenance),
        }

    def frame(self) -> pl.DataFrame:
        """One row for each query and group."""
        return self.rows.drop("population")


def represent(
    results: Any,
    targets: Any,
    *,
    at: int = 10,
    short: str = "length",
    labels: Any = None,
    tally: Any = None,
    columns: Mapping[str, str] | None = None,
) -> Representation:
    """Representation bias of result lists: does the top n show each group as often as it should?

    Parameters
    ----------
    results
        Result lists with labels: a path (TSV or CSV with a header, JSONL, Parquet), a frame or rows with
        query, doc_id, rank and group (or gender, or label). Or a run (TREC file, dict), with `labels` or a
        `tally`.
    targets
        True shares: a path, a frame or rows with query and one column for each group (with two, one is
        enough: the other's target is 1 minus it), optionally a column population; a dict
        ``{query: {group: share}}``; or ``"full"``: the shares in the whole result list.
    at
        The cut-off n.
    short
        A list of fewer than n results is divided by its `length`; `paper` divides by n even then.
    labels, tally
        For results without labels: labels of documents, or a tally that they are inferred from.
    columns
        What columns of the results are called: ``{"group": "perceived_gender"}``.
    """
    refuse_after_fork()
    check_whole("at", at)
    check_choice("short", short, ("length", "paper"))
    ranked, how = _labelled_results(results, labels, tally, columns or {})
    group = ranked["group"]
    groups = ordered_groups(group.unique())
    if not groups:
        raise InputError("no result has a label", path=results if is_path(results) else None)
    lengths = ranked["query"].rle().struct.field("len").to_numpy().astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    query_ids = ranked["query"].gather(starts)
    top = np.arange(len(ranked)) - np.repeat(starts, lengths) < at

    def counts_of(features: Sequence[str], counted: NDArray[np.bool_] | bool) -> Ints:
        """How many of the results that count show each group, lists × groups."""
        hits = [(group == feature).fill_null(False).to_numpy() & counted for feature in features]
        return np.column_stack([np.add.reduceat(each, starts, dtype=np.int64) for each in hits])

    if isinstance(targets, str) and targets == FULL:
        shares = counts_of(groups, True) / lengths[:, None]
        given = Targets(query_ids, groups, shares, "the full result lists")
    else:
        given = read_targets(targets, groups)
    has_target = query_ids.is_in(given.query_ids.implode()).to_numpy()
    if not has_target.any():
        raise InputError(
            f"no query of the results has a target; results have {listing(query_ids, 2)}, "
            f"targets {listing(given.query_ids, 2)}"
        )
    features = given.groups
    n = (np.full(len(lengths), at) if short == "paper" else np.minimum(lengths, at))[:, None]
    counts, shares = counts_of(features, top), given.of(query_ids, features)
    rows = pl.DataFrame(
        {
            "query": query_ids.gather(np.repeat(np.arange(len(query_ids)), len(features))),
            "feature": [*features] * len(query_ids),
            "model": (counts / n).ravel(),
            "target": (achievable(shares, n, counts) / n).ravel(),
            "bias": representation_bias(counts, n, shares).ravel(),
        }
    ).filter(np.isfinite(shares).ravel())
    sizes = pl.DataFrame({"query": given.query_ids, "population": given.populations})
    rows = rows.join(sizes, on="query", how="left", maintain_order="left")
    measured = top & np.repeat(has_target, lengths)
    lists = int(has_target.sum())
    left_out = {"no target": len(query_ids) - lists, "no results": len(given.query_ids) - lists}
    return Representation(
        at=at,
        features=ordered_groups(rows["feature"].unique()),
        rows=rows,
        lists=lists,
        short=int((lengths[has_target] < at).sum()),
        unknown=float(group.is_null().to_numpy()[measured].mean()),
        labels=how,
        targets=given.how,
        left_out={reason: count for reason, count in left_out.items() if count},
        divisor="length" if short == "length" else "cut-off",
        provenance={
            "evenrank": evenrank.__version__,
            "results": fingerprint([ranked.select("query", "group")]),
            "targets": given.fingerprint,
        },
    )


def _labelled_results(
    results: Any, labels: Any, tally: Any, columns: Mapping[str, str]
) -> tuple[pl.DataFrame, str]:
    """Query and group of each result, list after list and best first, and where the groups come from."""
    for name in columns:
        check_choice("a column to map", name, tuple(_COLUMNS))
    names = {name: (columns[name],) if name in columns else known for name, known in _COLUMNS.items()}
    groups = None
    if labels is not None:
        groups = Labels.of(labels).one_attribute()
    elif tally is not None:
        from evenrank.text.tally import Tally

        groups = inferred_groups(Tally.of(tally))
    if groups is not None:
        del names["group"]
    if isinstance(results, Mapping) or (is_path(results) and _is_run(results, names["query"])):
        if groups is None:
            path = results if is_path(results) else None
            raise InputError("a run has no labels; give labels or a tally", path=path)
        frame = read_run(results).rename({"query_id": "query"})
    else:
        frame = _checked(read_table(results, names, part="scoreddocs"))
    if groups is None:
        group, how = normal_labels(frame["group"]), "given"
    else:
        group, how = groups.labels(frame["doc_id"]), groups.how
        if group.is_null().all():
            raise InputError("none of the results has a label; check that labels and results belong together")
    frame = frame.select("query", "rank", group.alias("group"), row=pl.int_range(pl.len()))
    return frame.sort(pl.col("row").min().over("query"), "rank"), how  # queries keep their order


def _checked(table: Table) -> pl.DataFrame:
    """Queries and documents are there, ranks are whole numbers, nothing is there twice."""
    if table.frame.is_empty():
        raise table.error("the results table has no rows")
    frame = table.frame.with_columns(
        table.ids("query"), table.ids("doc_id"), table.numbers("rank", whole=True)
    )
    table = replace(table, frame=frame)
    table.refuse(frame["rank"] < 1, "rank is less than 1")
    table.require_unique("query", "doc_id")
    table.require_unique("query", "rank")
    return frame


def _is_run(path: str | os.PathLike[str], query_names: Sequence[str]) -> bool:
    """Whether a file is a run in TREC format: its first line names no query column."""
    if is_parquet(path):
        return False
    first, _ = first_line(path)
    names = [name.strip().strip('"') for name in re.split("[\t,]", first)]
    return not {*query_names} & {*names} and len(first.split()) in (5, 6)


class CountInTop(NamedTuple):
    """What the value of a list depends on: how much of the group each document shows, n, and the target."""

    shown: NDArray[Any]
    n: int
    target: float


class _MB(AgainstRest):
    """Mean representation bias: the share of the top n that show a group, minus the share that should.

    The value of a query is β@n, in [−1, 1]: positive toward the group, negative against it, 0 where it is
    shown as often as n results allow. The mean over queries is MB, the mean of absolute values (`abs`) MAB
    and the standard deviation (`spread`) SB. A list of fewer than n documents is divided by its length. With
    labels as shares every share can be reached, and nothing is rounded to what n results allow. With two
    groups the first is meant unless `group` names one.

    Lipani, Piroi and Yilmaz 2021, Definition 2.4.
    """

    __name__ = NAME = "MB"
    SHORT_DESC = "Share of the top n that show a group, minus the share that should."
    MEANING = "The share of the top {k} that shows a group, minus the share that should show it."
    ORDER_MATTERS = False
    PREFERRED = "zero"
    UNDEFINED = "no target for the group"

    def per_query(self, lists: RankedLists) -> PerQuery:
        column = self.group(lists.groups)
        shown, target = lists.counts()[:, column], self.targets(lists)[:, column]
        entries, n = lists.top(self["cutoff"] or WHOLE_LIST)
        soft = shown.dtype.kind == "f"
        count = np.add.reduceat(shown[entries], np.cumsum(n) - n, dtype=np.float64 if soft else np.int64)
        values = count / n - target if soft else representation_bias(count, n, target)
        return PerQuery(values, undefined=self.undefined(lists))

    def count_in_top(self, lists: RankedLists, query: int) -> CountInTop | None:
        """What the value of a list depends on; None where it is undefined."""
        column = self.group(lists.groups)
        shown, targets = self.list_at(lists, query)
        if np.isnan(targets[column]):
            return None
        return CountInTop(shown[:, column], self.cut(len(shown)), float(targets[column]))


MB = register(_MB())
