"""The best ranking of one list, with a certificate: bound, local search, branch and bound.

A ranking's worth is its usefulness, minus a penalty for each unit by which it exceeds a limit; where a limit
is hard the penalty is infinite. Under the best charges every pair of rank and document has a regret: what
insisting on it takes off the bound. What a ranking falls short of the bound is the sum of its regrets, plus
charge × room for each limit it does not use up, plus (penalty − charge) × excess for each it exceeds, plus
the prices of wanted documents that it leaves out. So the rankings within δ of the bound are found by
depth-first search over the ranks, cut off when all this exceeds δ; δ grows until the best is among them,
which is proved by having looked. Importing this module loads numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from evenrank.mitigate._solver.bound import Floats, Ints, Problem, assign, bound, charged, used, usefulness

NEGLIGIBLE = 1e-9
"""Differences in usefulness that do not count: a ranking this close to the best is the best."""
ROUNDS = 120  # of column generation; with one limit some ten are needed, with four some forty
STARTS = 6
BIG_PENALTY = 1e5
"""What stands for an infinite penalty in the bound, in usefulness by limit at their usual sizes."""


@njit(nogil=True, cache=True)
def objective(problem: Problem, penalty: Floats, order: Ints) -> float:
    """Usefulness of a ranking, minus the penalties for exceeding limits."""
    total = usefulness(problem.gain, problem.discount, order)
    uses = used(problem.weights, problem.values, order)
    for r in range(problem.upper.size):
        if uses[r] > problem.upper[r]:
            total -= penalty[r] * (uses[r] - problem.upper[r])
    return total


@njit(nogil=True, cache=True)
def local_search(problem: Problem, penalty: Floats, charges: Floats, order: Ints, budget: int) -> int:
    """Better `order` by single exchanges until none helps. Returns the number of pairs tried.

    Exchanges either swap two ranks or bring in a document from below. Where penalties are infinite, finite
    ones rise until the ranking keeps to the limits.
    """
    gain, discount, weights, values, upper = problem
    m, n, limits = discount.size, gain.size, upper.size
    price = penalty.copy()
    for r in range(limits):
        if price[r] == np.inf:
            price[r] = 1.5 * charges[r] + 1e-3
    rank_of = np.full(n, -1, np.int64)
    for i in range(m):
        rank_of[order[i]] = i
    uses = used(weights, values, order)
    work = 0
    while work < budget:
        best, at, doc = 1e-12, -1, -1
        for i in range(m):
            a = order[i]
            for d in range(n):
                j = rank_of[d]
                if d == a or (j >= 0 and j < i):
                    continue
                work += 1
                rise = discount[i] * (gain[d] - gain[a])
                if j >= 0:
                    rise += discount[j] * (gain[a] - gain[d])
                for r in range(limits):
                    step = weights[r, i] * (values[r, d] - values[r, a])
                    if j >= 0:
                        step += weights[r, j] * (values[r, a] - values[r, d])
                    rise -= price[r] * (max(uses[r] + step - upper[r], 0.0) - max(uses[r] - upper[r], 0.0))
                if rise > best:
                    best, at, doc = rise, i, d
        if at < 0:
            raised = False
            for r in range(limits):
                if penalty[r] == np.inf and uses[r] > upper[r] and price[r] < 1e7:
                    price[r] *= 3.0
                    raised = True
            if not raised:
                break
            continue
        out, j = order[at], rank_of[doc]
        order[at] = doc
        rank_of[doc] = at
        rank_of[out] = j
        if j >= 0:
            order[j] = out
        uses = used(weights, values, order)
    return work


@njit(nogil=True, cache=True)
def regrets(profit: Floats) -> tuple[Floats, float, Floats]:
    """What insisting on each pair costs, the value of the best assignment, and the prices of documents."""
    m, n = profit.shape
    chosen, ranks, docs = np.empty(m, np.int64), np.empty(m), np.empty(n)
    value = assign(profit, chosen, ranks, docs)
    values = np.empty((m, n))
    for i in range(m):
        for d in range(n):
            values[i, d] = max(ranks[i] + docs[d] - profit[i, d], 0.0)
    return values, value, docs


@njit(nogil=True, cache=True)
def branch_and_bound(
    delta: float,
    regret: Floats,
    price: Floats,
    problem: Problem,
    penalty: Floats,
    charges: Floats,
    above: Ints,
    best: Ints,
    floor: float,
    ceiling: float,
    budget: int,
) -> tuple[float, int]:
    """The best of the rankings whose worth is more than both `floor` and `ceiling` − δ.

    `above` is, for each document, the one with the same values and the next higher gain (or −1), which has
    to come first. Fills `best` when there is such a ranking. Returns its worth (else `floor`) and the
    number of pairs tried: more than `budget` if the search was given up.
    """
    gain, discount, weights, values, upper = problem
    m, n, limits = discount.size, gain.size, upper.size
    # The documents worth trying at each rank, least regret first, and what the ranks below can add.
    allowed = np.empty((m, n), np.int64)
    count = np.zeros(m, np.int64)
    for i in range(m):
        by = np.argsort(regret[i])
        for d in by:
            if regret[i, d] > delta:
                break
            allowed[i, count[i]] = d
            count[i] += 1
    low, high = np.zeros((m + 1, limits)), np.zeros((m + 1, limits))
    rest = np.zeros(m + 1)
    for i in range(m - 1, -1, -1):
        if count[i] == 0:
            return floor, 1
        for r in range(limits):
            least, most = np.inf, -np.inf
            for k in range(count[i]):
                x = weights[r, i] * values[r, allowed[i, k]]
                least, most = min(least, x), max(most, x)
            low[i, r] = low[i + 1, r] + least
            high[i, r] = high[i + 1, r] + most
        rest[i] = rest[i + 1] + regret[i, allowed[i, 0]]
    # Wanted documents, cheapest first: of those that no longer fit, each costs at least its price.
    wanted = np.argsort(price)
    wanted = wanted[price[wanted] > 0.0]
    spare = m - wanted.size  # ranks that no wanted document needs
    others = np.zeros(m + 1, np.int64)
    taken = np.zeros(n, np.bool_)
    at = np.zeros(m, np.int64)
    order = np.empty(m, np.int64)
    cost = np.zeros(m + 1)
    uses = np.zeros((m + 1, limits))
    work = 0
    i = 0
    at[0] = 0
    slack = delta + 1e-12  # rounding must not hide the best
    while i >= 0:
        if at[i] >= count[i]:
            i -= 1
            if i >= 0:
                taken[order[i]] = False
            continue
        d = allowed[i, at[i]]
        at[i] += 1
        work += 1
        if work > budget:
            break
        total = cost[i] + regret[i, d]
        if total + rest[i + 1] > slack:
            at[i] = count[i]  # those that follow cost no less
            continue
        if taken[d] or (above[d] >= 0 and not taken[above[d]]):
            continue
        short = total + rest[i + 1]
        others[i + 1] = others[i] + (price[d] <= 0.0)
        without = others[i + 1] - spare
        k = 0
        while without > 0 and k < wanted.size:
            if not taken[wanted[k]] and wanted[k] != d:
                short += price[wanted[k]]
                without -= 1
            k += 1
        if short > slack:
            continue
        for r in range(limits):
            x = uses[i, r] + weights[r, i] * values[r, d]
            uses[i + 1, r] = x
            room = upper[r] - x - high[i + 1, r]
            over = x + low[i + 1, r] - upper[r]
            if over > 0.0:
                short += (penalty[r] - charges[r]) * over
            elif room > 0.0:
                short += charges[r] * room
        if short > slack:
            continue
        order[i] = d
        if i == m - 1:
            value = objective(problem, penalty, order)
            if value > floor + NEGLIGIBLE:
                floor = value
                best[:] = order
                slack = min(slack, ceiling - floor + 1e-12)
            continue
        taken[d] = True
        cost[i + 1] = total
        i += 1
        at[i] = 0
    return floor, work


@njit(nogil=True, cache=True)
def best_ranking(
    problem: Problem, penalty: Floats, above: Ints, floor: float, budget: int
) -> tuple[Ints, float, float, float, int]:
    """The ranking of most worth that is found, provided it has more than `floor`.

    Returns it (empty if none was found), its worth, what no ranking can exceed, by how much even mixtures
    of rankings exceed hard limits, and the number of pairs tried. Where no ranking was found, the ceiling
    is `floor` if that is proved.
    """
    gain, discount, weights, values, upper = problem
    m, n, limits = discount.size, gain.size, upper.size
    order = np.empty(m, np.int64)
    known = False
    beaten = floor > -np.inf  # whether there is a worth to beat, and so a distance to search
    dear = penalty.copy()
    hard = False
    for r in range(limits):
        if penalty[r] == np.inf:
            hard = True
            dear[r] = BIG_PENALTY / max(np.abs(weights[r]).max() * np.abs(values[r]).max(), 1e-9)
    rounds = max(8, min(ROUNDS, budget // (m * m * n)))
    ceiling, charges, over, pool = bound(gain, discount, weights, values, upper, dear, rounds)
    work = pool.shape[0] * m * n
    if hard and over > 1e-9:
        return order[:0], floor, ceiling, over, work
    if ceiling <= floor + NEGLIGIBLE:
        return order[:0], floor, floor, 0.0, work
    tried = np.empty(m, np.int64)
    for k in range(max(0, pool.shape[0] - STARTS), pool.shape[0]):
        tried[:] = pool[k]
        allowance = max(m * n, (budget - work) // (2 * STARTS))
        work += local_search(problem, penalty, charges, tried, allowance)
        value = objective(problem, penalty, tried)
        if value > floor:
            floor = value
            order[:] = tried
            known = beaten = True
    regret, value, price = regrets(charged(gain, discount, weights, values, charges))
    start = value
    for r in range(limits):
        start += charges[r] * upper[r]
    ceiling = start
    farthest = 2.0 * (np.abs(discount).sum() * np.abs(gain).max() + 1.0)
    for r in range(limits):
        reach = np.abs(weights[r]).sum() * np.abs(values[r]).max() + abs(upper[r])
        farthest += 2.0 * dear[r] * reach if penalty[r] < np.inf else 2.0 * charges[r] * reach
    delta = (start - floor) / 64.0 if beaten else 1e-3
    while ceiling > floor + NEGLIGIBLE and work <= budget:
        reach = min(delta, start - floor) if beaten else delta
        result, tries = branch_and_bound(
            reach, regret, price, problem, penalty, charges, above, tried, floor, start, budget - work
        )
        work += tries
        if result > floor:
            floor = result
            order[:] = tried
            known = beaten = True
        if work <= budget:
            # Nothing beyond this distance: all rankings have been looked at.
            ceiling = floor if delta > farthest else max(floor, start - reach)
        delta *= 2.0
    return order if known else order[:0], floor, ceiling, 0.0, work
