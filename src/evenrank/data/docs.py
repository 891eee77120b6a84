"""Docs: a collection that need not fit in memory, as a handle; out of files, frames, dicts, iterators."""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

from evenrank.data import files, formats
from evenrank.data.read import (
    DatasetRows,
    as_frame,
    frame_columns,
    has_part,
    irds_dataset,
    is_dataset,
    is_frame,
    is_irds,
    is_plain_row,
    path_of,
    read_qrels,
    read_queries,
    row_values,
    text_values,
)
from evenrank.data.schema import (
    BODY,
    DOC_ID,
    ROWS,
    SCHEMA,
    Block,
    Table,
    documents,
    listing,
    pick,
    pick_fields,
    row_hashes,
    show,
)
from evenrank.errors import InputError, NoDocumentsError
from evenrank.parallel import threads


@dataclass(eq=False, repr=False)
class Docs:
    """The documents of a collection: read as often as needed, never held whole.

    Returned by :func:`open_docs`, from a file, a frame, a dict, an iterator or ir_datasets.

    Attributes
    ----------
    name
        What to call the collection in messages and provenance.
    blocks
        Called, it gives pieces of the collection, to be parsed by whoever calls ``block.read()``: Arrow
        batches of ``doc_id`` and ``text``, in any of Arrow's layouts for strings.
    parts
        Of a file: called with a number of bytes, it gives parts of about this size for ``blocks(part)``.
    path
        The file it is read from, if it is one.
    size
        Bytes of input, for progress bars: the sizes of the blocks add up to it. None if unknown.
    first_line
        Of a file of lines, where its first document stands: behind a header, or at the top.
    columns
        The columns that were chosen by their names.
    frozen
        True for a table in memory that cannot change, so that its fingerprint may be taken later.
    """

    name: str
    blocks: Callable[..., Iterator[Block]]
    parts: Callable[[int], list[files.Part]] | None = None
    path: Path | None = None
    size: int | None = None
    first_line: int | None = None
    columns: Sequence[str] = ()
    frozen: bool = False
    _is_shared: bool = False
    _expected: set[str] = field(default_factory=set)
    _kept: dict[str, str | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Docs({self.name!r})"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The documents, in order, as Arrow batches with the columns ``doc_id`` and ``text``."""
        wanted = self._expected - self._kept.keys()
        marks = np.sort(row_hashes(pl.Series([*wanted], dtype=pl.String)))
        for block in self.blocks():
            batch = block.read()
            with files.reading(self.path):  # long texts may be more than an Arrow array holds
                batch = batch if batch.schema == SCHEMA else batch.cast(SCHEMA)
            if wanted:
                every = row_hashes(batch.column("doc_id"))
                near = marks[np.searchsorted(marks[:-1], every)]
                some = batch.take(pa.array(np.flatnonzero(near == every)))
                for doc_id, text in zip(*(column.to_pylist() for column in some.columns), strict=True):
                    if doc_id in wanted:
                        self._kept.setdefault(doc_id, text)
            yield batch
        self._kept.update(dict.fromkeys(wanted - self._kept.keys()))  # there are none: None

    def tables(self) -> Iterator[Table]:
        """The ids, with the places where they stand, for errors."""
        row = 0
        for batch in self.batches():
            line = None if self.first_line is None else self.first_line + row
            ids = pl.DataFrame({"doc_id": pl.Series(batch.column("doc_id"))})
            yield Table(ids, self.path or self.name, line, offset=row)
            row += len(batch)

    def shared(self) -> Docs:
        """The same collection for several readers: texts that one expects are kept whenever it is read."""
        other = copy(self)
        other._expected, other._kept, other._is_shared = set(), {}, True
        return self if self._is_shared else other

    def expect(self, ids: Iterable[str]) -> None:
        """Keep these texts at the next pass, whoever makes it."""
        self._expected.update(ids)

    def forget(self) -> None:
        """Keep nothing any more."""
        self._expected.clear()
        self._kept.clear()

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of these documents, in one pass that ends when all are found.

        Ids that the collection does not have are left out.
        """
        wanted = {each for each in ids if isinstance(each, str)}
        reader = self.shared()
        if not wanted <= reader._kept.keys():
            reader.expect(wanted)
            for _ in reader.batches():
                if reader._expected <= reader._kept.keys():
                    break
        return {each: text for each, text in reader._kept.items() if each in wanted and text is not None}

    def frame(self) -> pl.DataFrame:
        """All documents as a table, ``doc_id`` and ``text``: for collections that fit in memory."""
        return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(self.batches(), schema=SCHEMA)))

    def fingerprint(self) -> str:
        """XXH3-128 of the file as stored, or of all ids and texts where there is no file."""
        if self.path is not None:
            return files.fingerprint(self.path)
        digests = [xxhash.xxh3_128(), xxhash.xxh3_128()]
        for batch in self.batches():
            for column, digest in zip(batch.columns, digests, strict=True):
                digest.update((pl.Series(column) + "\0").str.join().item().encode())
        return xxhash.xxh3_128(b"".join(digest.digest() for digest in digests)).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Name, fingerprint, and the columns that were read, for the provenance of what is made of it."""
        described: dict[str, Any] = {"name": self.name, "fingerprint": self.fingerprint()}
        return described | ({"columns": list(self.columns)} if self.columns else {})


def open_docs(
    x: Any, *, fields: Sequence[str] = ("title", "text"), id_field: str | None = None, name: str | None = None
) -> Docs:
    """A collection, as a handle that reads it as often as needed without holding it.

    Parameters
    ----------
    x
        A path (``doc_id<TAB>text``, or TSV with a header; JSONL; Parquet; plain, gzip or zstd), a
        Polars, pandas or Arrow table, a dict ``{doc_id: text}``, rows (``(doc_id, text)``, dicts, named
        tuples; an iterator is first copied to a temporary file), an ir_datasets dataset or ``irds:ID``.
    fields
        The fields that make up a document's text, joined with one space. A title may be missing; where
        there is no ``text``, ``contents`` or ``body`` is taken.
    id_field
        The field with the id; found by its name (``doc_id``, ``docno``, ``docid``, ``_id``, ``id``) if
        not given.
    name
        What to call the collection.
    """
    if isinstance(x, Docs):
        return x
    fields = (fields,) if isinstance(fields, str) else tuple(fields)
    ids = (id_field,) if id_field else DOC_ID
    if path_of(x) is not None:
        return _docs_of_file(x, fields, ids, name)
    if is_irds(x) or is_dataset(x):
        part = DatasetRows(irds_dataset(x), "docs")
        x, name = part, name or (x if is_irds(x) else part.name)
    name = name or "docs"
    if is_frame(x):
        return _docs_of_frame(x, fields, ids, name)
    if not isinstance(x, Iterable):
        raise InputError(f"{show(x)} is not a collection; give a path, a frame, a dict or rows")
    if iter(x) is x:
        return _spooled(x, fields, ids, name)
    frozen = isinstance(x, dict) and {*map(type, x.values())} <= {str}
    rows = dict(x) if frozen else x  # ours, so that nobody changes it
    return Docs(name, partial(_row_blocks, rows, fields, ids), frozen=frozen)


def _docs_of_file(path: Any, fields: Sequence[str], ids: Sequence[str], name: str | None) -> Docs:
    """A collection in a file: TSV, JSONL or Parquet; all but Parquet also as gzip or zstd."""
    size = files.require_regular(path)
    make = partial(Docs, name or Path(path).name, path=Path(path), size=size)
    if formats.is_parquet(path):
        id_column, columns = formats.parquet_columns(path, ids=ids, fields=fields)
        return make(
            partial(formats.parquet_blocks, path, id_column, columns),
            parts=partial(formats.parquet_parts, path),
            columns=(id_column, *columns),
        )
    first, has_more = formats.first_line(path)
    layout, id_column, columns = formats.read_docs_layout(first, path, ids=ids, fields=fields)
    if layout.has_header and not has_more:
        raise NoDocumentsError("the file has a header and no documents", path=path)

    def blocks(part: files.Part | None = None) -> Iterator[Block]:
        for raw in files.raw_blocks(path, part=part):
            yield Block(partial(formats.parse_docs, raw, layout, id_column, columns, path), raw.stored)

    named = (*(ids if len(ids) == 1 else ()), *fields)  # what the caller named
    return make(
        blocks,
        parts=partial(files.line_parts, path),
        first_line=1 + layout.has_header,
        columns=named if layout.has_header or layout.separator == formats.JSONL else (),
    )


def _docs_of_frame(frame: Any, fields: Sequence[str], ids: Sequence[str], name: str) -> Docs:
    """A Polars, pandas or Arrow table."""
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    columns = frame_columns(frame)
    id_column, texts = pick(columns, ids), pick_fields(columns, fields)
    rows = as_frame(frame, {each: (each,) for each in (id_column, *texts)})

    def blocks() -> Iterator[Block]:
        for start in range(0, len(rows), ROWS):
            part = Table(rows.slice(start, ROWS), offset=start)
            yield Block(partial(documents, part, id_column, texts), 0)

    return Docs(name, blocks, frozen=True)


def _row_blocks(rows: Iterable[Any], fields: Sequence[str], ids: Sequence[str]) -> Iterator[Block]:
    items, start = iter(rows.items() if isinstance(rows, Mapping) else rows), 0
    while part := list(islice(items, ROWS)):
        yield Block(partial(_row_documents, part, start, fields, ids), 0)
        start += len(part)


def _row_documents(rows: list[Any], start: int, fields: Sequence[str], ids: Sequence[str]) -> pa.RecordBatch:
    """Documents out of rows: ``(id, text)``, ``(id, {field: text})``, dicts, named tuples, objects."""
    items = [_named_values(item, row) for row, item in enumerate(rows, start=start + 1)]
    columns = list(dict.fromkeys(name for item in items for name in item))
    id_column, texts = pick(columns, ("doc_id", *ids)), pick_fields(columns, fields)
    frame = [
        text_values([item.get(name) for item in items], name, start=start)
        for name in dict.fromkeys([id_column, *texts])
    ]
    return documents(Table(pl.DataFrame(frame), offset=start), id_column, texts)


def _named_values(item: Any, row: int) -> Mapping[str, Any]:
    """The values of a row, with the names of its fields."""
    if not is_plain_row(item):
        values = row_values(item, row)
        has_text = {*BODY} & {*values} or not hasattr(item, "default_text")
        return values if has_text else {**values, "text": item.default_text()}
    if len(item) != 2:
        raise InputError(f"row {row}: {len(item)} values instead of (doc_id, text)")
    doc_id, text = item
    return {"doc_id": doc_id, **text} if isinstance(text, Mapping) else {"doc_id": doc_id, "text": text}


def _spooled(rows: Iterable[Any], fields: Sequence[str], ids: Sequence[str], name: str) -> Docs:
    """Rows that can be iterated only once, copied into a temporary file that lives as long as its readers."""
    spool = tempfile.NamedTemporaryFile(prefix="evenrank-", suffix=".arrow")  # noqa: SIM115
    with pa.ipc.new_stream(spool, SCHEMA) as out:
        for batch in Docs(name, partial(_row_blocks, rows, fields, ids)).batches():
            out.write_batch(batch)
    spool.flush()
    return Docs(name, partial(_spool_blocks, spool))


def _spool_blocks(spool: Any) -> Iterator[Block]:
    with pa.OSFile(spool.name) as source, pa.ipc.open_stream(source) as stream:
        for batch in stream:
            yield Block(lambda batch=batch: batch, 0)  # type: ignore[misc]


# --- Threads ---------------------------------------------------------------------------------------------


def thread_count() -> int:
    """How many threads to use: the limit that was set, or the cores this process may run on."""
    if limit := threads["limit"]:
        return limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, workers: int | None = None
) -> Iterator[_Result]:
    """Map in worker threads, a bounded number of items ahead, yielding results in the order of the items."""
    futures: deque[Future[_Result]] = deque()
    workers = workers or thread_count()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                futures.append(pool.submit(function, item))
                if len(futures) > 2 * workers:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


# --- Test collections ------------------------------------------------------------------------------------


class Dataset(NamedTuple):
    """A test collection: what is searched, what for, and (where known) what should be found."""

    docs: Docs
    queries: pl.DataFrame
    qrels: pl.DataFrame | None


def load(source: str | os.PathLike[str] | Any, *, split: str | None = None) -> Dataset:
    """The collection, queries and judgments of a folder or an ir_datasets dataset.

    A folder holds ``docs.*`` and ``queries.*``, perhaps ``qrels.*``. With a split, queries and judgments are
    those of ``queries.SPLIT.*`` and ``qrels.SPLIT.*``; ``irds:ID`` with a split is ``irds:ID/split``.
    Without judgments ``qrels`` is None.
    """
    if is_irds(source) or is_dataset(source):
        dataset = irds_dataset(f"{source}/{split}" if split and is_irds(source) else source)
        judged = has_part(dataset, "qrels")
        return Dataset(open_docs(dataset), read_queries(dataset), read_qrels(dataset) if judged else None)
    folder = Path(source)
    if not folder.is_dir():
        problem = "this is a file; name its folder" if folder.exists() else "no such folder"
        raise InputError(problem, path=source)
    docs, queries = _find(folder, "docs"), _find(folder, "queries", split)
    qrels = _find(folder, "qrels", split) if any(folder.glob("qrels.*")) else None
    return Dataset(open_docs(docs), read_queries(queries), None if qrels is None else read_qrels(qrels))


def _find(folder: Path, kind: str, split: str | None = None) -> Path:
    """The one file ``kind[.split].suffix[.gz|.zst]``."""
    stem = kind if split is None else f"{kind}.{split}"
    names = sorted(path.name for path in folder.glob(f"{kind}.*"))
    chosen = [name for name in names if re.fullmatch(re.escape(stem) + r"\.[A-Za-z]+(\.gz|\.zst)?", name)]
    if len(chosen) != 1:
        problem = f"several {kind} files: {listing(chosen)}; keep one" if chosen else f"no file {stem}.tsv"
        hint = "" if chosen or not names else f"; found {listing(names)}: choose with split="
        raise InputError(problem + hint, path=folder)
    return folder / chosen[0]
