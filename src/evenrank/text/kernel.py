"""The compiled tokenizer and matcher: one loop over the bytes of UTF-8 texts.

ASCII goes through a table of 256 bytes and is hashed on the way; a token that holds another character is read
again, code point by code point. At the end of a token, one bit for its hash says whether it may be in the
table of words; most are not. :mod:`evenrank.text.tokens` is the definition.

Importing this module loads numba.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evenrank.text.hashing import BASIS, PRIME, compiled, fnv1a, inlined, mixed, word_slot
from evenrank.text.tokens import APOSTROPHE, LETTER, MARK

SEPARATOR_BYTE = 0xFF  # in `Table.ascii`; never a byte of UTF-8
NONE = -1
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)
_FIRST_IDEOGRAPH, _LAST_IDEOGRAPH = 0x20000, 0x323AF
_LOGARITHMS = np.array([math.log1p(times) for times in range(64)])


class Letters(NamedTuple):
    """A tokenizer."""

    words: bool  # `words`, else `whitespace`
    kind: np.ndarray  # uint8 by code point, see tokens.Unicode
    fold: np.ndarray  # uint32 by code point
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | combining mark, and the letter they make


class Words(NamedTuple):
    """A hash table of words."""

    slots: np.ndarray  # int32
    hashes: np.ndarray  # uint64
    offsets: np.ndarray  # int64: where each word begins …
    pool: np.ndarray  # uint8: … among all their bytes


class Table(NamedTuple):
    """Words that are looked for: a lexicon, or a vocabulary. Calls pass only the parts they need."""

    letters: Letters
    lookup: Words
    ascii: np.ndarray  # uint8[256]: what a byte becomes; SEPARATOR_BYTE, or from 0x80 on itself
    bits: np.ndarray  # uint64, a power of two of them: one bit for the hash of each word
    exact: np.ndarray  # int32: the entry that is this word, or NONE
    open: np.ndarray  # int32: the entry that is this word with a star, or NONE
    lengths: np.ndarray  # uint32[2**15]: by the first three bytes, lengths of prefixes; empty without any
    phrases_of: np.ndarray  # int32[words + 1]: the phrases that begin with this word …
    phrases: np.ndarray  # int32[·, 4]: … their further words in `rest`, first and last, star?, entry
    rest: np.ndarray  # int32
    longest: int  # bytes of a word


@inlined
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


@compiled
def encode(code: Any, token: Any, size: Any) -> Any:
    """Append a code point to a token; what does not fit in its buffer only adds to the size."""
    length = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if size + length <= len(token):
        for i in range(length - 1, 0, -1):
            token[size + i] = 0x80 | (code & 0x3F)
            code >>= 6
        token[size] = code if length == 1 else ((0xF00 >> length) & 0xFF) | code
    return size + length


@compiled
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
def _kind(kinds: Any, code: Any) -> Any:
    if code < len(kinds):
        return np.int64(kinds[code])
    return np.int64(_FIRST_IDEOGRAPH <= code <= _LAST_IDEOGRAPH)  # a letter, else a separator


@inlined
def _folded(fold: Any, code: Any) -> Any:
    return np.int64(fold[code]) if code < len(fold) else code


@compiled
def _beside_apostrophe(kinds: Any, data: Any, start: Any, first: Any, last: Any, end: Any) -> Any:
    """Does an apostrophe stand directly before or behind data[first:last]?"""
    if last < end and _kind(kinds, decode(data, last, end)[0]) == APOSTROPHE:
        return True
    back = first - 1
    while back > start and back > first - 4 and data[back] & 0xC0 == 0x80:
        back -= 1
    return back >= start and _kind(kinds, decode(data, back, first)[0]) == APOSTROPHE


@compiled
def _next_word(
    kinds: Any, fold: Any, pairs: Any, data: Any, start: Any, position: Any, end: Any, token: Any
) -> Any:
    """The next token of `words`, any character: (start, end, size when folded); start is -1 if none."""
    while position < end:
        code, width = decode(data, position, end)
        if _kind(kinds, code) != LETTER:
            position += width
            continue
        first, letters, size = position, 0, 0
        letter, before = np.int64(-1), 0  # the last character, and the token's size before it
        while position < end:
            code, width = decode(data, position, end)
            kind = _kind(kinds, code)
            if kind == LETTER:
                letters += 1
                letter, before = _folded(fold, code), size
            elif kind == MARK:
                joined = composed(pairs, letter, code)
                if joined >= 0:
                    letter, size = joined, before
                else:
                    letter, before = code, size
            else:
                break
            size = encode(letter, token, size)
            position += width
        if letters > 1 or not _beside_apostrophe(kinds, data, start, first, position, end):
            return first, position, size
    return np.int64(-1), end, 0


@compiled
def _next_piece(fold: Any, data: Any, position: Any, end: Any, token: Any) -> Any:
    """The next token of `whitespace`, any character, as :func:`_next_word` gives it."""
    while position < end and data[position] == 0x20:
        position += 1
    if position >= end:
        return np.int64(-1), end, 0
    first, size = position, 0
    while position < end and data[position] != 0x20:
        code, width = decode(data, position, end)
        size = encode(_folded(fold, code), token, size)
        position += width
    return first, position, size


@compiled
def _ascii_token(fold: Any, data: Any, position: Any, end: Any) -> Any:
    """The next run of ASCII token bytes: (start, end, hash, what the byte behind it becomes in `fold`)."""
    byte = np.uint8(SEPARATOR_BYTE)
    while position < end:
        byte = fold[data[position]]
        if byte != SEPARATOR_BYTE:
            break
        position += 1
    first, key = position, BASIS
    while byte < 0x80:
        key = (key ^ np.uint64(byte)) * PRIME
        position += 1
        if position >= end:
            break
        byte = fold[data[position]]
    return first, position, key, byte


@compiled
def _any_token(letters: Any, data: Any, start: Any, position: Any, end: Any, token: Any) -> Any:
    """The next token, code point by code point: (start, end, size and hash when folded); start -1 if none.

    The folded token goes into the buffer `token`, as much of it as fits. `start` is where the text begins.
    """
    if letters.words:
        first, position, size = _next_word(
            letters.kind, letters.fold, letters.pairs, data, start, position, end, token
        )
    else:
        first, position, size = _next_piece(letters.fold, data, position, end, token)
    return first, position, size, fnv1a(token, 0, min(size, len(token)))


@compiled
def _word(index: Any, token: Any, size: Any, key: Any) -> Any:
    """The number of a folded token among the words, or -1."""
    slot = word_slot(index.slots, index.hashes, index.offsets, index.pool, key, token, 0, size)
    return np.int64(index.slots[slot])


@compiled
def _prefix(index: Any, open_entries: Any, longest: Any, token: Any, size: Any, lengths: Any) -> Any:
    """The entry of the longest prefix of a folded token, or NONE; `lengths` are those to try."""
    entry, key = np.int64(NONE), BASIS
    for i in range(min(size, longest)):
        key = (key ^ np.uint64(token[i])) * PRIME
        if (lengths >> np.uint32(min(i + 1, 31))) & np.uint32(1):
            word = _word(index, token, i + 1, key)
            if word >= 0 and open_entries[word] != NONE:
                entry = np.int64(open_entries[word])
    return entry


@compiled
def _phrase(table: Any, data: Any, start: Any, position: Any, end: Any, word: Any, token: Any) -> Any:
    """The first phrase that goes on behind a word: (entry, where it ends), or (NONE, …)."""
    for phrase in range(table.phrases_of[word], table.phrases_of[word + 1]):
        first_rest, last_rest = table.phrases[phrase, 0], table.phrases[phrase, 1]
        at, fits = position, True
        for i in range(first_rest, last_rest):
            begin, behind = table.lookup.offsets[table.rest[i]], table.lookup.offsets[table.rest[i] + 1]
            first, at, size, _ = _any_token(table.letters, data, start, at, end, token)
            is_open = table.phrases[phrase, 2] and i == last_rest - 1
            fits = first >= 0 and (size >= behind - begin if is_open else size == behind - begin)
            for j in range(begin, behind if fits else begin):
                fits = fits and token[j - begin] == table.lookup.pool[j]
            if not fits:
                break
        if fits:
            return np.int64(table.phrases[phrase, 3]), at
    return np.int64(NONE), position


@compiled
def _entry(
    table: Any, data: Any, start: Any, first: Any, position: Any, end: Any, token: Any, size: Any, key: Any
) -> Any:
    """The entry that begins with a folded token, or NONE, and where it ends.

    The buffer may hold another token afterwards.
    """
    word = np.int64(NONE)
    if size <= table.longest:
        word = _word(table.lookup, token, size, key)
    entry = np.int64(table.exact[word]) if word >= 0 else np.int64(NONE)
    if entry == NONE and len(table.lengths):
        corner = np.int64(token[0] & 31)
        if size > 1:
            corner |= np.int64(token[1] & 31) << 5
        if size > 2:
            corner |= np.int64(token[2] & 31) << 10
        if table.lengths[corner]:
            entry = _prefix(table.lookup, table.open, table.longest, token, size, table.lengths[corner])
    if word >= 0 and table.phrases_of[word + 1] > table.phrases_of[word]:
        phrase, stop = _phrase(table, data, start, position, end, word, token)
        if phrase != NONE:
            return phrase, stop
    return entry, position


@compiled
def find_entries(
    table: Any, data: Any, offsets: Any, token: Any, tokens: Any, bounds: Any, entries: Any, spans: Any
) -> Any:
    """Find the entries in each text data[offsets[i]:offsets[i + 1]]; returns how many there are in all.

    Those of text i are entries[bounds[i]:bounds[i + 1]], in their order; tokens[i] is the number of its
    tokens. `spans`, unless it has no rows, takes where each begins and ends, from the start of its text on.
    """
    fold, mask, total = table.ascii, np.uint64(len(table.bits) - 1), 0
    prefixed = len(table.lengths) > 0
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        position, done, count = start, start, 0
        while position < end:
            first, position, key, behind = _ascii_token(fold, data, position, end)
            if first >= end:
                break
            size, is_read = position - first, 0x80 <= behind < SEPARATOR_BYTE
            if is_read:
                first, position, size, key = _any_token(table.letters, data, start, first, end, token)
                if first < 0:
                    break
            elif (
                size == 1
                and table.letters.words
                and _beside_apostrophe(table.letters.kind, data, start, first, position, end)
            ):
                continue
            count += 1
            bit = mixed(key)
            possible = (table.bits[(bit >> _SIX) & mask] >> (bit & _LOW)) & _ONE != 0
            if not (possible or prefixed) or first < done:  # before `done`: part of a phrase
                continue
            if not is_read:
                for i in range(min(size, len(token))):
                    token[i] = fold[data[first + i]]
            entry, stop = _entry(table, data, start, first, position, end, token, size, key)
            if entry != NONE:
                done = stop
                entries[total] = entry
                if len(spans):
                    spans[total, 0], spans[total, 1] = first - start, stop - start
                total += 1
        tokens[row] = count
        bounds[row + 1] = total
    return total


@compiled
def count_distinct(bounds: Any, entries: Any, seen: Any, times: Any) -> Any:
    """Make the entries of each text distinct, in place, in the order of their first; returns how many remain.

    `times` takes how often each occurred. `seen` are zeros, one for each entry there is.
    """
    total, first = 0, 0
    for row in range(len(bounds) - 1):
        last, begin = bounds[row + 1], total
        for i in range(first, last):
            entry = entries[i]
            if seen[entry] == 0:
                entries[total] = entry
                total += 1
            seen[entry] += 1
        for i in range(begin, total):
            times[i] = seen[entries[i]]
            seen[entries[i]] = 0
        first = last
        bounds[row + 1] = total
    return total


@compiled
def add_groups(
    bounds: Any, entries: Any, times: Any, groups: Any, starts: Any, counts: Any, logwords: Any
) -> None:
    """Add up counts[group, text] and logwords[group, text]; entry e is of groups[starts[e]:starts[e + 1]]."""
    for row in range(len(bounds) - 1):
        for i in range(bounds[row], bounds[row + 1]):
            entry, often = entries[i], np.int64(times[i])
            logarithm = _LOGARITHMS[often] if often < len(_LOGARITHMS) else math.log1p(often)
            for j in range(starts[entry], starts[entry + 1]):
                counts[groups[j], row] += often
                logwords[groups[j], row] += logarithm
