"""The documents whose vectors are nearest to a query's: exact, in blocks, by one matrix product each.

The product is single precision and depends, in its last bits, on how the library cuts it up. So it only
chooses: what comes within its rounding error of the k best is multiplied again in double precision, always
in the same order. Equal vectors get equal scores, and the list does not depend on blocks or threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from evenrank.rankers.base import Progress, check_depth
from evenrank.text.matcher import cores

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

    threads = cores()
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
        found = documents[row, :size]
        best = np.lexsort((-ranks[found].astype(np.int64), -scores[row, :size]))
        lists.append((found[best], scores[row, :size][best]))
    none: Any = (np.zeros(0, np.int64), np.zeros(0))
    return Nearest(
        sizes,
        np.concatenate([none[0], *(found for found, _ in lists)]),
        np.concatenate([none[1], *(values for _, values in lists)]),
    )


# A heap holds the best so far, the worst of them on top. A product is better if it is greater, or equal and
# its document's id is the greater one.


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
    return score < other_score or (score == other_score and place < other_place)


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
