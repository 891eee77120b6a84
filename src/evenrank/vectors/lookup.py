"""The words of texts as rows of a table of vectors, and sums over pairs of texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from evenrank.text.hashing import BASIS, FREE, PRIME, fnv1a, put_words, word_slot

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)

_SEPARATOR, _DIGIT, _FOREIGN = 0, 1, 2
KINDS = np.zeros(256, np.uint8)  # a letter is its lower case
KINDS[ord("0") : ord("9") + 1] = _DIGIT
KINDS[128:] = _FOREIGN
for _letter in range(26):
    KINDS[ord("a") + _letter] = KINDS[ord("A") + _letter] = ord("a") + _letter


class Slots(NamedTuple):
    """A hash table of words, as :mod:`evenrank.text.hashing` has it, and room for the longest of them."""

    slots: np.ndarray  # int32
    hashes: np.ndarray  # uint64
    offsets: np.ndarray  # int64
    pool: np.ndarray  # uint8
    longest: int


def slots(vocabulary: list[str]) -> Slots:
    """The table of those words that are plain ASCII; the others are in it as empty words, never asked for."""
    encoded = [word.encode() if word.isascii() else b"" for word in vocabulary]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
    pool = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    hashes = _hashed(pool, offsets)
    made = np.full(1 << max(4, (4 * len(encoded)).bit_length()), FREE, np.int32)
    put_words(made, hashes, np.flatnonzero(np.diff(offsets)))
    return Slots(made, hashes, offsets, pool, max(map(len, encoded), default=0))


@njit(nogil=True, cache=True)
def _hashed(pool, offsets):  # type: ignore[no-untyped-def]
    found = np.empty(len(offsets) - 1, np.uint64)
    for word in range(len(found)):
        found[word] = fnv1a(pool, offsets[word], offsets[word + 1])
    return found


@njit(nogil=True, cache=True)
def collect_ascii(kinds, table, data, offsets, plain, seen, counts, words, times):  # type: ignore[no-untyped-def]
    """Words of the plain texts and how often each occurs, one text after the other; returns how many.

    `seen` are zeros, one for each word of the vocabulary; `plain` will say which texts are ASCII, and
    `counts` how many distinct words each of them has.
    """
    word = np.empty(table.longest + 1, np.uint8)
    found = 0
    for row in range(len(plain)):
        first, end = found, offsets[row + 1]
        position = np.int64(offsets[row])
        plain[row] = True
        while position < end:
            kind = kinds[data[position]]
            if kind == _SEPARATOR:
                position += 1
                continue
            size, key, digit = 0, BASIS, False
            while kind != _SEPARATOR:
                digit |= kind <= _FOREIGN
                if kind == _FOREIGN:
                    plain[row] = False
                    break
                if size <= table.longest:
                    word[size] = kind
                    key = (key ^ np.uint64(kind)) * PRIME
                size += 1
                position += 1
                if position == end:
                    break
                kind = kinds[data[position]]
            if not plain[row]:
                break
            if digit or size < 2 or size > table.longest:
                continue
            number = place(table, key, word, size)
            if number >= 0:
                if seen[number] == 0:
                    words[found] = number
                    found += 1
                seen[number] += 1
        for i in range(first, found):
            times[i] = seen[words[i]]
            seen[words[i]] = 0
        if not plain[row]:
            found = first
        counts[row] = found - first
    return found


@njit(nogil=True, cache=True, inline="always")
def _mixed(key, byte):  # type: ignore[no-untyped-def]
    return (key ^ np.uint64(byte)) * _MIX


@njit(nogil=True, cache=True)
def place(table, key, word, size):  # type: ignore[no-untyped-def]
    """The place of word[:size], whose FNV-1a is `key`, in the vocabulary, or −1."""
    return table.slots[word_slot(table.slots, table.hashes, table.offsets, table.pool, key, word, 0, size)]


@njit(nogil=True, cache=True)
def hashes_of(data, offsets, seed):  # type: ignore[no-untyped-def]
    """A number for each text that looks random and depends on nothing but the text and the seed."""
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        key = _mixed(_MIX, seed)
        for i in range(offsets[row], offsets[row + 1]):
            key = _mixed(key ^ (key >> _SHIFT), data[i])
        key = _mixed(key ^ (key >> _SHIFT), offsets[row + 1] - offsets[row])
        found[row] = key ^ (key >> _SHIFT)
    return found


@njit(nogil=True, cache=True)
def pair_means(  # type: ignore[no-untyped-def]
    query_bounds, query_stems, query_of, doc_of, doc_bounds, words, times, sums, stems, all_stems
):
    """Mean value of the words of each pair's document that share no stem with the pair's query.

    The stems of query q are query_stems[query_bounds[q]:query_bounds[q + 1]]; the words of document d lie
    at doc_bounds[d]:doc_bounds[d + 1]: how often each occurs, its value times that, its stem. NaN where no
    word is left. Most documents share no word with a query that did not find them: the mean over all
    words is kept, and computed anew only where some are left out.
    """
    whole = np.empty(len(doc_bounds) - 1, np.float64)
    for doc in range(len(whole)):
        total, count = 0.0, 0
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            total += sums[i]
            count += times[i]
        whole[doc] = total / count if count else np.nan
    means = np.empty(len(query_of), np.float64)
    marked = np.zeros(all_stems, np.uint8)
    current = -1
    for pair in range(len(query_of)):
        query = query_of[pair]
        if query != current:
            if current >= 0:
                for i in range(query_bounds[current], query_bounds[current + 1]):
                    marked[query_stems[i]] = 0
            for i in range(query_bounds[query], query_bounds[query + 1]):
                marked[query_stems[i]] = 1
            current = query
        doc = doc_of[pair]
        first, last = doc_bounds[doc], doc_bounds[doc + 1]
        shared = np.uint8(0)
        for i in range(first, last):
            shared |= marked[stems[i]]
        if not shared:
            means[pair] = whole[doc]
            continue
        total, count = 0.0, 0
        for i in range(first, last):
            if not marked[stems[i]]:
                total += sums[i]
                count += times[i]
        means[pair] = total / count if count else np.nan
    return means


@njit(nogil=True, cache=True)
def pair_shares(  # type: ignore[no-untyped-def]
    query_bounds,
    query_stems,
    query_of,
    doc_of,
    doc_bounds,
    words,
    times,
    sums,
    stems,
    all_stems,
    scale,
    centre,
    vocabulary,
):
    """What each word adds to Σ scale · (mean − centre) over the pairs; arguments as for `pair_means`."""
    shares = np.zeros(vocabulary, np.float64)
    marked = np.zeros(all_stems, np.uint8)
    for pair in range(len(query_of)):
        query = query_of[pair]
        for i in range(query_bounds[query], query_bounds[query + 1]):
            marked[query_stems[i]] = 1
        doc, count = doc_of[pair], 0
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            if not marked[stems[i]]:
                count += times[i]
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            if not marked[stems[i]]:
                shares[words[i]] += scale[pair] * (sums[i] - centre * times[i]) / count
        for i in range(query_bounds[query], query_bounds[query + 1]):
            marked[query_stems[i]] = 0
    return shares
