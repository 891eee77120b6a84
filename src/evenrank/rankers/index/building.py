"""`er.index`: building an index out of a stream of documents, in memory that does not grow with them."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

import evenrank
from evenrank.data.docs import Docs
from evenrank.data.docs import open_docs as as_docs
from evenrank.data.files import cache_dir, file_lock
from evenrank.data.schema import Block, DuplicateCheck
from evenrank.errors import InputError
from evenrank.parallel import map_in_order, refuse_after_fork, thread_count
from evenrank.rankers.base import Progress
from evenrank.rankers.index import Index, storage
from evenrank.rankers.index.analysis import Analyzer, read_stop_words
from evenrank.rankers.index.postings import TOKENS, Gathering, Spilled, merge, write_texts
from evenrank.rankers.index.storage import ArrayFile, packed
from evenrank.rankers.index.tokenizing import Words, words

_LOCK = ".lock"
_BUILDING = "building-"
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
    source = as_docs(docs)
    analyzer = Analyzer(stemmer=stemmer, stop_words=read_stop_words(stop_words))
    with _workplace(Path(path), overwrite=overwrite) as folder:
        files, documents = _build(source, folder, analyzer, text=text, progress=progress)
        _finish(Path(path), folder, files, documents, source, analyzer)
    return Index.open(path)


class _Read(NamedTuple):
    """What a worker makes of a block."""

    ids: pa.Array
    words: Words
    text: tuple[list[bytes], np.ndarray, np.ndarray] | None
    size: int


def _build(
    source: Docs, folder: Path, analyzer: Analyzer, *, text: bool, progress: Progress | None
) -> tuple[list[ArrayFile], int]:
    """All files but the manifest, and the number of documents."""

    def work(block: Block) -> _Read:
        batch = block.read()
        texts = batch.column("text")
        return _Read(batch.column("doc_id"), words(texts), packed(texts) if text else None, block.size)

    store = _TextStore(folder) if text else None
    duplicates = DuplicateCheck("doc_id")
    ids: list[pl.Series] = []
    runs: list[Spilled] = []
    gathered = Gathering(0)
    documents = done = 0
    for read in map_in_order(work, source.blocks(), threads=thread_count()):
        if gathered.tokens and gathered.tokens + len(read.words.numbers) > TOKENS:
            runs.append(gathered.spill(folder / f"run-{len(runs)}", analyzer))
            gathered = Gathering(documents)
        gathered.add(read.words)
        id_array = read.ids if read.ids.type == pa.string() else read.ids.cast(pa.string())
        duplicates.add(id_array)
        ids.append(pl.Series("id", id_array))
        documents += len(id_array)
        if store is not None and read.text is not None:
            store.add(*read.text)
        done += read.size
        if progress:
            progress(done, source.size)
    if not documents:
        raise InputError("the collection has no documents", path=source.path)
    duplicates.finish(source.tables)
    runs.append(gathered.spill(folder / f"run-{len(runs)}", analyzer))
    del gathered
    files = merge(runs, folder)
    for run in runs:
        shutil.rmtree(run.folder)
    files += _write_ids(pl.concat(ids), folder)
    return files + (store.files() if store else []), documents


class _TextStore:
    """The stored text, frame by frame."""

    def __init__(self, folder: Path) -> None:
        self._content = ArrayFile(folder, "text", np.uint8)
        self._frames = ArrayFile(folder, "text-frames", np.int64)
        self._documents = ArrayFile(folder, "text-documents", np.int64)
        self._sizes = ArrayFile(folder, "text-sizes", np.uint32)
        self._first = 0
        for file in (self._frames, self._documents):
            file.append(np.zeros(1, np.int64))

    def add(self, frames: list[bytes], counts: np.ndarray, sizes: np.ndarray) -> None:
        begin = self._content.length
        self._content.append(np.frombuffer(b"".join(frames), np.uint8))
        self._frames.append(begin + np.cumsum([len(frame) for frame in frames]))
        self._documents.append(self._first + np.cumsum(counts))
        self._sizes.append(sizes)
        self._first += int(counts.sum())

    def files(self) -> list[ArrayFile]:
        return [self._content, self._frames, self._documents, self._sizes]


def _write_ids(ids: pl.Series, folder: Path) -> list[ArrayFile]:
    """The ids, their order as text, and the place of each document in it, which decides between ties."""
    order = ids.arg_sort().to_numpy()
    rank = np.empty(len(ids), np.uint32)
    rank[order] = np.arange(len(ids), dtype=np.uint32)
    files = list(write_texts(folder, "ids", "id-offsets", ids))
    for name, values in (("id-order", order), ("id-rank", rank)):
        files.append(ArrayFile(folder, name, np.uint32))
        files[-1].append(values)
    return files


def _finish(
    path: Path, folder: Path, files: list[ArrayFile], documents: int, source: Docs, analyzer: Analyzer
) -> None:
    """Write the manifest and put everything in its place."""
    for file in files:
        file.close()
    provenance = {
        "evenrank": evenrank.__version__,
        "format": storage.FORMAT,
        "analyzer": analyzer.description,
        "input": source.describe(),
    }
    fingerprint = xxhash.xxh3_128(json.dumps(provenance, sort_keys=True).encode()).hexdigest()
    tokens = int(storage.mapped(folder / "lengths", np.uint32).sum(dtype=np.int64))
    content = {
        "format": storage.FORMAT,
        "provenance": provenance,
        "fingerprint": fingerprint,
        "documents": documents,
        "tokens": tokens,
        "files": {file.path.name: storage.entry(file) for file in files},
    }
    home = path / f"{_DATA}{fingerprint[:16]}"
    if home.exists():  # the same index again, perhaps in use
        home = path / f"{_DATA}{fingerprint[:16]}-{secrets.token_hex(4)}"
    folder.rename(home)
    storage.write_manifest(path, {**content, "folder": home.name})
    _clear(path, keep=home.name)


@contextmanager
def _workplace(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to build in, inside that of the index, for this process alone."""
    if (path / storage.MANIFEST).exists() and not overwrite:
        raise InputError("there is an index already; replace it with --force (overwrite=True)", path=path)
    if path.exists() and not _is_ours(path):
        raise InputError("this folder exists already and is not an index; name another", path=path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / _LOCK).open("wb")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path=path) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError("another process is building this index; wait for it", path=path) from None
        try:
            current = storage.read_manifest(path)["folder"]
        except InputError:
            current = None
        _clear(path, keep=current)
        folder = path / f"{_BUILDING}{secrets.token_hex(4)}"
        try:
            folder.mkdir()
            yield folder
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not (path / storage.MANIFEST).exists():
                (path / _LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    path.rmdir()


def _is_ours(path: Path) -> bool:
    """Is this an index, what is left of one whose building was killed, or an empty folder?"""
    if not path.is_dir():
        return False
    names = [each.name for each in path.iterdir()]
    return storage.MANIFEST in names or all(
        name == _LOCK or name.startswith((_BUILDING, _DATA, f".{storage.MANIFEST}.")) for name in names
    )


def _clear(path: Path, *, keep: str | None) -> None:
    """Remove what builds that were killed have left, and indexes that have been replaced."""
    for each in path.iterdir():
        leftover = each.name.startswith((_BUILDING, _DATA)) and each.name != keep
        if leftover:
            shutil.rmtree(each, ignore_errors=True)
        elif each.name.startswith(f".{storage.MANIFEST}.") and each.name.endswith(".tmp"):
            each.unlink(missing_ok=True)


def own_index(docs: Docs, say: Callable[[str], None] = lambda text: None) -> Index:
    """An index of the collection in the cache: built once, and waited for where another process builds it."""
    key = xxhash.xxh3_128_hexdigest(str(sorted(docs.describe().items())).encode())
    path = cache_dir() / "indexes" / key
    with suppress(InputError):
        return Index.open(path, verify=True)  # a damaged one is built again
    path.parent.mkdir(parents=True, exist_ok=True)
    say("building an index of the collection, for the first stage")
    with file_lock(path.with_name(f".{key}.lock")):
        with suppress(InputError):
            return Index.open(path, verify=True)
        return index(docs, path, overwrite=True)
