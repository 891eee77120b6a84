"""One list: the most useful ranking of its candidates within limits, and what is proved of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenrank.mitigate._solver.bound import Floats, Ints, Problem
from evenrank.mitigate._solver.search import best_ranking
from evenrank.mitigate.limits import Alternatives, Row

RATE = 50_000_000
"""Pairs of rank and document tried per second of budget. Work is counted, not time, so that the same input
gives the same ranking on every machine; a core of 2023 tries 40 to 80 million."""
INITIAL_BUDGET = 50_000_000  # pairs to begin with when there is no budget; then twice as many, and so on
SETTLED = 1e-9

KEPT, OPTIMAL, GAP, INFEASIBLE, UNRESOLVED = "kept", "optimal", "gap", "infeasible", "unresolved"
MOVED = "moved"


@dataclass(frozen=True, eq=False)
class Solved:
    """A ranking of the candidates, and the certificate.

    Attributes
    ----------
    order
        For each rank the candidate that stands there, as its rank in the input, counted from 0.
    status
        `kept`: the input is within the limits. `optimal`: no ranking within the limits is more useful.
        `gap`: within the limits, and at most `ceiling` − `utility` less useful than the best.
        `infeasible`: no ranking is within the limits, and this is the one that exceeds them least (by
        `excess`, which none can bring below `least_excess`). `unresolved`: none was found, none excluded.
        `moved`: re-ranked under a limit on the mean, where nothing is proved of single queries.
    utility_before, utility, ceiling
        Discounted gain of the input, of the ranking, and what none within the limits can exceed.
    work
        Pairs of rank and document tried.
    """

    order: Ints
    status: str
    utility_before: float
    utility: float
    ceiling: float
    excess: float = 0.0
    least_excess: float = 0.0
    work: int = 0

    @property
    def proved(self) -> bool:
        """Whether nothing is left open: no ranking is better."""
        return self.status in (KEPT, OPTIMAL) or (
            self.status == INFEASIBLE and self.excess <= self.least_excess
        )


@dataclass(frozen=True, eq=False)
class Reduced:
    """One alternative without documents that cannot be in the top of a best ranking."""

    docs: Ints  # which candidates are left
    above: Ints
    weights: Floats
    values: Floats
    upper: Floats

    def problem(self, gain: Floats, discount: Floats) -> Problem:
        return Problem(gain, discount, self.weights, self.values, self.upper)

    def excess(self, order: Ints) -> Floats:
        return np.maximum((self.weights * self.values[:, order]).sum(axis=1) - self.upper, 0.0)


def gains(scores: Floats, utility: str) -> Floats:
    """What each candidate is worth at the top: its score from 0 (lowest) to 1, or 1/log2(rank + 1).

    Any other shift or scale of the scores gives the same best ranking. Scores that are all equal say
    nothing, and the given order counts instead.
    """
    spread = scores[0] - scores[-1] if len(scores) else 0.0
    if utility == "order" or not spread > 0 or not np.isfinite(spread):
        return 1 / np.log2(np.arange(len(scores)) + 2.0)
    return (scores - scores[-1]) / spread


def solve(gain: Floats, alternatives: Alternatives, ranks: int, *, budget: float, exact: bool) -> Solved:
    """The most useful ranking of candidates with these gains (falling) within one of the alternatives.

    `ranks` is how many ranks from the top are filled anew; below them the given order stays.
    """
    discount = 1 / np.log2(np.arange(ranks) + 2.0)
    before = float(np.dot(discount, gain[:ranks]))
    same = np.arange(len(gain))
    if not alternatives or any(all(_kept(row) for row in rows) for rows in alternatives):
        return Solved(same, KEPT, before, before, before)
    reduced = [reduce(rows, ranks, len(gain)) for rows in alternatives]
    limit = INITIAL_BUDGET if exact else int(budget * RATE)
    while True:
        result = _attempt(gain, discount, reduced, limit)
        if not exact or result.proved:
            break
        limit *= 2
    order = np.concatenate([result.order, same[~np.isin(same, result.order)]])
    return replace(result, order=order, utility_before=before)


def _kept(row: Row) -> bool:
    n = len(row.weights)
    return float(np.dot(row.weights, row.values[:n])) <= row.bound


def reduce(rows: Sequence[Row], ranks: int, candidates: int, *, slack: bool = True) -> Reduced:
    """Of documents with the same values only the `ranks` best can be in the top, and in their order.

    Bounds get room for rounding unless there is no `slack`.
    """
    deepest = max(ranks, *(len(row.weights) for row in rows))
    weights = np.zeros((len(rows), deepest))
    upper = np.array([row.bound if slack else row.upper for row in rows])
    for r, row in enumerate(rows):
        weights[r, : len(row.weights)] = row.weights
        fixed = slice(ranks, len(row.weights))  # candidates end above the cut-off: those below stay
        upper[r] -= np.dot(row.weights[fixed], row.values[fixed])
    values = np.array([row.values[:candidates] for row in rows])
    by = np.lexsort((np.arange(candidates), *values))
    starts = np.ones(candidates, bool)
    starts[1:] = (values[:, by[1:]] != values[:, by[:-1]]).any(axis=0)
    place = np.arange(candidates) - np.maximum.accumulate(np.where(starts, np.arange(candidates), 0))
    before = np.where(place > 0, np.roll(by, 1), -1)
    kept = place < ranks
    docs, before = by[kept], before[kept]
    again = np.argsort(docs)
    docs, before = docs[again], before[again]
    above = np.where(before >= 0, np.searchsorted(docs, before), -1)
    return Reduced(
        docs, above, np.ascontiguousarray(weights[:, :ranks]), np.ascontiguousarray(values[:, docs]), upper
    )


def _attempt(gain: Floats, discount: Floats, alternatives: list[Reduced], budget: int) -> Solved:
    best, chosen, work = -np.inf, None, 0
    ceilings, excluded = [], []
    for each in alternatives:
        hard = np.full(len(each.upper), np.inf)
        share = max(int(0.8 * budget) - work, 1)
        order, value, ceiling, over, tries = best_ranking(
            each.problem(gain[each.docs], discount), hard, each.above, best, share
        )
        work += tries
        if len(order):
            best, chosen = value, each.docs[order]
        ceilings.append(ceiling)
        excluded.append(over <= SETTLED and ceiling <= value)
    if chosen is None:
        return _least(gain, discount, alternatives, excluded, ceilings, budget, work)
    top = max(best, *ceilings)
    proved = top <= best + 2 * SETTLED
    return Solved(chosen, OPTIMAL if proved else GAP, 0.0, best, best if proved else top, work=work)


def _least(
    gain: Floats,
    discount: Floats,
    alternatives: list[Reduced],
    excluded: list[bool],
    ceilings: list[float],
    budget: int,
    work: int,
) -> Solved:
    """Where no ranking within the limits was found: the one that exceeds them least, then is most useful."""
    best, chosen, within, spent = -np.inf, None, alternatives[0], 0
    floors = []
    for each in alternatives:
        soft = np.ones(len(each.upper))
        share = max((budget - work) // 2 - spent, budget // 10, 1)
        nothing = np.zeros(len(each.docs))
        order, value, ceiling, _, tries = best_ranking(
            each.problem(nothing, discount), soft, each.above, best, share
        )
        spent += tries
        if len(order):
            best, chosen, within = value, order, each
        floors.append(-ceiling)
    assert chosen is not None  # every ranking has a finite excess
    work += spent
    excess, least = -best, max(0.0, min(floors))
    proved = all(gone or low > SETTLED for gone, low in zip(excluded, floors, strict=True))
    # The most useful of the rankings that exceed no limit by more than this one.
    loose = within.upper + within.excess(chosen) + 1e-12
    hard = np.full(len(loose), np.inf)
    share = max(budget - work, budget // 10, 1)
    order, utility, ceiling, _, tries = best_ranking(
        within.problem(gain[within.docs], discount)._replace(upper=loose), hard, within.above, -np.inf, share
    )
    if len(order):
        chosen = order
    utility = float(np.dot(discount, gain[within.docs][chosen]))
    excess = float(within.excess(chosen).sum())
    if excess <= 0.0:  # only the least excess found it: within the limits after all
        top = max(utility, *ceilings)
        status = OPTIMAL if top <= utility + 2 * SETTLED else GAP
        return Solved(within.docs[chosen], status, 0.0, utility, top, work=work + tries)
    settled = excess - least <= 1e-9 * max(1.0, excess)
    return Solved(
        within.docs[chosen],
        INFEASIBLE if proved else UNRESOLVED,
        0.0,
        utility,
        utility,
        excess,
        excess if proved and settled else least,
        work + tries,
    )
