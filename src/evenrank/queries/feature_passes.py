"""Passes over the features of many queries: collect them for training, score them, explain one.

Free functions on arrays, compiled; the features are those that :func:`evenrank.queries.feature_kernel.emit`
finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from evenrank.queries.feature_kernel import (
    LEX_FEMALE,
    LEX_MALE,
    MOST_FEATURES,
    MOST_TOKENS,
    SAID,
    TERM_FEMALE,
    TERM_MALE,
    TURN,
    VECTOR,
    cue_of,
    emit,
    find,
    split,
    whom,
)
from evenrank.text.hashing import fnv1a

_SURE = 50.0  # log odds of likeness to the pooled queries, where a gender is said


@njit(nogil=True, cache=True)
def _names_both(rows: Any, ids: Any, bits: Any, lean: Any, count: int) -> bool:
    """Whether a query holds listed words of both genders, or a woman's and a man's name.

    Names count up to *in*, *on* or *from*, and only the first of a person's: mary tyler moore is one.
    """
    seen, cues, last = 0, 0, -2
    turned = False
    for t in range(count):
        r = rows[t]
        if r < 0:
            continue
        seen |= bits[r]
        turned |= t > 0 and bits[r] & TURN > 0
        cue = cue_of(r, bits, lean)
        if 0 < cue < 3:
            if last < t - 1 and not turned:
                cues |= cue
            last = t
    words = seen & (LEX_FEMALE | TERM_FEMALE) and seen & (LEX_MALE | TERM_MALE)
    return bool(words) or cues == 3


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
    both: Any,
) -> None:
    """Add each query's four scores to ``found``: its features' weights, and the mean weight of its words.

    One score for each class, and one for likeness to the pooled queries: the log odds, or surely where the
    query says *women*, *male* or their like. ``both`` is told which queries name women and men alike.
    """
    work, out = _scratch()
    bits = facts[1]
    for q in range(len(offsets) - 1):
        n, count = emit(data, offsets[q], offsets[q + 1], keys, slots, facts, on, scales, work, out)
        a = b = c = d = 0.0
        said = False
        for i in range(n):
            f, v = out[0][i], out[1][i]
            a += v * weights[f, 0]
            b += v * weights[f, 1]
            c += v * weights[f, 2]
            d += v * weights[f, 3]
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
                d += vectors[r, 3] / known
            if r >= 0 and (
                bits[r] & (SAID | SAID << 1) or (bits[r] & (SAID << 2 | SAID << 3) and whom(work[3], t))
            ):
                said = True
        if said:
            d = _SURE
        both[q] = _names_both(work[2], work[3], bits, facts[2], count)
        found[q, 0] += a
        found[q, 1] += b
        found[q, 2] += c
        found[q, 3] += d


@njit(nogil=True, cache=True)
def attribute(
    data: Any, keys: Any, slots: Any, facts: Any, on: int, scales: Any, weights: Any, vectors: Any
) -> Any:
    """What each token of one query adds to each score: a feature of several tokens is shared out evenly."""
    work, out = _scratch()
    bits = facts[1]
    n, count = emit(data, 0, len(data), keys, slots, facts, on, scales, work, out)
    given = np.zeros((count, 4), np.float64)
    for i in range(n):
        share = out[1][i] / (out[3][i] - out[2][i] + 1)
        for t in range(out[2][i], out[3][i] + 1):
            for label in range(4):
                given[t, label] += share * weights[out[0][i], label]
    known = 0
    for t in range(count):
        if work[2][t] >= 0 and bits[work[2][t]] & VECTOR:
            known += 1
    for t in range(count):
        if work[2][t] >= 0 and bits[work[2][t]] & VECTOR:
            for label in range(4):
                given[t, label] += vectors[work[2][t], label] / known
    return given, work[0][:count], work[1][:count]


@njit(nogil=True, cache=True)
def rows_of(data: Any, offsets: Any, keys: Any, slots: Any) -> Any:
    """The rows of the table that each query's tokens stand in (−1: none), and where each query's begin."""
    starts, ends = np.empty(MOST_TOKENS + 2, np.int64), np.empty(MOST_TOKENS + 2, np.int64)
    values = np.empty((len(offsets) - 1) * MOST_TOKENS, np.int64)
    bounds = np.zeros(len(offsets), np.int64)
    total = 0
    for q in range(len(offsets) - 1):
        for t in range(split(data, offsets[q], offsets[q + 1], starts, ends)):
            values[total] = find(keys, slots, fnv1a(data, starts[t], ends[t]))
            total += 1
        bounds[q + 1] = total
    return values[:total], bounds


@njit(nogil=True, cache=True)
def hashes(data: Any, offsets: Any) -> Any:
    """The keys of words."""
    values = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(values)):
        values[i] = fnv1a(data, offsets[i], offsets[i + 1])
    return values
