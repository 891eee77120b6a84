"""The compiled splitter of texts into words: UAX #29 for what is ASCII, pieces for the rest.

Importing this module loads numba.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from numba import njit

from evenrank.text.hashing import CASE, EXACT, FREE, SPARE, put_words, word_slot

__all__ = ["SPARE", "expand", "split_ascii"]

# Kinds of bytes: letters, digits, others that a word may have, and marks that may be between two letters or
# between two digits. All other bytes (0) separate words.
_LETTER_BIT, _DIGIT_BIT, _OTHER_BIT, _BETWEEN_BIT = 1, 2, 4, 8
_KINDS = np.zeros(256, np.uint8)
_KINDS[list(string.ascii_letters.encode())] = _LETTER_BIT
_KINDS[list(string.digits.encode())] = _DIGIT_BIT
_KINDS[[ord("_"), *range(0x80, 0x100)]] = _OTHER_BIT
_KINDS[list(b":.'")] |= _BETWEEN_BIT | _LETTER_BIT
_KINDS[list(b",;.'")] |= _BETWEEN_BIT | _DIGIT_BIT
_FIRST_SLOTS = 1 << 14


@njit(nogil=True, cache=True)
def split_ascii(data: Any, places: Any) -> Any:
    """Split texts, data[places[i]:places[i + 1]] each, into pieces, and number these.

    Returned are the number of each piece, where each text begins among these numbers, the distinct pieces as
    offsets and bytes, and which of them are words. The others have an underscore or are not ASCII, and have
    any number of words.
    """
    room = places[-1] // 2 + len(places)  # a piece has a byte, and a separator or the end behind it
    numbers, bounds = np.empty(room, np.int32), np.zeros(len(places), np.int64)
    slots = np.full(_FIRST_SLOTS, FREE, np.int32)
    offsets, pool = np.zeros(room + 1, np.int64), np.zeros(places[-1] + SPARE, np.uint8)
    is_word = np.empty(room, np.bool_)
    total = count = 0
    for row in range(len(places) - 1):
        position, end = places[row], places[row + 1]
        while position < end:
            first, kinds = position, 0
            while position < end:
                kind = _KINDS[data[position]]
                if kind >= _BETWEEN_BIT and first < position < end - 1:
                    before, behind = _KINDS[data[position - 1]], _KINDS[data[position + 1]]
                    is_joint = before & behind & kind or (before | behind) & _OTHER_BIT
                    if behind >= _BETWEEN_BIT or behind == 0 or not is_joint:
                        break
                elif kind == 0 or kind >= _BETWEEN_BIT:
                    break
                kinds |= kind
                position += 1
            size = position - first
            position += 1
            if size == 0:
                continue
            ignored = EXACT if kinds & _OTHER_BIT else CASE
            slot = word_slot(slots, offsets, pool, data, first, size, ignored)
            if slots[slot] == FREE:
                slots[slot] = count
                pool[offsets[count] : offsets[count] + size] = data[first : first + size]
                offsets[count + 1] = offsets[count] + size
                is_word[count] = kinds & _OTHER_BIT == 0
                count += 1
            numbers[total] = slots[slot]
            total += 1
            if 2 * count > len(slots):
                slots = np.empty(4 * len(slots), np.int32)
                put_words(slots, offsets, pool, count)
        bounds[row + 1] = total
    return numbers[:total], bounds, offsets[: count + 1], pool, is_word[:count]


@njit(nogil=True, cache=True)
def expand(numbers: Any, bounds: Any, firsts: Any) -> Any:
    """Replace each piece i by the words from firsts[i] to firsts[i + 1]; returns their numbers and bounds."""
    total = 0
    for number in numbers:
        total += firsts[number + 1] - firsts[number]
    result, ends, total = np.empty(total, np.int64), np.zeros(len(bounds), np.int64), 0
    for row in range(len(bounds) - 1):
        for i in range(bounds[row], bounds[row + 1]):
            for word in range(firsts[numbers[i]], firsts[numbers[i] + 1]):
                result[total] = word
                total += 1
        ends[row + 1] = total
    return result, ends
