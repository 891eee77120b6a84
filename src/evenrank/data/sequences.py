"""Runs with several rankings of a query: a column `seq` tells them apart."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from evenrank.data import door, files, parquet
from evenrank.data.columns import DOC_ID, QUERY_ID, RANK, SCORE, finite_numbers, listing, whole_numbers

SEQ = ("seq", "seq_no", "sequence")
"""What the column may be called."""


def has_sequences(x: Any) -> bool:
    """Whether a frame, or the header of a file, names the column."""
    if isinstance(x, str | os.PathLike):
        return os.path.isfile(x) and bool({*SEQ} & {*_header(x)})  # noqa: PTH113
    names = x.collect_schema().names() if isinstance(x, pl.LazyFrame) else getattr(x, "columns", ())
    return bool({*SEQ} & {str(name).lower() for name in names})


def _header(path: str | os.PathLike[str]) -> list[str]:
    """The names in the first line of a text file, or of the columns of a Parquet file."""
    if files.magic(path) == parquet.MAGIC:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return [name.lower() for name in pq.read_schema(path).names]
        except (pa.ArrowException, OSError):
            return []  # whoever reads the rows says what is wrong with them
    first = next(iter(files.raw_blocks(path)), None)
    line = b"" if first is None else first.tobytes()[:1000].split(b"\n", 1)[0]
    text = line.decode(errors="replace").removeprefix("\ufeff").lower().replace(",", "\t")
    return [name.strip().strip('"') for name in text.split("\t")]


def read_sequences(x: Any) -> pl.DataFrame:
    """query_id, doc_id, score, rank and seq: the rankings of a query one after the other.

    Ranks are counted through all of them, so that every query is one list; scores are −rank. Within a ranking
    the order is that of a column rank, else of a column score, else that of the rows.
    """
    table = door.table(x)
    frame = table.frame.rename({name: name.lower() for name in table.frame.columns})
    names = {}
    for name, known in (("query_id", QUERY_ID), ("seq", SEQ), ("doc_id", DOC_ID)):
        found = next((each for each in known if each in frame.columns), None)
        if found is None:
            raise table.error(f"a run with rankings by seq needs {name}; found: {listing(frame.columns)}")
        names[found] = name
    rank = next((each for each in RANK if each in frame.columns), None)
    score = next((each for each in SCORE if each in frame.columns), None)
    if frame.is_empty():
        raise table.error("the run table has no rows")
    by: list[pl.Series] = []
    if rank is not None:
        by = [whole_numbers(frame[rank], path=table.path, line=table.line).alias("by")]
    elif score is not None:
        by = [-finite_numbers(frame[score], path=table.path, line=table.line).alias("by")]
    rows = frame.select(pl.col(old).cast(pl.String).alias(new) for old, new in names.items())
    for name in names.values():
        table.refuse(rows[name].fill_null("") == "", f"{name} is empty")
    twice = ~rows.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    table.refuse(twice, lambda row: f"document {rows['doc_id'][row]!r} occurs twice in one ranking")
    rows = rows.with_columns(by or [pl.Series("by", range(len(rows)))])
    first = rows.with_row_index("at").with_columns(
        pl.col("at").min().over("query_id").alias("query"),
        pl.col("at").min().over("query_id", "seq").alias("ranking"),
    )
    tie = {
        "descending": [False, False, False, True]
    }  # among equal scores the greater id, as trec_eval has it
    made = first.sort("query", "ranking", "by", "doc_id", **tie)  # type: ignore[arg-type]
    place = pl.int_range(1, pl.len() + 1).over("query_id").cast(pl.Int64)
    return made.select(
        "query_id", "doc_id", (-place).cast(pl.Float64).alias("score"), place.alias("rank"), "seq"
    )
