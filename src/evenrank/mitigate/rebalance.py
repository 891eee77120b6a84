"""Published re-rankers for the shares of groups, as baselines: DetGreedy and its kin, and FA*IR.

S. C. Geyik, S. Ambler and K. Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems with
Application to LinkedIn Talent Search, KDD 2019, Algorithms 1 to 3. M. Zehlike et al., FA*IR: A Fair Top-k
Ranking Algorithm, CIKM 2017, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple, Unpack

import numpy as np
import polars as pl

from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.inputs import Inputs, MeasureInputs
from evenrank.measures.lists import Floats
from evenrank.measures.parity import FAIR, adjusted_alpha, minimum_counts
from evenrank.measures.skew import NDKL
from evenrank.mitigate._solver.lists import INFEASIBLE, KEPT, MOVED
from evenrank.mitigate.base import LAMBDAS, from_nothing, reordered_run

GREEDY = ("detgreedy", "detcons", "detrelaxed", "detconstsort")
REBALANCERS = (*GREEDY, "fair")
MISSED, NO_TARGET = "missed", "no target"
_MAX_DENOMINATOR = 10**6


def rebalance(
    run: Any,
    method: str = "detconstsort",
    *,
    at: int = 10,
    target: str | Mapping[str, float] | None = None,
    strength: float = 1.0,
    group: str | None = None,
    alpha: float = 0.1,
    candidates: int = 100,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Rebalanced:
    """Re-rank so that every prefix of the top shows groups in the shares they should have.

    These are the published methods to compare :func:`constrain` with. They look at one prefix after the
    other and prove nothing about usefulness. The result is a run, with a report that says which queries
    cannot have the shares, because a group has too few documents.

    Parameters
    ----------
    run
        The run to re-rank.
    method
        ``detgreedy``: of the groups below their minimum ⌊k·p⌋ in the first k, the one whose next document
        ranks highest; where none is, the highest of those below ⌈k·p⌉. ``detcons``: then the group whose
        maximum binds soonest, least ⌈k·p⌉/p. ``detrelaxed``: that rounded up, the highest among equals.
        ``detconstsort``: minimums alone, each document moved up as far as those it passes can wait. ``fair``:
        FA*IR, one group (`group`) against the rest; in each prefix at least as many of it as the binomial
        test at `alpha` requires, corrected for the number of prefixes.
    at
        How many ranks are filled; the remaining documents follow in their order.
    target
        Target shares: ``list``, ``collection``, ``equal`` or ``{group: share}``; without it the table of
        `targets`, else ``list``.
    strength
        How far to go from the shares in the list (0) to the target (1); of ``fair``, the part of the target
        share that is required.
    group, alpha
        For ``fair``: the group that is not to fall short, of two the first unless named; and the significance
        of its test.
    candidates
        How many documents from the top may move.
    labels, tally, targets and others
        As for :func:`evenrank.measure`. Documents without a group keep their ranks; for ``fair`` they belong
        to the rest.

    Examples
    --------
    >>> run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    >>> groups = {"a": "male", "b": "male", "c": "female", "d": "female"}
    >>> rebalance(run, "detgreedy", labels=groups, target="equal")["doc_id"].to_list()
    ['a', 'c', 'b', 'd']
    """
    check_choice("method", method, REBALANCERS)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return rebalance_inputs(
        inputs,
        method,
        at=at,
        target=target,
        strength=strength,
        group=group,
        alpha=alpha,
        candidates=candidates,
    )


def rebalance_inputs(
    inputs: Inputs,
    method: str,
    *,
    at: int = 10,
    target: Any = None,
    strength: float = 1.0,
    group: str | None = None,
    alpha: float = 0.1,
    candidates: int = 100,
) -> Rebalanced:
    """As :func:`rebalance`, for the one run of opened inputs."""
    check_whole("at", at)
    check_whole("candidates", candidates)
    check_number("strength", strength, most=1)
    (frame,) = inputs.runs.values()
    measure: GroupMeasure = NDKL(target=target)
    if method == "fair":
        measure = FAIR(target=target, group=group, alpha=alpha)
    inputs.check([measure])
    lists = inputs.lists(frame, [measure], depth=candidates)
    shown = lists.counts()
    if shown.dtype.kind == "f":
        raise InputError(f"{method} counts documents that show one group; these labels are shares")
    codes = np.split(np.where(shown.any(axis=1), shown.argmax(axis=1), -1), lists.starts[1:])
    targets = measure.targets(lists)
    facts = {
        "method": method,
        "at": at,
        "target": measure.target_in_words(lists),
        "strength": strength,
        "candidates": candidates,
    }
    protected = 0
    if method == "fair":
        protected = measure.group(lists.groups)
        facts |= {"group": lists.groups[protected], "alpha": alpha}
    order = np.arange(frame.height)
    rows = []
    for first, code, target_shares in zip(
        np.flatnonzero(frame["rank"].to_numpy() == 1), codes, targets, strict=True
    ):
        groups = code[:candidates].tolist()
        if method == "fair":
            share = float(target_shares[protected]) * strength
            result = _by_test([g == protected for g in groups], protected, share, at, alpha)
        else:
            result = _by_shares(method, groups, _mixed_shares(target_shares, code, strength), at)
        order[first : first + len(groups)] = first + np.array(result.order)
        lacking = ", ".join(lists.groups[g] for g in result.lacking) or None
        rows.append((result.status, result.too_few, result.too_many, lacking))
    schema = {"status": pl.String, "too_few": pl.Int64, "too_many": pl.Int64, "lacking": pl.String}
    report = pl.DataFrame(rows, schema, orient="row").insert_column(0, lists.query_ids.alias("query_id"))
    return Rebalanced.of(reordered_run(frame, order), report, facts)


def _mixed_shares(target: Floats, code: Any, strength: float) -> list[Fraction] | None:
    """The share that each group should have; None without a target or without any labelled document."""
    held = np.bincount(code[code >= 0], minlength=len(target))
    if not held.any() or np.isnan(target).any():
        return None
    mixed = (1 - strength) * held / held.sum() + strength * target
    return [Fraction(share).limit_denominator(_MAX_DENOMINATOR) for share in mixed.tolist()]


class Rebalanced(pl.DataFrame):
    """A run (query_id, doc_id, score, rank) that knows how it was made; use it wherever a run is taken.

    Attributes
    ----------
    report
        One row for each query. `status`: `kept` or `moved`, as it should be; `missed`: some prefix lacks
        documents of a group though there are enough; `infeasible`: a group (`lacking`) has too few among the
        candidates, so that no order has the shares; `no target`, or nothing that shows a group: left as it
        was. `too_few` and `too_many`: prefixes in which a group has fewer than ⌊k·p⌋ documents (the authors'
        InfeasibleIndex), or more than ⌈k·p⌉; of ``fair``, fewer than the test asks for.
    facts
        Method and settings, and how many queries have each status.
    """

    report: pl.DataFrame
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, run: pl.DataFrame, report: pl.DataFrame, facts: Mapping[str, Any]) -> Rebalanced:
        built = cls(run)
        status = dict(report.group_by("status").len().sort("status").iter_rows())
        built.report, built.facts = report, {**facts, "status": status}
        return built

    def to_report(self) -> dict[str, Any]:
        """Facts and report as JSON knows them."""
        return {**self.facts, "queries": self.report.to_dicts()}


@dataclass(frozen=True, eq=False)
class Rebalancing:
    """A published re-ranker in a sweep: strengths go from the shares in the list to the target."""

    name: str
    inputs: Inputs
    settings: Mapping[str, Any]
    given: Sequence[float] | None

    def strengths(self) -> list[float]:
        """Those given, or tenths."""
        return from_nothing(self.given or LAMBDAS)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, re-ranked toward the target."""
        if strength == 0:
            return self.inputs.runs["the run"]
        return pl.DataFrame(rebalance_inputs(self.inputs, self.name, strength=strength, **self.settings))


class _Filled(NamedTuple):
    """A list in its new order; prefixes with too few and too many of a group; groups short of documents."""

    order: list[int]
    too_few: int = 0
    too_many: int = 0
    lacking: Sequence[int] = ()
    has_target: bool = True

    @property
    def status(self) -> str:
        if not self.has_target:
            return NO_TARGET
        if self.lacking:
            return INFEASIBLE
        if self.too_few:
            return MISSED
        return KEPT if self.order == sorted(self.order) else MOVED


def _by_shares(method: str, groups: list[int], shares: list[Fraction] | None, at: int) -> _Filled:
    """Fill the first ranks by one of the methods of Geyik et al.; `groups` has −1 for no group."""
    if shares is None:
        return _Filled([*range(len(groups))], has_target=False)
    places = [i for i, g in enumerate(groups) if g >= 0]
    slots = sum(place < at for place in places)
    queues = [[i for i in places if groups[i] == g] for g in range(len(shares))]
    fill = _det_const_sort if method == "detconstsort" else _det_greedy
    picked = fill(method, queues, shares, slots)
    order = [*range(len(groups))]
    rest = sorted({*places} - {*picked})
    for place, document in zip(places, picked + rest, strict=True):
        order[place] = document
    counts = [0] * len(shares)
    too_few = too_many = 0
    for k, document in enumerate(picked, 1):
        counts[groups[document]] += 1
        too_few += any(count < floor(k * p) for count, p in zip(counts, shares, strict=True))
        too_many += any(count > ceil(k * p) for count, p in zip(counts, shares, strict=True))
    lacking = [g for g, p in enumerate(shares) if len(queues[g]) < floor(slots * p)]
    return _Filled(order, too_few, too_many, lacking)


def _det_greedy(method: str, queues: list[list[int]], shares: list[Fraction], slots: int) -> list[int]:
    """DetGreedy, DetCons and DetRelaxed (Geyik et al., Algorithms 1 and 2): the document at each rank."""
    counts = [0] * len(shares)
    picked: list[int] = []

    def place(g: int) -> int:
        return queues[g][counts[g]]

    def urgency(g: int, k: int) -> Fraction | int:
        if method == "detgreedy":
            return 0
        due = ceil(k * shares[g]) / shares[g]
        return due if method == "detcons" else ceil(due)

    for k in range(1, slots + 1):
        left = [g for g, queue in enumerate(queues) if counts[g] < len(queue)]
        below_minimum = [g for g in left if counts[g] < floor(k * shares[g])]
        below_maximum = [g for g in left if counts[g] < ceil(k * shares[g])]
        if below_minimum or not below_maximum:  # groups that should come next may have run out
            best = min(below_minimum or left, key=place)
        else:
            best = min((urgency(g, k), place(g), g) for g in below_maximum)[2]
        picked.append(place(best))
        counts[best] += 1
    return picked


def _det_const_sort(_: str, queues: list[list[int]], shares: list[Fraction], slots: int) -> list[int]:
    """DetConstSort (Geyik et al., Algorithm 3): the document at each rank.

    A document that has to be among the first k goes to the first free rank, then up past those that may
    wait: the one it passes, now at rank s + 1, must not be due before. Documents are compared by their given
    ranks, so that equal scores have one order. Goes one rank beyond the last, as published.
    """
    counts = [0] * len(shares)
    picked: list[int] = []
    due: list[int] = []
    while len(picked) <= slots:
        waiting = [g for g, p in enumerate(shares) if p > 0 and counts[g] < len(queues[g])]
        if not waiting:
            break
        k = min(ceil((counts[g] + 1) / shares[g]) for g in waiting)
        rising = [g for g in waiting if counts[g] < floor(k * shares[g])]
        for g in sorted(rising, key=lambda g: queues[g][counts[g]]):
            picked.append(queues[g][counts[g]])
            due.append(k)
            counts[g] += 1
            s = len(picked) - 1
            while s > 0 and due[s - 1] >= s + 1 and picked[s - 1] > picked[s]:
                picked[s - 1], picked[s] = picked[s], picked[s - 1]
                due[s - 1], due[s] = due[s], due[s - 1]
                s -= 1
    rest = sorted(i for g, queue in enumerate(queues) for i in queue[counts[g] :])
    return (picked + rest)[:slots]


def _by_test(member: list[bool], group: int, share: float, at: int, alpha: float) -> _Filled:
    """FA*IR (Zehlike et al., Algorithm 2): the higher of two queues, unless the group falls short."""
    n = len(member)
    slots = min(n, at)
    if np.isnan(share):
        return _Filled([*range(n)], has_target=False)
    needed = [0] * n
    if share > 0:
        needed[:slots] = minimum_counts(slots, share, adjusted_alpha(slots, share, alpha)).tolist()
    inside = [i for i in range(n) if member[i]]
    outside = [i for i in range(n) if not member[i]]
    lacking = [group] if len(inside) < needed[slots - 1] else []
    order: list[int] = []
    too_few = placed = 0
    for k in range(n):
        is_due = placed < needed[k] and placed < len(inside)
        others = k - placed
        if is_due or others == len(outside) or (placed < len(inside) and inside[placed] < outside[others]):
            order.append(inside[placed])
            placed += 1
        else:
            order.append(outside[others])
        too_few += k < slots and placed < needed[k]
    return _Filled(order, too_few, 0, lacking)
