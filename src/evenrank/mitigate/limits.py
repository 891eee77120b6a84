"""Limits on measures as linear constraints on who stands where.

A limit on one list is Σ_i w_i · m(d_i) ≤ b: a weight for each rank times a value of the document there. RaB,
ARaB, FaiRR and NFaiRR are such sums already. Skew and MB depend on how many of the top t show each group, and
become bounds on these numbers; where the numbers within the limit do not hang together (Skew counts an absent
group as half a document), there are several alternatives, each of them linear.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np

from evenrank.arithmetic import exp
from evenrank.errors import InputError
from evenrank.measures.base import Context
from evenrank.measures.groups import GroupMeasure, Shares, one_group
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.mean_bias import _MB
from evenrank.measures.neutrality import _FaiRR, _NFaiRR, fairr_weights
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.rank_bias import RankBias
from evenrank.measures.representation import representation_bias
from evenrank.measures.skew import _MaxSkew, _MinSkew, _Skew, skews

ROUNDING = 1e-12
"""A bound that is exceeded by no more than this, relative to the numbers added up, counts as kept: on paper
such values are equal to it. With < and > they count as exceeding it."""
SUPPORTED = "RaB, ARaB, FaiRR, NFaiRR, Skew, MinSkew, MaxSkew and MB"
ALTERNATIVES = 64
_BOUNDLESS = 1e300  # in place of infinity, with which the solvers cannot reckon
_STEEP = 50.0  # no share of a list is e to this times another


@dataclass(frozen=True, eq=False)
class Row:
    """One linear constraint on one list: Σ_i weights[i] · values[document at rank i] ≤ upper."""

    weights: Floats
    values: Floats
    upper: float

    @property
    def bound(self) -> float:
        """The bound with room for rounding."""
        scale = float(np.abs(self.weights).sum() * np.abs(self.values).max(initial=0.0))
        return self.upper + ROUNDING * max(1.0, scale, abs(self.upper))


Alternatives = list[list[Row]]


class Limit(Protocol):
    """A condition, applied to the lists of one run."""

    @property
    def condition(self) -> Condition: ...

    @property
    def context(self) -> Context: ...

    def rows(self, query: int) -> Alternatives | None:
        """What a list has to keep to, one of the alternatives; None where the measure is undefined."""


def parse_limits(limit: Any) -> list[Condition]:
    """Conditions that can be limits; anything else is refused with what can."""
    given = [limit] if isinstance(limit, str | Condition) else list(limit)
    if not given:
        raise InputError("name at least one limit, as in abs(ARaB@10)<=0.1")
    conditions = [_finite(parse_condition(each)) for each in given]
    for condition in conditions:
        measure = condition.measure
        if not isinstance(measure, RankBias | _FaiRR | _Skew | _MinSkew | _MB):
            raise InputError(f"{condition}: {measure.NAME} cannot be a limit; {SUPPORTED} can")
        if measure["cutoff"] is None:
            raise InputError(f"{condition}: no order changes it over the whole list; add a cut-off: @10")
        if isinstance(measure, _MinSkew) and condition.absolute:
            raise InputError(f"{condition}: its sign is known; write MinSkew@10>=-0.2 or MaxSkew@10<=0.2")
        if condition.absolute and condition.op.startswith("<") and not condition.holds(0.0):
            raise InputError(f"{condition}: a size is never below 0; the least bound is <=0")
        above = condition.absolute or isinstance(measure, _MaxSkew)
        if condition.op.startswith(">" if above else "<") and (above or isinstance(measure, _MinSkew)):
            raise InputError(f"{condition}: limit it from {'above with <=' if above else 'below with >='}")
    return conditions


def _finite(condition: Condition) -> Condition:
    """A limit of infinity as one that is too high to bind."""
    if math.isfinite(condition.bound):
        return condition
    if condition.op.startswith(">"):
        raise InputError(f"{condition}: no ranking can keep to it")
    return replace(condition, bound=_BOUNDLESS)


@dataclass(frozen=True, eq=False)
class Linear:
    """A limit on RaB, ARaB, FaiRR or NFaiRR."""

    condition: Condition
    context: Context

    @cached_property
    def values(self) -> Floats:
        """What each document adds, at weight 1."""
        measure: Any = self.condition.measure
        lists = self.context.lists
        if isinstance(measure, RankBias):
            of, against = measure.pair(lists.groups)
            return lists.magnitude(measure["magnitude"], of) - lists.magnitude(measure["magnitude"], against)
        return np.asarray(measure.neutrality(lists))

    @cached_property
    def ideal(self) -> Floats | None:
        measure = self.condition.measure
        return measure.ideal(self.context) if isinstance(measure, _NFaiRR) else None

    def sides(self) -> list[float]:
        """The signs with which the value is bounded from above."""
        if self.condition.absolute:
            return [1.0, -1.0]
        return [1.0 if self.condition.op.startswith("<") else -1.0]

    def line(self, query: int) -> tuple[Floats, Floats] | None:
        """Weights of the ranks and values of the documents; None where the measure is undefined."""
        measure, lists = self.condition.measure, self.context.lists
        start, n = int(lists.starts[query]), int(lists.lengths[query])
        weigh = measure.weights if isinstance(measure, RankBias) else fairr_weights
        weights = weigh(min(n, measure["cutoff"]), measure["cutoff"])
        values = self.values[start : start + n]
        if self.ideal is None:
            return weights, values
        return (weights, values / self.ideal[query]) if self.ideal[query] > 0 else None

    def rows(self, query: int) -> Alternatives | None:
        line = self.line(query)
        if line is None:
            return None
        weights, values = line
        condition = self.condition
        rows = [
            Row(weights, values * side, condition.bound * (1.0 if condition.absolute else side))
            for side in self.sides()
        ]
        return [[_strict(row, condition) for row in rows]]


def _strict(row: Row, condition: Condition) -> Row:
    """With < and > a value that equals the bound within rounding exceeds it."""
    return replace(row, upper=row.upper - 2 * (row.bound - row.upper)) if "=" not in condition.op else row


@dataclass(frozen=True, eq=False)
class Counted:
    """A limit on Skew, MinSkew, MaxSkew or MB: on how many of the top t show each group."""

    condition: Condition
    context: Context

    @cached_property
    def targets(self) -> list[Shares | None]:
        measure: Any = self.condition.measure
        return list(measure.targets(self.context))

    def rows(self, query: int) -> Alternatives | None:
        measure: Any = self.condition.measure
        lists = self.context.lists
        start, n = int(lists.starts[query]), int(lists.lengths[query])
        shown = lists.counts()[start : start + n]
        t = measure.cut(n)
        ones = np.ones(t)
        if isinstance(measure, _MB):
            column = measure.group(self.context.groups)
            target = self.targets[query]
            share = Fraction(int(shown[:, column].sum()), n) if target is None else target[column]
            if share is None:
                return None
            return [_between(ones, shown[:, column], *self._counts(t, share), t)]
        wished = measure.wished(shown, self.targets[query])
        labelled = shown.sum(axis=1)
        if not labelled.any():
            return None
        groups = range(shown.shape[1])
        if isinstance(measure, _Skew):
            groups = range(one := one_group(measure, self.context.groups), one + 1)
        counted = [g for g in groups if wished[g] > 0]
        if not counted:
            return None
        choices = [self._skew(ones, shown[:, g], labelled, float(wished[g])) for g in counted]
        return [[row for part in each for row in part] for each in product(*choices)]

    def _counts(self, t: int, share: Fraction) -> tuple[int, int]:
        """Least and greatest number of documents of a group whose β keeps to the condition.

        Looked for beyond 0 and t too: a limit that no list can keep then still says in which direction.
        """
        kept = [c for c in range(-t, 2 * t + 1) if self._holds(float(representation_bias(c, t, share)))]
        return (min(kept), max(kept)) if kept else (t + 1, -1)

    def _holds(self, value: float) -> bool:
        slack = ROUNDING if "=" in self.condition.op else -ROUNDING
        value = abs(value) if self.condition.absolute else value
        if self.condition.op.startswith("<"):
            return value <= self.condition.bound + slack
        return value >= self.condition.bound - slack

    def _skew(self, ones: Floats, group: Any, labelled: Any, target: float) -> Alternatives:
        """Skew within its bounds: with the group present its share is bounded, absent the number labelled."""
        condition, t = self.condition, len(ones)
        below = condition.absolute or condition.op.startswith("<")
        present = [Row(ones, -1.0 * group, -1.0)]
        bounds = []
        if below:
            bounds.append((1.0, condition.bound))
        if condition.absolute or not below:
            bounds.append((-1.0, -condition.bound if condition.absolute else condition.bound))
        for side, at in bounds:
            row = Row(ones, side * (group - target * exp(min(max(at, -_STEEP), _STEEP)) * labelled), 0.0)
            present.append(_strict(row, condition))
        # How many labelled documents there may be when none shows the group: these numbers are contiguous.
        absent = [x for x in range(1, t + 1) if self._holds(_absent(x, target))]
        if not absent:
            return [present]
        if len(bounds) == 1 and below and absent[0] == 1:
            return [[*present[1:], Row(ones, -1.0 * labelled, -1.0)]]
        none = [Row(ones, 1.0 * group, 0.0), *_between(ones, labelled, absent[0], absent[-1], t)]
        return [present, none]


def _absent(labelled: int, target: float) -> float:
    """Skew of a group that none of so many labelled documents shows."""
    return float(skews(np.array([0, labelled]), np.array([target, 1.0]))[0])


def _between(weights: Floats, values: Any, least: int, most: int, t: int) -> list[Row]:
    """At least so many and at most so many, where that says something."""
    rows = [Row(weights, 1.0 * values, float(most))] if most < t else []
    return [*rows, Row(weights, -1.0 * values, float(-least))] if least > 0 else rows


def apply_limits(
    conditions: Iterable[Condition], context: Context | None, grouped: Context | None
) -> list[Limit]:
    """The conditions on the lists of a run: `context` as the tally sees them, `grouped` as groups."""
    found: list[Limit] = []
    for condition in conditions:
        measure: Any = condition.measure
        seen = grouped if isinstance(measure, GroupMeasure) else context
        if seen is None:
            raise InputError(f"{condition} needs a tally")
        measure.check_groups(seen.groups)
        found.append(Counted(condition, seen) if seen is grouped else Linear(condition, seen))
    return found


def rows_of(limits: Sequence[Limit], query: int) -> Alternatives:
    """What one list has to keep to: one of the alternatives, every row of it."""
    applied = [rows for rows in (limit.rows(query) for limit in limits) if rows is not None]
    if math.prod(map(len, applied)) > ALTERNATIVES:
        raise InputError("too many groups are limited at once; limit Skew of the ones that matter")
    return [[row for rows in each for row in rows] for each in product(*applied)]


def reordered(lists: RankedLists, order: np.ndarray) -> RankedLists:
    """The same lists with their entries in another order."""
    return replace(lists, rows=lists.rows[order], doc_ids=lists.doc_ids.gather(order), _cache={})
