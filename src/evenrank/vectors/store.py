"""Our own file of vectors: an Arrow file that is mapped into memory, so that it opens at once.

Columns ``word`` (string) and ``vector`` (a list of as many float32 as there are dimensions), uncompressed,
in one batch; the provenance stands in the schema. Polars, DuckDB, R and whatever else speaks Arrow read
it too.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pyarrow as pa

from evenrank.data.files import reading, writing
from evenrank.errors import InputError
from evenrank.vectors.space import Duplicates, Vectors, checked, numbers

MAGIC = b"ARROW1"
_KEY = b"evenrank"


def write_store(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Write the store; it appears under its name when it is complete."""
    values = pa.array(np.ascontiguousarray(vectors.matrix).ravel())
    rows = pa.FixedSizeListArray.from_arrays(values, vectors.dimension)
    facts = json.dumps(vectors.provenance, ensure_ascii=False)
    schema = pa.schema([("word", pa.string()), ("vector", rows.type)], metadata={_KEY: facts})
    batch = pa.RecordBatch.from_arrays([vectors.word_array, rows], schema=schema)
    with writing(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)


def read_store(path: str | os.PathLike[str], *, duplicates: Duplicates = "error") -> Vectors:
    """Open a store without reading it. A foreign Arrow file with its columns is read and checked."""
    with reading(path), pa.memory_map(os.fspath(path)) as file:
        table = pa.ipc.open_file(file).read_all().combine_chunks()
        for column in table.columns:  # a damaged file must not send anybody to a place outside of it
            column.validate(full=not pa.types.is_fixed_size_list(column.type))
    words, rows = _columns(table, path)
    matrix = numbers(rows.flatten()).reshape(len(rows), -1)
    facts = _facts(table, path)
    if facts is not None:
        return Vectors.trusted(words, matrix, facts)
    return checked(words.to_pylist(), matrix.copy(), duplicates=duplicates, path=path)


def _columns(table: pa.Table, path: str | os.PathLike[str]) -> tuple[pa.Array, pa.Array]:
    names = table.schema.names
    if "word" not in names or "vector" not in names:
        raise InputError(f"expected the columns word and vector, found: {', '.join(names)}", path=path)
    kind = table.schema.field("vector").type
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != pa.float32() or not len(table):
        raise InputError("the column vector should hold lists of float32, all of one length", path=path)
    words, rows = table.column("word").chunk(0), table.column("vector").chunk(0)
    if words.type != pa.string():  # other programs have other kinds of strings
        with reading(path):
            words = words.cast(pa.string())
    if words.null_count or rows.null_count or rows.flatten().null_count:
        raise InputError("every row should hold a word and its numbers, none of them missing", path=path)
    return words, rows


def _facts(table: pa.Table, path: str | os.PathLike[str]) -> dict[str, Any] | None:
    stored = (table.schema.metadata or {}).get(_KEY)
    if stored is None:
        return None
    try:
        return dict(json.loads(stored))
    except ValueError:
        raise InputError(
            "the provenance in the file is not readable; write the file again", path=path
        ) from None
