"""The one hash of bytes in compiled code. Importing this module loads numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.text.codepoints import compiled

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@compiled
def fnv1a(data: Any, first: Any, last: Any) -> Any:
    """FNV-1a of data[first:last], 64 bits: quick for a few bytes, and the same on every machine.

    Its lower bits are weak where the last byte decides; who takes a place in a table from them mixes first.
    """
    state = BASIS
    for at in range(first, last):
        state = (state ^ np.uint64(data[at])) * PRIME
    return state
