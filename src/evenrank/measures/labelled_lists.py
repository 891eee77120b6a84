"""`represent`: labelled result lists and targets, out of files, frames or dicts, to representation bias."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl

import evenrank
from evenrank.data.read import fingerprint, is_path, read_table
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, Table, listing, show
from evenrank.errors import InputError, check_whole
from evenrank.measures.document_groups import (
    FULL,
    GROUP,
    QUERY,
    UNKNOWN,
    DocumentGroups,
    Targets,
    given_groups,
    inferred_groups,
    normal_groups,
    ordered_groups,
    read_targets,
)
from evenrank.measures.representation import FeatureBias, Representation, achievable, representation_bias
from evenrank.parallel import refuse_after_fork

RANK = ("rank", "position")
_COLUMNS: Mapping[str, Sequence[str]] = {"query": QUERY, "doc_id": DOC_ID, "rank": RANK, "group": GROUP}

Lists = dict[str, list[str | None]]
Path = str | os.PathLike[str]


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
    """Representation bias of result lists: does the top n show each feature value as often as it should?

    Parameters
    ----------
    results
        Result lists with labels: a path (TSV or CSV with a header, JSONL, Parquet), a frame or rows with
        query, doc_id, rank and group (or gender, or label). Or a run (TREC file, dict), with `labels` or a
        `tally`.
    targets
        True shares: a path, a frame or rows with query and one column for each feature value (with two,
        one is enough: the other's target is 1 minus it), optionally a column population; a dict
        ``{query: {feature: share}}``; or ``"full"``: the shares in the whole result list.
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
    if short not in ("length", "paper"):
        raise InputError(f"short is {show(short)}; it must be 'length' or 'paper'")
    lists, how = _lists(results, _groups(labels, tally), columns or {})
    shown = ordered_groups(label for values in lists.values() for label in values)
    if not shown:
        raise InputError("no result has a label", path=results if is_path(results) else None)
    wanted = (
        _full_targets(lists, shown)
        if isinstance(targets, str) and targets == FULL
        else read_targets(targets, shown)
    )
    features = ordered_groups([*shown, *wanted.given])
    wanted = wanted.completed(features)
    features = tuple(f for f in features if any(f in shares for shares in wanted.shares.values()))
    both = [query for query in lists if query in wanted.shares]
    if not both:
        raise InputError(
            f"no query of the results has a target; results have {listing(lists, 2)}, "
            f"targets {listing(wanted.shares, 2)}"
        )
    measured = {query: lists[query] for query in both}
    top = [label for values in measured.values() for label in values[:at]]
    left_out = {"no target": len(lists) - len(both), "no results": len(wanted.shares) - len(both)}
    return Representation(
        at=at,
        features=features,
        rows=tuple(_biases(measured, wanted, features, at, short)),
        lists=len(measured),
        short=sum(len(values) < at for values in measured.values()),
        unknown=sum(label is None for label in top) / len(top),
        labels=how,
        targets=wanted.how,
        left_out={reason: count for reason, count in left_out.items() if count},
        divisor="length" if short == "length" else "cut-off",
        provenance=_provenance(lists, wanted, features),
    )


def _biases(
    lists: Lists, targets: Targets, features: tuple[str, ...], at: int, short: str
) -> Iterator[FeatureBias]:
    """β@n of each query and feature value that has a target; results without a label count in n."""
    for query, shown in lists.items():
        n = at if short == "paper" else min(at, len(shown))
        for feature in features:
            target = targets.shares[query].get(feature)
            if target is None:
                continue
            count = shown[:at].count(feature)
            wanted = Fraction(achievable(target, n, count), n)
            size = (targets.populations or {}).get(query)
            bias = representation_bias(count, n, target)
            yield FeatureBias(query, feature, Fraction(count, n), wanted, bias, n, size)


def _provenance(lists: Lists, targets: Targets, features: tuple[str, ...]) -> dict[str, Any]:
    """Version, and fingerprints of the labels in their order and of the targets."""
    shown = [(query, label or UNKNOWN) for query, values in lists.items() for label in values]
    wanted = [
        (query, feature, str(shares[feature]))
        for query, shares in targets.shares.items()
        for feature in features
        if feature in shares
    ]
    frames = (pl.DataFrame(shown, orient="row"), pl.DataFrame(wanted, orient="row"))
    return {
        "evenrank": evenrank.__version__,
        "results": fingerprint([frames[0]]),
        "targets": fingerprint([frames[1]]),
    }


def _full_targets(lists: Lists, features: tuple[str, ...]) -> Targets:
    """The shares in the whole lists."""
    shares = {
        query: {feature: Fraction(values.count(feature), len(values)) for feature in features}
        for query, values in lists.items()
    }
    return Targets(shares, features, "the full result lists")


def _groups(labels: Any, tally: Any) -> DocumentGroups | None:
    if labels is not None and tally is not None:
        raise InputError("labels and a tally are given; give one of them")
    if labels is not None:
        return given_groups(labels)
    if tally is None:
        return None
    from evenrank.text.tally import Tally

    return inferred_groups(Tally.of(tally))


def _lists(results: Any, groups: DocumentGroups | None, columns: Mapping[str, str]) -> tuple[Lists, str]:
    """The label of each result, list by list, and where the labels come from."""
    for name in columns:
        if name not in _COLUMNS:
            raise InputError(f"there is no column {name!r} to map; one of {', '.join(_COLUMNS)}")
    names = {name: (columns[name],) if name in columns else known for name, known in _COLUMNS.items()}
    if groups is not None:
        del names["group"]
    if isinstance(results, Mapping) or (is_path(results) and _is_run(results, names["query"])):
        if groups is None:
            path = results if is_path(results) else None
            raise InputError("a run has no labels; give labels or a tally", path=path)
        frame = read_run(results).select(pl.col("query_id").alias("query"), "doc_id", "rank")
    else:
        frame = _checked(read_table(results, names, part="scoreddocs"))
    labels: list[str | None]
    if groups is None:
        labels, how = normal_groups(frame["group"].cast(pl.String).to_list()), "given"
    else:
        labels, how = _looked_up(frame["doc_id"], groups), groups.how
    frame = frame.with_columns(pl.Series("group", labels, dtype=pl.String))
    ranked = frame.sort("rank").group_by("query", maintain_order=True).agg("group")
    lists: Lists = dict(ranked.iter_rows())
    return {query: lists[query] for query in frame["query"].unique(maintain_order=True)}, how


def _checked(table: Table) -> pl.DataFrame:
    """Queries and documents are there, ranks are whole numbers, nothing is there twice."""
    if table.frame.is_empty():
        raise table.error("the results table has no rows")
    frame = table.frame.with_columns(
        pl.col("query", "doc_id").cast(pl.String), table.numbers("rank", whole=True)
    )
    table = replace(table, frame=frame)
    for name in ("query", "doc_id"):
        table.refuse(frame[name].fill_null("") == "", f"{name} is empty")
    table.refuse(frame["rank"] < 1, "rank is less than 1")
    table.require_unique("query", "doc_id")
    table.require_unique("query", "rank")
    return frame


def _is_run(path: Path, query_names: Sequence[str]) -> bool:
    """Whether a file is a run in TREC format: its first line names no query column."""
    from evenrank.data.formats import column_names, first_line, is_parquet

    if is_parquet(path) or {*query_names} & {*column_names(path)}:
        return False
    return len(first_line(path)[0].split()) in (5, 6)


def _looked_up(doc_ids: pl.Series, groups: DocumentGroups) -> list[str | None]:
    if groups.soft:
        raise InputError("these labels are shares; represent counts results that show one feature value")
    label: dict[str, str] = {}
    for group in groups.groups:
        label |= dict.fromkeys(groups.frame.filter(pl.col(group) == 1)["doc_id"].to_list(), group)
    labels = [label.get(doc_id) for doc_id in doc_ids.to_list()]
    if not any(labels):
        raise InputError("none of the results has a label; check that labels and results belong together")
    return labels
