"""Words with a value in plain ASCII texts, one pass over the bytes, compiled. Importing this loads numba.

Every word of a running text has to be looked up among 100,000, so the table is small and flat: a slot is
a 64-bit hash, kept up byte by byte, and the place of the word; a hit is compared with the word itself.
Texts with other letters take the way of :mod:`evenrank.text.kernel`, which knows all of Unicode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)

_SEPARATOR, _DIGIT, _FOREIGN = 0, 1, 2
KINDS = np.zeros(256, np.uint8)  # a letter is its lower case
KINDS[ord("0") : ord("9") + 1] = _DIGIT
KINDS[128:] = _FOREIGN
for _letter in range(26):
    KINDS[ord("a") + _letter] = KINDS[ord("A") + _letter] = ord("a") + _letter


class Slots(NamedTuple):
    """An open-addressing table: hash and place of each word, and the words' bytes to compare with."""

    hashes: np.ndarray  # uint64; 0 is free
    places: np.ndarray  # int32
    pool: np.ndarray  # uint8
    offsets: np.ndarray  # int64


def slots(vocabulary: list[str]) -> Slots:
    """The table of those words that are plain ASCII."""
    encoded = [word.encode() if word.isascii() else b"" for word in vocabulary]
    size = 1 << max(4, (4 * len(encoded)).bit_length())
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
    pool = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    made = Slots(np.zeros(size, np.uint64), np.zeros(size, np.int32), pool, offsets)
    _fill(made.hashes, made.places, made.pool, made.offsets)
    return made


@njit(nogil=True, cache=True, inline="always")
def _mixed(key, byte):  # type: ignore[no-untyped-def]
    return (key ^ np.uint64(byte)) * _PRIME


@njit(nogil=True, cache=True)
def _fill(hashes, places, pool, offsets):  # type: ignore[no-untyped-def]
    last = np.uint64(len(hashes) - 1)
    for word in range(len(offsets) - 1):
        if offsets[word] == offsets[word + 1]:
            continue
        key = _PRIME
        for i in range(offsets[word], offsets[word + 1]):
            key = _mixed(key, pool[i])
        key |= np.uint64(1)
        slot = (key >> _SHIFT) & last
        while hashes[slot]:
            slot = (slot + np.uint64(1)) & last
        hashes[slot], places[slot] = key, word


@njit(nogil=True, cache=True)
def collect_ascii(kinds, hashes, places, pool, starts, data, offsets, plain, seen, counts, words, times):  # type: ignore[no-untyped-def]
    """Words of the plain texts and how often each occurs, one text after the other; returns how many.

    `seen` are zeros, one for each word of the vocabulary; `plain` will say which texts are ASCII, and
    `counts` how many distinct words each of them has.
    """
    last = np.uint64(len(hashes) - 1)
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
            begin, key, digit = position, _PRIME, False
            while kind != _SEPARATOR:
                digit |= kind <= _FOREIGN
                if kind == _FOREIGN:
                    plain[row] = False
                    break
                key = _mixed(key, kind)
                position += 1
                if position == end:
                    break
                kind = kinds[data[position]]
            if not plain[row]:
                break
            size = position - begin
            if digit or size < 2:
                continue
            key |= np.uint64(1)
            slot = (key >> _SHIFT) & last
            while hashes[slot]:
                if hashes[slot] == key:
                    word = places[slot]
                    at = starts[word]
                    same = starts[word + 1] - at == size
                    if same:
                        for i in range(size):
                            same &= pool[at + i] == kinds[data[begin + i]]
                    if same:
                        if seen[word] == 0:
                            words[found] = word
                            found += 1
                        seen[word] += 1
                        break
                slot = (slot + np.uint64(1)) & last
        for i in range(first, found):
            times[i] = seen[words[i]]
            seen[words[i]] = 0
        if not plain[row]:
            found = first
        counts[row] = found - first
    return found


@njit(nogil=True, cache=True)
def hashes_of(data, offsets, seed):  # type: ignore[no-untyped-def]
    """A number for each text that looks random and depends on nothing but the text and the seed."""
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        key = _mixed(_PRIME, seed)
        for i in range(offsets[row], offsets[row + 1]):
            key = _mixed(key ^ (key >> _SHIFT), data[i])
        key = _mixed(key ^ (key >> _SHIFT), offsets[row + 1] - offsets[row])
        found[row] = key ^ (key >> _SHIFT)
    return found
