"""The features of queries, from their bytes: hashed n-grams of words, letters and kinds of words.

Free functions on arrays, compiled. :mod:`evenrank.queries.feature_passes` runs them over many queries.
One function emits the features, for training and for labelling alike: the two cannot drift apart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from evenrank.text.hashing import BASIS, PRIME, fnv1a

BUCKETS = 1 << 18
"""Hashed features; some 80,000 occur in 3,000 queries, so few share a bucket by chance."""
DENSE = 20
"""Counted features after the hashed ones."""
MOST_TOKENS = 64
MOST_FEATURES = 24_000
"""More than 1,000 characters in 64 tokens can make."""

# What a word of the table is, as bits.
STOP, GIVEN, SURNAME, LEX_FEMALE, LEX_MALE, TERM_FEMALE, TERM_MALE, PLAIN, VECTOR = (1 << i for i in range(9))

# Groups of features, as bits: each can be left out.
WORDS, PAIRS, LETTERS, CONTEXTS, NAMES, LEXICON, TERMS, LEANING = (1 << i for i in range(8))

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_EDGE = np.uint64(0x5E)
_DIGITS = 250  # the kind of a number; kinds of words in the table are smaller


@njit(nogil=True, cache=True)
def _mixed(a: Any, b: Any) -> Any:
    x = (a ^ (b + _MIX)) * _MIX
    return x ^ (x >> _SHIFT)


@njit(nogil=True, cache=True)
def find(keys: Any, slots: Any, h: Any) -> int:
    """The row of a word in the table, −1 if it is not there: open addressing, linear probing."""
    mask = np.uint64(len(slots) - 1)
    at = np.int64(_mixed(h, np.uint64(0)) & mask)
    while slots[at] >= 0:
        if keys[slots[at]] == h:
            return slots[at]
        at = (at + 1) & np.int64(mask)
    return -1


@njit(nogil=True, cache=True)
def slots_of(keys: Any) -> Any:
    """The hash table over the keys."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    for row in range(len(keys)):
        at = np.int64(_mixed(keys[row], np.uint64(0)) & mask)
        while slots[at] >= 0:
            at = (at + 1) & np.int64(mask)
        slots[at] = row
    return slots


@njit(nogil=True, cache=True)
def split(data: Any, start: int, end: int, starts: Any, ends: Any) -> int:
    """Tokens: runs of letters, digits and whatever is not ASCII; how many."""
    count, inside = 0, False
    for i in range(start, end):
        c = data[i]
        part = (97 <= c <= 122) or (48 <= c <= 57) or c >= 128
        if part and not inside:
            if count == MOST_TOKENS:
                return count
            starts[count] = i
        elif inside and not part:
            ends[count] = i
            count += 1
        inside = part
    if inside:
        ends[count] = end
        count += 1
    return count


@njit(nogil=True, cache=True)
def _put(out: Any, n: int, index: Any, value: float, first: int, last: int) -> int:
    if n < MOST_FEATURES:
        out[0][n], out[1][n], out[2][n], out[3][n] = index, value, first, last
        return n + 1
    return n


@njit(nogil=True, cache=True)
def _hashed(out: Any, n: int, h: Any, salt: int, first: int, last: int) -> int:
    bucket = _mixed(h, np.uint64(salt)) & np.uint64(BUCKETS - 1)
    return _put(out, n, np.int64(bucket), 1.0, first, last)


@njit(nogil=True, cache=True)
def _scaled(out: Any, begin: int, end: int, scale: float) -> None:
    """A group of features gets length ``scale``, however long the query."""
    for i in range(begin, end):
        out[1][i] = scale / math.sqrt(end - begin)


@njit(nogil=True, cache=True)
def _grams(out: Any, n: int, ids: Any, count: int, shortest: int, longest: int, salt: int) -> int:
    """N-grams of ids that include the edges of the query: ids[0] and ids[count + 1]."""
    for size in range(shortest, longest + 1):
        for i in range(count + 3 - size):
            h = np.uint64(size)
            for j in range(i, i + size):
                h = _mixed(h, ids[j])
            first, last = min(max(i - 1, 0), count - 1), max(min(i + size - 2, count - 1), 0)
            n = _hashed(out, n, h, salt, first, last)
    return n


@njit(nogil=True, cache=True)
def emit(
    data: Any,
    start: int,
    end: int,
    keys: Any,
    slots: Any,
    facts: Any,
    on: int,
    scales: Any,
    work: Any,
    out: Any,
) -> Any:
    """All features of one query.

    ``facts`` are per word of the table: kind, bits, lean and frequency of a name, genderedness.
    ``work`` are the arrays for tokens: starts, ends, rows, ids, kinds, mixed. ``out`` are the features:
    index, value, first token, last token. Returns (features, tokens).
    """
    kind, bits, lean, frequency, gender = facts
    starts, ends, rows, ids, kinds, mixed = work
    count = split(data, start, end, starts, ends)
    ids[0] = kinds[0] = mixed[0] = _EDGE
    for t in range(count):
        h = fnv1a(data, starts[t], ends[t])
        row = find(keys, slots, h)
        rows[t], ids[t + 1] = row, h
        if row >= 0:
            kinds[t + 1] = h if bits[row] & STOP else np.uint64(kind[row])
            mixed[t + 1] = h if bits[row] & (STOP | PLAIN) else np.uint64(kind[row])
        else:
            number = 48 <= data[starts[t]] <= 57
            kinds[t + 1] = mixed[t + 1] = np.uint64(_DIGITS if number else 0)
    ids[count + 1] = kinds[count + 1] = mixed[count + 1] = _EDGE + np.uint64(1)
    n = 0
    if count == 0:
        return n, count
    if on & WORDS:
        for t in range(count):
            n = _hashed(out, n, ids[t + 1], 1, t, t)
        _scaled(out, 0, n, scales[0])
    if on & PAIRS:
        begin = n
        n = _grams(out, n, ids, count, 2, 2, 2)
        _scaled(out, begin, n, scales[1])
    if on & LETTERS:
        begin = n
        n = _letters(out, n, data, starts, ends, count)
        _scaled(out, begin, n, scales[2])
    if on & CONTEXTS:
        begin = n
        n = _grams(out, n, kinds, count, 1, 3, 4)
        n = _grams(out, n, mixed, count, 2, 3, 5)
        _scaled(out, begin, n, scales[3])
    if on & NAMES:
        n = _names(out, n, rows, bits, lean, frequency, count)
    return _words(out, n, rows, bits, gender, count, on), count


@njit(nogil=True, cache=True)
def _letters(out: Any, n: int, data: Any, starts: Any, ends: Any, count: int) -> int:
    """Two to five letters in a row, the edges of the word among them."""
    for t in range(count):
        a, b = starts[t] - 1, ends[t] + 1
        for i in range(a, b - 1):
            h = BASIS
            for j in range(i, min(i + 5, b)):
                c = np.uint64(94) if j == a else np.uint64(36) if j == b - 1 else np.uint64(data[j])
                h = (h ^ c) * PRIME
                if j > i:
                    n = _hashed(out, n, h, 3, t, t)
    return n


@njit(nogil=True, cache=True)
def _names(out: Any, n: int, rows: Any, bits: Any, lean: Any, frequency: Any, count: int) -> int:
    """How the given names lean: the first, the most female, the most male, all; how common; surnames."""
    first, high, low, surnames, together = -1, -1, -1, 0, 0
    for t in range(count):
        r = rows[t]
        if r < 0 or bits[r] & STOP:
            continue
        if bits[r] & GIVEN:
            x = lean[r]
            n = _put(out, n, BUCKETS + 3, math.tanh(x / 2), t, t)
            first = t if first < 0 else first
            high = t if x > 0 and (high < 0 or x > lean[rows[high]]) else high
            low = t if x < 0 and (low < 0 or x < lean[rows[low]]) else low
            after = rows[t + 1] if t + 1 < count else -1
            if after >= 0 and bits[after] & SURNAME and not bits[after] & STOP:
                together += 1
        if bits[r] & SURNAME:
            surnames += 1
    if first >= 0:
        n = _put(out, n, BUCKETS, lean[rows[first]] / 3, first, first)
        n = _put(out, n, BUCKETS + 4, 1.0, first, first)
        n = _put(out, n, BUCKETS + 5, frequency[rows[first]], first, first)
    if high >= 0:
        n = _put(out, n, BUCKETS + 1, lean[rows[high]] / 3, high, high)
    if low >= 0:
        n = _put(out, n, BUCKETS + 2, lean[rows[low]] / 3, low, low)
    if surnames:
        n = _put(out, n, BUCKETS + 6, float(min(surnames, 3)), 0, count - 1)
    if together:
        n = _put(out, n, BUCKETS + 7, float(together), 0, count - 1)
    return n


@njit(nogil=True, cache=True)
def _words(out: Any, n: int, rows: Any, bits: Any, gender: Any, count: int, on: int) -> int:
    """Gendered words of both lists, and the genderedness of all words: mean, extremes, sum."""
    seen, known, high, low = 0, 0, -1, -1
    for t in range(count):
        r = rows[t]
        if r < 0:
            continue
        b = bits[r]
        for side in range(4):
            mark = LEX_FEMALE << side
            if b & mark and on & (LEXICON if side < 2 else TERMS):
                n = _put(out, n, BUCKETS + 8 + side, 1.0, t, t)
                if not seen & mark:
                    n = _put(out, n, BUCKETS + 12 + side, 1.0, t, t)
                seen |= mark
        if gender[r] != 0 and not b & STOP:
            known += 1
            high = t if high < 0 or gender[r] > gender[rows[high]] else high
            low = t if low < 0 or gender[r] < gender[rows[low]] else low
    if known and on & LEANING:
        for t in range(count):
            r = rows[t]
            if r >= 0 and gender[r] != 0 and not bits[r] & STOP:
                n = _put(out, n, BUCKETS + 16, 5 * gender[r] / known, t, t)
                n = _put(out, n, BUCKETS + 17, 3 * gender[r], t, t)
        n = _put(out, n, BUCKETS + 18, 5 * gender[rows[high]], high, high)
        n = _put(out, n, BUCKETS + 19, 5 * gender[rows[low]], low, low)
    return n
