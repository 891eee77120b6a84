"""The compiled tokenizer and matcher: one loop over the bytes of UTF-8 texts and one hash table of words.

Each character is read, folded, appended to a buffer and hashed; at the end of a token, one bit for its hash
says whether it may be in the table of words, and most are not. A phrase is a key of the table like any other:
its tokens with a space between them. :mod:`evenrank.text.tokens` is the definition.

Importing this module loads numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenrank.text.hashing import BASIS, PRIME, compiled, inlined, internal, mixed, word_slot
from evenrank.text.tokens import APOSTROPHE, LETTER, MARK

SPACE = 0x20  # between the tokens of a phrase
NONE = -1
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


class Letters(NamedTuple):
    """A tokenizer."""

    ascii: np.ndarray  # uint8[256]: what a byte becomes; from 0x80 on if it separates or is not ASCII
    kind: np.ndarray  # uint8 by code point, for any that four bytes can give, see tokens.Unicode
    fold: np.ndarray  # uint32 by code point; later ones stay as they are
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | combining mark, and the letter they make


class Table(NamedTuple):
    """A tokenizer, and the hash table of the words that are looked for."""

    letters: Letters
    slots: np.ndarray  # int32
    hashes: np.ndarray  # uint64
    offsets: np.ndarray  # int64: where each word begins …
    pool: np.ndarray  # uint8: … among all their bytes
    bits: np.ndarray  # uint64, a power of two of them: one bit for the hash of each word
    entries: (
        np.ndarray
    )  # int32[words, 3]: the entry that is this word; that is this word with a star; and how
    # many tokens the longest phrase that begins with this word has behind it
    longest: int  # bytes of a word
    prefixes: bool  # whether any entry has a star


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
    """Append a code point to a token; what does not fit in its buffer only adds to the size."""
    length = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if size + length <= len(token):
        for i in range(length - 1, 0, -1):
            token[size + i] = 0x80 | (code & 0x3F)
            code >>= 6
        token[size] = code if length == 1 else ((0xF00 >> length) & 0xFF) | code
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


@inlined
def _next_token(letters: Any, data: Any, position: Any, end: Any, token: Any, begin: Any, start: Any) -> Any:
    """The next token: where it starts (-1 if there is none) and ends, its size and hash, whether it is ASCII.

    Size and hash are those of the folded token, with what is before place `begin` of the buffer `token`, of
    the hash `start`. A token that is not ASCII is written there, as much of it as fits.
    """
    ascii_, kinds, fold, pairs = letters
    beside = False  # is an apostrophe directly before the token
    while position < end:
        if ascii_[data[np.uint64(position)]] >= 0x80:
            code, width = decode(data, position, end)
            if kinds[code] != LETTER:
                beside = kinds[code] == APOSTROPHE
                position += width
                continue
        first, key, kind = position, start, np.uint8(LETTER)
        while position < end:
            byte = ascii_[data[np.uint64(position)]]
            if byte >= 0x80:
                kind = kinds[data[position]]
                break
            key = (key ^ np.uint64(byte)) * PRIME
            position += 1
        if position >= end or data[position] < 0x80:
            if position - first > 1 or not (beside or kind == APOSTROPHE):
                return first, position, begin + position - first, key, True
            continue
        position, size, key, count = first, begin, start, 0
        letter, size_before, key_before = np.int64(-1), size, key  # the last character, and what is before it
        while position < end:
            code, width = decode(data, position, end)
            kind = kinds[code]
            if kind == LETTER:
                count += 1
                letter = np.int64(fold[code]) if code < len(fold) else code
                size_before, key_before = size, key
            elif kind == MARK:
                joined = composed(pairs, letter, code)
                if joined >= 0:
                    letter, size, key = joined, size_before, key_before
                else:
                    letter, size_before, key_before = code, size, key
            else:
                break
            last = encode(letter, token, size)
            for i in range(size, min(last, len(token))):
                key = (key ^ np.uint64(token[i])) * PRIME
            size = last
            position += width
        if count > 1 or not (beside or kind == APOSTROPHE):
            return first, position, size, key, False
    return np.int64(-1), end, 0, start, False


@internal
def _is_possible(bits: Any, key: Any) -> Any:
    """May a word with this hash be in the table?"""
    bit = mixed(key)
    return (bits[(bit >> _SIX) & np.uint64(len(bits) - 1)] >> (bit & _LOW)) & _ONE != 0


@inlined
def _look_up(table: Any, token: Any, begin: Any, size: Any, start: Any, key: Any) -> Any:
    """The entry of token[:size], or of its longest prefix that ends behind `begin`; and its number as a word.

    `start` and `key` are the hashes of token[:begin] and of token[:size]. Each is NONE if there is none.
    """
    entry, whole = np.int64(NONE), np.int64(NONE)
    for i in range(begin if table.prefixes else size - 1, min(size, table.longest)):
        start = (start ^ np.uint64(token[i])) * PRIME if table.prefixes else key
        if _is_possible(table.bits, start):
            slot = word_slot(table.slots, table.hashes, table.offsets, table.pool, start, token, 0, i + 1)
            word = np.int64(table.slots[slot])
            if word >= 0:
                if table.entries[word, 1] != NONE:
                    entry = np.int64(table.entries[word, 1])
                if i + 1 == size:
                    whole = word
                    if table.entries[word, 0] != NONE:
                        entry = np.int64(table.entries[word, 0])
    return entry, whole


@compiled
def find_entries(
    table: Any,
    data: Any,
    offsets: Any,
    tokens: Any,
    bounds: Any,
    hits: Any,
    spans: Any,
    token: Any,
    last: Any,
) -> Any:
    """Find the entries in each text data[offsets[i]:offsets[i + 1]]; returns how many there are in all.

    Those of text i are hits[bounds[i]:bounds[i + 1], 0], in the order of their first; tokens[i] is how many
    tokens it has. Without rows in `spans`, an entry is there once, and hits[:, 1] is how often it occurs;
    else each time, and its row of `spans` is where it begins and ends, from the start of its text on.
    `token` is a buffer; `last`, zeros, one for each entry there is, takes where it was written last.
    """
    total = 0
    for row in range(len(offsets) - 1):
        position, end, done, count = offsets[row], offsets[row + 1], offsets[row], 0
        begin, start, ahead = 0, BASIS, -1  # ahead: tokens that a phrase may still have; -1 outside of one
        began = stop = behind = position
        entry = np.int64(NONE)
        while True:
            first, position, size, key, is_ascii = _next_token(
                table.letters, data, position, end, token, begin, start
            )
            if ahead < 0:
                if first < 0:
                    break
                count += 1
                if first < done or not (table.prefixes or _is_possible(table.bits, key)):
                    continue  # before `done`: part of a phrase
                began, behind, entry = first, position, np.int64(NONE)
            if is_ascii:
                for i in range(begin, min(size, len(token))):
                    token[i] = table.letters.ascii[data[first + i - begin]]
            if first >= 0:
                longest, word = _look_up(table, token, begin, size, start, key)
                if longest != NONE:
                    entry, stop = longest, position
                if ahead < 0:
                    ahead = table.entries[word, 2] if word >= 0 else 0
                else:
                    ahead -= 1
                if ahead > 0 and size < table.longest:
                    token[size] = SPACE
                    begin, start = size + 1, (key ^ np.uint64(SPACE)) * PRIME
                    continue
            begin, start, ahead, position = 0, BASIS, -1, behind
            if entry == NONE:
                continue
            done, place = stop, last[entry]
            if len(spans) or place < bounds[row] or place >= total or hits[place, 0] != entry:
                place, last[entry] = total, total
                hits[place, 0], hits[place, 1] = entry, 0
                if len(spans):
                    spans[place, 0], spans[place, 1] = began - offsets[row], stop - offsets[row]
                total += 1
            hits[place, 1] += 1
        tokens[row] = count
        bounds[row + 1] = total
    return total
