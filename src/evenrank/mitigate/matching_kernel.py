"""The best one-to-one pairing of two sets of numbers, no pair further apart than a caliper. Exact.

On a line, two pairs that cross can be uncrossed without making either the sum or the largest of the distances
greater. So some best pairing does not cross, and is found like the best alignment of two sorted sequences: by
dynamic programming, only over those cells in which the two numbers are within the caliper.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_LEFT, _UP, _PAIR = 0, 1, 2


@njit(nogil=True, cache=True)
def band(a, b, caliper):  # type: ignore[no-untyped-def]
    """For each number of sorted a, the stretch of sorted b within the caliper: first, one past the last."""
    first, last = np.zeros(len(a), np.int64), np.zeros(len(a), np.int64)
    low = high = 0
    for i in range(len(a)):
        while low < len(b) and a[i] - b[low] > caliper:
            low += 1
        high = max(high, low)
        while high < len(b) and b[high] - a[i] <= caliper:
            high += 1
        first[i], last[i] = low, high
    return first, last


@njit(nogil=True, cache=True)
def align(a, b, first, last, worth):  # type: ignore[no-untyped-def]
    """Partner in sorted b of each number of sorted a, or −1; most pairs first, then the least distance.

    best[j] is the value of the best pairing of the numbers so far with b[:j]; a pair is worth `worth` (more
    than all distances together) less its distance. Behind the stretch of a number best is constant, since
    nothing there can be paired yet; before it, it is never asked for again.
    """
    best = np.zeros(len(b) + 1)
    starts = np.zeros(len(a) + 1, np.int64)
    for i in range(len(a)):
        starts[i + 1] = starts[i] + last[i] - first[i]
    choice = np.zeros(starts[-1], np.uint8)
    filled = 0  # best is right up to here, and constant from here on
    for i in range(len(a)):
        for j in range(filled + 1, last[i] + 1):
            best[j] = best[filled]
        filled = max(filled, last[i])
        diagonal = best[first[i]]
        for j in range(first[i] + 1, last[i] + 1):
            above = best[j]
            value, how = above, _UP
            if best[j - 1] > value:
                value, how = best[j - 1], _LEFT
            paired = diagonal + worth - abs(a[i] - b[j - 1])
            if paired > value:
                value, how = paired, _PAIR
            choice[starts[i] + j - 1 - first[i]] = how
            best[j] = value
            diagonal = above
    partner = np.full(len(a), -1, np.int64)
    j = len(b)
    for i in range(len(a) - 1, -1, -1):
        j = min(j, last[i])
        while j > first[i]:
            how = choice[starts[i] + j - 1 - first[i]]
            if how == _PAIR:
                partner[i] = j - 1
                j -= 1
                break
            if how == _UP:
                break
            j -= 1
    return partner
