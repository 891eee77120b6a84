"""Which of many hashes may repeat, without sorting them all.

Import this module inside functions only: it brings in numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_ONE, _SIX = np.uint64(1), np.uint64(6)


@njit(nogil=True, cache=True)
def may_repeat(hashes: Any) -> Any:
    """Those that share a place with another, of sixteen or more places for each: few, unless they repeat."""
    words = 64
    while 4 * words < len(hashes):
        words *= 2
    once, twice = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for each in hashes:
        word, bit = (each >> _SIX) & np.uint64(words - 1), _ONE << (each & np.uint64(63))
        twice[word] |= once[word] & bit
        once[word] |= bit
    found: Any = np.empty_like(hashes)
    kept: Any = 0
    for each in hashes:
        word = (each >> _SIX) & np.uint64(words - 1)
        found[kept] = each
        kept += np.int64((twice[word] >> (each & np.uint64(63))) & _ONE)
    return found[:kept].copy()
