"""The ranking of most worth, with a certificate: bound, climb, search.

Importing this module loads numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from evenrank.mitigate.constrain.assignment import Floats, Ints
from evenrank.mitigate.constrain.gap_search import NEGLIGIBLE, climb, regrets, within, worth
from evenrank.mitigate.constrain.lagrangian import bound, charged

ROUNDS = 120  # of column generation; with one limit some ten are needed, with four some forty
CLIMBS = 6
DEAR = 1e5  # what stands for an infinite penalty in the bound, in usefulness by limit at their usual sizes


@njit(nogil=True, cache=True)
def best_ranking(
    gain: Floats,
    discount: Floats,
    weights: Floats,
    values: Floats,
    upper: Floats,
    penalty: Floats,
    above: Ints,
    floor: float,
    budget: int,
) -> tuple[Ints, float, float, float, int]:
    """The ranking of most worth that is found, provided it has more than `floor`.

    Returns it (empty if none was found), its worth, what no ranking can exceed, by how much even mixtures
    of rankings exceed hard limits, and the number of pairs tried. Where no ranking was found, the ceiling
    is `floor` if that is proved.
    """
    m, n, limits = discount.size, gain.size, upper.size
    order = np.empty(m, np.int64)
    known = False
    beaten = floor > -np.inf  # whether there is a worth to beat, and so a distance to search
    dear = penalty.copy()
    hard = False
    for r in range(limits):
        if penalty[r] == np.inf:
            hard = True
            dear[r] = DEAR / max(np.abs(weights[r]).max() * np.abs(values[r]).max(), 1e-9)
    rounds = max(8, min(ROUNDS, budget // (m * m * n)))
    ceiling, charges, over, pool = bound(gain, discount, weights, values, upper, dear, rounds)
    work = pool.shape[0] * m * n
    if hard and over > 1e-9:
        return order[:0], floor, ceiling, over, work
    if ceiling <= floor + NEGLIGIBLE:
        return order[:0], floor, floor, 0.0, work
    tried = np.empty(m, np.int64)
    for k in range(max(0, pool.shape[0] - CLIMBS), pool.shape[0]):
        tried[:] = pool[k]
        allowance = max(m * n, (budget - work) // (2 * CLIMBS))
        work += climb(gain, discount, weights, values, upper, penalty, charges, tried, allowance)
        value = worth(gain, discount, weights, values, upper, penalty, tried)
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
        found, tries = within(
            reach, regret, price, gain, discount, weights, values, upper, penalty, charges, above, tried,
            floor, start, budget - work,
        )  # fmt: skip
        work += tries
        if found > floor:
            floor = found
            order[:] = tried
            known = beaten = True
        if work <= budget:
            # Nothing beyond this distance: all rankings have been looked at.
            ceiling = floor if delta > farthest else max(floor, start - reach)
        delta *= 2.0
    return order if known else order[:0], floor, ceiling, 0.0, work
