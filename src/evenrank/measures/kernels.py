"""Compiled loops of the measures. Importing this module loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def _slot_of(slots: NDArray[np.int32], keys: NDArray[np.uint64], key: np.uint64) -> np.uint64:
    """The slot of a key's index, or the empty one it would go to (open addressing, linear probing)."""
    mask = np.uint64(slots.size - 1)
    slot = key & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(nogil=True, cache=True)
def _slots_for(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """A table from each key to the first index that holds it."""
    size = 4
    while size < 2 * keys.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    for i in range(keys.size):
        slot = _slot_of(slots, keys, keys[i])
        if slots[slot] < 0:
            slots[slot] = i
    return slots


@njit(nogil=True, cache=True)
def find_hashes(table: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Position in `table` of each hash, −1 where it is not in it. Indexes the shorter of the two."""
    found = np.empty(hashes.size, np.int64)
    if table.size <= hashes.size:
        slots = _slots_for(table)
        for i in range(hashes.size):
            found[i] = slots[_slot_of(slots, table, hashes[i])]
        return found
    # A collection is mostly larger than what a run holds of it: let it pass by an index of the run. A field
    # of at least 32 bits for each hash turns nearly all others away without a look at the index.
    slots = _slots_for(hashes)
    mask = np.uint64(16 * slots.size - 1)
    bits = np.zeros(slots.size // 2, np.uint32)
    for i in range(hashes.size):
        bit = (hashes[i] >> np.uint64(20)) & mask
        bits[bit >> np.uint64(5)] |= np.uint32(1) << np.uint32(bit & np.uint64(31))
    found[:] = -1
    for row in range(table.size):
        bit = (table[row] >> np.uint64(20)) & mask
        if (bits[bit >> np.uint64(5)] >> np.uint32(bit & np.uint64(31))) & np.uint32(1):
            first = slots[_slot_of(slots, hashes, table[row])]
            if first >= 0 and found[first] < 0:
                found[first] = row
    for i in range(hashes.size):
        found[i] = found[slots[_slot_of(slots, hashes, hashes[i])]]
    return found
