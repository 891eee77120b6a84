"""Bags of surface words, and sums of their vectors, compiled. Importing this loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit

_PRIME = np.uint64(0x9E3779B97F4A7C15)  # as in evenrank.vectors.reading, whose table is searched
_SHIFT = np.uint64(32)

_SEPARATOR, _APOSTROPHE, _FOREIGN = 0, 1, 2
_KINDS = np.zeros(256, np.uint8)  # a letter or digit is itself, in lower case
_KINDS[ord("'")] = _APOSTROPHE
_KINDS[128:] = _FOREIGN
for _character in "abcdefghijklmnopqrstuvwxyz0123456789":
    _KINDS[ord(_character)] = _KINDS[ord(_character.upper())] = ord(_character)


@njit(nogil=True, cache=True)
def _place(hashes, places, pool, starts, data, begin, size, key):  # type: ignore[no-untyped-def]
    """The place of a word in the vocabulary, or −1."""
    last = np.uint64(len(hashes) - 1)
    slot = (key >> _SHIFT) & last
    while hashes[slot]:
        if hashes[slot] == key:
            word = places[slot]
            at = starts[word]
            same = starts[word + 1] - at == size
            if same:
                for i in range(size):
                    same &= pool[at + i] == _KINDS[data[begin + i]]
            if same:
                return word
        slot = (slot + np.uint64(1)) & last
    return -1


@njit(nogil=True, cache=True)
def collect(hashes, places, pool, starts, data, offsets, keys, counts, total):  # type: ignore[no-untyped-def]
    """The distinct words of each ASCII text in order, as word << 32 | times; returns how many in all.

    `counts` will say how many distinct words each text has, `total` how many tokens: −1 where the text is
    not plain ASCII and was left alone. A single letter beside an apostrophe is no token.
    """
    found = 0
    for row in range(len(counts)):
        first, end = found, np.int64(offsets[row + 1])
        position = np.int64(offsets[row])
        number, before = 0, _SEPARATOR
        while position < end:
            kind = _KINDS[data[position]]
            if kind <= _FOREIGN:
                if kind == _FOREIGN:
                    number, found = -1, first
                    break
                before = kind
                position += 1
                continue
            begin, key = position, _PRIME
            while kind > _FOREIGN:
                key = (key ^ np.uint64(kind)) * _PRIME
                position += 1
                kind = _KINDS[data[position]] if position < end else np.uint8(_SEPARATOR)
            size = position - begin
            if size == 1 and (before == _APOSTROPHE or kind == _APOSTROPHE):
                continue
            number += 1
            word = _place(hashes, places, pool, starts, data, begin, size, key | np.uint64(1))
            if word >= 0:
                keys[found] = word
                found += 1
        total[row] = number
        keys[first:found].sort()
        last = first
        for i in range(first, found):
            if last > first and keys[last - 1] >> 32 == keys[i]:
                keys[last - 1] += 1
            else:
                keys[last] = (keys[i] << 32) | 1
                last += 1
        found = last
        counts[row] = found - first
    return found


@njit(nogil=True, cache=True)
def compose(bounds, words, times, weights, matrix, out):  # type: ignore[no-untyped-def]
    """Sums of weighted word vectors, scaled to length 1; zeros where there is nothing to add up."""
    total = np.empty(matrix.shape[1])
    for row in range(len(bounds) - 1):
        total[:] = 0.0
        for i in range(bounds[row], bounds[row + 1]):
            factor = weights[words[i]] * times[i]
            vector = matrix[words[i]]
            for j in range(len(total)):
                total[j] += factor * vector[j]
        square = 0.0
        for j in range(len(total)):
            square += total[j] * total[j]
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for j in range(len(total)):
            out[row, j] = total[j] * scale
