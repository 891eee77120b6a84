"""Keeping the best products of a query with many vectors, compiled. Importing this loads numba.

A heap holds the best so far, the worst of them on top. A product is better if it is greater, or equal and
its document's id is the greater one.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
