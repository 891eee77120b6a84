"""`er.index`: build an index out of a stream of documents.

Terms are numbered as they first appear, and the terms of each document are put aside on disk. When all
documents are read, the terms are sorted and renumbered, and the inverted index is made out of the forward
index. Only ids and vocabulary take more memory as the collection grows.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash
from numba import njit

import evenrank
from evenrank.data.docs import Docs, map_in_order, open_docs
from evenrank.data.files import cache_dir, checksum, file_lock, sync_to_disk, writing_folder
from evenrank.data.read import refuse_after_fork
from evenrank.data.schema import SCHEMA, Block, DuplicateCheck
from evenrank.errors import InputError
from evenrank.rankers.analysis import Analyzer, Words, read_stop_words, words
from evenrank.rankers.base import Progress
from evenrank.rankers.index import FORMAT, MANIFEST, Index, map_file

CHUNK = 1 << 24
"""Postings that are sorted in memory at a time."""
_MOST_WORDS = 1 << 20  # whose terms are kept in memory
_BATCH = 1 << 16  # bytes of text that are compressed together


def index(
    docs: Any,
    path: str | os.PathLike[str],
    *,
    stemmer: str | None = "porter",
    stop_words: str | os.PathLike[str] | Iterable[str] | None = "lucene",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Index:
    """Build an index of a collection, and open it.

    Parameters
    ----------
    docs
        Anything that holds documents: a path, a frame, a dict, an iterator, an ``irds:`` id.
    path
        The folder to make; it appears only when the index is complete.
    stemmer
        ``porter``, as Lucene's English analyzer does; another that PyStemmer knows; or None.
    stop_words
        ``lucene`` (its 33 English ones), a file with one on each line, words, or None.
    overwrite
        Replace an index that is there already; it stays in use until the new one is complete.
    progress
        Called with (bytes read, bytes in all) as the work goes on.

    Examples
    --------
    >>> built = index({"d1": "She is a nurse.", "d2": "He nurses."}, "an.index")  # doctest: +SKIP
    >>> built.document_frequency[built.number("nurs")]  # doctest: +SKIP
    2
    """
    refuse_after_fork()
    source, target = open_docs(docs), Path(path)
    if (target / MANIFEST).exists() and not overwrite:
        raise InputError("there is an index already; replace it with --force (overwrite=True)", path=path)
    if target.exists() and not (target / MANIFEST).exists():
        raise InputError("this exists already and is not an index; name another folder", path=path)
    analyzer = Analyzer(stemmer=stemmer, stop_words=read_stop_words(stop_words))
    with writing_folder(target) as folder:
        files = _Files(folder)
        documents, tokens = _build(source, files, analyzer, progress)
        provenance = {
            "evenrank": evenrank.__version__,
            "format": FORMAT,
            "analyzer": analyzer.describe(),
            "input": source.describe(),
        }
        content = {
            "format": FORMAT,
            "provenance": provenance,
            "fingerprint": xxhash.xxh3_128_hexdigest(json.dumps(provenance, sort_keys=True).encode()),
            "documents": documents,
            "tokens": tokens,
            "files": files.close(),
        }
        write_manifest(folder, content)
    return Index.open(path)


def cached_index(docs: Docs, log: Callable[[str], None] = lambda text: None) -> Index:
    """Return the index of a collection in the cache; build it if it is missing or damaged."""
    key = xxhash.xxh3_128_hexdigest(str(sorted(docs.describe().items())).encode())
    path = cache_dir() / "indexes" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.with_name(f".{key}.lock")):
        with suppress(InputError):
            opened = Index.open(path)
            dict(opened.arrays)  # compares every byte
            return opened
        log("building an index of the collection, for the first stage")
        return index(docs, path, overwrite=True)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write the manifest of an index, with its checksum."""
    header = {**content, "checksum": checksum(content)}
    with (folder / MANIFEST).open("wb") as file:
        file.write(json.dumps(header, ensure_ascii=False, indent=1, sort_keys=True).encode())
        sync_to_disk(file)


class _Files:
    """The arrays of an index, written piece by piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, tuple[Any, np.dtype[Any]]] = {}

    def open(self, name: str, dtype: Any = np.uint8) -> Any:
        """Return the open file of an array."""
        if name not in self._open:
            self._open[name] = (self.folder / name).open("wb"), np.dtype(dtype)
        return self._open[name][0]

    def append(self, name: str, values: Any, dtype: Any) -> None:
        """Write values behind the others of this name."""
        self.open(name, dtype).write(np.ascontiguousarray(values, dtype).tobytes())

    def append_texts(self, name: str, offsets_name: str, texts: pl.Series) -> None:
        """Write texts end to end, and where each begins."""
        _, bounds, data = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()
        offsets = np.frombuffer(bounds or bytes(8), np.int64)
        self.append(offsets_name, offsets, np.int64)
        self.append(name, np.frombuffer(data or b"", np.uint8)[: offsets[-1]], np.uint8)

    def read(self, name: str) -> np.ndarray:
        """Return what was written, mapped into memory."""
        file, dtype = self._open[name]
        file.flush()
        return map_file(self.folder / name).view(dtype)

    def remove(self, name: str) -> None:
        """Remove an array that was needed for building only."""
        self._open.pop(name)[0].close()
        (self.folder / name).unlink()

    def close(self) -> dict[str, dict[str, Any]]:
        """Sync all files to disk, and return what the manifest says of each."""
        described = {}
        for name, (file, dtype) in self._open.items():
            sync_to_disk(file)
            file.close()
            array = map_file(self.folder / name).view(dtype)
            described[name] = {"dtype": dtype.name, "length": len(array), "checksum": checksum(array)}
        return described


class _Read(NamedTuple):
    """A block of documents, split into words."""

    batch: pa.RecordBatch
    words: Words
    size: int


def _build(source: Docs, files: _Files, analyzer: Analyzer, progress: Progress | None) -> tuple[int, int]:
    """Write all files but the manifest; return how many documents there are, and how many tokens."""

    def work(block: Block) -> _Read:
        batch = block.read().cast(SCHEMA)
        return _Read(batch, words(batch.column("text")), block.size)

    duplicates = DuplicateCheck("doc_id")
    ids: list[pl.Series] = []
    known: defaultdict[str, int] = defaultdict(count().__next__)
    term_of: dict[str, int] = {}  # of words; -1 for a stop word
    documents = tokens = pairs = done = 0
    files.append("forward-offsets", [0], np.int64)
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # as fast as the rest of the build
    with pa.ipc.new_file(files.open("text"), SCHEMA, options=options) as texts:
        for read in map_in_order(work, source.blocks()):
            duplicates.add(read.batch.column("doc_id"))
            ids.append(pl.Series(read.batch.column("doc_id")))
            vocabulary = read.words.vocabulary
            numbers = list(map(term_of.get, vocabulary))
            places = [place for place, number in enumerate(numbers) if number is None]
            new = analyzer.normalized([vocabulary[place] for place in places])
            for place, term in zip(places, new, strict=True):
                numbers[place] = term_of[vocabulary[place]] = known[term] if term else -1
            lengths, ends, terms, counts = _count(
                read.words.numbers, read.words.bounds, np.array(numbers, np.int64), len(known)
            )
            files.append("lengths", lengths, np.uint32)
            files.append("forward-offsets", ends + pairs, np.int64)
            files.append("unsorted-terms", terms, np.uint32)
            files.append("unsorted-counts", counts, np.uint32)
            pairs += len(terms)
            for part in _parts(read.batch):
                texts.write(part)
                files.append("text-documents", [documents], np.int64)
                documents += len(part)
            tokens += int(lengths.sum())
            done += read.size
            if len(term_of) > _MOST_WORDS:
                term_of.clear()
            if progress:
                progress(done, source.size)
    if not documents:
        raise InputError("the collection has no documents", path=source.path)
    duplicates.finish(source.tables)
    _write_ids(pl.concat(ids), files)
    _write_terms(files, pl.Series(list(known), dtype=pl.String))
    return documents, tokens


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    step = max(1, len(batch) * _BATCH // max(1, batch.nbytes))
    for first in range(0, len(batch), step):
        yield batch.slice(first, step)


def _write_ids(ids: pl.Series, files: _Files) -> None:
    """Write the ids, their order as text, and the place of each document in it, which decides ties."""
    order = ids.arg_sort().to_numpy()
    rank = np.empty(len(ids), np.uint32)
    rank[order] = np.arange(len(ids), dtype=np.uint32)
    files.append_texts("ids", "id-offsets", ids)
    files.append("id-order", order, np.uint32)
    files.append("id-rank", rank, np.uint32)


def _write_terms(files: _Files, terms: pl.Series) -> None:
    """Write the sorted terms, the inverted index, and the forward index with the terms in order."""
    order = terms.arg_sort().to_numpy()
    files.append_texts("terms", "term-offsets", terms.gather(order))
    number = np.empty(len(terms), np.uint32)
    number[order] = np.arange(len(terms), dtype=np.uint32)
    bounds, times = files.read("forward-offsets"), files.read("unsorted-counts")
    frequency, total = np.zeros((2, len(terms)), np.int64)
    for first, last in _stretches(bounds):
        span = slice(bounds[first], bounds[last])
        own = number[files.read("unsorted-terms")[span]]
        files.append("numbered-terms", own, np.uint32)
        _add_frequencies(own, times[span], frequency, total)
    offsets = np.concatenate([[0], np.cumsum(frequency)])
    files.append("document-frequency", frequency, np.uint32)
    files.append("collection-frequency", total, np.int64)
    files.append("posting-offsets", offsets, np.int64)
    kind = np.min_scalar_type(int(times.max(initial=0)))
    documents, counts = "posting-documents", "posting-counts"
    _transpose(files, (bounds, files.read("numbered-terms"), times), offsets, (documents, counts), kind)
    postings = (offsets, files.read(documents), files.read(counts))
    _transpose(files, postings, bounds, ("forward-terms", "forward-counts"), kind)
    for name in ("unsorted-terms", "unsorted-counts", "numbered-terms"):
        files.remove(name)


def _transpose(
    files: _Files,
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    offsets: np.ndarray,
    names: tuple[str, str],
    kind: Any,
) -> None:
    """Write a sparse matrix, given by rows, by its columns: `offsets` says where each column begins."""
    for first, last in _stretches(offsets):
        size = offsets[last] - offsets[first]
        numbers, values = np.empty(size, np.uint32), np.empty(size, kind)
        bounds, columns, counts = rows
        places = offsets[first:last] - offsets[first]
        _fill_columns(bounds, columns, counts, first, places, numbers, values)
        files.append(names[0], numbers, np.uint32)
        files.append(names[1], values, kind)


def _stretches(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of stretches that have up to CHUNK entries; at least one stretch."""
    first, rows = 0, len(offsets) - 1
    while first < rows or rows == first == 0:
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        if last == rows:
            return
        first = last


@njit(nogil=True, cache=True)
def _add_frequencies(terms: Any, counts: Any, frequency: Any, total: Any) -> None:
    """Add for each term in how many documents it is, and how often."""
    for i in range(len(terms)):
        frequency[terms[i]] += 1
        total[terms[i]] += counts[i]


@njit(nogil=True, cache=True)
def _fill_columns(
    bounds: Any, columns: Any, counts: Any, first: Any, places: Any, numbers: Any, values: Any
) -> None:
    """Fill the columns from `first` on with the rows that have them; `places` says where each begins."""
    for row in range(len(bounds) - 1):
        for i in range(bounds[row], bounds[row + 1]):
            column = np.int64(columns[i]) - first
            if 0 <= column < len(places):
                numbers[places[column]] = row
                values[places[column]] = counts[i]
                places[column] += 1


@njit(nogil=True, cache=True)
def _count(words: Any, bounds: Any, term_of: Any, size: Any) -> Any:
    """Count the terms of each document, words[bounds[i]:bounds[i + 1]].

    `term_of` is the term of each word, below `size`; -1 is none. Returned are the length of each document and
    where its terms end, then all terms and how often each occurs.
    """
    lengths, ends = np.zeros((2, len(bounds) - 1), np.int64)
    terms, counts = np.empty((2, len(words)), np.uint32)
    places = np.full(size, -1, np.int64)  # of each term among `terms`, the last
    total = 0
    for row in range(len(lengths)):
        first = total
        for i in range(bounds[row], bounds[row + 1]):
            term = term_of[words[i]]
            if term < 0:
                continue
            if places[term] < first:
                places[term] = total
                terms[total], counts[total] = term, 0
                total += 1
            counts[places[term]] += 1
            lengths[row] += 1
        ends[row] = total
    return lengths, ends, terms[:total], counts[:total]
