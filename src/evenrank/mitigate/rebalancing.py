"""Published re-rankers for the shares of groups, as baselines: DetGreedy and its kin, FA*IR, interpolation.

S. C. Geyik, S. Ambler and K. Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems with
Application to LinkedIn Talent Search, KDD 2019. M. Zehlike et al., FA*IR: A Fair Top-k Ranking Algorithm,
CIKM 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl

from evenrank.errors import InputError, check_choice
from evenrank.measures.groups import GroupMeasure, Groups
from evenrank.measures.inputs import Inputs, MeasureInputs
from evenrank.measures.lists import Floats, Ints, RankedLists
from evenrank.measures.parity import FAIR
from evenrank.measures.skew import NDKL
from evenrank.mitigate._solver.lists import INFEASIBLE, KEPT, MOVED
from evenrank.mitigate.constrain import reordered_run
from evenrank.mitigate.prefixes import GREEDY, Bools, by_shares, by_test

REBALANCERS = (*GREEDY, "fair")
METHODS = (*REBALANCERS, "interpolate")
MISSED, NO_TARGET = "missed", "no target"
_STRENGTHS = tuple(step / 10 for step in range(1, 11))
_AT, _ALPHA = 10, 0.1


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
        Wished-for shares: ``list``, ``collection``, ``equal`` or ``{group: share}``; without it the table of
        `targets`, else ``list``.
    strength
        How far to go from the shares in the list (0) to the target (1, the default); of ``fair``, the part of
        the target share that is asked for; of ``interpolate`` λ, 0.5 unless given.
    group, alpha
        For ``fair``: the group that is not to fall short, of two the first unless named; its significance.
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
        unread = {"at": at != _AT, "target": target is not None, "group": group is not None}
        if named := [name for name, is_given in (unread | {"alpha": alpha != _ALPHA}).items() if is_given]:
            raise InputError(f"interpolate looks at words and at no target; leave out {' and '.join(named)}")
        inputs = Inputs.open({"the run": run}, tally=tally, **given)
        return _interpolated(inputs, 0.5 if strength is None else strength, candidates)
    wished = Wished(method, at, target, group, alpha, candidates)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return rebalanced(inputs, wished, 1.0 if strength is None else strength)


@dataclass(frozen=True)
class Wished:
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
        if self.group is not None and self.method != "fair":
            raise InputError(f"{self.method} is for all groups alike; a group is named for fair")
        if self.alpha != _ALPHA and self.method != "fair":
            raise InputError(f"{self.method} makes no test; alpha is for fair")

    def measure(self) -> GroupMeasure:
        """The measure whose targets these are."""
        if self.method == "fair":
            built: GroupMeasure = FAIR(target=self.target, group=self.group, alpha=self.alpha)
            return built
        return NDKL(target=self.target)


def rebalanced(inputs: Inputs, wished: Wished, strength: float = 1.0) -> Rebalanced:
    """As :func:`rebalance`, of the one run of inputs that are open."""
    if not 0 <= strength <= 1:
        raise InputError(f"strength is {strength!r}, but must be between 0 and 1")
    (frame,) = inputs.runs.values()
    measure = wished.measure()
    inputs.check([measure])
    view = Groups(inputs, [measure], depth=wished.candidates)
    view.check()
    lists = view.lists(frame)
    shown = lists.counts()
    if shown.dtype.kind == "f":
        raise InputError(f"{wished.method} counts documents that show one group; these labels are shares")
    code = np.where(shown.any(axis=1), shown.argmax(axis=1), -1)
    lengths = np.minimum(lists.lengths, wished.candidates)
    targets = measure.targets(lists)
    order = np.arange(frame.height)
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    if wished.method == "fair":
        protected = measure.group(lists.groups)
        shares = targets[:, protected] * strength
        result = by_test(
            code == protected, lists.starts, lengths, shares, wished.at, wished.alpha, first, order
        )
        names = [lists.groups[protected] if lacking else None for lacking in result[:, 2]]
    else:
        groups = len(lists.groups)
        codes = np.split(code, lists.starts[1:])
        mixed = np.array([_mixed(*each, strength) for each in zip(targets, codes, strict=True)])
        result, lacking = by_shares(
            wished.method, code, lists.starts, lengths, mixed, groups, wished.at, first, order
        )
        names = [", ".join(np.array(lists.groups)[row]) or None for row in lacking]
    report = _report(lists, _moved(order, first), result, names)
    target = {"target": view.target_of(measure), "strength": strength}
    told = {"at": wished.at, **target, "candidates": wished.candidates}
    if wished.method == "fair":
        told |= {"group": lists.groups[protected], "alpha": wished.alpha}
    return Rebalanced.of(reordered_run(frame, order), report, _facts(report, wished.method, **told))


def _mixed(target: Floats, code: Ints, strength: float) -> Floats:
    """The share of each group that is asked for; NaN where there is no target, or nothing to share."""
    held = np.bincount(code[code >= 0], minlength=len(target))
    if not held.any() or np.isnan(target).any():
        return np.full(len(target), np.nan)
    return (1 - strength) * held / held.sum() + strength * target


def _report(lists: RankedLists, moved: Bools, found: Ints, names: Sequence[str | None]) -> pl.DataFrame:
    status = np.select(
        [found[:, 2] < 0, found[:, 2] > 0, found[:, 0] > 0, moved],
        [NO_TARGET, INFEASIBLE, MISSED, MOVED],
        KEPT,
    )
    return pl.DataFrame(
        {
            "query_id": lists.query_ids,
            "status": pl.Series(status, dtype=pl.String),
            "too_few": found[:, 0],
            "too_many": found[:, 1],
            "lacking": pl.Series(names, dtype=pl.String),
        }
    )


def _moved(order: Ints, first: Ints) -> Bools:
    """For each list, whether a document has moved."""
    return np.logical_or.reduceat(order != np.arange(len(order)), first)


def _facts(report: pl.DataFrame, method: str, **told: Any) -> dict[str, Any]:
    counts = dict(report.group_by("status").len().sort("status").iter_rows())
    return {"method": method, **told, "status": counts}


def _interpolated(inputs: Inputs, strength: float, candidates: int) -> Rebalanced:
    from evenrank.mitigate.mitigations import interpolate

    (frame,) = inputs.runs.values()
    missing: Any = inputs.missing
    built = interpolate(frame, inputs.tally, strength, candidates=candidates, missing=missing)
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    moved = np.logical_or.reduceat((built["doc_id"] != frame["doc_id"]).to_numpy(), first)
    report = pl.DataFrame(
        {
            "query_id": frame["query_id"].gather(first),
            "status": pl.Series(np.where(moved, MOVED, KEPT), dtype=pl.String),
        }
    )
    return Rebalanced.of(built, report, _facts(report, "interpolate", strength=strength))


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
        built.report, built.facts = report, facts
        return built

    def to_report(self) -> dict[str, Any]:
        """Facts and report as JSON knows them."""
        return {**self.facts, "queries": self.report.to_dicts()}


def from_nothing(strengths: Iterable[float]) -> list[float]:
    """The strength that changes nothing, and those above it."""
    return [0.0, *(each for each in strengths if each > 0)]


@dataclass(frozen=True, eq=False)
class Rebalancing:
    """A published re-ranker in a sweep: strengths go from the shares in the list to the target."""

    run: pl.DataFrame
    inputs: Inputs
    wished: Wished
    given: list[float] | None

    @property
    def name(self) -> str:
        return self.wished.method

    def strengths(self) -> list[float]:
        """Those given, or tenths."""
        return from_nothing(self.given or _STRENGTHS)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, re-ranked toward the target."""
        if strength == 0:
            return self.run
        seen = self.inputs.of_runs({"the run": self.run}, background=self.inputs.background)
        return pl.DataFrame(rebalanced(seen, self.wished, strength))
