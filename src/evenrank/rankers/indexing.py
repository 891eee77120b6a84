"""`er.index`: build an index out of a stream of documents, in memory that does not grow with them.

Words are gathered block by block. When there are enough, the distinct ones are analysed, and the stretch of
documents (a run) is put aside on disk as an inverted and a forward index of its own. In the end the runs,
which follow each other in the collection, are merged.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash
from numba import njit

import evenrank
from evenrank.data.docs import Docs, map_in_order, open_docs
from evenrank.data.files import cache_dir, file_lock, sync_to_disk
from evenrank.data.read import refuse_after_fork
from evenrank.data.schema import Block, DuplicateCheck
from evenrank.errors import InputError
from evenrank.rankers.analysis import Analyzer, Words, read_stop_words, words
from evenrank.rankers.base import Progress
from evenrank.rankers.index import FORMAT, MANIFEST, Index, pack_texts, read_manifest, write_manifest

TOKENS = 1 << 24
"""In a run. Its arrays take some 24 bytes for each."""

_CHUNK = 1 << 23  # postings that are held at a time when runs are merged
_LOCK = ".lock"
_DATA = "data-"


def index(
    docs: Any,
    path: str | os.PathLike[str],
    *,
    stemmer: str | None = "porter",
    stop_words: str | os.PathLike[str] | Iterable[str] | None = "lucene",
    text: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Index:
    """Build an index of a collection, and open it.

    Parameters
    ----------
    docs
        Anything that holds documents: a path, a frame, a dict, an iterator, an ``irds:`` id.
    path
        The folder to make. It is an index only when all is done: a build that is killed leaves nothing
        that opens, and what it leaves is cleared away by the next.
    stemmer
        ``porter``, as Lucene's English analyzer does; another that PyStemmer knows; or None.
    stop_words
        ``lucene`` (its 33 English ones), a file with one on each line, words, or None.
    text
        Keep the text too: bias-aware feedback, semantic rankers and the web page need it.
    overwrite
        Replace an index that is there already; it stays in use until the new one is whole.
    progress
        Called with (bytes read, bytes in all) as the work goes on.

    Examples
    --------
    >>> made = index({"d1": "She is a nurse.", "d2": "He nurses."}, "an.index")  # doctest: +SKIP
    >>> made.document_frequency[made.number("nurs")]  # doctest: +SKIP
    2
    """
    refuse_after_fork()
    source = open_docs(docs)
    analyzer = Analyzer(stemmer=stemmer, stop_words=read_stop_words(stop_words))
    with _folder(Path(path), overwrite=overwrite) as folder:
        files = _Files(folder)
        documents, tokens = _build(source, files, analyzer, text=text, progress=progress)
        provenance = {
            "evenrank": evenrank.__version__,
            "format": FORMAT,
            "analyzer": analyzer.description,
            "input": source.describe(),
        }
        content = {
            "format": FORMAT,
            "folder": folder.name,
            "provenance": provenance,
            "fingerprint": xxhash.xxh3_128_hexdigest(json.dumps(provenance, sort_keys=True).encode()),
            "documents": documents,
            "tokens": tokens,
            "files": files.close(),
        }
        write_manifest(Path(path), content)
    return Index.open(path)


def cached_index(docs: Docs, log: Callable[[str], None] = lambda text: None) -> Index:
    """An index of the collection in the cache: built once, and waited for where another process builds it."""
    key = xxhash.xxh3_128_hexdigest(str(sorted(docs.describe().items())).encode())
    path = cache_dir() / "indexes" / key
    with suppress(InputError):
        return Index.open(path, verify=True)  # a damaged one is built again
    path.parent.mkdir(parents=True, exist_ok=True)
    log("building an index of the collection, for the first stage")
    with file_lock(path.with_name(f".{key}.lock")):
        with suppress(InputError):
            return Index.open(path, verify=True)
        return index(docs, path, overwrite=True)


@contextmanager
def _folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to build in, inside that of the index, for this process alone.

    In the end what the manifest does not name is removed: the folder, if the build has failed, or else the
    one that it replaces.
    """
    if (path / MANIFEST).exists() and not overwrite:
        raise InputError("there is an index already; replace it with --force (overwrite=True)", path=path)
    if path.exists() and not _is_ours(path):
        raise InputError("this folder exists already and is not an index; name another", path=path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with (path / _LOCK).open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError("another process is building this index; wait for it", path=path) from None
            current = _clear(path)
            folder = path / f"{_DATA}{1 + int(current.removeprefix(_DATA)) if current else 0}"
            folder.mkdir()
            try:
                yield folder
            finally:
                if not _clear(path):
                    (path / _LOCK).unlink(missing_ok=True)
                    with suppress(OSError):
                        path.rmdir()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


def _is_ours(path: Path) -> bool:
    """Is this an index, what is left of one whose building was killed, or an empty folder?"""
    if not path.is_dir():
        return False
    names = [each.name for each in path.iterdir()]
    return MANIFEST in names or all(
        name == _LOCK or name.startswith((_DATA, f".{MANIFEST}.")) for name in names
    )


def _clear(path: Path) -> str:
    """Remove what the manifest does not name: left by a build that was killed, or replaced. What it names."""
    try:
        current = str(read_manifest(path)["folder"])
    except InputError:
        current = ""
    for each in path.iterdir():
        if each.name.startswith(_DATA) and each.name != current:
            shutil.rmtree(each, ignore_errors=True)
        elif each.name.startswith(f".{MANIFEST}.") and each.name.endswith(".tmp"):
            each.unlink(missing_ok=True)
    return current


class _Files:
    """The arrays of an index, written piece by piece, with what the manifest says about each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, tuple[Any, np.dtype[Any], Any, int]] = {}

    def append(self, name: str, values: Any, dtype: Any) -> None:
        """Write values behind the others of this name."""
        if name not in self._open:
            self._open[name] = (self.folder / name).open("wb"), np.dtype(dtype), xxhash.xxh3_64(), 0
        file, kind, digest, length = self._open[name]
        values = np.ascontiguousarray(values, kind)
        file.write(values.data.cast("B") if len(values) else b"")
        digest.update(values)
        self._open[name] = file, kind, digest, length + len(values)

    def append_texts(self, name: str, offsets_name: str, texts: pl.Series) -> None:
        """Write texts end to end, and where each begins."""
        _, bounds, data = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()
        offsets = np.frombuffer(bounds or bytes(8), np.int64)
        self.append(offsets_name, offsets, np.int64)
        self.append(name, np.frombuffer(data or b"", np.uint8)[: offsets[-1]], np.uint8)

    def close(self) -> dict[str, dict[str, Any]]:
        """Make sure that the disk has everything: the manifest will say so."""
        for file, *_ in self._open.values():
            sync_to_disk(file)
            file.close()
        return {
            name: {"dtype": kind.name, "length": length, "checksum": digest.hexdigest()}
            for name, (_, kind, digest, length) in self._open.items()
        }


class _Read(NamedTuple):
    """What a worker makes of a block."""

    ids: pa.Array
    words: Words
    frames: list[bytes]
    counts: list[int]  # documents of each frame
    size: int


def _build(
    source: Docs, files: _Files, analyzer: Analyzer, *, text: bool, progress: Progress | None
) -> tuple[int, int]:
    """Write all files but the manifest; how many documents there are, and tokens."""

    def work(block: Block) -> _Read:
        batch = block.read()
        frames, counts = pack_texts(batch) if text else ([], [])
        ids = batch.column("doc_id").cast(pa.string())
        return _Read(ids, words(batch.column("text")), frames, counts, block.size)

    duplicates = DuplicateCheck("doc_id")
    ids: list[pl.Series] = []
    runs: list[_Run] = []
    gathered: list[Words] = []
    firsts, ends = [0], [0]  # of the frames: documents and bytes
    documents = tokens = done = 0
    for read in map_in_order(work, source.blocks()):
        if tokens and tokens + len(read.words.numbers) > TOKENS:
            runs.append(_spill(gathered, analyzer, files.folder / f"run-{len(runs)}", documents))
            gathered, tokens = [], 0
        gathered.append(read.words)
        tokens += len(read.words.numbers)
        duplicates.add(read.ids)
        ids.append(pl.Series("id", read.ids))
        documents += len(read.ids)
        for frame, count in zip(read.frames, read.counts, strict=True):
            files.append("text", np.frombuffer(frame, np.uint8), np.uint8)
            firsts.append(firsts[-1] + count)
            ends.append(ends[-1] + len(frame))
        done += read.size
        if progress:
            progress(done, source.size)
    if not documents:
        raise InputError("the collection has no documents", path=source.path)
    duplicates.finish(source.tables)
    runs.append(_spill(gathered, analyzer, files.folder / f"run-{len(runs)}", documents))
    if text:
        files.append("text-documents", firsts, np.int64)
        files.append("text-frames", ends, np.int64)
    _write_ids(pl.concat(ids), files)
    return documents, merge(runs, files)


def _write_ids(ids: pl.Series, files: _Files) -> None:
    """The ids, their order as text, and the place of each document in it, which decides between ties."""
    order = ids.arg_sort().to_numpy()
    rank = np.empty(len(ids), np.uint32)
    rank[order] = np.arange(len(ids), dtype=np.uint32)
    files.append_texts("ids", "id-offsets", ids)
    files.append("id-order", order, np.uint32)
    files.append("id-rank", rank, np.uint32)


class _Run(NamedTuple):
    """A stretch of documents, put aside on disk: its terms, sorted, and its postings."""

    folder: Path
    terms: pl.Series

    def load(self, name: str) -> np.ndarray:
        return np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))


def _spill(gathered: list[Words], analyzer: Analyzer, folder: Path, behind: int) -> _Run:
    """Write a run; `behind` is the number of the document behind its last."""
    each = [pl.Series("word", part.distinct) for part in gathered]
    distinct = pl.concat(each).unique()
    analysed = pl.DataFrame(
        {"word": distinct, "term": pl.Series(analyzer.normalized(distinct.to_list()), dtype=pl.String)}
    )
    terms = analysed["term"].drop_nulls().unique().sort()
    numbers = analysed.join(_numbered(terms), on="term", how="left").drop("term")
    tokens = []
    for part, own in zip(gathered, each, strict=True):
        places = own.to_frame().join(numbers, on="word", how="left", maintain_order="left")["number"]
        tokens.append(places.fill_null(-1).to_numpy()[part.numbers])
    sizes = np.concatenate([np.diff(part.bounds) for part in gathered])
    offsets, documents, counts, lengths = _invert(
        np.concatenate(tokens), np.concatenate([[0], np.cumsum(sizes)]), len(terms)
    )
    starts, forward, times = _transpose(offsets, documents, counts, len(sizes))
    kind = np.min_scalar_type(int(counts.max(initial=0)))
    arrays = {
        "lengths": lengths,
        "frequency": np.add.reduceat(counts, offsets[:-1], dtype=np.int64),
        "posting-offsets": offsets,
        "posting-documents": documents + np.uint32(behind - len(sizes)),
        "posting-counts": counts.astype(kind),
        "forward-offsets": starts,
        "forward-terms": forward,
        "forward-counts": times.astype(kind),
    }
    folder.mkdir()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    return _Run(folder, terms)


def _numbered(terms: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"term": terms, "number": np.arange(len(terms), dtype=np.int32)})


@njit(nogil=True, cache=True)
def _invert(tokens: Any, bounds: Any, terms: Any) -> Any:
    """The documents of each term, in order, and how often they have it; and the length of each document.

    `tokens` are the term numbers of the documents, end to end; −1 is no term.
    """
    offsets, last = np.zeros(terms + 1, np.int64), np.full(terms, -1, np.int64)
    lengths = np.zeros(len(bounds) - 1, np.uint32)
    for row in range(len(bounds) - 1):
        for i in range(bounds[row], bounds[row + 1]):
            term = tokens[i]
            if term >= 0:
                lengths[row] += 1
                if last[term] != row:
                    last[term] = row
                    offsets[term + 1] += 1
    for term in range(terms):
        offsets[term + 1] += offsets[term]
    places = offsets.copy()
    documents, counts = np.empty(offsets[-1], np.uint32), np.zeros(offsets[-1], np.uint32)
    last[:] = -1
    for row in range(len(bounds) - 1):
        for i in range(bounds[row], bounds[row + 1]):
            term = tokens[i]
            if term >= 0:
                if last[term] != row:
                    last[term] = row
                    documents[places[term]] = row
                    places[term] += 1
                counts[places[term] - 1] += 1
    return offsets, documents, counts, lengths


@njit(nogil=True, cache=True)
def _transpose(offsets: Any, columns: Any, values: Any, size: Any) -> Any:
    """A sparse matrix by rows, as one by columns, of which there are `size`."""
    starts = np.zeros(size + 1, np.int64)
    for column in columns:
        starts[column + 1] += 1
    for column in range(size):
        starts[column + 1] += starts[column]
    places = starts.copy()
    rows, others = np.empty(len(columns), np.uint32), np.empty(len(columns), values.dtype)
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1]):
            place = places[columns[i]]
            rows[place], others[place] = row, values[i]
            places[columns[i]] = place + 1
    return starts, rows, others


def merge(runs: list[_Run], files: _Files) -> int:
    """Write one index out of the runs, and remove them; how many tokens there are.

    The terms are numbered anew; the postings of each term are those of one run behind those of another.
    """
    terms = pl.concat([run.terms for run in runs]).unique().sort()
    numbers = [
        run.terms.to_frame("term")
        .join(_numbered(terms), on="term", how="left", maintain_order="left")["number"]
        .to_numpy()
        for run in runs
    ]
    files.append_texts("terms", "term-offsets", terms)
    total, frequency = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    for run, own in zip(runs, numbers, strict=True):
        total[own] += run.load("frequency")
        frequency[own] += np.diff(run.load("posting-offsets"))
    files.append("document-frequency", frequency, np.uint32)
    files.append("collection-frequency", total, np.int64)
    offsets = np.concatenate([[0], np.cumsum(frequency)])
    files.append("posting-offsets", offsets, np.int64)
    kind = np.result_type(*(run.load("posting-counts").dtype for run in runs))
    for name, dtype in (("posting-documents", np.uint32), ("posting-counts", kind)):
        for values in _merged(runs, numbers, offsets, name, dtype):
            files.append(name, values, dtype)
    reached = 0
    files.append("forward-offsets", [0], np.int64)
    for run, own in zip(runs, numbers, strict=True):
        starts = run.load("forward-offsets")
        files.append("forward-offsets", starts[1:] + reached, np.int64)
        reached += int(starts[-1])
        files.append("lengths", run.load("lengths"), np.uint32)
        columns, times = run.load("forward-terms"), run.load("forward-counts")
        for first in range(0, max(1, len(columns)), _CHUNK):  # in order still: so are the terms of a run
            files.append("forward-terms", own[columns[first : first + _CHUNK]], np.uint32)
            files.append("forward-counts", times[first : first + _CHUNK], kind)
        shutil.rmtree(run.folder)
    return int(total.sum())


def _merged(
    runs: list[_Run], numbers: list[np.ndarray], offsets: np.ndarray, name: str, dtype: Any
) -> Iterator[np.ndarray]:
    """An array of the merged postings, by stretches of terms that fit in memory."""
    parts = [
        (run.load("posting-offsets"), run.load(name), own) for run, own in zip(runs, numbers, strict=True)
    ]
    yield np.empty(0, dtype)
    first, terms = 0, len(offsets) - 1
    while first < terms:
        last = int(np.searchsorted(offsets, offsets[first] + _CHUNK, side="right")) - 1
        last = min(max(last, first + 1), terms)
        values = np.empty(offsets[last] - offsets[first], dtype)
        places = offsets[first:last] - offsets[first]
        for starts, source, own in parts:
            begin, end = np.searchsorted(own, [first, last]).tolist()
            _copy(starts[begin : end + 1], source, own[begin:end] - first, places, values)
        yield values
        first = last


@njit(nogil=True, cache=True)
def _copy(starts: Any, source: Any, rows: Any, places: Any, values: Any) -> None:
    """Append source[starts[i]:starts[i + 1]] to row rows[i] of `values`; `places` says where each ends."""
    for i in range(len(rows)):
        place = places[rows[i]]
        for at in range(starts[i], starts[i + 1]):
            values[place] = source[at]
            place += 1
        places[rows[i]] = place
