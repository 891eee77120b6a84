"""Published re-rankers for the shares of groups, as baselines: DetGreedy and its kin, FA*IR, interpolation.

S. C. Geyik, S. Ambler and K. Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems with
Application to LinkedIn Talent Search, KDD 2019, Algorithms 1 to 3. M. Zehlike et al., FA*IR: A Fair Top-k
Ranking Algorithm, CIKM 2017, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from evenrank.errors import InputError, check_choice
from evenrank.measures.groups import GroupMeasure, Groups
from evenrank.measures.inputs import Inputs, MeasureInputs
from evenrank.measures.lists import Floats, Ints
from evenrank.measures.parity import FAIR, adjusted_alpha, minimum_counts
from evenrank.measures.skew import NDKL
from evenrank.mitigate._solver.lists import INFEASIBLE, KEPT, MOVED
from evenrank.mitigate.base import LAMBDAS, from_nothing, reordered_run
from evenrank.mitigate.rescoring import interpolate

Bools = NDArray[np.bool_]
GREEDY = ("detgreedy", "detcons", "detrelaxed", "detconstsort")
REBALANCERS = (*GREEDY, "fair")
METHODS = (*REBALANCERS, "interpolate")
MISSED, NO_TARGET = "missed", "no target"
_AT, _ALPHA = 10, 0.1
_FINE = 10**6  # shares are fractions with no larger denominator, so that products fit 64 bits


def rebalance(
    run: Any,
    method: str = "detconstsort",
    *,
    at: int = _AT,
    target: str | Mapping[str, float] | None = None,
    strength: float | None = None,
    group: str | None = None,
    alpha: float = _ALPHA,
    candidates: int = 100,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Rebalanced:
    """Re-rank so that every prefix of the top shows groups in the shares they should have.

    These are the published methods to compare :func:`constrain` with. They look at one prefix after the
    other and prove nothing about usefulness. What comes back is a run, with a report that says which queries
    cannot have the shares, because a group runs out of documents.

    Parameters
    ----------
    run
        The run to re-rank.
    method
        ``detgreedy``: of the groups below their minimum ⌊k·p⌋ in the first k, the one whose next document
        stands highest; where none is, the highest of those below ⌈k·p⌉. ``detcons``: then the group whose
        maximum binds soonest, least ⌈k·p⌉/p. ``detrelaxed``: that rounded up, the highest among equals.
        ``detconstsort``: minimums alone, each document moved up as far as those it passes can wait. ``fair``:
        FA*IR, one group (`group`) against the rest; in each prefix at least as many of it as the binomial
        test at `alpha`, corrected for the number of prefixes, asks for. ``interpolate``: λ = `strength`, see
        :func:`interpolate`; it looks at words and at no target.
    at
        How many ranks are filled; what is left follows in its order.
    target
        Target shares: ``list``, ``collection``, ``equal`` or ``{group: share}``; without it the table of
        `targets`, else ``list``.
    strength
        How far to go from the shares in the list (0) to the target (1, the default); of ``fair``, the part of
        the target share that is asked for; of ``interpolate`` λ, 0.5 unless given.
    group, alpha
        For ``fair``: the group that is not to fall short, of two the first unless named; and the significance
        of its test.
    candidates
        How many documents from the top may move.
    labels, tally, targets and others
        As for :func:`evenrank.measure`. Documents without a group keep their ranks; for ``fair`` they are of
        the rest.

    Examples
    --------
    >>> run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    >>> groups = {"a": "male", "b": "male", "c": "female", "d": "female"}
    >>> rebalance(run, "detgreedy", labels=groups, target="equal")["doc_id"].to_list()
    ['a', 'c', 'b', 'd']
    """
    check_choice("method", method, METHODS)
    if method == "interpolate":
        inputs = Inputs.open({"the run": run}, tally=tally, **given)
        return _interpolated(inputs, 0.5 if strength is None else strength, candidates)
    config = RebalanceConfig(method, at, target, group, alpha, candidates)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return rebalanced(inputs, config, 1.0 if strength is None else strength)


@dataclass(frozen=True)
class RebalanceConfig:
    """A method and what it is told; see :func:`rebalance`."""

    method: str
    at: int = _AT
    target: Any = None
    group: str | None = None
    alpha: float = _ALPHA
    candidates: int = 100

    def __post_init__(self) -> None:
        for name, value in (("at", self.at), ("candidates", self.candidates)):
            if value < 1:
                raise InputError(f"{name} is {value!r}, but must be at least 1")

    def measure(self) -> GroupMeasure:
        """The measure whose targets these are."""
        if self.method == "fair":
            built: GroupMeasure = FAIR(target=self.target, group=self.group, alpha=self.alpha)
            return built
        return NDKL(target=self.target)


def rebalanced(inputs: Inputs, config: RebalanceConfig, strength: float = 1.0) -> Rebalanced:
    """As :func:`rebalance`, of the one run of inputs that are open."""
    if not 0 <= strength <= 1:
        raise InputError(f"strength is {strength!r}, but must be between 0 and 1")
    (frame,) = inputs.runs.values()
    measure = config.measure()
    inputs.check([measure])
    view = Groups(inputs, [measure], depth=config.candidates)
    view.check()
    lists = view.lists(frame)
    shown = lists.counts()
    if shown.dtype.kind == "f":
        raise InputError(f"{config.method} counts documents that show one group; these labels are shares")
    code = np.where(shown.any(axis=1), shown.argmax(axis=1), -1)
    lengths = np.minimum(lists.lengths, config.candidates)
    targets = measure.targets(lists)
    order = np.arange(frame.height)
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    if config.method == "fair":
        protected = measure.group(lists.groups)
        shares = targets[:, protected] * strength
        result = by_test(
            code == protected, lists.starts, lengths, shares, config.at, config.alpha, first, order
        )
        names = [lists.groups[protected] if lacking else None for lacking in result[:, 2]]
    else:
        groups = len(lists.groups)
        codes = np.split(code, lists.starts[1:])
        mixed = np.array([_mixed(*each, strength) for each in zip(targets, codes, strict=True)])
        result, lacking = by_shares(
            config.method, code, lists.starts, lengths, mixed, groups, config.at, first, order
        )
        names = [", ".join(np.array(lists.groups)[row]) or None for row in lacking]
    status = np.select(
        [result[:, 2] < 0, result[:, 2] > 0, result[:, 0] > 0, _moved(order != np.arange(len(order)), first)],
        [NO_TARGET, INFEASIBLE, MISSED, MOVED],
        KEPT,
    )
    report = pl.DataFrame(
        {
            "query_id": lists.query_ids,
            "status": pl.Series(status, dtype=pl.String),
            "too_few": result[:, 0],
            "too_many": result[:, 1],
            "lacking": pl.Series(names, dtype=pl.String),
        }
    )
    facts = {
        "method": config.method,
        "at": config.at,
        "target": view.target_of(measure),
        "strength": strength,
        "candidates": config.candidates,
    }
    if config.method == "fair":
        facts |= {"group": lists.groups[protected], "alpha": config.alpha}
    return Rebalanced.of(reordered_run(frame, order), report, facts)


def _mixed(target: Floats, code: Ints, strength: float) -> Floats:
    """The share of each group that is asked for; NaN where there is no target, or nothing to share."""
    held = np.bincount(code[code >= 0], minlength=len(target))
    if not held.any() or np.isnan(target).any():
        return np.full(len(target), np.nan)
    return (1 - strength) * held / held.sum() + strength * target


def _moved(moved: Bools, first: Ints) -> Bools:
    """For each list, whether a document has moved."""
    return np.logical_or.reduceat(moved, first)


def _interpolated(inputs: Inputs, strength: float, candidates: int) -> Rebalanced:
    (frame,) = inputs.runs.values()
    missing: Any = inputs.missing
    built = interpolate(frame, inputs.tally, strength, candidates=candidates, missing=missing)
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    moved = _moved((built["doc_id"] != frame["doc_id"]).to_numpy(), first)
    status = pl.Series("status", np.where(moved, MOVED, KEPT), dtype=pl.String)
    report = pl.DataFrame([frame["query_id"].gather(first), status])
    return Rebalanced.of(built, report, {"method": "interpolate", "strength": strength})


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

    run: pl.DataFrame
    inputs: Inputs
    config: RebalanceConfig
    given: list[float] | None

    @property
    def name(self) -> str:
        return self.config.method

    def strengths(self) -> list[float]:
        """Those given, or tenths."""
        return from_nothing(self.given or LAMBDAS)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, re-ranked toward the target."""
        if strength == 0:
            return self.run
        seen = self.inputs.of_runs({"the run": self.run}, background=self.inputs.background)
        return pl.DataFrame(rebalanced(seen, self.config, strength))


# The loops: which document at each rank.


def by_shares(
    method: str,
    code: Ints,
    starts: Ints,
    lengths: Ints,
    shares: Floats,
    groups: int,
    at: int,
    first: Ints,
    order: Ints,
) -> tuple[Ints, Bools]:
    """Fill `order` so that the first ranks show the shares, by one of the methods of Geyik et al.

    `code` is the group of each entry, −1 for none; `shares` are lists × groups, NaN for none; lists begin at
    `starts` there and at `first` in `order`.
    For each list: prefixes with too few of a group, with too many, and how many groups have too few
    documents (−1: no shares); and which groups these are.
    """
    above, below = np.zeros((len(shares), groups), np.int64), np.ones((len(shares), groups), np.int64)
    known = np.asarray(np.isfinite(shares).all(axis=1))
    for row, column in zip(*np.nonzero(known[:, None] & (shares > 0)), strict=True):
        near = Fraction(shares[row, column]).limit_denominator(_FINE)
        above[row, column], below[row, column] = near.numerator, near.denominator
    values = np.zeros((len(shares), 3), np.int64)
    values[:, 2] = np.where(known, 0, -1)
    lacking = np.zeros((len(shares), groups), np.bool_)
    which = GREEDY.index(method)
    _fill(which, code, starts, lengths, known, above, below, at, first, order, values, lacking)
    return values, lacking


def by_test(
    member: Bools,
    starts: Ints,
    lengths: Ints,
    shares: Floats,
    at: int,
    alpha: float,
    first: Ints,
    order: Ints,
) -> Ints:
    """Fill `order` by FA*IR; for each list as for :func:`by_shares`, none of them with too many."""
    values = np.zeros((len(shares), 3), np.int64)
    needed = np.zeros((len(shares), at), np.int64)
    tables: dict[tuple[int, float], Ints] = {}
    for row, (share, n) in enumerate(zip(shares.tolist(), lengths.tolist(), strict=True)):
        if np.isnan(share):
            values[row, 2] = -1
        elif share > 0:
            ranks = min(n, at)
            if (ranks, share) not in tables:
                level = adjusted_alpha(ranks, share, alpha)
                tables[ranks, share] = minimum_counts(ranks, share, level)
            needed[row, :ranks] = tables[ranks, share]
    _fill_fair(member, starts, lengths, needed, first, order, values)
    return values


@njit(nogil=True, cache=True)
def _next_of_group(code: Ints, start: int, n: int, groups: int) -> tuple[Ints, Ints]:
    """The first document of each group, and for each document the next of its group; −1 if none."""
    head = np.full(groups, -1)
    following = np.full(n, -1)
    for i in range(n - 1, -1, -1):
        g = code[start + i]
        if g >= 0:
            following[i] = head[g]
            head[g] = i
    return head, following


@njit(nogil=True, cache=True)
def _greedy(
    kind: int, head: Ints, following: Ints, above: Ints, below: Ints, slots: int, picked: Ints
) -> None:
    """DetGreedy, DetCons and DetRelaxed (Geyik et al., Algorithms 1 and 2): which document at each place."""
    groups = len(head)
    count = np.zeros(groups, np.int64)
    for k in range(1, slots + 1):
        best = -1
        for g in range(groups):
            if head[g] >= 0 and count[g] < k * above[g] // below[g] and (best < 0 or head[g] < head[best]):
                best = g
        if best < 0:
            for g in range(groups):
                most = -(-k * above[g] // below[g])
                if head[g] < 0 or count[g] >= most:
                    continue
                if best < 0:
                    best = g
                    continue
                held = -(-k * above[best] // below[best])
                if kind == 1:  # ⌈k·p⌉ / p as fractions, multiplied crosswise
                    mine, theirs = most * below[g] * above[best], held * below[best] * above[g]
                elif kind == 2:
                    mine, theirs = -(-most * below[g] // above[g]), -(-held * below[best] // above[best])
                else:
                    mine, theirs = 0, 0
                if mine < theirs or (mine == theirs and head[g] < head[best]):
                    best = g
        if best < 0:  # those that should come next have run out
            for g in range(groups):
                if head[g] >= 0 and (best < 0 or head[g] < head[best]):
                    best = g
        picked[k - 1] = head[best]
        head[best] = following[head[best]]
        count[best] += 1


@njit(nogil=True, cache=True)
def _sorted(head: Ints, following: Ints, above: Ints, below: Ints, slots: int, picked: Ints) -> None:
    """DetConstSort (Geyik et al., Algorithm 3): which document at each place.

    A document that has to be among the first k goes to the first free place, then up past those that may
    wait: the one it passes, now at rank s + 1, must not be due before. Documents are compared by their given
    ranks, so that equal scores stand in one order. Goes one place beyond the last, as published.
    """
    groups = len(head)
    count = np.zeros(groups, np.int64)
    placed = np.full(slots + groups + 1, -1)
    due = np.zeros(slots + groups + 1, np.int64)
    free = 0
    while free <= slots:
        k = -1
        for g in range(groups):
            if head[g] >= 0 and above[g] > 0:
                when = -(-(count[g] + 1) * below[g] // above[g])
                if k < 0 or when < k:
                    k = when
        if k < 0:
            break
        while free < len(placed):
            best = -1
            for g in range(groups):
                rises = head[g] >= 0 and above[g] > 0 and (count[g] + 1) * below[g] <= k * above[g]
                if rises and (best < 0 or head[g] < head[best]):
                    best = g
            if best < 0:
                break
            placed[free], due[free] = head[best], k
            s = free
            while s > 0 and due[s - 1] >= s + 1 and placed[s - 1] > placed[s]:
                placed[s - 1], placed[s] = placed[s], placed[s - 1]
                due[s - 1], due[s] = due[s], due[s - 1]
                s -= 1
            head[best] = following[head[best]]
            count[best] += 1
            free += 1
    while free < slots:  # groups that should not be there at all, by rank
        best = -1
        for g in range(groups):
            if head[g] >= 0 and (best < 0 or head[g] < head[best]):
                best = g
        placed[free] = head[best]
        head[best] = following[head[best]]
        free += 1
    picked[:slots] = placed[:slots]


@njit(nogil=True, cache=True)
def _fill(
    kind: int,
    code: Ints,
    starts: Ints,
    lengths: Ints,
    known: Bools,
    above: Ints,
    below: Ints,
    at: int,
    first: Ints,
    order: Ints,
    found: Ints,
    lacking: Bools,
) -> None:
    """Every list in turn: its order, how many prefixes lack or exceed what they should show."""
    groups = above.shape[1]
    for q in range(len(starts)):
        if not known[q]:
            continue
        start, n = starts[q], lengths[q]
        head, following = _next_of_group(code, start, n, groups)
        places = np.flatnonzero(code[start : start + n] >= 0)
        slots = int((places < at).sum())
        supply = np.zeros(groups, np.int64)
        for place in places:
            supply[code[start + place]] += 1
        for g in range(groups):
            lacking[q, g] = supply[g] < slots * above[q, g] // below[q, g]
            found[q, 2] += lacking[q, g]
        picked = np.empty(slots, np.int64)
        if kind == 3:
            _sorted(head, following, above[q], below[q], slots, picked)
        else:
            _greedy(kind, head, following, above[q], below[q], slots, picked)
        taken = np.zeros(n, np.bool_)
        count = np.zeros(groups, np.int64)
        for k in range(1, slots + 1):
            document = picked[k - 1]
            taken[document] = True
            order[first[q] + places[k - 1]] = first[q] + document
            count[code[start + document]] += 1
            few = many = False
            for g in range(groups):
                few |= count[g] < k * above[q, g] // below[q, g]
                many |= count[g] > -(-k * above[q, g] // below[q, g])
            found[q, 0] += few
            found[q, 1] += many
        rest = slots
        for place in places:
            if not taken[place]:
                order[first[q] + places[rest]] = first[q] + place
                rest += 1


@njit(nogil=True, cache=True)
def _fill_fair(
    member: Bools, starts: Ints, lengths: Ints, needed: Ints, first: Ints, order: Ints, found: Ints
) -> None:
    """FA*IR (Zehlike et al., Algorithm 2): the higher of two queues, unless the group falls short."""
    for q in range(len(starts)):
        if found[q, 2] < 0:
            continue
        start, n = starts[q], lengths[q]
        slots = min(n, needed.shape[1])
        inside = np.flatnonzero(member[start : start + n])
        outside = np.flatnonzero(~member[start : start + n])
        found[q, 2] = len(inside) < needed[q, slots - 1]
        i = o = 0
        for k in range(n):
            must = k < slots and i < needed[q, k] and i < len(inside)
            if must or o == len(outside) or (i < len(inside) and inside[i] < outside[o]):
                document = inside[i]
                i += 1
            else:
                document = outside[o]
                o += 1
            order[first[q] + k] = first[q] + document
            found[q, 0] += k < slots and i < needed[q, k]
