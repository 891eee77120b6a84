"""Binary search among sorted texts that lie one behind the other in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _compare(left: Any, first: Any, last: Any, right: Any, begin: Any, end: Any) -> Any:
    """Below, at or above zero as left[first:last] is less than, equal to or greater than right[begin:end]."""
    for i in range(min(last - first, end - begin)):
        a, b = left[first + i], right[begin + i]
        if a != b:
            return np.int64(a) - np.int64(b)
    return (last - first) - (end - begin)


@njit(nogil=True, cache=True)
def search(wanted: Any, bounds: Any, pool: Any, offsets: Any, order: Any, found: Any) -> None:
    """Fill `found` with the number of each wanted text, or −1.

    Text number n is pool[offsets[n]:offsets[n + 1]]; `order` lists the numbers as their texts are sorted;
    where it is empty the numbers are so sorted themselves.
    """
    count, last = len(offsets) - 1, len(pool)
    for row in range(len(found)):
        low, high = 0, count
        found[row] = -1
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else np.int64(middle)
            if number >= count:
                break  # a damaged file
            begin, end = offsets[number], offsets[number + 1]
            if not 0 <= begin <= end <= last:
                break
            order_of = _compare(wanted, bounds[row], bounds[row + 1], pool, begin, end)
            if order_of == 0:
                found[row] = number
                break
            if order_of < 0:
                high = middle
            else:
                low = middle + 1
