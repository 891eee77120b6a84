"""How useful can a ranking within the limits be at most? The Lagrangian bound, by column generation.

A limit is Σ_i w_i · m(d_i) ≤ b over the ranks i. Charging μ ≥ 0 for each unit of it leaves an assignment
problem without limits, whose value plus μ · b no ranking within the limits can exceed. The best μ is found
by the simplex method on the mixtures of rankings (Dantzig and Wolfe 1960): its duals are the next charges to
try, and the best ranking under them is the next one to mix in. Importing this module loads numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-10


class Problem(NamedTuple):
    """One list to be ranked within limits.

    ``gain`` of each document, ``discount`` of each rank; of each limit its ``weights`` by rank, its
    ``values`` by document, and what it must not exceed, ``upper``.
    """

    gain: Floats
    discount: Floats
    weights: Floats
    values: Floats
    upper: Floats


@njit(nogil=True, cache=True)
def charged(gain: Floats, discount: Floats, weights: Floats, values: Floats, mu: Floats) -> Floats:
    """Profit of each document at each rank: discounted gain, minus the charge for what it adds to limits."""
    m, n = discount.size, gain.size
    profit = np.empty((m, n))
    for i in range(m):
        for d in range(n):
            profit[i, d] = discount[i] * gain[d]
    for r in range(mu.size):
        if mu[r] != 0.0:
            for i in range(m):
                charge = mu[r] * weights[r, i]
                for d in range(n):
                    profit[i, d] -= charge * values[r, d]
    return profit


@njit(nogil=True, cache=True)
def usefulness(gain: Floats, discount: Floats, order: Ints) -> float:
    """Σ_i discount_i · gain of the document at rank i."""
    total = 0.0
    for i in range(discount.size):
        total += discount[i] * gain[order[i]]
    return total


@njit(nogil=True, cache=True)
def used(weights: Floats, values: Floats, order: Ints) -> Floats:
    """Of each limit, how much a ranking uses: Σ_i w_i · m(d_i)."""
    array = np.zeros(weights.shape[0])
    for r in range(array.size):
        for i in range(order.size):
            array[r] += weights[r, i] * values[r, order[i]]
    return array


@njit(nogil=True, cache=True)
def bound(
    gain: Floats,
    discount: Floats,
    weights: Floats,
    values: Floats,
    upper: Floats,
    penalty: Floats,
    rounds: int,
) -> tuple[float, Floats, float, Ints]:
    """The least upper bound found, its charges, by how much mixtures exceed limits, and the rankings tried.

    Limits may be exceeded at `penalty` for each unit, so that there is a bound where they cannot be kept;
    charges never exceed the penalties. A mixture that exceeds them although any excess is dear proves
    (once no better ranking is found) that every ranking does.
    """
    m, limits = discount.size, upper.size
    size = limits + 1
    pool = np.empty((rounds + 1, m), np.int64)
    worth = np.empty(rounds + 1)
    uses = np.empty((rounds + 1, limits))
    ranks, docs = np.empty(m), np.empty(gain.size)
    charges = np.zeros(limits)
    profit = charged(gain, discount, weights, values, charges)
    least = assign(profit, pool[0], ranks, docs)
    best = charges.copy()
    worth[0] = least
    uses[0] = used(weights, values, pool[0])
    result = 1

    # Basis: number of a ranking, −1 − r for what is left of limit r, −1 − limits − r for what exceeds it.
    basis = np.empty(size, np.int64)
    inverse = np.zeros((size, size))
    level = np.empty(size)
    for r in range(limits):
        sign = 1.0 if uses[0, r] <= upper[r] else -1.0
        basis[r] = -1 - r if sign > 0 else -1 - limits - r
        inverse[r, r] = sign
        inverse[r, limits] = -uses[0, r] * sign
        level[r] = abs(upper[r] - uses[0, r])
    basis[limits] = 0
    inverse[limits, limits] = 1.0
    level[limits] = 1.0

    price = np.empty(size)
    column = np.empty(size)
    for _ in range(40 * rounds + 40):
        for k in range(size):
            price[k] = 0.0
            for j in range(size):
                b = basis[j]
                if b >= 0:
                    price[k] += worth[b] * inverse[j, k]
                elif b < -limits:
                    price[k] -= penalty[-1 - limits - b] * inverse[j, k]
        # What to bring in: room left in a limit, or excess, else the best ranking under these charges.
        enters, gained = 0, TOLERANCE
        for r in range(limits):
            if -price[r] > gained:
                enters, gained = -1 - r, -price[r]
            if price[r] - penalty[r] > gained:
                enters, gained = -1 - limits - r, price[r] - penalty[r]
        if enters == 0:
            if result > rounds:
                break
            for r in range(limits):
                charges[r] = min(max(price[r], 0.0), penalty[r])
            profit = charged(gain, discount, weights, values, charges)
            value = assign(profit, pool[result], ranks, docs)
            ceiling = value
            for r in range(limits):
                ceiling += charges[r] * upper[r]
            if ceiling < least:
                least = ceiling
                best[:] = charges
            worth[result] = usefulness(gain, discount, pool[result])
            uses[result] = used(weights, values, pool[result])
            gained = worth[result] - price[limits]
            for r in range(limits):
                gained -= price[r] * uses[result, r]
            enters = result
            result += 1
            if gained <= TOLERANCE:
                break
        for k in range(size):
            if enters >= 0:
                column[k] = inverse[k, limits]
                for r in range(limits):
                    column[k] += inverse[k, r] * uses[enters, r]
            elif enters >= -limits:
                column[k] = inverse[k, -1 - enters]
            else:
                column[k] = -inverse[k, -1 - limits - enters]
        leaves, ratio = -1, np.inf
        for k in range(size):
            if column[k] > 1e-11:
                each = max(level[k], 0.0) / column[k]
                if each < ratio - 1e-13 or (each <= ratio and leaves >= 0 and column[k] > column[leaves]):
                    leaves, ratio = k, each
        if leaves < 0:
            break
        pivot = column[leaves]
        for j in range(size):
            inverse[leaves, j] /= pivot
        level[leaves] = ratio
        for k in range(size):
            if k != leaves and column[k] != 0.0:
                for j in range(size):
                    inverse[k, j] -= column[k] * inverse[leaves, j]
                level[k] -= column[k] * ratio
        basis[leaves] = enters
    excess = 0.0
    for k in range(size):
        if basis[k] < -limits:
            excess += max(level[k], 0.0)
    return least, best, excess, pool[:result]


# Which document goes to which rank, at most total profit: the assignment problem, compiled.
#
# The shortest augmenting paths of R. Jonker and A. Volgenant (1987), in the form that D. F. Crouse gives for
# more documents than ranks (On implementing 2D rectangular assignment algorithms, IEEE TAES 52(4), 2016).


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
