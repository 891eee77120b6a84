"""The documents whose vectors have the highest product with a query's: exact, block by block.

A matrix product in single precision depends, in its last bits, on how the library cuts it up. So it only
chooses candidates: whatever comes within its rounding error of the k best is multiplied again in double
precision. Scores that agree to nine digits are equal; of equal ones the greater document id wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evenrank.rankers.base import Progress, check_depth
from evenrank.stats.rounding import round_significant

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_QUERIES = 256
_DOCUMENTS = 8192
_SPARE = 64
"""Candidates beyond those asked for, among which ties and rounding errors usually end."""


class Vectors(Protocol):
    """Rows of float32 or float16, in memory or not."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]: ...


class Nearest(NamedTuple):
    """How many documents were found for each query, and these, best first, query after query."""

    counts: Ints
    documents: Ints
    scores: Doubles


def nearest(
    vectors: Vectors,
    queries: Doubles,
    *,
    depth: int,
    ranks: npt.NDArray[Any],
    progress: Progress | None = None,
) -> Nearest:
    """Return the documents with the highest product with each query; a vector of zeros is near to nothing.

    Parameters
    ----------
    vectors
        One row for each document; may be mapped from a file, is read block by block.
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
    found: list[Ints] = []
    for first in range(0, len(queries), _QUERIES):
        found += _candidates(vectors, queries[first : first + _QUERIES], min(depth, len(vectors)))
        if progress:
            progress(min(first + _QUERIES, len(queries)), len(queries))
    return rescored(vectors, queries, found, depth=depth, ranks=ranks)


def _candidates(vectors: Vectors, queries: Doubles, depth: int) -> list[Ints]:
    """Return for each query the documents among which its best are, those at the end in doubt included."""
    kept = min(len(vectors), 2 * depth + _SPARE)
    scores = np.full((len(queries), 0), -np.inf, np.float32)
    documents = np.zeros((len(queries), 0), np.int64)
    single = np.ascontiguousarray(queries.T, np.float32)
    longest = 0.0
    for first in range(0, len(vectors), _DOCUMENTS):
        block = np.ascontiguousarray(vectors[first : first + _DOCUMENTS], np.float32)
        longest = max(longest, float(np.sqrt(np.einsum("ij,ij->i", block, block).max())))
        rough = (block @ single).T
        rough[:, ~np.any(block, axis=1)] = -np.inf
        rows = np.broadcast_to(np.arange(first, first + len(block)), rough.shape)
        scores, documents = np.concatenate([scores, rough], 1), np.concatenate([documents, rows], 1)
        if scores.shape[1] > kept:
            best = np.argpartition(-scores, kept - 1)[:, :kept]
            scores = np.take_along_axis(scores, best, 1)
            documents = np.take_along_axis(documents, best, 1)
    # Twice the bound for a sum of that many rounded products, on either side.
    error = 2 * (queries.shape[1] + 8) * 2.0**-23 * longest
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    result = []
    for row, length in enumerate(lengths.tolist()):
        if not length or not depth:
            result.append(np.zeros(0, np.int64))
            continue
        worst = np.partition(scores[row], -depth)[-depth] - error * length
        if len(vectors) > kept and scores[row].min() >= worst:  # more ties than were kept
            result.append(np.arange(len(vectors)))
        else:
            result.append(documents[row, scores[row] >= worst])
    return result


def rescored(
    vectors: Vectors, queries: Doubles, candidates: list[Ints], *, depth: int, ranks: npt.NDArray[Any]
) -> Nearest:
    """Return the best of the candidates of each query by their exact products."""
    lists, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for query, documents in zip(queries, candidates, strict=True):
        documents = np.sort(documents)
        exact, is_zero = np.zeros(len(documents)), np.zeros(len(documents), bool)
        for first in range(0, len(documents), _DOCUMENTS):
            rows = slice(first, first + _DOCUMENTS)
            block = np.asarray(vectors[documents[rows]], np.float64)
            exact[rows] = np.einsum("ij,j->i", block, query)
            is_zero[rows] = ~block.any(axis=1)
        documents, exact = documents[~is_zero], exact[~is_zero]
        best = np.lexsort((-ranks[documents].astype(np.int64), -round_significant(exact)))[:depth]
        lists.append(documents[best])
        scores.append(exact[best])
    counts = np.array([len(each) for each in lists[1:]], np.int64)
    return Nearest(counts, np.concatenate(lists), np.concatenate(scores))
