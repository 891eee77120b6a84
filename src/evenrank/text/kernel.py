"""The compiled tokenizer and matcher: it reads UTF-8 texts and finds the words of one hash table in them.

Most text is ASCII, and most tokens are no word of the table. So the places where tokens begin and end are
found 64 bytes at a time, and one bit for the hash of a token says whether an entry may begin with it. Only
then it is looked up; only what is not ASCII is decoded. A phrase is a key of the table like any other: its
tokens with a space between them. :mod:`evenrank.text.tokens` is the definition.

Importing this module loads numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from evenrank.text.hashing import FREE, compiled, inlined, internal, mixed, word_slot
from evenrank.text.tokens import APOSTROPHE, LETTER, MARK

SPACE, QUOTE = 0x20, 0x27  # a space is between the tokens of a phrase
NONE = -1
SPARE = 8
"""Bytes that a buffer must have behind the last token, since eight are read at once."""
_BLOCK = 64


def _repeated(byte: int) -> np.uint64:
    """The same byte eight times."""
    return np.uint64(byte * 0x0101010101010101)


_ONE, _SIX, _SEVEN, _LOW = np.uint64(1), np.uint64(6), np.uint64(7), np.uint64(63)
_HIGH, _CASE, _SPACES, _BELOW_HIGH = _repeated(0x80), _repeated(0x20), _repeated(SPACE), _repeated(0x7F)
# Added to a byte of ASCII, these reach its highest bit from "a", "{", "0" and ":" on.
_FROM_A, _BEHIND_Z = _repeated(0x80 - 0x61), _repeated(0x80 - 0x7B)
_FROM_0, _BEHIND_9 = _repeated(0x80 - 0x30), _repeated(0x80 - 0x3A)
_GATHER, _TOP = np.uint64(0x0102040810204080), np.uint64(56)  # the lowest bits of eight bytes, side by side
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Letters(NamedTuple):
    """A tokenizer."""

    words: bool  # `words`, not `whitespace`
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
    bits: np.ndarray  # uint64: one bit for the hash of each word and stem, …
    shift: np.uint64  # … at the place that the highest bits of the hash say, shifted down by this
    entries: np.ndarray
    """int32[words, 3]: the entry that is this word; that is this word with a star; and how many tokens the
    longest phrase that begins with this word has behind it"""
    longest: int  # bytes of a word
    stem: int  # bytes, from 1 to 8, with which each entry with a star begins; 0 if there is none


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
    if code < 0x80:
        if size < len(token):
            token[size] = code
        return size + 1
    length = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if size + length <= len(token):
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
def _next_token(letters: Any, data: Any, position: Any, end: Any, token: Any, begin: Any) -> Any:
    """The next token: where it starts (-1 if there is none) and ends, and its size with what is before it.

    The folded token is written to place `begin` of the buffer `token`, as much of it as fits.
    """
    _, kinds, fold, pairs = letters
    beside = False  # is an apostrophe directly before the token
    while position < end:
        first, size, count = position, begin, 0
        letter, size_before = np.int64(-1), begin  # the last character, and what is before it
        kind, width = np.uint8(LETTER), 0
        while position < end:
            code, width = decode(data, position, end)
            kind = kinds[code]
            if kind == LETTER:
                letter, size_before = np.int64(fold[code]) if code < len(fold) else code, size
                count += 1
            elif kind == MARK and count > 0:
                joined = composed(pairs, letter, code)
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
def _eight(data: Any, position: Any) -> Any:
    """Eight bytes as one number, the first in its lowest bits; the compiler makes one load of it."""
    at = np.uint64(position)  # an unsigned place is not counted from the end
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inlined
def _find_runs(is_words: Any, data: Any, start: Any, end: Any, edges: Any) -> Any:
    """Write where each run of token bytes begins and ends; returns how many places, and whether all is ASCII.

    A byte that is not ASCII belongs to a run, whatever it is.
    """
    count, before, every = 0, np.uint64(0), np.uint64(0)
    for position in range(start, end, _BLOCK):
        bits = np.uint64(0)  # one for each byte of a run
        for i in range(8):
            x = _eight(data, position + 8 * i)
            every |= x
            high = x & _HIGH
            x ^= high
            if is_words:
                low = x | _CASE
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
def word_hash(data: Any, first: Any, last: Any) -> Any:
    """A hash of the first eight bytes of a token and of its size, the same in upper case."""
    size = last - first
    unused = np.uint64(64 - 8 * min(size, 8))
    head = ((_eight(data, first) | _CASE) << unused) >> unused
    return (head + np.uint64(size)) * _MULTIPLIER


@compiled
def hash_words(pool: Any, offsets: Any, hashes: Any) -> None:
    """The hash of each word of a pool."""
    for i in range(len(hashes)):
        hashes[i] = word_hash(pool, offsets[i], offsets[i + 1])


@inlined
def _is_possible(table: Any, key: Any) -> Any:
    """1 if a word with this hash may be in the table, else 0."""
    bit = key >> table.shift
    return (table.bits[bit >> _SIX] >> (bit & _LOW)) & _ONE


@inlined
def _may_begin(table: Any, data: Any, first: Any, last: Any) -> Any:
    """1 if an entry may begin with this token, else 0."""
    possible = _is_possible(table, word_hash(data, first, last))
    if table.stem and last - first >= table.stem:
        possible |= _is_possible(table, word_hash(data, first, first + table.stem))
    return np.int64(possible)


@inlined
def _has_quote_beside(data: Any, start: Any, end: Any, letter: Any) -> Any:
    return (letter > start and data[letter - 1] == QUOTE) or (letter + 1 < end and data[letter + 1] == QUOTE)


@inlined
def _scan(table: Any, data: Any, start: Any, end: Any, token: Any, edges: Any, candidates: Any) -> Any:
    """Count the tokens of a text, and note those that an entry may begin with; returns both numbers.

    A candidate is the place in `edges` where its start is, or -1 - its start if it is not ASCII.
    """
    count, noted = 0, 0
    is_inside = end + _BLOCK + SPARE <= len(data)  # else the text is read character by character
    places, is_ascii = 2, False
    if is_inside:
        places, is_ascii = _find_runs(table.letters.words, data, start, end, edges)
    else:
        edges[0], edges[1] = start, end
    for i in range(0, places, 2):
        first, last = edges[i], edges[i + 1]
        if is_ascii or (is_inside and _is_ascii(data, first, last)):
            if table.letters.words and last - first == 1 and _has_quote_beside(data, start, end, first):
                continue
            count += 1
            candidates[noted] = i
            noted += _may_begin(table, data, first, last)
            continue
        position, stop = max(start, first - 1), min(last + 1, end)  # an apostrophe may be before or behind
        while position < last:
            first, position, size = _next_token(table.letters, data, position, stop, token, np.int64(0))
            if first >= 0:
                count += 1
                candidates[noted] = -1 - first
                noted += _may_begin(table, token, 0, min(size, len(token) - SPARE))
    return count, noted


@inlined
def _look_up(table: Any, token: Any, begin: Any, size: Any) -> Any:
    """The entry of token[:size], or of its longest prefix that ends behind `begin`; and its number as a word.

    Each is NONE if there is none.
    """
    entry, whole = np.int64(NONE), np.int64(NONE)
    shortest = size if table.stem == 0 else begin + 1 if begin else min(table.stem, size)
    for length in range(shortest, min(size, table.longest) + 1):
        key = word_hash(token, 0, length)
        if _is_possible(table, key):
            slot = word_slot(table.slots, table.hashes, table.offsets, table.pool, key, token, 0, length)
            word = np.int64(table.slots[slot])
            if word >= 0:
                if table.entries[word, 1] != NONE:
                    entry = np.int64(table.entries[word, 1])
                if length == size:
                    whole = word
                    if table.entries[word, 0] != NONE:
                        entry = np.int64(table.entries[word, 0])
    return entry, whole


@inlined
def _ascii_word(table: Any, data: Any, first: Any, last: Any) -> Any:
    """The number of an ASCII token as a word of the table, or NONE; read from the text, not from a buffer.

    Where `words` makes tokens, of fewer than eight letters and digits, the hash is that of no other token.
    """
    size, key = last - first, word_hash(data, first, last)
    slot = np.int64(mixed(key) & np.uint64(len(table.slots) - 1))
    while table.slots[slot] != FREE:
        number = np.int64(table.slots[slot])
        if table.hashes[number] == key:
            begin = table.offsets[number]
            done = size if size < 8 else 0
            if done == 0 and table.offsets[number + 1] - begin == size:
                while done < size:
                    unused = np.uint64(64 - 8 * min(size - done, 8))
                    differing = (_eight(data, first + done) | _CASE) ^ _eight(table.pool, begin + done)
                    if differing << unused != 0:
                        break
                    done += 8
            if done >= size:
                return number
        slot = (slot + 1) & (len(table.slots) - 1)
    return np.int64(NONE)


@inlined
def _longest_entry(table: Any, data: Any, first: Any, last: Any, end: Any, token: Any) -> Any:
    """The longest entry that begins with the token at `first`, or NONE; and where it ends.

    `last` is the end of the token, or -1 if it is not ASCII.
    """
    position, size = last, last - first
    if last >= 0 and table.stem == 0 and table.letters.words:
        word = _ascii_word(table, data, first, last)
        if word == NONE or table.entries[word, 2] == 0:
            return np.int64(NONE) if word == NONE else np.int64(table.entries[word, 0]), last
    if last < 0:
        _, position, size = _next_token(table.letters, data, first, end, token, np.int64(0))
    else:
        for i in range(min(size, len(token))):
            token[i] = table.letters.fold[data[first + i]]
    entry, word = _look_up(table, token, np.int64(0), size)
    stop = position
    ahead = np.int64(0)  # tokens that a phrase may still have
    if word != NONE:
        ahead = np.int64(table.entries[word, 2])
    while ahead > 0 and size < table.longest:
        token[size] = SPACE
        begin = size + 1
        first, position, size = _next_token(table.letters, data, position, end, token, begin)
        if first < 0:
            break
        longest, _ = _look_up(table, token, begin, size)
        if longest != NONE:
            entry, stop = longest, position
        ahead -= 1
    return entry, stop


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
    edges: Any,
    candidates: Any,
    last: Any,
) -> Any:
    """Find the entries in each text data[offsets[i]:offsets[i + 1]]; returns how many there are in all.

    Those of text i are hits[bounds[i]:bounds[i + 1], 0], in the order of their first; tokens[i] is how many
    tokens it has. Without rows in `spans`, an entry is there once, and hits[:, 1] is how often it occurs;
    else each time, and its row of `spans` is where it begins and ends, from the start of its text on.
    `token`, `edges` and `candidates` are buffers; `last`, zeros, one for each entry there is, takes where it
    was written last.
    """
    total = 0
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        tokens[row], noted = _scan(table, data, start, end, token, edges, candidates)
        done = start
        for i in range(noted):
            candidate = candidates[i]
            first, behind = -1 - candidate, np.int64(-1)
            if candidate >= 0:
                first, behind = edges[candidate], edges[candidate + 1]
            if first < done:  # part of a phrase
                continue
            entry, stop = _longest_entry(table, data, first, behind, end, token)
            if entry == NONE:
                continue
            done, place = stop, last[entry]
            if len(spans) or place < bounds[row] or place >= total or hits[place, 0] != entry:
                place, last[entry] = total, total
                hits[place, 0], hits[place, 1] = entry, 0
                if len(spans):
                    spans[place, 0], spans[place, 1] = first - start, stop - start
                total += 1
            hits[place, 1] += 1
        bounds[row + 1] = total
    return total
