"""Collections and tables as Parquet files; only the columns that are needed are read."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import xxhash

from evenrank.data import files
from evenrank.data.columns import (
    ROWS,
    TITLE,
    Block,
    batch_of,
    id_array,
    join_fields,
    pick,
    pick_fields,
    text_array,
)
from evenrank.errors import InputError, NoDocumentsError

MAGIC = b"PAR1"


def _open(path: str | os.PathLike[str]) -> Any:
    from pyarrow import parquet

    # Reading page by page keeps memory flat where a row group holds a million documents.
    return parquet.ParquetFile(
        path, pre_buffer=False, buffer_size=1 << 20, memory_map=False, page_checksum_verification=True
    )


SEAL = b"evenrank.seal"


def seal(schema: pa.Schema, rows: int, facts: str) -> dict[str, str]:
    """What to store beside the facts about a table, so that a flipped bit in any of it is found.

    Checksums of pages (``write_page_checksum=True``) tell what stands in the columns; this one tells what
    they are called, how many rows they have, and the facts themselves.
    """
    said = json.dumps([[[field.name, str(field.type)] for field in schema], rows, facts])
    return {SEAL.decode(): xxhash.xxh3_128_hexdigest(said.encode())}


def sealed(path: str | os.PathLike[str], key: bytes) -> tuple[pa.Table, str | None]:
    """A table of ours and the facts stored under a key, compared with all checksums that it has."""
    from pyarrow import parquet

    with files.reading(path), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        stored = file.metadata.metadata or {}
        table = file.read()
        table.validate(full=True)
    facts = stored[key].decode(errors="replace") if key in stored else None
    made = seal(table.schema, len(table), facts or "")[SEAL.decode()].encode()
    if stored.get(SEAL, made) != made:
        raise InputError("damaged: its names or facts do not fit their checksum; make it again", path=path)
    return table, facts


def columns(
    path: str | os.PathLike[str], *, ids: Sequence[str], fields: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The names of the id column and the text columns."""
    with files.reading(path), _open(path) as file:
        found = file.schema_arrow.names
        if not file.metadata.num_rows:
            raise NoDocumentsError("the file has no rows", path=path)
    return pick(found, ids, path=path), tuple(pick_fields(found, fields, path=path))


def row_parts(path: str | os.PathLike[str], size: int) -> list[files.Part]:
    """Groups of rows that have about ``size`` bytes together: the first, and the one behind the last."""
    with files.reading(path), _open(path) as file:
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
    cuts, filled = [0], 0
    for group, taken in enumerate(sizes):
        if filled and filled + taken > size:
            cuts.append(group)
            filled = 0
        filled += taken
    return list(zip(cuts, [*cuts[1:], len(sizes)], strict=True))


def blocks(
    path: str | os.PathLike[str], id_column: str, fields: tuple[str, ...], part: files.Part | None = None
) -> Iterator[Block]:
    """The collection, or a part of it, 8,192 rows a block. Pages are decoded here, texts in the block."""
    with files.reading(path), _open(path) as file:
        about = file.metadata
        share = files.require_regular(path) / max(1, about.num_rows)
        first, behind = part or (0, about.num_row_groups)
        rows = sum(about.row_group(group).num_rows for group in range(first))
        groups = list(range(first, behind))
        for batch in file.iter_batches(
            batch_size=ROWS, row_groups=groups, columns=[id_column, *fields], use_threads=False
        ):
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


def frame(path: str | os.PathLike[str], wanted: Collection[str] | None = None) -> pl.DataFrame:
    """A Parquet file that fits in memory as a table.

    Of columns that are not ``wanted`` only the name is read: their cells are null.
    """
    with files.reading(path), _open(path) as file:
        found, read = _columns_of(file, wanted, path)
        return _framed(file.read(columns=read, use_threads=False), found, path)


def frames(path: str | os.PathLike[str], wanted: Collection[str], *, rows: int) -> Iterator[pl.DataFrame]:
    """The wanted columns of a Parquet file, so many rows at a time."""
    with files.reading(path), _open(path) as file:
        _, read = _columns_of(file, wanted, path)
        for batch in file.iter_batches(rows, columns=read, use_threads=False):
            yield _framed(pa.Table.from_batches([batch]), read, path)


def _columns_of(file: Any, wanted: Collection[str] | None, path: Any) -> tuple[list[str], list[str]]:
    """The columns of a file, none twice, and those to be read."""
    found = file.schema_arrow.names
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise InputError(f"column {twice[0]} is there twice", path=path)
    return found, [name for name in found if wanted is None or name in wanted]


def _framed(table: pa.Table, found: list[str], path: Any) -> pl.DataFrame:
    table.validate(full=True)
    read = {name: _series(table.column(name), name, path) for name in table.column_names}
    empty = pl.Series("", [None]).new_from_index(0, len(table))
    return pl.DataFrame([read.get(name, empty.alias(name)) for name in found])


def _series(column: pa.ChunkedArray, name: str, path: str | os.PathLike[str]) -> pl.Series:
    try:
        return pl.Series(name, pl.from_arrow(column))
    # Polars panics at some types and values, outside of the hierarchy of Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, ValueError) as error:
        raise InputError(
            f"column {name} holds {column.type}, which cannot be read; make it text or numbers", path=path
        ) from error
