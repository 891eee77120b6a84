"""Collections that are not files: frames, dicts, iterators of rows, ir_datasets."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.blocks import ROWS, SCHEMA, Block
from evenrank.data.collection import Docs
from evenrank.data.columns import BODY, DOC_ID, TITLE, id_array, pick, pick_fields, show
from evenrank.data.door import is_pandas, pandas_column, row_values, text_values
from evenrank.data.parquet import as_documents
from evenrank.errors import InputError

Rows = list[Any]


def docs_of_frame(frame: Any, *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    """A Polars, pandas or Arrow table. Slices are converted one by one: a whole column costs more."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    found = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    id_column = pick(found, (id_field,) if id_field else DOC_ID)
    columns = pick_fields(found, fields)
    chosen = frame[[id_column, *columns]] if is_pandas(frame) else frame.select([id_column, *columns])

    viewed = isinstance(chosen, pl.DataFrame) and chosen.dtypes == [pl.String, pl.String]

    def read(start: int) -> pa.RecordBatch:
        if viewed:
            return _viewed(chosen.slice(start, ROWS), id_column, columns[0], start)
        return as_documents(_arrow(chosen, start), id_column, columns, start)

    def blocks() -> Iterator[Block]:
        for start in range(0, len(chosen), ROWS):
            yield Block(partial(read, start), 0)

    return Docs(name, blocks, frozen=isinstance(frame, (pl.DataFrame, pa.Table)))


def _viewed(part: pl.DataFrame, id_column: str, column: str, start: int) -> pa.RecordBatch:
    """Ids, and texts as Polars has them: views, known to be UTF-8, which nobody needs to copy."""
    ids = part[id_column].to_arrow(compat_level=pl.CompatLevel.oldest())
    lengths = np.diff(np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1])
    if ids.null_count or not lengths.all():
        id_array(ids, id_column, row=start)  # says which
    ids = ids.cast(pa.string())
    if part[column].null_count():
        bad = start + part[column].is_null().arg_max() + 1  # type: ignore[operator]
        raise InputError(f"row {bad}: {column} is missing")
    texts = part[column].to_arrow(compat_level=pl.CompatLevel.newest())
    return pa.RecordBatch.from_arrays([ids, texts], ["doc_id", "text"])


def _arrow(frame: Any, start: int) -> pa.RecordBatch:
    if is_pandas(frame):
        part = frame.iloc[start : start + ROWS]
        return pa.record_batch({name: pandas_column(part[name]) for name in part.columns})
    table = frame.slice(start, ROWS)
    if isinstance(table, pl.DataFrame):
        table = table.to_arrow(compat_level=pl.CompatLevel.oldest())
    return pa.record_batch({name: _one_chunk(table.column(name)) for name in table.column_names})


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def docs_of_rows(rows: Iterable[Any], *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    """A mapping from id to text, or rows: ``(id, text)``, dicts, named tuples.

    What can be iterated only once is first copied into a temporary file, which lives as long as the
    handle: memory stays flat, and a second pass is possible.
    """
    again: Callable[[], Iterator[Any]]
    if isinstance(rows, Mapping):
        again = partial(iter, rows.items())
    elif iter(rows) is rows:
        return _spooled(rows, fields=fields, id_field=id_field, name=name)
    else:
        again = partial(iter, rows)
    return Docs(name, partial(_row_blocks, again, fields, id_field))


def _row_blocks(
    again: Callable[[], Iterator[Any]], fields: Sequence[str], id_field: str | None
) -> Iterator[Block]:
    rows, start = again(), 0
    while part := list(islice(rows, ROWS)):
        yield Block(partial(_documents, part, start, fields, id_field), 0)
        start += len(part)


def _documents(rows: Rows, start: int, fields: Sequence[str], id_field: str | None) -> pa.RecordBatch:
    names = (id_field,) if id_field else DOC_ID
    ids, texts = [], []
    for row, item in enumerate(rows, start=start + 1):
        try:
            doc_id, text = _document(item, names, fields)
        except InputError as error:
            raise InputError(f"row {row}: {error.message}") from None
        ids.append(doc_id)
        texts.append(text)
    columns = {"doc_id": text_values(ids, "doc_id"), "text": text_values(texts, "text")}
    return as_documents(pa.record_batch(columns), "doc_id", ["text"], start)


def _document(item: Any, names: Sequence[str], fields: Sequence[str]) -> tuple[Any, Any]:
    if (isinstance(item, tuple) and not hasattr(item, "_fields")) or isinstance(item, list):
        if len(item) != 2:
            raise InputError(f"{len(item)} values instead of (doc_id, text)")
        doc_id, item = item
        if not isinstance(item, Mapping):
            return doc_id, item
        return doc_id, _joined(item, pick_fields(list(item), fields))
    values = row_values(item)
    doc_id = values[pick(list(values), names)]
    if not {*BODY, *fields} - {TITLE} & set(values) and hasattr(item, "default_text"):
        return doc_id, item.default_text()
    return doc_id, _joined(values, pick_fields(list(values), fields))


def _joined(values: Mapping[str, Any], fields: Sequence[str]) -> str:
    parts = []
    for field in fields:
        value = values[field]
        if not (isinstance(value, str) or (value is None and field == TITLE and len(fields) > 1)):
            raise InputError(f"{field} is {show(value)}; it must be text")
        parts.append(value)
    return " ".join(filter(None, parts))


def _spooled(rows: Iterator[Any], *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    with tempfile.NamedTemporaryFile(prefix="evenrank-", suffix=".arrow", delete=False) as file:
        path = Path(file.name)
        try:
            with pa.ipc.new_stream(file, SCHEMA) as out:
                for block in _row_blocks(lambda: rows, fields, id_field):
                    out.write_batch(block.read())
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def blocks() -> Iterator[Block]:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                yield Block(lambda batch=batch: batch, 0)  # type: ignore[misc]

    docs = Docs(name, blocks)
    weakref.finalize(docs, path.unlink, missing_ok=True)
    return docs
