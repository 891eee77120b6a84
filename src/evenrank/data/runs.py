"""Runs: a ranking per query, in the one order that everything relies on; read in pieces, and written.

A run has the columns ``query_id``, ``doc_id``, ``score``, ``rank``: best document first, query by query.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow.compute as pc

from evenrank.data import files, formats
from evenrank.data.read import path_of, read_pieces, read_qrels, read_table, refuse_after_fork
from evenrank.data.schema import (
    RUN_SCHEMA,
    SEQ,
    DuplicateCheck,
    Path,
    Table,
    show,
)
from evenrank.errors import InputError, check_choice, check_whole

Order = Literal["score", "rank"]

_PIECE = 1 << 20  # rows that are cut to the depth at a time


def read_run(x: Any, *, order: Order = "score", depth: int | None = None) -> pl.DataFrame:
    """A ranking per query: ``query_id``, ``doc_id``, ``score``, ``rank``, sorted by query and rank.

    Queries keep the order in which they first appear. Within a query the highest score comes first,
    and among equal scores (compared in double precision, as written) the greater doc_id as text: the
    rule of trec_eval. Ranks are counted anew from 1.

    Parameters
    ----------
    x
        A path (TREC: ``query_id Q0 doc_id rank score tag``, the tag may be missing throughout; Parquet), a
        frame, a dict ``{query_id: {doc_id: score}}``, rows, or an ir_datasets dataset with scored
        documents. A table that this function returned is returned as it is. A table with a column ``seq``
        has several rankings of a query: they come one after the other, and the column stays.
    order
        ``"rank"`` trusts the ranks in ``x`` instead: whole numbers, no two equal within a query. The
        scores are then replaced by −rank, so that whoever sorts by score gets the same order.
    depth
        Keep only so many documents of each query (of a table with ``seq``, all). A file is read in pieces, in
        memory for the rows that are kept and a hash of every row; all rows are checked.
    """
    refuse_after_fork()
    if order not in ("score", "rank"):
        check_choice("order", order, ("score", "rank"))
    if depth is not None:
        check_whole("depth", depth)
    if isinstance(x, pl.DataFrame) and _is_remembered(x):
        return _cut(x, depth)
    if has_sequences(x):
        return read_sequences(x)
    pieces: Callable[[], Iterable[Table]]  # a column that is not needed may be missing
    pieces = partial(read_pieces, x, formats.RUN, "scoreddocs", ["rank" if order == "score" else "score"])
    if path_of(x) is None:  # an iterator can be read once
        pieces = partial(iter, list(pieces()))
    return _cut(sort_run(_read_pieces(pieces, order, depth)), depth)


def _checked(rows: Table, order: Order) -> Table:
    """The ids, and the scores or ranks."""
    number = rows.numbers(order, whole=order == "rank")
    return replace(rows, frame=rows.frame.select(rows.ids("query_id"), rows.ids("doc_id"), number))


def _cut(frame: pl.DataFrame, depth: int | None) -> pl.DataFrame:
    if depth is None or (frame["rank"] <= depth).all():
        return frame
    return _remember(frame.filter(pl.col("rank") <= depth))


def _read_pieces(pieces: Callable[[], Iterable[Table]], order: Order, depth: int | None) -> pl.DataFrame:
    """The rows of all pieces, checked; with a `depth` at least the best so many of each query."""
    kept: list[pl.DataFrame] = []
    checks = [DuplicateCheck("query_id", "doc_id")]
    if order == "rank":
        checks.append(DuplicateCheck("query_id", "rank"))
    limit = 0  # rows that are kept before they are cut to the depth together
    for piece in pieces():
        rows = _checked(piece, order)
        kept.append(rows.frame)
        for check in checks:
            check.add(*(rows.frame[key] for key in check.keys))
        if depth is not None and sum(map(len, kept)) > limit + _PIECE:
            kept = [_sorted(pl.concat(kept)).filter(pl.col("place") <= depth).drop("place")]
            limit = 2 * len(kept[0])
    frame = pl.concat(kept, rechunk=True)
    rows = replace(rows, frame=frame)
    rows.require_rows("run")
    for check in checks:
        check.finish(lambda: (_checked(piece, order) for piece in pieces()))
    return frame


# --- Order -----------------------------------------------------------------------------------------------


def sort_run(rows: pl.DataFrame) -> pl.DataFrame:
    """Checked rows, no pair of query and document twice, as a run."""
    frame = _sorted(rows)
    if "rank" in frame.columns:
        frame = frame.with_columns(score=-pl.col("place").cast(pl.Float64))
    frame = frame.select("query_id", "doc_id", "score", rank="place")
    return _remember(frame if frame.schema == RUN_SCHEMA else frame.cast(RUN_SCHEMA))


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows sorted by query (as they first appear), then score and doc_id, or rank; with their place."""
    stretch = rows["query_id"].rle_id()
    heads = rows["query_id"].filter(_starts(stretch))
    codes = pl.Series("query", pl.from_arrow(pc.dictionary_encode(heads.to_arrow()).indices))
    rows = rows.with_columns(codes.gather(stretch))
    if "rank" in rows.columns:
        rows = rows.sort("query", "rank")
    else:
        rows = rows.sort("query", "score", "doc_id", descending=[False, True, True])
    at = np.arange(len(rows))
    heads_at = np.where(_starts(rows["query"]).to_numpy(), at, 0)
    place = pl.Series("place", at - np.maximum.accumulate(heads_at) + 1, dtype=pl.Int64)
    return rows.drop("query").with_columns(place)


def _starts(column: pl.Series) -> pl.Series:
    """Where a value differs from the one before."""
    return column.ne_missing(column.shift(1))


# Runs that are known to be in order, each with a copy that shares its memory: sorting and checking a million
# rows again takes longer than measuring them.
_KNOWN: dict[int, tuple[weakref.ref[pl.DataFrame], pl.DataFrame]] = {}


def _remember(frame: pl.DataFrame) -> pl.DataFrame:
    frame = pl.DataFrame(frame.get_columns())  # a column of one value gets its own memory
    key = id(frame)
    _KNOWN[key] = weakref.ref(frame, lambda _: _KNOWN.pop(key, None)), frame.clone()
    return frame


def _is_remembered(frame: pl.DataFrame) -> bool:
    """Did :func:`read_run` return this very frame, and has nothing in it changed since?"""
    known, copy = _KNOWN.get(id(frame), (None, None))
    return copy is not None and known is not None and known() is frame and frame.equals(copy)


# --- Several rankings of a query -------------------------------------------------------------------------


def has_sequences(x: Any) -> bool:
    """Whether a frame, or the header of a file, names the column ``seq``."""
    if isinstance(x, str | os.PathLike):
        names = formats.column_names(x) if os.path.isfile(x) else []  # noqa: PTH113
    else:
        names = x.collect_schema().names() if isinstance(x, pl.LazyFrame) else getattr(x, "columns", [])
    return bool({*SEQ} & {str(name).lower() for name in names})


def read_sequences(x: Any) -> pl.DataFrame:
    """query_id, doc_id, score, rank and seq: the rankings of a query one after the other.

    Ranks are counted through all of them, so that every query is one list; scores are −rank. Within a
    ranking the order is that of a column rank, else of a column score (among equal ones the greater id comes
    first, as trec_eval has it), else that of the rows.
    """
    rows = read_table(x, {**formats.RUN, "seq": SEQ}, optional=("rank", "score"))
    rows.require_rows("run")
    ids = [rows.ids(name) for name in ("query_id", "seq", "doc_id")]
    if "rank" in rows.frame.columns:
        by = rows.numbers("rank", whole=True)
    elif "score" in rows.frame.columns:
        by = -rows.numbers("score")
    else:
        by = pl.int_range(len(rows.frame), eager=True)
    rows.require_unique("query_id", "seq", "doc_id")
    first = pl.col("at").min()  # where a query, and one of its rankings, appears first
    frame = pl.DataFrame([*ids, by.alias("by")]).with_row_index("at")
    frame = frame.with_columns(query=first.over("query_id"), ranking=first.over("query_id", "seq"))
    frame = frame.sort("query", "ranking", "by", "doc_id", descending=[False, False, False, True])
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id")
    return frame.select("query_id", "doc_id", score=-rank.cast(pl.Float64), rank=rank, seq="seq")


# --- Reference runs, and writing -------------------------------------------------------------------------


def perfect_run(x: Any) -> pl.DataFrame:
    """The best possible run: all and only the relevant documents of each query, highest grade first.

    `x` is anything :func:`read_qrels` takes. Queries without a relevant document are left out.
    """
    relevant = read_qrels(x).filter(pl.col("relevance") > 0)
    return sort_run(relevant.select("query_id", "doc_id", score=pl.col("relevance").cast(pl.Float64)))


def random_run(x: Any, *, seed: int = 0) -> pl.DataFrame:
    """The judged documents of each query in random order: what a ranker that knows nothing would do.

    `x` is anything :func:`read_qrels` takes. The same judgments and seed give the same run, whatever the
    order of the rows.
    """
    judged = read_qrels(x)
    scores = np.empty(len(judged))
    by_ids = judged.select(pl.arg_sort_by("query_id", "doc_id")).to_series().to_numpy()
    scores[by_ids] = np.random.default_rng(seed).random(len(judged))
    return sort_run(judged.select("query_id", "doc_id", score=pl.Series(scores)))


def check_run_name(name: str) -> None:
    """Refuse what cannot stand in the last column of a run."""
    if not re.fullmatch(r"[^\s]+", name):
        raise InputError(f"the name of a run may not be empty or hold blanks: {show(name)}")


def write_run(x: Any, path: Path, *, name: str) -> None:
    """Write a run in TREC format, whole or not at all; ``.gz`` and ``.zst`` are compressed.

    The scores fall strictly within each query even in single precision, which trec_eval compares in:
    sorting by score restores this order in any tool. ``name`` is the tag in the last column.
    """
    check_run_name(name)
    frame = read_run(x)
    for column in ("query_id", "doc_id"):
        spaced = frame[column].str.contains(r"\s")
        if spaced.any():
            bad = frame[column].filter(spaced)[0]
            raise InputError(f"{column} {show(bad)} holds a blank, which a TREC run cannot", path=path)
    q0, tag = pl.lit("Q0").alias("q0"), pl.lit(name).alias("tag")
    lines = frame.select("query_id", q0, "doc_id", "rank", falling(frame).cast(pl.String), tag)
    with files.writing(path) as out:
        lines.write_csv(out, include_header=False, separator=" ", quote_style="never")


def falling(run: pl.DataFrame) -> pl.Series:
    """Scores that fall strictly within each query, in single precision.

    They are the scores of the run as float32; one that does not fall takes the next smaller float32
    after the one above. A query whose scores do not fit into single precision gets n, n − 1, …, 1.
    """
    rank = run["rank"].to_numpy()
    heads = np.flatnonzero(rank == 1)
    query = np.cumsum(rank == 1) - 1
    with np.errstate(over="ignore"):
        single = run["score"].to_numpy().astype(np.float32)
    # The bits of floats, negative ones mirrored, are integers in the same order. On them "at most one
    # less than the one above" is a running minimum of key + rank; the last term keeps queries apart.
    bits = single.view(np.int32).astype(np.int64)
    keys = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))
    keys = np.minimum.accumulate(keys + rank - (query << 40)) - rank + (query << 40)
    bits = np.where(keys >= 0, keys, -keys | 0x80000000).astype(np.uint32)
    single = bits.view(np.float32)
    if len(heads):
        unfit = np.logical_or.reduceat(~np.isfinite(single), heads)[query]
        last = np.append(heads[1:], len(rank))[query]
        single = np.where(unfit, (last - np.arange(len(rank))).astype(np.float32), single)
    return pl.Series("score", single, dtype=pl.Float32)
