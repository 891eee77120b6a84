"""Docs: a collection that need not fit in memory, as a handle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data import files, jsonl, parquet, tsv
from evenrank.data.blocks import SCHEMA, Block
from evenrank.data.columns import DOC_ID
from evenrank.errors import InputError


class Docs:
    """The documents of a collection: read as often as needed, never held whole.

    Made by :func:`evenrank.data.tables.docs`, from a file, a frame, a dict, an iterator or ir_datasets.

    Attributes
    ----------
    name
        What to call the collection in messages and provenance.
    path
        The file it is read from, if it is one.
    size
        Bytes of input, for progress bars: the sizes of the blocks add up to it. None if unknown.
    frozen
        True for a table in memory that cannot change, so that its fingerprint may be taken later.
    """

    def __init__(
        self,
        name: str,
        blocks: Callable[[], Iterator[Block]],
        *,
        path: str | os.PathLike[str] | None = None,
        size: int | None = None,
        first_line: int | None = None,
        columns: Sequence[str] = (),
        frozen: bool = False,
    ) -> None:
        self.name = name
        self.path = None if path is None else Path(path)
        self.size = size
        self._blocks = blocks
        self._first_line = first_line
        self._columns = tuple(columns)
        self.frozen = frozen

    def __repr__(self) -> str:
        return f"Docs({self.name!r})"

    def blocks(self) -> Iterator[Block]:
        """Pieces of the collection, in order, to be parsed by whoever calls ``block.read()``.

        Texts may come in any of Arrow's layouts for strings.
        """
        return self._blocks()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The documents, in order, as Arrow batches with the columns ``doc_id`` and ``text``."""
        for block in self._blocks():
            batch = block.read()
            yield batch if batch.schema == SCHEMA else batch.cast(SCHEMA)

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of these documents, in one pass that ends when all are found.

        Ids that the collection does not have are left out.
        """
        wanted = set(ids)
        found: dict[str, str] = {}
        if not wanted:
            return found
        for batch in self.batches():
            texts = batch.column("text")
            for row, doc_id in enumerate(batch.column("doc_id").to_pylist()):
                if doc_id in wanted and doc_id not in found:
                    found[doc_id] = texts[row].as_py()
            if len(found) == len(wanted):
                break
        return found

    def frame(self) -> pl.DataFrame:
        """All documents as a table, ``doc_id`` and ``text``: for collections that fit in memory."""
        return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(self.batches(), schema=SCHEMA)))

    def fingerprint(self) -> str:
        """XXH3-128 of the file as stored, or of all ids and texts where there is no file."""
        if self.path is not None:
            return files.fingerprint(self.path)
        import xxhash

        parts = [xxhash.xxh3_128() for _ in range(4)]
        for batch in self.batches():
            for column, (lengths, content) in zip(batch.columns, (parts[:2], parts[2:]), strict=True):
                _, offsets, data = column.buffers()
                ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
                lengths.update(np.diff(ends).tobytes())
                if data is not None:
                    content.update(memoryview(data)[ends[0] : ends[-1]])
        return xxhash.xxh3_128(b"".join(part.digest() for part in parts)).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Name, fingerprint, and the columns that were read, for the provenance of what is made of it."""
        described: dict[str, Any] = {"name": self.name, "fingerprint": self.fingerprint()}
        return described | ({"columns": list(self._columns)} if self._columns else {})

    def place(self, row: int) -> str:
        """Where the row-th document (from 0) stands, in words: ``on line 7``."""
        return f"in row {row + 1}" if self._first_line is None else f"on line {self._first_line + row}"

    def error(self, message: str, *, row: int) -> InputError:
        """An error about the row-th document (from 0), with file and line where there are any."""
        if self._first_line is None:
            return InputError(f"row {row + 1}: {message}", path=self.path or self.name)
        return InputError(message, path=self.path, line=self._first_line + row)


def _named(id_field: str | None, fields: Sequence[str]) -> tuple[str, ...]:
    """The columns that the caller named."""
    return (*([id_field] if id_field else []), *fields)


def read_docs(
    path: str | os.PathLike[str], *, fields: Sequence[str], id_field: str | None, name: str | None
) -> Docs:
    """A collection in a file: TSV, JSONL or Parquet; all but Parquet also as gzip or zstd."""
    size = files.require_regular(path)
    make = partial(Docs, name or Path(path).name, path=path, size=size)
    ids = (id_field,) if id_field else DOC_ID
    if files.magic(path) == parquet.MAGIC:
        id_column, columns = parquet.columns(path, ids=ids, fields=fields)
        return make(partial(parquet.blocks, path, id_column, columns), columns=(id_column, *columns))
    first, more = _first_line(path)
    if jsonl.is_json(path, first):
        keys = jsonl.keys(first, ids=ids, fields=fields, path=path)
        return make(partial(jsonl.blocks, path, keys), first_line=1, columns=_named(id_field, fields))
    layout = tsv.layout(first, ids=ids, fields=fields, path=path)
    if layout.header and not more:
        raise InputError("the file has a header and no documents", path=path)
    if id_field and not layout.header:
        raise InputError(f"no header names the field {id_field}", path=path, line=1)
    columns = _named(id_field, fields) if layout.header else ()
    return make(partial(tsv.blocks, path, layout), first_line=2 if layout.header else 1, columns=columns)


def _first_line(path: str | os.PathLike[str]) -> tuple[bytes, bool]:
    """The first line of a file, without its line end, and whether there are more."""
    blocks = files.raw_blocks(path, block=1 << 16)
    raw = next(blocks, None)
    if raw is None:
        raise InputError("the file is empty", path=path)
    line, _, rest = raw.tobytes().partition(b"\n")
    return line.removesuffix(b"\r"), bool(rest) or next(blocks, None) is not None
