"""Docs: a collection that need not fit in memory, as a handle; out of files, frames, dicts, iterators."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

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
    is_pandas,
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
    TITLE,
    Block,
    Table,
    documents,
    listing,
    pick,
    pick_fields,
    repeated_values,
    show,
)
from evenrank.errors import InputError, NoDocumentsError
from evenrank.parallel import refuse_after_fork


class Docs:
    """The documents of a collection: read as often as needed, never held whole.

    Returned by :func:`docs`, from a file, a frame, a dict, an iterator or ir_datasets.

    Attributes
    ----------
    name
        What to call the collection in messages and provenance.
    path
        The file it is read from, if it is one.
    size
        Bytes of input, for progress bars: the sizes of the blocks add up to it. None if unknown.
    first_line
        Of a file of lines, where its first document stands: behind a header, or at the top.
    frozen
        True for a table in memory that cannot change, so that its fingerprint may be taken later.
    """

    def __init__(
        self,
        name: str,
        blocks: Callable[..., Iterator[Block]],
        *,
        parts: Callable[[int], list[files.Part]] | None = None,
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
        self._parts = parts
        self.first_line = first_line
        self._columns = tuple(columns)
        self.frozen = frozen
        self._is_shared = False
        self._expected: set[str] = set()
        self._kept: dict[str, str | None] = {}

    def __repr__(self) -> str:
        return f"Docs({self.name!r})"

    def __len__(self) -> int:
        """The number of documents, counted in one pass over the collection."""
        return sum(batch.num_rows for batch in self.batches())

    def __bool__(self) -> bool:
        """True, so that `if docs` does not read the collection to count it."""
        return True

    def parts(self, size: int) -> list[files.Part]:
        """Parts of about ``size`` bytes, each of which :meth:`blocks` reads alone: for files only."""
        if self._parts is None:
            raise ValueError(f"{self.name} is no file")
        return self._parts(size)

    def blocks(self, part: files.Part | None = None) -> Iterator[Block]:
        """Pieces of the collection, or of a part of it, to be parsed by whoever calls ``block.read()``.

        Texts may come in any of Arrow's layouts for strings.
        """
        return self._blocks() if part is None else self._blocks(part=part)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The documents, in order, as Arrow batches with the columns ``doc_id`` and ``text``."""
        wanted = self._expected - self._kept.keys()
        marks = np.sort(hashes(pa.array(list(wanted), pa.string())))
        for block in self._blocks():
            batch = block.read()
            with files.reading(self.path):  # long texts may be more than an Arrow array holds
                batch = batch if batch.schema == SCHEMA else batch.cast(SCHEMA)
            if wanted:
                every = hashes(batch.column("doc_id"))
                near = marks[np.searchsorted(marks[:-1], every)]
                some = batch.take(pa.array(np.flatnonzero(near == every)))
                for doc_id, text in zip(*(column.to_pylist() for column in some.columns), strict=True):
                    if doc_id in wanted:
                        self._kept.setdefault(doc_id, text)
            yield batch
        self._kept.update(dict.fromkeys(wanted - self._kept.keys()))  # there are none: None

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
        if not self._is_shared:
            return self.shared().texts(wanted)
        if not wanted <= self._kept.keys():
            self.expect(wanted)
            for _ in self.batches():
                if self._expected <= self._kept.keys():
                    break
        return {each: text for each, text in self._kept.items() if each in wanted and text is not None}

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
        return f"in row {row + 1}" if self.first_line is None else f"on line {self.first_line + row}"

    def error(self, message: str, *, row: int) -> InputError:
        """An error about the row-th document (from 0), with file and line where there are any."""
        if self.first_line is None:
            return InputError(f"row {row + 1}: {message}", path=self.path or self.name)
        return InputError(message, path=self.path, line=self.first_line + row)


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
    fields = (fields,) if isinstance(fields, str) else tuple(fields)
    if isinstance(x, Docs):
        return x
    if is_irds(x):
        x, name = irds_dataset(x), name or x
    if isinstance(x, (str, os.PathLike)):
        return _docs_of_file(x, fields=fields, id_field=id_field, name=name)
    if is_dataset(x):
        x = DatasetRows(x, "docs")
        name = name or x.name
    name = name or "docs"
    if is_frame(x):
        return _docs_of_frame(x, fields=fields, id_field=id_field, name=name)
    if not hasattr(x, "__iter__"):
        raise InputError(f"{show(x)} is not a collection; give a path, a frame, a dict or rows")
    return _docs_of_rows(x, fields=fields, id_field=id_field, name=name)


def _docs_of_file(
    path: str | os.PathLike[str], *, fields: Sequence[str], id_field: str | None, name: str | None
) -> Docs:
    """A collection in a file: TSV, JSONL or Parquet; all but Parquet also as gzip or zstd."""
    size = files.require_regular(path)
    make = partial(Docs, name or Path(path).name, path=path, size=size)
    ids = (id_field,) if id_field else DOC_ID
    if formats.is_parquet(path):
        id_column, columns = formats.parquet_columns(path, ids=ids, fields=fields)
        return make(
            partial(formats.parquet_blocks, path, id_column, columns),
            parts=partial(formats.parquet_parts, path),
            columns=(id_column, *columns),
        )
    first, has_more = formats.first_line(path)
    layout = formats.line_layout(first, ids=ids, fields=fields, path=path)
    if layout.header and not has_more:
        raise NoDocumentsError("the file has a header and no documents", path=path)

    def blocks(part: files.Part | None = None) -> Iterator[Block]:
        for raw in files.raw_blocks(path, part=part):
            yield Block(partial(formats.parse_lines, raw, layout, path), raw.stored)

    named = (*([id_field] if id_field else []), *fields)  # what the caller named
    return make(
        blocks,
        parts=partial(files.line_parts, path),
        first_line=2 if layout.header else 1,
        columns=named if layout.header or not layout.columns else (),
    )


def _docs_of_frame(frame: Any, *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    """A Polars, pandas or Arrow table. Slices are converted one by one: a whole column costs more."""
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    columns = frame_columns(frame)
    id_column = pick(columns, (id_field,) if id_field else DOC_ID)
    texts = pick_fields(columns, fields)
    chosen = frame[[id_column, *texts]] if is_pandas(frame) else frame.select([id_column, *texts])

    def read(start: int) -> pa.RecordBatch:
        part = chosen[start : start + ROWS] if is_pandas(frame) else chosen.slice(start, ROWS)
        return documents(Table(as_frame(part, None), offset=start), id_column, texts)

    def blocks() -> Iterator[Block]:
        for start in range(0, len(chosen), ROWS):
            yield Block(partial(read, start), 0)

    return Docs(name, blocks, frozen=isinstance(frame, (pl.DataFrame, pa.Table, pa.RecordBatch)))


def _docs_of_rows(rows: Iterable[Any], *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    """A mapping from id to text, or rows: ``(id, text)``, dicts, named tuples.

    What can be iterated only once is first copied into a temporary file, which lives as long as anything
    reads it: memory stays flat, and a second pass is possible.
    """
    again: Callable[[], Iterator[Any]]
    frozen = isinstance(rows, dict) and {*map(type, rows.values())} <= {str}
    if frozen:
        rows = dict(rows)  # ours, so that nobody changes it
    if isinstance(rows, Mapping):
        again = partial(iter, rows.items())
    elif iter(rows) is rows:
        return _spooled(rows, fields=fields, id_field=id_field, name=name)
    else:
        again = partial(iter, rows)
    return Docs(name, partial(_row_blocks, again, fields, id_field), frozen=frozen)


def _row_blocks(
    again: Callable[[], Iterator[Any]], fields: Sequence[str], id_field: str | None
) -> Iterator[Block]:
    rows, start = again(), 0
    while part := list(islice(rows, ROWS)):
        yield Block(partial(_documents, part, start, fields, id_field), 0)
        start += len(part)


def _documents(rows: list[Any], start: int, fields: Sequence[str], id_field: str | None) -> pa.RecordBatch:
    names = (id_field,) if id_field else DOC_ID
    ids, texts = [], []
    for row, item in enumerate(rows, start=start + 1):
        try:
            doc_id, text = _document(item, names, fields)
        except InputError as error:
            raise InputError(f"row {row}: {error.message}") from None
        ids.append(doc_id)
        texts.append(text)
    frame = pl.DataFrame([text_values(ids, "doc_id", start=start), text_values(texts, "text", start=start)])
    return documents(Table(frame, offset=start), "doc_id", ["text"])


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


class _Spool:
    """A temporary file of documents, deleted when nothing refers to it any more."""

    def __init__(self) -> None:
        with tempfile.NamedTemporaryFile(prefix="evenrank-", suffix=".arrow", delete=False) as file:
            self.path = Path(file.name)
        self.delete = weakref.finalize(self, self.path.unlink, missing_ok=True)

    def blocks(self) -> Iterator[Block]:
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                yield Block(lambda batch=batch: batch, 0)  # type: ignore[misc]


def _spooled(rows: Iterator[Any], *, fields: Sequence[str], id_field: str | None, name: str) -> Docs:
    spool = _Spool()
    try:
        with pa.OSFile(str(spool.path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as out:
            for batch in Docs(name, partial(_row_blocks, lambda: rows, fields, id_field)).batches():
                out.write_batch(batch)
    except BaseException:  # the traceback refers to the spool
        spool.delete()
        raise
    return Docs(name, spool.blocks)


Hashes = npt.NDArray[np.uint64]


def hashes(ids: pa.StringArray) -> Hashes:
    """A 64-bit hash of each id. Equal ids have equal hashes within one process; runs without the GIL."""
    return pl.Series(pl.from_arrow(ids), dtype=pl.String).hash().to_numpy()


class DuplicateCheck:
    """Sees all ids of a collection once, and refuses it at the end if one came twice.

    Ids are kept as hashes. If a hash repeats the collection is read again to compare the ids
    themselves, so a collision of hashes is never mistaken for a duplicate.
    """

    def __init__(self) -> None:
        self._seen: list[Hashes] = []

    def add(self, ids: pa.StringArray) -> None:
        """The ids of a block, in any order of blocks and from any thread."""
        self._seen.append(hashes(ids))

    def finish(self, docs: Docs) -> None:
        """Raise InputError, naming both places, if two documents share an id."""
        repeated, self._seen = repeated_values(self._seen), []
        if not len(repeated):
            return
        first: dict[str, int] = {}
        row = 0
        for batch in docs.batches():
            ids = batch.column("doc_id")
            for at in np.flatnonzero(np.isin(hashes(ids), repeated)):
                doc_id, here = ids[int(at)].as_py(), row + int(at)
                if doc_id in first:
                    raise docs.error(
                        f"doc_id {show(doc_id)} was already used {docs.place(first[doc_id])}", row=here
                    )
                first[doc_id] = here
            row += len(batch)


SUFFIXES = (".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".trec", ".qrels", ".topics", ".xml")

_CALLED = {"docs": ("docs", "collection", "corpus")}


class Dataset(NamedTuple):
    """A test collection: what is searched, what for, and (where known) what should be found."""

    docs: Docs
    queries: pl.DataFrame
    qrels: pl.DataFrame | None


def load(source: str | os.PathLike[str] | Any, *, split: str | None = None) -> Dataset:
    """The collection, queries and judgments of a folder or an ir_datasets dataset.

    A folder holds ``docs.*`` and ``queries.*``, perhaps ``qrels.*``. Where there are several
    (``queries.train.tsv``, ``queries.test.tsv``) ``split`` chooses; without it the error lists them. So do
    the folders of MS MARCO (``collection.tsv``, ``queries.dev.small.tsv``, ``qrels.dev.small.tsv``) and of
    BEIR (``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``; of the queries those that the split
    judges).
    ``irds:ID`` with a split is ``irds:ID/split``; an ir_datasets dataset itself is taken too. Without
    judgments ``qrels`` is None.
    """
    refuse_after_fork()
    if is_irds(source) or is_dataset(source):
        named = is_irds(source)
        dataset = irds_dataset(f"{source}/{split}" if split else str(source)) if named else source
        judged = has_part(dataset, "qrels")
        return Dataset(open_docs(dataset), read_queries(dataset), read_qrels(dataset) if judged else None)
    folder = Path(source)
    if not folder.is_dir():
        problem = "this is a file; name its folder" if folder.exists() else "no such folder"
        raise InputError(problem, path=source)
    collection = _find(folder, "docs", split)
    if (folder / "qrels").is_dir():  # as BEIR has it: splits are of the judgments, queries are all in one
        result = read_qrels(_judged_part(folder / "qrels", split))
        texts = read_queries(_find(folder, "queries", None))
        listed = texts["query_id"].is_in(result["query_id"].unique().implode())
        return Dataset(open_docs(collection), texts.filter(listed), result)
    requested = _find(folder, "queries", split)
    judged_file = _find(folder, "qrels", split, required=False)
    return Dataset(
        open_docs(collection),
        read_queries(requested),
        None if judged_file is None else read_qrels(judged_file),
    )


def _judged_part(folder: Path, split: str | None) -> Path:
    """The one file of a folder of judgments, or that of the split."""
    there = {path.name.partition(".")[0]: path for path in sorted(folder.iterdir()) if path.is_file()}
    if split is None and len(there) == 1:
        return next(iter(there.values()))
    if split not in there:
        problem = "several splits" if split is None else f"no split {split!r}"
        raise InputError(f"{problem}; choose with split= one of {listing(there)}", path=folder)
    return there[split]


def _find(folder: Path, kind: str, split: str | None, *, required: bool = True) -> Path | None:
    """The file ``kind[.split].suffix[.gz|.zst]``; where there are several, ``split`` has to choose."""
    result: dict[Path, str] = {}
    for path in sorted(folder.iterdir()):
        plain = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
        name, *parts = plain.stem.split(".")
        if name in _CALLED.get(kind, (kind,)) and plain.suffix.lower() in SUFFIXES and path.is_file():
            result[path] = ".".join(parts)
    chosen = list(result)
    if split is not None and (any(result.values()) or kind == "queries"):
        chosen = [path for path, part in result.items() if part == split]
        if not chosen and kind == "docs":  # one collection may serve all splits
            chosen = [path for path, part in result.items() if not part]
        if not chosen and result:
            known = listing(dict.fromkeys(part for part in result.values() if part))
            raise InputError(f"no {kind} for split {split!r}; splits there: {known}", path=folder)
    if len(chosen) > 1:
        names = listing(path.name for path in chosen)
        splits = listing(dict.fromkeys(result[path] for path in chosen if result[path]))
        way_out = f"choose with split= one of {splits}" if split is None and splits != "none" else "keep one"
        raise InputError(f"several {kind} files: {names}; {way_out}", path=folder)
    if not chosen and required:
        raise InputError(f"no {kind} file; expected {kind}.tsv, .jsonl or .parquet", path=folder)
    return chosen[0] if chosen else None
