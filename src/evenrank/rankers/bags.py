"""Queries as weighted bags of term numbers, many in three arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.rankers.index import Index


class Bags(NamedTuple):
    """The terms of query i are terms[offsets[i]:offsets[i + 1]], sorted, each once, with their weights."""

    offsets: np.ndarray  # int64[queries + 1]
    terms: np.ndarray  # int64
    weights: np.ndarray  # float64

    @classmethod
    def of(cls, queries: Sequence[Mapping[int, float]], vocabulary: int) -> Bags:
        """From mappings of term numbers to weights; a weight of 0 is no term."""
        rows = [sorted((term, weight) for term, weight in bag.items() if weight) for bag in queries]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        flat = [pair for row in rows for pair in row]
        terms = np.array([term for term, _ in flat], np.int64)
        weights = np.array([weight for _, weight in flat], np.float64)
        if len(terms) and not (terms[0] >= 0 and terms.min() >= 0 and terms.max() < vocabulary):
            raise InputError(f"a query has a term number that is not from 0 to {vocabulary - 1}")
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("a query has a term whose weight is not a number from 0 on")
        return cls(offsets, terms, weights)

    @classmethod
    def of_texts(cls, texts: Any, index: Index) -> Bags:
        """The terms of each text that the index has, weighted by how often the text has them."""
        from evenrank.rankers.index.tokenizing import words

        cut = words(texts)
        made = index.analyzer.normalized(cut.texts())
        known = [place for place, term in enumerate(made) if term is not None]
        places = np.full(len(made), -1, np.int64)
        places[known] = index.term_numbers([made[place] for place in known])  # type: ignore[misc]
        terms = places[cut.numbers]
        offsets = np.zeros(len(cut.bounds), np.int64)
        weights = np.empty(len(terms), np.float64)
        _fold(terms, cut.bounds, offsets, weights)
        return cls(offsets, terms[: offsets[-1]].copy(), weights[: offsets[-1]].copy())


@njit(nogil=True, cache=True)
def _fold(terms: Any, bounds: Any, offsets: Any, weights: Any) -> None:
    """Sort the terms of each text and count the repeated ones, in place; −1 is no term."""
    at = 0
    for row in range(len(bounds) - 1):
        if bounds[row + 1] - bounds[row] > 64:
            terms[bounds[row] : bounds[row + 1]].sort()
        for i in range(bounds[row], bounds[row + 1]):
            term, place = terms[i], at
            if term < 0:
                continue
            while place > offsets[row] and terms[place - 1] > term:
                place -= 1
            if place > offsets[row] and terms[place - 1] == term:
                weights[place - 1] += 1.0
                continue
            for j in range(at, place, -1):
                terms[j], weights[j] = terms[j - 1], weights[j - 1]
            terms[place], weights[place] = term, 1.0
            at += 1
        offsets[row + 1] = at
