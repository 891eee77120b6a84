"""Which document goes to which rank, at most total profit: the assignment problem, compiled.

The shortest augmenting paths of R. Jonker and A. Volgenant (1987), in the form that D. F. Crouse gives for
more documents than ranks (On implementing 2D rectangular assignment algorithms, IEEE TAES 52(4), 2016).
Importing this module loads numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def assign(profit: Floats, chosen: Ints, ranks: Floats, docs: Floats) -> float:
    """The best document for each rank (`chosen`), each document at most once; returns the total profit.

    `ranks` and `docs` are filled with prices: ranks[i] + docs[d] ≥ profit[i, d] for all pairs, with
    equality where d is chosen for i, and docs ≥ 0 with 0 for every document that is not chosen. So no
    assignment has more profit than the sum of all prices, and every pair says, by how much its prices
    exceed its profit, what it costs to insist on it.
    """
    m, n = profit.shape
    row_of = np.full(n, -1, np.int64)
    shortest = np.empty(n)
    path = np.empty(n, np.int64)
    left = np.empty(n, np.int64)
    row_seen = np.empty(m, np.bool_)
    col_seen = np.empty(n, np.bool_)
    ranks[:] = 0.0
    docs[:] = 0.0
    chosen[:] = -1
    for current in range(m):
        row_seen[:] = False
        col_seen[:] = False
        for j in range(n):
            shortest[j] = np.inf
            left[j] = j
        remaining = n
        lowest = 0.0
        i = current
        sink = -1
        while sink < 0:
            row_seen[i] = True
            at = -1
            best = np.inf
            for k in range(remaining):
                j = left[k]
                length = lowest - profit[i, j] + ranks[i] + docs[j]
                if length < shortest[j]:
                    path[j] = i
                    shortest[j] = length
                if shortest[j] < best or (shortest[j] == best and row_of[j] < 0 and row_of[left[at]] >= 0):
                    best = shortest[j]
                    at = k
            lowest = best
            j = left[at]
            col_seen[j] = True
            remaining -= 1
            left[at] = left[remaining]
            if row_of[j] < 0:
                sink = j
            else:
                i = row_of[j]
        ranks[current] -= lowest
        for k in range(m):
            if row_seen[k] and k != current:
                ranks[k] -= lowest - shortest[chosen[k]]
        for j in range(n):
            if col_seen[j]:
                docs[j] += lowest - shortest[j]
        j = sink
        while True:
            i = path[j]
            row_of[j] = i
            j, chosen[i] = chosen[i], j
            if i == current:
                break
    total = 0.0
    for i in range(m):
        total += profit[i, chosen[i]]
    return total
