"""A compiled lexicon, asked about one token: may it be an entry, which one is it, does a phrase follow?

`may_be` looks at eight bytes and is wrong in one direction only. `entry_of` compares all bytes of a folded
token with the words, then with the prefixes. Everything here is a free function on the arrays of
:mod:`evenrank.text.layout`, compiled by numba.
"""

from __future__ import annotations

import numpy as np

from evenrank.text.codepoints import byte_at, compiled, inlined, load8, next_piece, next_word
from evenrank.text.layout import (
    ENTRY,
    FIRST_PHRASE,
    KEY,
    LAST_PHRASE,
    LONG,
    NONE,
    OFFSET,
    P_ENTRY,
    P_OFFSET,
    P_OPEN,
    P_SIZE,
    P_TOKENS,
    SIZE,
    TOKEN_END,
)

CASE = np.uint64(0x2020202020202020)
MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_FIVE = np.uint64(0xFFFFFFFFFF)
_THREE_LETTERS = np.uint64(0x7FFF)  # of a corner
_MIX_LENGTH = np.uint64(0xFF51AFD7ED558CCD)


@compiled
def hash_key(key, size):
    mixed = (np.uint64(key) ^ (np.uint64(size) * _MIX_LENGTH)) * MIX
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def _is_marked(bits, salt, key):
    """One or zero: the bit for a key; the matcher has set it."""
    mixed = key * salt
    word = bits[(mixed >> np.uint64(52)) & np.uint64(len(bits) - 1)]
    return (word >> ((mixed >> np.uint64(46)) & np.uint64(63))) & _ONE


@compiled
def _corner(key):
    """Five bits of each of the first four bytes."""
    key, five = np.uint64(key), np.uint64(31)
    second = ((key >> np.uint64(8)) & five) << np.uint64(5)
    third = ((key >> np.uint64(16)) & five) << np.uint64(10)
    fourth = ((key >> np.uint64(24)) & five) << np.uint64(15)
    return (key & five) | second | third | fourth


@inlined
def key_of(address, size, case):
    """The first eight bytes at an address, or `size` if fewer, with these bits set.

    The bits of `CASE` lower-case letters, and change no other ASCII byte that a word can hold.
    """
    spare = np.uint64(64 - 8 * min(size, 8))
    return ((load8(address) | case) << spare) >> spare


@inlined
def may_be(bits, salt, stems, corners, prefixed, key):
    """One if a token with these first bytes may be an entry, or zero."""
    candidate = _is_marked(bits, salt, key)
    if prefixed:
        candidate |= _is_marked(stems, salt, key & _FIVE)
        if len(corners) > 1:
            corner = _corner(key)
            candidate |= (corners[corner >> np.uint64(6)] >> (corner & np.uint64(63))) & _ONE
    return np.int64(candidate)


@compiled
def next_token(table, start, position, stop, end, token):
    if table.words:
        return next_word(table.kind, table.fold, table.pairs, start, position, stop, end, token)
    return next_piece(table.fold, position, stop, token)


@compiled
def packed(token, size):
    key = np.uint64(0)
    for i in range(min(size, 8)):
        key |= np.uint64(token[i]) << np.uint64(8 * i)
    return np.int64(key)


@compiled
def _same(token, size, pool, offset):
    for i in range(size):  # noqa: SIM110 (numba has no generators to spare)
        if token[i] != pool[offset + i]:
            return False
    return True


@compiled
def _slot(slots, pool, key, token, size):
    """The row of a folded token in a hash table, or -1; a hit is compared in all its bytes.

    The first eight are the key, so that `token` is looked at only if there are more.
    """
    last = np.int64(len(slots) - 1)
    slot = np.int64(hash_key(key, size)) & last
    while slots[slot, SIZE] != 0:
        if (
            slots[slot, KEY] == key
            and slots[slot, SIZE] == size
            and (size <= 8 or _same(token, size, pool, slots[slot, OFFSET]))
        ):
            return slot
        slot = (slot + 1) & last
    return np.int64(-1)


@compiled
def _prefix(prefixes, lengths_of, pool, key, token, size):
    """The entry of the longest prefix of a folded token, or -1."""
    lengths = lengths_of[_corner(key) & _THREE_LETTERS]
    for length in range(min(size, len(token)), 0, -1):
        if (lengths >> min(length, LONG)) & 1:
            part = key if length >= 8 else key & ((np.int64(1) << (8 * length)) - 1)
            slot = _slot(prefixes, pool, part, token, length)
            if slot >= 0:
                return prefixes[slot, ENTRY]
    return np.int64(-1)


@compiled
def phrase_behind(table, start, position, end, slot, scratch):
    """The longest phrase that goes on behind a token: (entry, where it ends), or (-1, …)."""
    first, last = table.slots[slot, FIRST_PHRASE], table.slots[slot, LAST_PHRASE]
    token, ahead, marks = scratch.token, scratch.ahead, scratch.marks
    found, length = 0, 0
    while found < table.phrases[first, P_TOKENS]:  # the phrase with the most tokens stands first
        at, position, size = next_token(table, start, position, end, end, token)
        if at < 0:
            break
        size = min(size, len(token))  # cut or not, longer than any token of an entry
        for i in range(size):
            ahead[length + i] = token[i]
        ahead[length + size] = TOKEN_END
        length += size + 1
        marks[found, 0], marks[found, 1] = length, position
        found += 1
    for phrase in range(first, last):
        tokens, size = table.phrases[phrase, P_TOKENS], table.phrases[phrase, P_SIZE]
        if tokens > found:
            continue
        length = marks[tokens - 1, 0]
        fits = size <= length if table.phrases[phrase, P_OPEN] else size == length
        if fits and _same(ahead, size, table.pool, table.phrases[phrase, P_OFFSET]):
            return table.phrases[phrase, P_ENTRY], marks[tokens - 1, 1]
    return np.int64(-1), position


@compiled
def lower(first, last, token):
    """Fold a token of ASCII bytes."""
    for i in range(min(last - first, len(token))):
        byte = byte_at(first + i)
        token[i] = byte | 0x20 if 0x41 <= byte <= 0x5A else byte


@compiled
def entry_of(table, key, token, size):
    """The entry of a folded token, a word or else a prefix, and the slot of the word, or -1 for each."""
    slot = np.int64(-1)
    if size < len(token):
        slot = _slot(table.slots, table.pool, key, token, size)
    if slot >= 0:
        return table.slots[slot, ENTRY], slot
    if len(table.prefixes) > 1:
        return _prefix(table.prefixes, table.lengths, table.pool, key, token, size), slot
    return np.int64(NONE), slot
