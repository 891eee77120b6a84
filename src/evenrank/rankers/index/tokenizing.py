"""Words out of UTF-8 bytes: the rules of :func:`evenrank.rankers.index.analysis.split`, in machine code.

Each word becomes a number, in the order in which words first appear, and each distinct word is kept once:
whatever else is to be done to words, such as stemming, is done to the distinct ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenrank.rankers.index.analysis import (
    DIGIT,
    IDEOGRAPH,
    LETTER,
    LONGEST,
    MARK,
    MID_LETTER,
    MID_NUMBER,
    SEPARATOR,
    SILENT,
    UNDERSCORE,
    characters,
)
from evenrank.text.hashing import FREE, compiled, fnv1a, put_words, word_slot
from evenrank.text.kernel import composed, decode, encode
from evenrank.text.matcher import strings, utf8

_SLOTS = 1 << 15
_WIDEST = 4 * (LONGEST + 2)
_ROW = 0  # in the state of the cutting


class Words(NamedTuple):
    """Texts as word numbers, and the words that these stand for."""

    numbers: np.ndarray  # int32: the words of all texts, one behind the other
    bounds: np.ndarray  # int64[texts + 1]: where each text begins in `numbers`
    offsets: np.ndarray  # int64[words + 1]: where each distinct word begins in `pool`
    pool: np.ndarray  # uint8: the words themselves, in UTF-8
    hashes: np.ndarray  # uint64[words]

    def __len__(self) -> int:
        return len(self.hashes)

    def texts(self) -> list[str]:
        """The distinct words."""
        return decoded(self.offsets, self.pool)


def decoded(offsets: np.ndarray, pool: np.ndarray) -> list[str]:
    """Words of a pool as Python strings."""
    offsets = np.ascontiguousarray(offsets)
    if len(offsets) < 2:
        return []
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(pool))]
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, buffers[1], buffers[2])
    names: list[str] = array.to_pylist()
    return names


def words(texts: Any) -> Words:
    """Cut texts (an Arrow array of strings of any layout, or a sequence of str) into words."""
    array = strings(texts)
    data, places = utf8(array)
    tables = characters()
    size = int(places[-1] - places[0])
    numbers = np.empty(size // 2 + len(array) + 1, np.int32)
    bounds = np.zeros(len(array) + 1, np.int64)
    result = Vocabulary(_SLOTS if size > _SLOTS else 1 << 10)
    word = np.zeros(_WIDEST, np.uint8)
    state = np.array([0, places[0], 0], np.int64)
    while state[_ROW] < len(array):
        result.distinct = _cut(
            data, places, tables.kind, tables.lower, tables.pairs, word, state, numbers, bounds,
            result.distinct, result.slots, result.hashes, result.offsets, result.pool,
        )  # fmt: skip
        if state[_ROW] < len(array):
            result.reserve(len(result.hashes), len(result.pool))
    offsets, pool = result.offsets[: result.distinct + 1], result.pool[: result.offsets[result.distinct]]
    return Words(numbers[: bounds[-1]], bounds, offsets, pool, result.hashes[: result.distinct])


class Vocabulary:
    """Distinct words, numbered as they come: a hash table over a pool of bytes."""

    def __init__(self, slots: int) -> None:
        self.distinct = 0
        self.slots = np.full(slots, FREE, np.int32)
        self.hashes = np.empty(slots // 2, np.uint64)
        self.offsets = np.zeros(slots // 2 + 1, np.int64)
        self.pool = np.empty(8 * slots + _WIDEST, np.uint8)

    def reserve(self, words: int, size: int) -> None:
        """Make room for so many more words, of so many bytes in all."""
        if self.distinct + words > len(self.hashes):
            room = len(self.hashes)
            while room < self.distinct + words:
                room *= 2
            self.hashes = _longer(self.hashes, room)
            self.offsets = _longer(self.offsets, room + 1)
            self.slots = np.full(2 * room, FREE, np.int32)
            put_words(self.slots, self.hashes[: self.distinct])
        needed = int(self.offsets[self.distinct]) + size
        if needed > len(self.pool):
            self.pool = _longer(self.pool, max(needed, 2 * len(self.pool)))


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def hash_bytes(data: Any, first: Any, last: Any) -> Any:
    """FNV-1a, 64 bits, finished as in MurmurHash3."""
    state = fnv1a(data, first, last)
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    return state ^ (state >> np.uint64(33))


@compiled
def _kind_of(kinds: Any, code: Any) -> Any:
    if code < len(kinds):
        return np.int64(kinds[code])
    return np.int64(IDEOGRAPH) if 0x20000 <= code < 0x323B0 else np.int64(SEPARATOR)


@compiled
def _kind_behind(kinds: Any, data: Any, position: Any, end: Any) -> Any:
    """The class of the next character that is not silent or a mark."""
    while position < end:
        code, width = decode(data, position, end)
        kind = _kind_of(kinds, code)
        if kind not in (SILENT, MARK):
            return kind
        position += width
    return np.int64(SEPARATOR)


@compiled
def _next_word(data: Any, position: Any, end: Any, kinds: Any, lower: Any, pairs: Any, word: Any) -> Any:
    """Put the next word into `word`: (its size in bytes, where it ends); the size is 0 at the end."""
    size, count = 0, 0  # bytes and characters
    solid = False
    previous = np.int64(SEPARATOR)
    letter, before = np.int64(-1), 0  # the last character, and the size before it
    while position < end:
        byte = np.int64(data[position])
        if byte < 0x80:
            code, width = byte, 1
            kind = np.int64(kinds[byte])
        else:
            code, width = decode(data, position, end)
            kind = _kind_of(kinds, code)
        if kind in (LETTER, DIGIT, UNDERSCORE):
            if previous == IDEOGRAPH or count >= LONGEST:
                if solid:
                    return size, position
                size, count = 0, 0
            previous = kind
            solid = solid or kind != UNDERSCORE
        elif kind == SEPARATOR:
            if solid:
                return size, position + width
            size, count, previous = 0, 0, np.int64(SEPARATOR)
            position += width
            continue
        elif kind == SILENT:
            position += width
            continue
        elif kind == MARK and count > 0:
            joined = composed(pairs, letter, code)
            if joined >= 0:
                letter, size = joined, before
                size = encode(letter, word, size)
            elif count < LONGEST:
                letter, before = code, size
                size = encode(letter, word, size)
                count += 1
            position += width
            continue
        elif kind == IDEOGRAPH:
            if solid:
                return size, position
            size = encode(code, word, 0)
            solid, previous, count, letter, before = True, kind, 1, code, 0
            position += width
            continue
        else:
            behind = np.int64(SEPARATOR)
            if kind >= MID_LETTER and previous in (LETTER, DIGIT):
                behind = _kind_behind(kinds, data, position + width, end)
            letters = behind == LETTER and previous == LETTER and kind != MID_NUMBER
            digits = behind == DIGIT and previous == DIGIT and kind != MID_LETTER
            if not (letters or digits):
                if solid:
                    return size, position + width
                size, count, previous = 0, 0, np.int64(SEPARATOR)
                position += width
                continue
            if count >= LONGEST:
                return size, position
            previous = kind
        before = size
        if byte < 0x80:
            letter = byte | 0x20 if 0x41 <= byte <= 0x5A else byte
            word[size] = letter
            size += 1
        else:
            letter = np.int64(lower[code]) if code < len(lower) else code
            size = encode(letter, word, size)
        count += 1
        position += width
    return (size if solid else 0), position


@compiled
def _cut(
    data: Any, places: Any, kinds: Any, lower: Any, pairs: Any, word: Any, state: Any,
    numbers: Any, bounds: Any, distinct: Any, slots: Any, hashes: Any, offsets: Any, pool: Any,
) -> Any:  # fmt: skip
    """Fill numbers and bounds from where `state` says on, as long as there is room for one more word.

    Returns the number of distinct words; `state` is left at the row, position and count reached.
    """
    row, position, count = state[0], state[1], state[2]
    while row < len(places) - 1:
        end = places[row + 1]
        while position < end:
            if distinct == len(hashes) or offsets[distinct] + len(word) > len(pool):
                state[0], state[1], state[2] = row, position, count
                return distinct
            size, position = _next_word(data, position, end, kinds, lower, pairs, word)
            if size == 0:
                break
            key = hash_bytes(word, 0, size)
            slot = word_slot(slots, hashes, offsets, pool, key, word, 0, size)
            number = np.int64(slots[slot])
            if number == FREE:
                number = distinct
                begin = offsets[distinct]
                for i in range(size):
                    pool[begin + i] = word[i]
                offsets[distinct + 1] = begin + size
                hashes[distinct] = key
                slots[slot] = distinct
                distinct += 1
            numbers[count] = number
            count += 1
        row += 1
        bounds[row] = count
        position = places[row]
    state[0], state[1], state[2] = row, position, count
    return distinct
