"""The compiled tokenizer and matcher: it reads UTF-8 texts and finds the words of one hash table in them.

Most text is ASCII, and most tokens are no word of the table. So the places where tokens begin and end are
found 64 bytes at a time, and a token is compared with words only if the slot of its hash is taken; only what
is not ASCII is decoded. A phrase is a key of the table like any other: its tokens with a space between them.
:mod:`evenrank.text.tokens` is the definition.

Importing this module loads numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from evenrank.text.hashing import (
    CASE,
    EXACT,
    FREE,
    SPARE,
    compiled,
    eight,
    inlined,
    internal,
    word_hash,
    word_slot,
)
from evenrank.text.tokens import APOSTROPHE, LETTER, MARK

SPACE, QUOTE = 0x20, 0x27  # a space is between the tokens of a phrase
NONE = -1
_BLOCK = 64


def _repeated(byte: int) -> np.uint64:
    """The same byte eight times."""
    return np.uint64(byte * 0x0101010101010101)


_ONE, _SEVEN, _LOW = np.uint64(1), np.uint64(7), np.uint64(63)
_HIGH, _SPACES, _BELOW_HIGH = _repeated(0x80), _repeated(SPACE), _repeated(0x7F)
# Added to a byte of ASCII, these reach its highest bit from "a", "{", "0" and ":" on.
_FROM_A, _BEHIND_Z = _repeated(0x80 - 0x61), _repeated(0x80 - 0x7B)
_FROM_0, _BEHIND_9 = _repeated(0x80 - 0x30), _repeated(0x80 - 0x3A)
_GATHER, _TOP = np.uint64(0x0102040810204080), np.uint64(56)  # the lowest bits of eight bytes, side by side


class Table(NamedTuple):
    """A tokenizer, and the hash table of the words that are looked for."""

    words: bool  # the tokenizer `words`, not `whitespace`
    kind: np.ndarray  # uint8 by code point, for any that four bytes can give, see tokens.Unicode
    fold: np.ndarray  # uint32 by code point; later ones stay as they are
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | combining mark, and the letter they make
    slots: np.ndarray  # int32
    offsets: np.ndarray  # int64: where each word begins …
    pool: np.ndarray  # uint8: … among all their bytes
    entries: np.ndarray
    """int32[words, 3]: the entry that is this word; that is this word with a star; and how many tokens the
    longest phrase that begins with this word has behind it"""
    stem: int  # bytes with which each entry with a star begins; 0 if there is none


@internal
def decode(data: Any, position: Any, end: Any) -> Any:
    """The code point at a position and the bytes it takes; a broken one counts as a separator."""
    first = np.int64(data[position])
    if first < 0x80:
        return first, 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC0 or position + size > end:
        return np.int64(0), 1
    code = first & (0x7F >> size)
    for i in range(1, size):
        code = code << 6 | (np.int64(data[position + i]) & 0x3F)
    return code, size


@internal
def encode(code: Any, token: Any, size: Any) -> Any:
    """Append a code point to a token; returns its new size."""
    if code < 0x80:
        token[size] = code
        return size + 1
    length = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for i in range(length - 1, 0, -1):
        token[size + i] = 0x80 | (code & 0x3F)
        code >>= 6
    token[size] = ((0xF00 >> length) & 0xFF) | code
    return size + length


@internal
def composed(pairs: Any, letter: Any, mark: Any) -> Any:
    """The one letter that a letter and a combining mark make, or -1."""
    pair = letter << 21 | mark
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) // 2
        if pairs[middle, 0] < pair:
            low = middle + 1
        else:
            high = middle
    return pairs[low, 1] if low < len(pairs) and pairs[low, 0] == pair else np.int64(-1)


@internal
def _next_token(table: Any, data: Any, position: Any, end: Any, token: Any, begin: Any) -> Any:
    """The next token: where it starts (-1 if there is none) and ends, and its size with what is before it.

    The folded token is written to place `begin` of the buffer `token`.
    """
    beside = False  # is an apostrophe directly before the token
    while position < end:
        first, size, count = position, begin, 0
        letter, size_before = np.int64(-1), begin  # the last character, and what is before it
        kind, width = np.uint8(LETTER), 0
        while position < end:
            code, width = decode(data, position, end)
            kind = table.kind[code]
            if kind == LETTER:
                letter, size_before = np.int64(table.fold[code]) if code < len(table.fold) else code, size
                count += 1
            elif kind == MARK and count > 0:
                joined = composed(table.pairs, letter, code)
                if joined >= 0:
                    letter, size = joined, size_before
                else:
                    letter, size_before = code, size
            else:
                break
            size = encode(letter, token, size)
            position += width
        if count > 1 or (count == 1 and not (beside or kind == APOSTROPHE)):
            return first, position, size
        beside = kind == APOSTROPHE
        position += width
    return np.int64(-1), end, np.int64(0)


@inlined
def _find_runs(is_words: Any, data: Any, start: Any, end: Any, edges: Any) -> Any:
    """Write where each run of token bytes begins and ends; returns how many places, and whether all is ASCII.

    A byte that is not ASCII belongs to a run, whatever it is.
    """
    count, before, every = 0, np.uint64(0), np.uint64(0)
    for position in range(start, end, _BLOCK):
        bits = np.uint64(0)  # one for each byte of a run
        for i in range(8):
            x = eight(data, position + 8 * i)
            every |= x
            high = x & _HIGH
            x ^= high
            if is_words:
                low = x | CASE
                letter = (low + _FROM_A) & ~(low + _BEHIND_Z)
                x = letter | ((x + _FROM_0) & ~(x + _BEHIND_9))
            else:
                x = (x ^ _SPACES) + _BELOW_HIGH
            x = ((x & _HIGH) | high) >> _SEVEN
            bits |= ((x * _GATHER) >> _TOP) << np.uint64(8 * i)
        if end - position < _BLOCK:
            bits &= (_ONE << np.uint64(end - position)) - _ONE
        changes = bits ^ (bits << _ONE | before)
        before = bits >> _LOW
        while changes:
            edges[count] = position + np.int64(trailing_zeros(changes))  # type: ignore[call-arg]
            changes &= changes - _ONE
            count += 1
    if before:
        edges[count] = end
        count += 1
    return count, every & _HIGH == 0


@internal
def _is_ascii(data: Any, first: Any, last: Any) -> Any:
    every = np.uint8(0)
    for i in range(first, last):
        every |= data[i]
    return every < 0x80


@inlined
def _has_quote_beside(data: Any, start: Any, end: Any, letter: Any) -> Any:
    return (letter > start and data[letter - 1] == QUOTE) or (letter + 1 < end and data[letter + 1] == QUOTE)


@inlined
def _may_begin(table: Any, data: Any, first: Any, size: Any) -> Any:
    """Whether an entry may begin with this token: is the slot of its hash, or of its stem's, taken?"""
    mask = np.uint64(len(table.slots) - 1)
    possible = table.slots[np.int64(word_hash(data, first, size) & mask)] != FREE
    if 0 < table.stem <= size:
        possible |= table.slots[np.int64(word_hash(data, first, table.stem) & mask)] != FREE
    return possible


@inlined
def _word(table: Any, data: Any, first: Any, size: Any, ignored: Any) -> Any:
    """The number of the word data[first:first + size], or NONE."""
    slot = word_slot(table.slots, table.offsets, table.pool, data, first, size, ignored)
    return np.int64(table.slots[slot])


@internal
def _look_up(table: Any, token: Any, begin: Any, size: Any) -> Any:
    """The entry of token[:size], or of its longest prefix that ends behind `begin`; and its number as a word.

    Each is NONE if there is none.
    """
    entry, word = np.int64(NONE), np.int64(NONE)
    shortest = max(begin + 1, table.stem) if table.stem else size
    for length in range(min(shortest, size), size + 1):
        word = _word(table, token, 0, length, EXACT)
        if word != NONE and table.entries[word, 1] != NONE:
            entry = np.int64(table.entries[word, 1])
    if word != NONE and table.entries[word, 0] != NONE:
        entry = np.int64(table.entries[word, 0])
    return entry, word


@inlined
def _longest_entry(table: Any, data: Any, position: Any, end: Any, token: Any, size: Any) -> Any:
    """The longest entry that begins with the token that ends at `position`, or NONE; and where it ends."""
    entry, word = _look_up(table, token, np.int64(0), size)
    stop = position
    ahead = np.int64(0)  # tokens that a phrase may still have
    if word != NONE:
        ahead = np.int64(table.entries[word, 2])
    while ahead > 0:
        token[size] = SPACE
        begin = size + 1
        first, position, size = _next_token(table, data, position, end, token, begin)
        if first < 0:
            break
        longest, _ = _look_up(table, token, begin, size)
        if longest != NONE:
            entry, stop = longest, position
        ahead -= 1
    return entry, stop


@inlined
def _ascii_entry(table: Any, data: Any, first: Any, position: Any, end: Any, token: Any) -> Any:
    """The same of a token in ASCII; where words are letters and digits, they are compared in the text."""
    size = position - first
    if table.words and table.stem == 0:
        word = _word(table, data, first, size, CASE)
        if word == NONE or table.entries[word, 2] == 0:
            return np.int64(NONE) if word == NONE else np.int64(table.entries[word, 0]), position
    for i in range(size):
        token[i] = table.fold[data[first + i]]
    return _longest_entry(table, data, position, end, token, size)


@compiled
def find_entries(table: Any, data: Any, offsets: Any, every: Any, results: Any, buffers: Any) -> Any:
    """Find the entries in each text data[offsets[i]:offsets[i + 1]]; returns how many there are in all.

    The results are `tokens`, `bounds` and `hits`. tokens[i] is how many tokens text i has. Its entries are
    hits[bounds[i]:bounds[i + 1]], in the order of their first: entry, how often it occurs, and where it first
    begins and ends in the text. If `every`, an entry is there each time it occurs. The buffers are `token`,
    `edges`, and `last`: zeros, one for each entry there is, for where it was written last.
    """
    tokens, bounds, hits = results
    token, edges, last = buffers
    total = 0
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        done, count = start, 0
        places, is_ascii = 2, False
        is_inside = end + _BLOCK + SPARE <= len(data)  # else the text is read character by character
        if is_inside:
            places, is_ascii = _find_runs(table.words, data, start, end, edges)
        else:
            edges[0], edges[1] = start, end
        for i in range(0, places, 2):
            position, behind = edges[i], edges[i + 1]
            is_plain = is_ascii or (is_inside and _is_ascii(data, position, behind))
            if not is_plain:  # there may be an apostrophe before or behind
                position, behind = max(start, position - 1), min(behind + 1, end)
            while position < behind:
                if is_plain:
                    first, position, size = position, behind, behind - position
                    if table.words and size == 1 and _has_quote_beside(data, start, end, first):
                        break
                else:
                    first, position, size = _next_token(table, data, position, behind, token, np.int64(0))
                    if first < 0:
                        break
                count += 1
                if first < done:  # part of a phrase
                    continue
                if is_plain:
                    if not _may_begin(table, data, first, size):
                        break
                    entry, stop = _ascii_entry(table, data, first, position, end, token)
                else:
                    entry, stop = _longest_entry(table, data, position, end, token, size)
                if entry == NONE:
                    continue
                done, place = stop, last[entry]
                if every or place < bounds[row] or place >= total or hits[place, 0] != entry:
                    place, last[entry] = total, total
                    hits[place, 0], hits[place, 1] = entry, 0
                    hits[place, 2], hits[place, 3] = first - start, stop - start
                    total += 1
                hits[place, 1] += 1
        tokens[row], bounds[row + 1] = count, total
    return total
