"""Collections and tables as Parquet files; only the columns that are needed are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from evenrank.errors import InputError
from evenrank.formats import files
from evenrank.formats.blocks import ROWS, Block, batch_of, join_fields
from evenrank.formats.columns import TITLE, id_array, pick, pick_fields, text_array

MAGIC = b"PAR1"


def _open(path: str | os.PathLike[str]) -> Any:
    from pyarrow import parquet

    # Reading page by page keeps memory flat where a row group holds a million documents.
    return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, memory_map=False)


def columns(
    path: str | os.PathLike[str], *, ids: Sequence[str], fields: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The names of the id column and the text columns."""
    with files.reading(path), _open(path) as file:
        found = file.schema_arrow.names
        if not file.metadata.num_rows:
            raise InputError("the file has no rows", path=path)
    return pick(found, ids, path=path), tuple(pick_fields(found, fields, path=path))


def blocks(path: str | os.PathLike[str], id_column: str, fields: tuple[str, ...]) -> Iterator[Block]:
    """The collection, 8,192 rows a block. Pages are decoded here, texts are made in the block."""
    with files.reading(path), _open(path) as file:
        rows, share = 0, files.require_regular(path) / max(1, file.metadata.num_rows)
        for batch in file.iter_batches(batch_size=ROWS, columns=[id_column, *fields], use_threads=False):
            size = int((rows + len(batch)) * share) - int(rows * share)
            yield Block(partial(as_documents, batch, id_column, fields, rows, path), size)
            rows += len(batch)


def as_documents(
    batch: pa.RecordBatch,
    id_column: str,
    fields: Sequence[str],
    row: int = 0,
    path: str | os.PathLike[str] | None = None,
) -> pa.RecordBatch:
    """A batch with any columns as a batch of ``doc_id`` and ``text``; ``row`` is its first row's number."""
    ids = id_array(batch.column(id_column), id_column, row=row, path=path)
    texts = []
    for field in fields:
        text = text_array(batch.column(field), field, row=row, path=path)
        if text.null_count and (field != TITLE or len(fields) == 1):
            bad = row + text.is_null().index(True).as_py() + 1
            raise InputError(f"row {bad}: {field} is missing", path=path)
        texts.append(text)
    with files.reading(path):  # 8,192 long texts may be more than an Arrow array holds
        return batch_of(ids, join_fields(texts))


def frame(path: str | os.PathLike[str]) -> pl.DataFrame:
    """A Parquet file that fits in memory as a table, whatever its columns."""
    with files.reading(path), _open(path) as file:
        table = file.read(use_threads=False)
        table.validate(full=True)
        return pl.DataFrame(pl.from_arrow(table))
