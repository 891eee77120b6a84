"""Rankings of all queries whose means keep to limits.

What each query may spend is settled by charges that all queries share. For given charges λ every query is
solved on its own: usefulness minus λ · size of its bias. The charges that make the mean keep to its limits
are the duals of a linear program over mixtures of the rankings found so far; each query then adds its best
ranking under them, until none is better (Dantzig and Wolfe 1960). With one limit this finds what bisection on
λ would. The bound Σ_q (objective of q's best) + λ · Σ_q limit holds for any λ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenrank.measures.lists import Floats, Ints, log_discount
from evenrank.mitigate._solver.lists import GAP, INFEASIBLE, KEPT, MOVED, OPTIMAL, RATE, Solved, reduce
from evenrank.mitigate._solver.search import best_ranking
from evenrank.mitigate.limits import ROUNDING, Limit, Row
from evenrank.stats.rounding import round_significant

ROUNDS = 30
BIG_PENALTY = 1e4  # usefulness that no unit of bias is worth
_FAR = 1e15  # beyond any bias; a sum of larger bounds is infinite to the linear program
CLOSE = 1e-6  # of the usefulness of all queries: then the charges are settled


@dataclass(eq=False)
class _Query:
    """One query: its gains, what the limits say of its documents, and the rankings found so far."""

    gain: Floats
    ranks: int
    lines: list[tuple[Floats, Floats] | None]
    sides: list[list[float]]
    rankings: list[Ints] = field(default_factory=list)
    utility: list[float] = field(default_factory=list)
    sizes: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.discount = log_discount(self.ranks)
        rows, self.of, shift = [], [], []
        for k, line in enumerate(self.lines):
            if line is None:
                continue
            weights, values = line
            for side in self.sides[k]:
                # A signed value is charged whatever it is, so its row begins at the least it can be.
                least = 0.0 if len(self.sides[k]) > 1 else -float(weights.sum() * np.abs(values).max())
                rows.append(Row(weights, values * side, least))
                self.of.append(k)
                shift.append(least)
        self.shift = np.array(shift)
        self.reduced = reduce(rows, self.ranks, len(self.gain), slack=False) if rows else None
        self.add(np.arange(self.ranks))

    def measured(self, chosen: Ints) -> Floats:
        """Size of the bias for each limit: the absolute or signed value of a ranking."""
        array = np.zeros(len(self.lines))
        rest = np.arange(len(self.gain))
        whole = np.concatenate([chosen, rest[~np.isin(rest, chosen)]]) if len(rest) else rest
        for k, line in enumerate(self.lines):
            if line is None:
                continue
            weights, values = line
            n = len(weights)
            order = np.concatenate([whole, np.arange(len(whole), n)])[:n]
            value = float(np.dot(weights, values[order]))
            array[k] = abs(value) if len(self.sides[k]) > 1 else self.sides[k][0] * value
        return array

    def add(self, chosen: Ints) -> bool:
        if any(np.array_equal(chosen, known) for known in self.rankings):
            return False
        self.rankings.append(chosen)
        self.utility.append(float(np.dot(self.discount, self.gain[chosen])))
        self.sizes.append(self.measured(chosen))
        return True

    def price(self, charges: Floats, steps: int) -> float:
        """Add the best ranking under the charges; returns what no ranking's worth can exceed."""
        if self.reduced is None or (len(self.sizes) == 1 and not self.sizes[0].any() and self._absolute):
            return self.utility[0]  # nothing to gain: it is the most useful and has no bias
        each, penalty = self.reduced, charges[self.of]
        order, _worth, ceiling, _, _ = best_ranking(
            each.problem(self.gain[each.docs], self.discount), penalty, each.above, -np.inf, steps
        )
        if len(order):
            self.add(each.docs[order])
        return float(ceiling - np.dot(penalty, self.shift))

    @property
    def _absolute(self) -> bool:
        return all(len(sides) > 1 for sides in self.sides)


def solve_mean(
    gain: Sequence[Floats],
    limits: Sequence[Limit],
    ranks: int,
    *,
    budget: float,
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[list[Solved], dict[str, Any]]:
    """Rankings of all queries whose means keep to the limits, and what is proved of them together.

    The budget of a query is shared out among the rounds.
    """
    steps = max(1, int(budget * RATE / ROUNDS))
    sides = [limit.sides for limit in limits]
    queries = [
        _Query(each, min(ranks, len(each)), [limit.line(q) for limit in limits], sides)
        for q, each in enumerate(gain)
    ]
    defined = np.array([[line is not None for line in query.lines] for query in queries]).sum(axis=0)
    bounds = np.array(
        [limit.condition.bound * (1.0 if limit.condition.absolute else limit.sides[0]) for limit in limits]
    )
    bounds = np.clip(bounds, -_FAR, _FAR)
    room = (bounds + ROUNDING * np.maximum(1.0, np.abs(bounds))) * defined
    first = sum(query.utility[0] for query in queries)
    ceiling, charges = first, np.zeros(len(limits))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for turn in range(ROUNDS):
            shares, charges, value = _mixture(queries, room)
            if progress is not None:
                progress(turn, None)
            known = [len(query.rankings) for query in queries]
            worths = pool.map(lambda query, at=charges: query.price(at, steps), queries)
            ceiling = min(ceiling, sum(worths) + float(np.dot(charges, room)))
            grown = any(len(query.rankings) > n for query, n in zip(queries, known, strict=True))
            if not grown or ceiling - value <= CLOSE * max(first, 1.0):
                break
    shares, charges, _ = _mixture(queries, room)
    picks = _rounded(queries, shares, charges, room)
    total = np.array([query.sizes[pick] for query, pick in zip(queries, picks, strict=True)]).sum(axis=0)
    useful = sum(query.utility[pick] for query, pick in zip(queries, picks, strict=True))
    over = bool((total > room + 1e-12).any())
    proved = not over and ceiling - useful <= 1e-9 * max(first, 1.0)
    solved = [_solved(query, pick) for query, pick in zip(queries, picks, strict=True)]
    return solved, {
        "outcome": INFEASIBLE if over else OPTIMAL if proved else GAP,
        "largest_gap": max(0.0, (ceiling - useful) / first) if first > 0 and not over else 0.0,
        "proved": float(proved),
        "multipliers": charges.tolist(),
        "means": [float(x) for x in total / np.maximum(defined, 1)],
    }


def _solved(query: _Query, pick: int) -> Solved:
    same = np.arange(len(query.gain))
    chosen = query.rankings[pick]
    order = np.concatenate([chosen, same[~np.isin(same, chosen)]])
    status = KEPT if np.array_equal(order, same) else MOVED
    return Solved(order, status, query.utility[0], query.utility[pick], query.utility[pick])


def _mixture(queries: Sequence[_Query], room: Floats) -> tuple[list[Floats], Floats, float]:
    """The best mixture of the known rankings: shares of each, charges, and its value."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    counts = [len(query.rankings) for query in queries]
    k, columns = len(room), sum(counts)
    sizes = np.array([size for query in queries for size in query.sizes])
    worth = np.array([value for query in queries for value in query.utility])
    owner = np.repeat(np.arange(len(queries)), counts)
    one = csr_array((np.ones(columns), (owner, np.arange(columns))), shape=(len(queries), columns + k))
    result = linprog(
        np.concatenate([-worth, np.full(k, BIG_PENALTY)]),
        A_ub=np.hstack([sizes.T, -np.eye(k)]),
        b_ub=room,
        A_eq=one,
        b_eq=np.ones(len(queries)),
        method="highs",
    )
    charges = round_significant(np.clip(-result.ineqlin.marginals, 0.0, BIG_PENALTY), 12)
    return np.split(result.x[:columns], np.cumsum(counts)[:-1]), charges, -float(result.fun)


def _rounded(queries: Sequence[_Query], shares: list[Floats], charges: Floats, room: Floats) -> list[int]:
    """One ranking for each query: mixtures are decided toward less bias, then the room left is used up."""
    picks = [int(np.argmax(share)) for share in shares]
    for q, share in enumerate(shares):
        if share.max() < 1 - 1e-9:
            mixed = np.flatnonzero(share > 1e-9)
            picks[q] = int(min(mixed, key=lambda c: (float(np.dot(charges, queries[q].sizes[c])), c)))
    total = np.array([queries[q].sizes[pick] for q, pick in enumerate(picks)]).sum(axis=0)
    moves = [
        (queries[q].utility[c] - queries[q].utility[pick], q, c)
        for q, pick in enumerate(picks)
        for c in range(len(queries[q].rankings))
        if c != pick
    ]
    scale = 1.0 + float(charges.max(initial=0.0))
    while (total > room).any():  # least loss for what it brings back
        over = np.maximum(total - room, 0.0)
        best: tuple[float, int, int] | None = None
        for _, q, c in moves:
            step = queries[q].sizes[c] - queries[q].sizes[picks[q]]
            eased = float((over - np.maximum(over + step, 0.0)).sum())
            if eased > 1e-12:
                loss = (queries[q].utility[picks[q]] - queries[q].utility[c]) / eased / scale
                best = min(best or (loss, q, c), (loss, q, c))
        if best is None:
            break
        _, q, c = best
        total = total + queries[q].sizes[c] - queries[q].sizes[picks[q]]
        picks[q] = c
    for _, q, c in sorted(moves, key=lambda move: (-move[0], *move[1:])):
        rise = queries[q].utility[c] - queries[q].utility[picks[q]]
        after = total + queries[q].sizes[c] - queries[q].sizes[picks[q]]
        if rise > 0 and (after <= room).all():
            picks[q], total = c, after
    return picks
