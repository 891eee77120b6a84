"""A hash table of words, for compiled code.

A table is an array of slots, a power of two of them and at most half of them taken. A slot holds the number
of a word, or FREE. The words lie end to end in a pool of bytes, word i at pool[offsets[i]:offsets[i + 1]]. A
word goes to the slot that its hash names, or, if that is taken, to the next free one (linear probing). Pools
and texts need SPARE bytes behind the last word, since eight bytes are read at a time.

Importing this module loads numba.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit

from evenrank.parallel import refuse_without_jit

refuse_without_jit()

# Without reference counts: what does not allocate needs none, and compiles in half the time. What only other
# compiled code calls needs no entrance from Python either.
_jit: Any = partial(njit, nogil=True, _nrt=False)
compiled = _jit(cache=True)
internal = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)

FREE = -1
"""In a slot that holds no word."""
SPARE = 8
EXACT, CASE = np.uint64(0), np.uint64(0x2020202020202020)
"""Bits that do not matter when words are compared; those of CASE make ASCII letters lower case."""

_MULTIPLIER, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@inlined
def eight(data: Any, position: Any) -> Any:
    """Eight bytes as one number, the first in its lowest bits; the compiler makes one load of it."""
    at = np.uint64(position)  # an unsigned place is not counted from the end
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inlined
def word_hash(data: Any, first: Any, size: Any) -> Any:
    """A hash of the first eight bytes of a word and of its size, the same in upper case."""
    unused = np.uint64(64 - 8 * min(size, 8))
    head = ((eight(data, first) | CASE) << unused) >> unused
    key = (head + np.uint64(size)) * _MULTIPLIER
    return key ^ (key >> _HALF)


@inlined
def word_slot(
    slots: Any, offsets: Any, pool: Any, word: Any, first: Any, size: Any, ignored: Any = EXACT
) -> Any:
    """The slot of word[first:first + size], or the free one where it belongs; some bits may be ignored."""
    slot = np.int64(word_hash(word, first, size) & np.uint64(len(slots) - 1))
    while slots[slot] != FREE:
        begin = offsets[slots[slot]]
        if offsets[slots[slot] + 1] - begin == size:
            same = 0
            while same < size:
                unused = np.uint64(64 - 8 * min(size - same, 8))
                if ((eight(word, first + same) | ignored) ^ (eight(pool, begin + same) | ignored)) << unused:
                    break
                same += 8
            if same >= size:
                return slot
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@compiled
def put_words(slots: Any, offsets: Any, pool: Any, count: Any) -> None:
    """Put the first words of a pool, all different, into a table, which is emptied before."""
    slots[:] = FREE
    for number in range(count):
        key = word_hash(pool, offsets[number], offsets[number + 1] - offsets[number])
        slot = np.int64(key & np.uint64(len(slots) - 1))
        while slots[slot] != FREE:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number
