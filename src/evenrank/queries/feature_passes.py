"""Passes over many queries with the features of each: to learn from them, to score them, to explain one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from evenrank.queries.feature_kernel import MOST_FEATURES, MOST_TOKENS, VECTOR, emit, find, split
from evenrank.text.hashing import fnv1a


@njit(nogil=True, cache=True)
def _scratch() -> Any:
    size = MOST_TOKENS + 2
    work = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.uint64),
        np.empty(size, np.uint64),
        np.empty(size, np.uint64),
    )
    out = (
        np.empty(MOST_FEATURES, np.int64),
        np.empty(MOST_FEATURES, np.float64),
        np.empty(MOST_FEATURES, np.int64),
        np.empty(MOST_FEATURES, np.int64),
    )
    return work, out


@njit(nogil=True, cache=True)
def collect(
    data: Any, offsets: Any, keys: Any, slots: Any, facts: Any, on: int, scales: Any, room: int
) -> Any:
    """The features of many queries as the three arrays of a CSR matrix, for training."""
    work, out = _scratch()
    index, value = np.empty(room, np.int64), np.empty(room, np.float64)
    bounds = np.zeros(len(offsets), np.int64)
    total = 0
    for q in range(len(offsets) - 1):
        n, _ = emit(data, offsets[q], offsets[q + 1], keys, slots, facts, on, scales, work, out)
        for i in range(n):
            index[total + i], value[total + i] = out[0][i], out[1][i]
        total += n
        bounds[q + 1] = total
    return index[:total], value[:total], bounds


@njit(nogil=True, cache=True)
def score(
    data: Any,
    offsets: Any,
    keys: Any,
    slots: Any,
    facts: Any,
    on: int,
    scales: Any,
    weights: Any,
    vectors: Any,
    found: Any,
) -> None:
    """Add each query's scores to ``found``: its features' weights, and the mean weight of its words."""
    work, out = _scratch()
    bits = facts[1]
    for q in range(len(offsets) - 1):
        n, count = emit(data, offsets[q], offsets[q + 1], keys, slots, facts, on, scales, work, out)
        a = b = c = 0.0
        for i in range(n):
            f, v = out[0][i], out[1][i]
            a += v * weights[f, 0]
            b += v * weights[f, 1]
            c += v * weights[f, 2]
        known = 0
        for t in range(count):
            if work[2][t] >= 0 and bits[work[2][t]] & VECTOR:
                known += 1
        for t in range(count):
            r = work[2][t]
            if r >= 0 and bits[r] & VECTOR:
                a += vectors[r, 0] / known
                b += vectors[r, 1] / known
                c += vectors[r, 2] / known
        found[q, 0] += a
        found[q, 1] += b
        found[q, 2] += c


@njit(nogil=True, cache=True)
def attribute(
    data: Any, keys: Any, slots: Any, facts: Any, on: int, scales: Any, weights: Any, vectors: Any
) -> Any:
    """What each token of one query adds to each class: a feature of several tokens is shared out evenly."""
    work, out = _scratch()
    bits = facts[1]
    n, count = emit(data, 0, len(data), keys, slots, facts, on, scales, work, out)
    given = np.zeros((count, 3), np.float64)
    for i in range(n):
        share = out[1][i] / (out[3][i] - out[2][i] + 1)
        for t in range(out[2][i], out[3][i] + 1):
            for label in range(3):
                given[t, label] += share * weights[out[0][i], label]
    known = 0
    for t in range(count):
        if work[2][t] >= 0 and bits[work[2][t]] & VECTOR:
            known += 1
    for t in range(count):
        if work[2][t] >= 0 and bits[work[2][t]] & VECTOR:
            for label in range(3):
                given[t, label] += vectors[work[2][t], label] / known
    return given, work[0][:count], work[1][:count]


@njit(nogil=True, cache=True)
def rows_of(data: Any, offsets: Any, keys: Any, slots: Any) -> Any:
    """The rows of the table that each query's tokens stand in (−1: none), and where each query's begin."""
    starts, ends = np.empty(MOST_TOKENS + 2, np.int64), np.empty(MOST_TOKENS + 2, np.int64)
    found = np.empty((len(offsets) - 1) * MOST_TOKENS, np.int64)
    bounds = np.zeros(len(offsets), np.int64)
    total = 0
    for q in range(len(offsets) - 1):
        for t in range(split(data, offsets[q], offsets[q + 1], starts, ends)):
            found[total] = find(keys, slots, fnv1a(data, starts[t], ends[t]))
            total += 1
        bounds[q + 1] = total
    return found[:total], bounds


@njit(nogil=True, cache=True)
def hashes(data: Any, offsets: Any) -> Any:
    """The keys of words."""
    found = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(found)):
        found[i] = fnv1a(data, offsets[i], offsets[i + 1])
    return found
