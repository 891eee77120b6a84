"""Vectors of documents, kept beside the index; and those nearest to a query's, exact, in blocks.

They lie in ``INDEX/vectors/KEY``, the key being a hash of all that decides them: the collection, the model,
how it is used. Until they are complete the folder has another name, so a killed run leaves nothing that would
be taken for whole; it is resumed from its last full chunk. Vectors that do not fit their checksum are made
again.

Search is one matrix product a block, in single precision, which depends, in its last bits, on how the library
cuts it up. So it only chooses: what comes within its rounding error of the k best is multiplied again in
double precision, always in the same order. Equal vectors get equal scores, and the list does not depend on
blocks or threads.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash
from numba import njit

from evenrank.data import files
from evenrank.data.files import check_names, checksum, file_lock, reading, writing
from evenrank.errors import InputError
from evenrank.parallel import thread_count
from evenrank.rankers.base import Progress, check_depth
from evenrank.rankers.index import map_file
from evenrank.rankers.topk import differ
from evenrank.stats.rounding import round_significant

if TYPE_CHECKING:
    from evenrank.rankers.index import Index


_VERSION = 3
_VECTORS, _FACTS, _DONE = "vectors.npy", "facts.json", "done.json"


class Stored(NamedTuple):
    """Vectors of all documents of an index, in its order, and what was noted when they were made."""

    folder: Path
    vectors: npt.NDArray[Any]
    notes: dict[str, Any]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Another array that was kept with the vectors."""
        return _mapped(self.folder / f"{name}.npy")


class Making:
    """Vectors in the making: `rows` to be filled from row `start` on."""

    def __init__(self, folder: Path, rows: npt.NDArray[Any], start: int) -> None:
        self._folder = folder
        self.rows = rows
        self.start = start
        self.notes: dict[str, Any] = {}
        self.kept = [_VECTORS]

    def keep(self, name: str, array: npt.NDArray[Any]) -> None:
        """Keep another array with the vectors."""
        with writing(self._folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
        self.kept.append(f"{name}.npy")

    def reached(self, row: int) -> None:
        """All rows before this one are filled; whoever goes on later begins here."""
        self.rows.flush()  # type: ignore[attr-defined]
        _write(self._folder / _DONE, {"rows": row})


def stored(
    index: Index,
    facts: Mapping[str, Any],
    *,
    dimension: int,
    kind: type[np.floating[Any]],
    fill: Callable[[Making], None],
) -> Stored:
    """The vectors that the facts describe: those beside the index, or else made now.

    Parameters
    ----------
    index
        What the documents are in.
    facts
        All that decides the vectors, besides the documents: plain values.
    dimension, kind
        Their shape and type.
    fill
        Fills the rows, if they are not there yet.
    """
    known = {"version": _VERSION, "collection": index.docs.describe(), **facts}
    known |= {"documents": index.documents, "dimension": dimension, "type": np.dtype(kind).name}
    key = xxhash.xxh3_128_hexdigest(json.dumps(known, sort_keys=True).encode())
    home = _home(index)
    folder = home / key
    if (result := _opened(folder, known)) is not None:
        return result
    with file_lock(home / f".{key}.lock"):
        if (result := _opened(folder, known)) is not None:  # another process was quicker
            return result
        part = home / f".{key}.part"
        making = _begun(part, (index.documents, dimension), kind)
        fill(making)
        making.rows.flush()  # type: ignore[attr-defined]
        files = {name: checksum(map_file(part / name)) for name in making.kept}
        content = {"facts": known, "notes": making.notes, "files": files}
        _write(part / _FACTS, {**content, "checksum": checksum(content)})
        (part / _DONE).unlink(missing_ok=True)
        try:
            shutil.rmtree(folder, ignore_errors=True)  # damaged, if it is there
            part.rename(folder)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", path=folder) from error
    (home / f".{key}.lock").unlink(missing_ok=True)
    if (result := _opened(folder, known)) is None:
        raise InputError("the vectors that were written cannot be read back", path=folder)
    return result


def _home(index: Index) -> Path:
    """The folder for vectors beside the index; in the cache, if the index may not be written to."""
    beside = Path(index.path) / "vectors"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
        if os.access(beside, os.W_OK):
            return beside
    elsewhere = files.cache_dir() / "vectors" / str(index.fingerprint)
    try:
        elsewhere.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=beside) from error
    return elsewhere


def _opened(folder: Path, known: Mapping[str, Any]) -> Stored | None:
    """The finished vectors in a folder; None if there are none, they are of something else or damaged."""
    try:
        content = json.loads((folder / _FACTS).read_bytes())
        expected = content.pop("checksum")
        if content["facts"] != known or expected != checksum(content):
            return None
        check_names(content["files"], folder, folder=folder)
        for name, each in content["files"].items():
            if checksum(map_file(folder / name)) != each:
                return None
        vectors = _mapped(folder / _VECTORS)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
        return None
    if vectors.shape != (known["documents"], known["dimension"]) or vectors.dtype.name != known["type"]:
        return None
    return Stored(folder, vectors, dict(content["notes"]))


def _begun(part: Path, shape: tuple[int, int], kind: type[np.floating[Any]]) -> Making:
    """A folder to work in: a new one, or one that a killed run has left."""
    try:
        part.mkdir(exist_ok=True)
        start = 0
        with suppress(OSError, ValueError, KeyError, TypeError):
            start = int(json.loads((part / _DONE).read_bytes())["rows"])
            rows = np.lib.format.open_memmap(part / _VECTORS, mode="r+")
            if rows.shape == shape and rows.dtype == kind and 0 <= start <= shape[0]:
                return Making(part, rows, start)
        return Making(part, np.lib.format.open_memmap(part / _VECTORS, mode="w+", dtype=kind, shape=shape), 0)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=part) from error


def _mapped(path: Path) -> npt.NDArray[Any]:
    with reading(path):
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with writing(path) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_QUERIES = 1024
_DOCUMENTS = 8192  # with 1,024 queries 32 MB of scores at a time


class Nearest(NamedTuple):
    """What was found: how many documents for each query, and these, best first, query after query."""

    counts: Ints
    documents: Ints
    scores: Doubles


def nearest(
    vectors: npt.NDArray[Any],
    queries: Doubles,
    *,
    depth: int,
    ranks: npt.NDArray[Any],
    progress: Progress | None = None,
) -> Nearest:
    """The documents with the highest product with each query; a vector of zeros is near to nothing.

    Parameters
    ----------
    vectors
        One row for each document, float32 or float16; may be mapped from a file, is read block by block.
    queries
        One row for each query; a row of zeros finds nothing.
    depth
        How many documents at most.
    ranks
        The place of each document's id among all ids, from 0: of two equal scores the greater id wins.
    progress
        Called with (queries done, queries in all).
    """
    check_depth(depth)
    depth = min(depth, len(vectors))
    sizes = np.zeros(len(queries), np.int64)
    scores = np.zeros((len(queries), depth))
    documents = np.zeros((len(queries), depth), np.int64)
    for first in range(0, len(queries), _QUERIES):
        part = slice(first, first + _QUERIES)
        _search(vectors, queries[part], ranks, sizes[part], scores[part], documents[part])
        if progress:
            progress(min(first + _QUERIES, len(queries)), len(queries))
    return _sorted(sizes, scores, documents, ranks)


def rescored(
    vectors: npt.NDArray[Any], queries: Doubles, candidates: Ints, *, ranks: npt.NDArray[Any]
) -> Nearest:
    """The candidates of each query (−1: none) by their exact products."""
    sizes = np.zeros(len(queries), np.int64)
    scores = np.zeros(candidates.shape)
    documents = np.zeros(candidates.shape, np.int64)
    for row, wanted in enumerate(candidates):
        chosen = np.unique(wanted[wanted >= 0])
        block = np.ascontiguousarray(vectors[chosen], np.float32)
        heap = (scores[row], documents[row])
        sizes[row] = offer_all(block, chosen, queries[row], ranks, *heap)
    return _sorted(sizes, scores, documents, ranks)


def _search(
    vectors: npt.NDArray[Any],
    queries: Doubles,
    ranks: npt.NDArray[Any],
    sizes: Ints,
    scores: Doubles,
    documents: Ints,
) -> None:
    """Fill the heaps of some queries, block by block of the documents."""
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    active = np.flatnonzero(lengths > 0)
    if not len(active) or not scores.shape[1]:
        return
    single = np.ascontiguousarray(queries[active].T, np.float32)
    error = (vectors.shape[1] + 8) * 2.0**-23  # twice the bound for a sum of that many rounded products

    def work(rows: npt.NDArray[np.int64]) -> None:
        for i in rows.tolist():
            row = active[i]
            slack = error * lengths[row] * longest
            heap = (scores[row], documents[row], sizes[row : row + 1])
            offer(rough[i], block, first, queries[row], ranks, slack, *heap)

    threads = thread_count()
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(vectors), _DOCUMENTS):
            block = np.ascontiguousarray(vectors[first : first + _DOCUMENTS], np.float32)
            longest = float(np.sqrt(np.einsum("ij,ij->i", block, block).max()))
            rough = np.ascontiguousarray((block @ single).T)
            list(pool.map(work, np.array_split(np.arange(len(active)), threads)))


def _sorted(sizes: Ints, scores: Doubles, documents: Ints, ranks: npt.NDArray[Any]) -> Nearest:
    """The heaps as lists, best first."""
    lists = []
    for row, size in enumerate(sizes.tolist()):
        result = documents[row, :size]
        best = np.lexsort((-ranks[result].astype(np.int64), -round_significant(scores[row, :size])))
        lists.append((result[best], scores[row, :size][best]))
    none: Any = (np.zeros(0, np.int64), np.zeros(0))
    return Nearest(
        sizes,
        np.concatenate([none[0], *(result for result, _ in lists)]),
        np.concatenate([none[1], *(values for _, values in lists)]),
    )


# A heap holds the best so far, the worst of them on top. A product is better if it is greater, or equal to
# nine digits and its document's id is the greater one.


@njit(nogil=True, cache=True, inline="always")
def _product(row, query):  # type: ignore[no-untyped-def]
    """The product in double precision, four sums side by side; and whether the row is not all zeros."""
    a = b = c = d = 0.0
    size = len(query)
    any_value = False
    whole = size - size % 4
    for i in range(0, whole, 4):
        a += np.float64(row[i]) * query[i]
        b += np.float64(row[i + 1]) * query[i + 1]
        c += np.float64(row[i + 2]) * query[i + 2]
        d += np.float64(row[i + 3]) * query[i + 3]
        any_value |= (row[i] != 0) | (row[i + 1] != 0) | (row[i + 2] != 0) | (row[i + 3] != 0)
    for i in range(whole, size):
        a += np.float64(row[i]) * query[i]
        any_value |= row[i] != 0
    return (a + b) + (c + d), any_value


@njit(nogil=True, cache=True, inline="always")
def _worse(score, place, other_score, other_place):  # type: ignore[no-untyped-def]
    return score < other_score if differ(score, other_score) else place < other_place


@njit(nogil=True, cache=True)
def _keep(score, document, ranks, scores, documents, size):  # type: ignore[no-untyped-def]
    """Put a document into the heap if it belongs there; returns how many it holds."""
    place = ranks[document]
    if size < len(scores):
        at = size
        while at > 0:
            above = (at - 1) // 2
            if not _worse(score, place, scores[above], ranks[documents[above]]):
                break
            scores[at], documents[at] = scores[above], documents[above]
            at = above
        scores[at], documents[at] = score, document
        return size + 1
    if not _worse(scores[0], ranks[documents[0]], score, place):
        return size
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size and _worse(
            scores[right], ranks[documents[right]], scores[below], ranks[documents[below]]
        ):
            below = right
        if not _worse(scores[below], ranks[documents[below]], score, place):
            break
        scores[at], documents[at] = scores[below], documents[below]
        at = below
    scores[at], documents[at] = score, document
    return size


@njit(nogil=True, cache=True)
def offer(rough, block, first, query, ranks, slack, scores, documents, size):  # type: ignore[no-untyped-def]
    """Offer a block of documents to one query's heap; `rough` are their products, off by `slack` at most."""
    held = size[0]
    for i in range(len(rough)):
        if held == len(scores) and rough[i] < scores[0] - slack:
            continue
        score, any_value = _product(block[i], query)
        if any_value:
            held = _keep(score, first + i, ranks, scores, documents, held)
    size[0] = held


@njit(nogil=True, cache=True)
def offer_all(block, chosen, query, ranks, scores, documents):  # type: ignore[no-untyped-def]
    """The exact products of chosen documents, in a heap; returns how many it holds."""
    held = 0
    for i in range(len(chosen)):
        score, any_value = _product(block[i], query)
        if any_value:
            held = _keep(score, chosen[i], ranks, scores, documents, held)
    return held
