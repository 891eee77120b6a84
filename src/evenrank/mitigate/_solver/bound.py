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
    profit = np.outer(discount, gain)
    for r in range(mu.size):
        if mu[r] != 0.0:
            profit -= np.outer(mu[r] * weights[r], values[r])
    return profit


@njit(nogil=True, cache=True)
def usefulness(gain: Floats, discount: Floats, order: Ints) -> float:
    """Σ_i discount_i · gain of the document at rank i."""
    total: float = (discount * gain[order]).sum()
    return total


@njit(nogil=True, cache=True)
def used(weights: Floats, values: Floats, order: Ints) -> Floats:
    """Of each limit, how much a ranking uses: Σ_i w_i · m(d_i)."""
    array = np.zeros(weights.shape[0])
    for r in range(array.size):
        array[r] = (weights[r] * values[r][order]).sum()
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
    basis = np.zeros(size, np.int64)
    inverse = np.eye(size)
    level = np.ones(size)
    for r in range(limits):
        exceeds = uses[0, r] > upper[r]
        basis[r] = -1 - limits - r if exceeds else -1 - r
        inverse[r, r] = -1.0 if exceeds else 1.0
        inverse[r, limits] = -uses[0, r] * inverse[r, r]
        level[r] = abs(upper[r] - uses[0, r])

    for _ in range(40 * rounds + 40):
        price = np.zeros(size)
        for j in range(size):
            if basis[j] >= 0:
                price += worth[basis[j]] * inverse[j]
            elif basis[j] < -limits:
                price -= penalty[-1 - limits - basis[j]] * inverse[j]
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
            charges = np.minimum(np.maximum(price[:limits], 0.0), penalty)
            profit = charged(gain, discount, weights, values, charges)
            ceiling = assign(profit, pool[result], ranks, docs) + (charges * upper).sum()
            if ceiling < least:
                least, best = ceiling, charges
            worth[result] = usefulness(gain, discount, pool[result])
            uses[result] = used(weights, values, pool[result])
            gained = worth[result] - price[limits] - (price[:limits] * uses[result]).sum()
            enters = result
            result += 1
            if gained <= TOLERANCE:
                break
        if enters >= 0:
            column = inverse[:, limits].copy()
            for r in range(limits):
                column += uses[enters, r] * inverse[:, r]
        elif enters >= -limits:
            column = inverse[:, -1 - enters].copy()
        else:
            column = -inverse[:, -1 - limits - enters]
        leaves, ratio = -1, np.inf
        for k in range(size):
            if column[k] > 1e-11:
                each = max(level[k], 0.0) / column[k]
                if each < ratio - 1e-13 or (each <= ratio and leaves >= 0 and column[k] > column[leaves]):
                    leaves, ratio = k, each
        if leaves < 0:
            break
        inverse[leaves] /= column[leaves]
        level[leaves] = ratio
        for k in range(size):
            if k != leaves and column[k] != 0.0:
                inverse[k] -= column[k] * inverse[leaves]
                level[k] -= column[k] * ratio
        basis[leaves] = enters
    excess = np.maximum(level[basis < -limits], 0.0).sum()
    return least, best, excess, pool[:result]


@njit(nogil=True, cache=True)
def assign(profit: Floats, chosen: Ints, ranks: Floats, docs: Floats) -> float:
    """The best document for each rank (`chosen`), each document at most once; returns the total profit.

    `ranks` and `docs` are filled with prices: ranks[i] + docs[d] ≥ profit[i, d] for all pairs, with
    equality where d is chosen for i, and docs ≥ 0 with 0 for every document that is not chosen. So no
    assignment has more profit than the sum of all prices, and every pair says, by how much its prices
    exceed its profit, what it costs to insist on it. By shortest augmenting paths (Jonker and Volgenant
    1987), for more documents than ranks as in Crouse (IEEE TAES 52(4), 2016).
    """
    m, n = profit.shape
    row_of = np.full(n + 1, -1, np.int64)  # the last column is where each path begins
    path = np.empty(n, np.int64)
    ranks[:] = 0.0
    docs[:] = 0.0
    for current in range(m):
        shortest = np.full(n, np.inf)
        is_seen = np.zeros(n, np.bool_)
        row_of[n] = current
        column = n
        while row_of[column] >= 0:
            i = row_of[column]
            if column < n:
                is_seen[column] = True
            lowest, nearest = np.inf, -1
            for j in range(n):
                if not is_seen[j]:
                    length = ranks[i] + docs[j] - profit[i, j]
                    if length < shortest[j]:
                        shortest[j] = length
                        path[j] = column
                    if shortest[j] < lowest:
                        lowest, nearest = shortest[j], j
            ranks[current] -= lowest
            for j in range(n):
                if is_seen[j]:
                    ranks[row_of[j]] -= lowest
                    docs[j] += lowest
                else:
                    shortest[j] -= lowest
            column = nearest
        while column < n:
            row_of[column] = row_of[path[column]]
            column = path[column]
    total = 0.0
    for j in range(n):
        if row_of[j] >= 0:
            chosen[row_of[j]] = j
            total += profit[row_of[j], j]
    return total
