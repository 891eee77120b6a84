"""One hash of bytes and one kind of hash table, for compiled code.

A table is an array of slots, a power of two of them and at most half of them taken. A slot holds the number
of a key, or FREE; the keys, 64 bits each, lie in an array of their own, in the order of their numbers. A key
goes to the slot that its bits name, or, if that is taken, to the next free one (open addressing, linear
probing). Where keys are hashes of words, the words lie end to end in a pool of bytes, and a hit is compared
in all of them.

Importing this module loads numba.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenrank.parallel import refuse_without_jit

refuse_without_jit()

# Without reference counts: what does not allocate needs none, and compiles in half the time. What only other
# compiled code calls needs no entrance from Python either.
_jit: Any = partial(njit, nogil=True, _nrt=False)
compiled = _jit(cache=True)
internal = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)

FREE = -1
"""In a slot that holds no key."""

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_HALF = np.uint64(32)


@compiled
def fnv1a(data: Any, first: Any, last: Any) -> Any:
    """FNV-1a of data[first:last], 64 bits: quick for a few bytes, and the same on every machine."""
    state = BASIS
    for at in range(first, last):
        state = (state ^ np.uint64(data[at])) * PRIME
    return state


@inlined
def mixed(key: Any) -> Any:
    """A key whose lower bits depend on all of them; those of FNV-1a are weak."""
    return key ^ (key >> _HALF)


@compiled
def slot_of(slots: Any, keys: Any, key: Any) -> Any:
    """The slot of a key's number, or the free one where it would go."""
    slot = np.int64(mixed(key) & np.uint64(len(slots) - 1))
    while slots[slot] != FREE and keys[slots[slot]] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@njit(nogil=True, cache=True)
def slots_for(keys: Any) -> Any:
    """A table from each key to the first place that holds it."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, FREE, np.int32)
    for number in range(len(keys)):
        slot = slot_of(slots, keys, keys[number])
        if slots[slot] == FREE:
            slots[slot] = number
    return slots


@njit(nogil=True, cache=True)
def find_hashes(table: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Position in `table` of each hash, −1 where it is not in it. Indexes the shorter of the two."""
    values = np.empty(hashes.size, np.int64)
    if table.size <= hashes.size:
        slots = slots_for(table)
        for i in range(hashes.size):
            values[i] = slots[slot_of(slots, table, hashes[i])]
        return values
    slots = slots_for(hashes)
    values[:] = -1
    for row in range(table.size):
        first = slots[slot_of(slots, hashes, table[row])]
        if first >= 0 and values[first] < 0:
            values[first] = row
    for i in range(hashes.size):
        values[i] = values[slots[slot_of(slots, hashes, hashes[i])]]
    return values


@inlined
def word_slot(
    slots: Any, hashes: Any, offsets: Any, pool: Any, wanted: Any, word: Any, first: Any, size: Any
) -> Any:
    """The slot of word[first:first + size], whose hash is `wanted`, or the free one where it belongs."""
    slot = np.int64(mixed(wanted) & np.uint64(len(slots) - 1))
    while slots[slot] != FREE:
        number = slots[slot]
        begin = offsets[number]
        if hashes[number] == wanted and offsets[number + 1] - begin == size:
            same = True
            for i in range(size):
                if pool[begin + i] != word[first + i]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & (len(slots) - 1)
    return slot


def put_words(slots: NDArray[np.int32], hashes: NDArray[np.uint64]) -> None:
    """Put words, all different, into an empty table: each round those whose place is still free."""
    words = np.arange(len(hashes))
    places = ((hashes ^ (hashes >> _HALF)) & np.uint64(len(slots) - 1)).astype(np.int64)
    while len(words):
        free = slots[places] == FREE
        slots[places[free]] = words[free]
        waiting = slots[places] != words
        words, places = words[waiting], (places[waiting] + 1) & (len(slots) - 1)
