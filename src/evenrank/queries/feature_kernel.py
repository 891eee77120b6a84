"""The features of queries, from their bytes: hashed n-grams of words, letters and kinds of words.

Free functions on arrays, compiled. One function emits the features, for training and for labelling alike: the
two cannot drift apart. The passes over many queries stand in :mod:`evenrank.queries.feature_passes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from evenrank.text.hashing import BASIS, PRIME, fnv1a, slot_of

BUCKETS = 1 << 18
"""Hashed features; some 80,000 occur in 3,000 queries, so few share a bucket by chance."""
DENSE = 103
"""Counted features after the hashed ones."""
MOST_TOKENS = 64
MOST_FEATURES = 24_000
"""More than 1,000 characters in 64 tokens can make."""

# What a word of the table is, as bits.
STOP, GIVEN, SURNAME, LEX_FEMALE, LEX_MALE, TERM_FEMALE, TERM_MALE, PLAIN, VECTOR, DOUBTFUL, TURN, WORK = (
    1 << i for i in range(12)
)
SAID = 1 << 12
"""The first of four bits, for the sets of `words.SAID`."""

# Groups of features, as bits: each can be left out.
WORDS, PAIRS, LETTERS, CONTEXTS, NAMES, LEXICON, TERMS, LEANING = (1 << i for i in range(8))

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_EDGE = np.uint64(0x5E)
_CLEAR = 1.5  # log odds from which on a given name tells a gender
_SET = 16  # features of names and listed words, in each of six sets
_SAID = 3.0  # value of a word that says a gender and nothing else: the larger, the less it is held back
_USUAL = 8  # words of a query; in longer ones a single name or listed word counts for less
_DIGITS = 250  # the kind of a number; kinds of words in the table are smaller


def _hash(word: str) -> Any:
    """As :func:`fnv1a`, without compiling."""
    state = int(BASIS)
    for byte in word.encode():
        state = ((state ^ byte) * int(PRIME)) % (1 << 64)
    return np.uint64(state)


_AS, _FOR, _A, _AN = map(_hash, ("as", "for", "a", "an"))


@njit(nogil=True, cache=True)
def _mixed(a: Any, b: Any) -> Any:
    x = (a ^ (b + _MIX)) * _MIX
    return x ^ (x >> _SHIFT)


@njit(nogil=True, cache=True)
def find(keys: Any, slots: Any, h: Any) -> int:
    """The row of a word in the table, −1 if it is not there."""
    return slots[slot_of(slots, keys, h)]


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
        n = _asked(out, n, ids, rows, bits, lean, count, scales[4])
    turn, base = _turn(rows, bits, count)
    before = n
    n = _names(out, n, rows, bits, lean, frequency, 0, turn, count, base) if on & NAMES else n
    n = _listed(out, n, rows, bits, 0, turn, count, on, base)
    if turn < count:
        base += _SET if n == before else 2 * _SET
        n = _names(out, n, rows, bits, lean, frequency, turn, count, count, base) if on & NAMES else n
        n = _listed(out, n, rows, bits, turn, count, count, on, base)
    n = _said(out, n, ids, rows, bits, turn, count)
    return _leaning(out, n, rows, bits, gender, count, on), count


@njit(nogil=True, cache=True)
def whom(ids: Any, t: int) -> bool:
    """Whether *as* or *for* stands before the word at ``t``, or before its article: *as a man*."""
    before = ids[t]
    if t > 0 and before in (_A, _AN):
        before = ids[t - 1]
    return before in (_AS, _FOR)


@njit(nogil=True, cache=True)
def _side(side: int, ids: Any, t: int) -> int:
    """The set of `words.SAID` that a word counts in: one woman after *as* or *for* means women."""
    return side - 2 if side > 1 and whom(ids, t) else side


@njit(nogil=True, cache=True)
def _said(out: Any, n: int, ids: Any, rows: Any, bits: Any, turn: int, count: int) -> int:
    """Whether a query says *women*, *male* and their like, however long it is and wherever they stand.

    Words that mean one woman or man count only before the turn: after it they are often part of a title.
    """
    seen = 0
    for t in range(count):
        if rows[t] < 0:
            continue
        for listed in range(4):
            if not bits[rows[t]] & (SAID << listed):
                continue
            side = _side(listed, ids, t)
            mark = SAID << side
            if not seen & mark and (side < 2 or t < turn):
                n = _put(out, n, BUCKETS + 99 + side, _SAID, t, t)
                seen |= mark
    return n


@njit(nogil=True, cache=True)
def cue_of(r: int, bits: Any, lean: Any) -> int:
    """What a word tells: 1 a woman's name, 2 a man's, 3 a female word, 4 a male one, 0 nothing."""
    if r < 0 or (bits[r] & STOP and not bits[r] & (LEX_FEMALE | LEX_MALE)):
        return 0
    b = bits[r]
    if b & (LEX_FEMALE | TERM_FEMALE):
        return 3
    if b & (LEX_MALE | TERM_MALE):
        return 4
    if b & GIVEN and not b & DOUBTFUL:
        return 1 if lean[r] > _CLEAR else 2 if lean[r] < -_CLEAR else 0
    return 0


@njit(nogil=True, cache=True)
def _of_name(b: int) -> bool:
    """Whether a word after a given name may belong to it."""
    return bool(b & (GIVEN | SURNAME)) and not b & (STOP | PLAIN)


@njit(nogil=True, cache=True)
def _edges(out: Any, n: int, ids: Any, cue: Any, t: int, count: int) -> int:
    """The first one, two and three words of a query and the last one, with what tells a gender at ``t``."""
    h = cue
    for i in range(min(3, count)):
        h = _mixed(h, ids[i + 1])
        n = _hashed(out, n, h, 6, 0, max(t, i))
    return _hashed(out, n, _mixed(cue, ids[count]), 7, t, count - 1)


@njit(nogil=True, cache=True)
def _asked(out: Any, n: int, ids: Any, rows: Any, bits: Any, lean: Any, count: int, scale: float) -> int:
    """How the question begins and ends, with what tells a gender in it.

    *who sang* goes before a title, *how old is* before a person: the same name tells less after the one than
    after the other.
    """
    begin = n
    n = _edges(out, n, ids, np.uint64(0), 0, count)
    seen = 0
    for t in range(count):
        cue = cue_of(rows[t], bits, lean)
        if cue == 0 or seen & (1 << cue):
            continue
        seen |= 1 << cue
        n = _edges(out, n, ids, np.uint64(cue), t, count)
        end = t + 1
        while cue < 3 and end < min(t + 3, count) and rows[end] >= 0 and _of_name(bits[rows[end]]):
            end += 1  # a surname, or a second name
        n = _hashed(out, n, _mixed(np.uint64(cue), ids[t]), 8, max(t - 1, 0), t)
        n = _hashed(out, n, _mixed(np.uint64(cue), ids[end + 1]), 9, t, min(end, count - 1))
    for i in range(begin, n):
        out[1][i] = scale
    return n


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
def _share(count: int) -> float:
    """By what a single word counts in a query of so many: a long text meets a name or a list by chance."""
    return math.sqrt(_USUAL / count) if count > _USUAL else 1.0


@njit(nogil=True, cache=True)
def _turn(rows: Any, bits: Any, count: int) -> Any:
    """Where a query turns from whom it is about to where or in what, and which set of features it has.

    *who plays the girl in wreck it ralph*: what stands after *in* tells less, least of all when somebody was
    named before it, or when the query speaks of seasons, songs and films. *who sang* turns at once: a title
    follows. So names and listed words have six
    sets of features: before the turn, after it, after it when there was one before; each with or without a
    word for a work.
    """
    turn, base = count, BUCKETS
    for t in range(count):
        r = rows[t]
        if r < 0:
            continue
        makes = bits[r] & TURN and bits[r] & WORK
        if turn == count and ((bits[r] & TURN and t and not makes) or (makes and t == 1)):
            turn = t
        if bits[r] & WORK and (t == 1 or not makes):
            base = BUCKETS + 3 * _SET
    return turn, base


@njit(nogil=True, cache=True)
def _names(
    out: Any,
    n: int,
    rows: Any,
    bits: Any,
    lean: Any,
    frequency: Any,
    start: int,
    end: int,
    count: int,
    base: int,
) -> int:
    """How the given names lean: the first, the most female, the most male, all; how common; surnames.

    A name that is an ordinary word as well (grace, will, mark) is one only before a surname.
    """
    first, high, low, surnames, together = -1, -1, -1, 0, 0
    share = _share(count)
    for t in range(start, end):
        r = rows[t]
        if r < 0 or bits[r] & STOP:
            continue
        after = rows[t + 1] if t + 1 < count else -1
        named = after >= 0 and bits[after] & SURNAME and not bits[after] & STOP
        if bits[r] & GIVEN and (named or not bits[r] & DOUBTFUL):
            x = lean[r]
            n = _put(out, n, base + 3, share * math.tanh(x / 2), t, t)
            first = t if first < 0 else first
            high = t if x > 0 and (high < 0 or x > lean[rows[high]]) else high
            low = t if x < 0 and (low < 0 or x < lean[rows[low]]) else low
            if named:
                together += 1
        if bits[r] & SURNAME:
            surnames += 1
    if first >= 0:
        n = _put(out, n, base, share * lean[rows[first]] / 3, first, first)
        n = _put(out, n, base + 4, share, first, first)
        n = _put(out, n, base + 5, share * frequency[rows[first]], first, first)
    if high >= 0:
        n = _put(out, n, base + 1, share * lean[rows[high]] / 3, high, high)
    if low >= 0:
        n = _put(out, n, base + 2, share * lean[rows[low]] / 3, low, low)
    if surnames:
        n = _put(out, n, base + 6, share * min(surnames, 3), start, end - 1)
    if together:
        n = _put(out, n, base + 7, share * min(together, 2), start, end - 1)
    return n


@njit(nogil=True, cache=True)
def _listed(
    out: Any, n: int, rows: Any, bits: Any, start: int, end: int, count: int, on: int, base: int
) -> int:
    """Gendered words of both lists: each, and whether there is one."""
    seen, share = 0, _share(count)
    for t in range(start, end):
        if rows[t] < 0:
            continue
        b = bits[rows[t]]
        for side in range(4):
            mark = LEX_FEMALE << side
            if b & mark and on & (LEXICON if side < 2 else TERMS):
                n = _put(out, n, base + 8 + side, share, t, t)
                if not seen & mark:
                    n = _put(out, n, base + 12 + side, 1.0, t, t)
                seen |= mark
    return n


@njit(nogil=True, cache=True)
def _leaning(out: Any, n: int, rows: Any, bits: Any, gender: Any, count: int, on: int) -> int:
    """The genderedness of all words: mean and extremes."""
    if not on & LEANING:
        return n
    known, high, low = 0, -1, -1
    base, share = BUCKETS + 6 * _SET, _share(count)
    for t in range(count):
        r = rows[t]
        if r >= 0 and gender[r] != 0 and not bits[r] & STOP:
            known += 1
            high = t if high < 0 or gender[r] > gender[rows[high]] else high
            low = t if low < 0 or gender[r] < gender[rows[low]] else low
    for t in range(count):
        r = rows[t]
        if r >= 0 and gender[r] != 0 and not bits[r] & STOP:
            n = _put(out, n, base, 5 * gender[r] / known, t, t)
    if known:
        n = _put(out, n, base + 1, share * 5 * gender[rows[high]], high, high)
        n = _put(out, n, base + 2, share * 5 * gender[rows[low]], low, low)
    return n
