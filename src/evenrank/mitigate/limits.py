"""Limits on measures as rows of a linear program: bounds on Σ_i w_i · v(d_i), weights of ranks times values.

RaB, ARaB, FaiRR and NFaiRR are such sums already. MB depends on how many of the top n show a group, Skew on
the share of a group among those labelled, and both become bounds on these numbers. Where the numbers within
the limit do not hang together (Skew counts an absent group as half a document), there are several
alternatives, each of them linear.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import ir_measures
import numpy as np
from ir_measures.measures import Measure

from evenrank.errors import InputError
from evenrank.measures.base import is_bias, is_sum
from evenrank.measures.lists import Floats, RankedLists, view_key
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.representation import CountInTop, representation_bias
from evenrank.measures.skew import ABSENT, ShareInTop, skews

MAX_ALTERNATIVES = 64
_UNBOUNDED = 1e300  # in place of infinity, with which the solvers cannot reckon
_STEEP = 50.0  # no share of a list is e to this times another
ROUNDING = 1e-12
"""A bound that is exceeded by no more than this, relative to the numbers added up, counts as kept: on paper
such values are equal to it. With < and > they count as exceeding it."""


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
"""A list has to keep to one of the alternatives, to every row of it."""


@dataclass(frozen=True, eq=False)
class Limit:
    """A condition, applied to the lists of one run."""

    condition: Condition
    lists: RankedLists

    @property
    def measure(self) -> Any:
        return self.condition.measure

    @property
    def sides(self) -> list[float]:
        """The signs with which the value is bounded from above."""
        if self.condition.absolute:
            return [1.0, -1.0]
        return [1.0 if self.condition.op.startswith("<") else -1.0]

    def line(self, query: int) -> tuple[Floats, Floats] | None:
        """Of a linear measure, weights of the ranks and values of the documents; None where undefined."""
        measure, lists = self.measure, self.lists
        cutoff = int(measure["cutoff"])
        start, n = int(lists.starts[query]), int(lists.lengths[query])
        values = measure.each_value(lists)[start : start + n]
        scale = measure.each_scale(lists)
        if scale is not None:
            if not scale[query] > 0:
                return None
            values = values / scale[query]
        return measure.weights(min(n, cutoff), cutoff), values

    def alternatives(self, query: int) -> Alternatives | None:
        """What a list has to keep to, one of the alternatives; None where the measure is undefined."""
        measure = self.measure
        if is_sum(measure):
            line = self.line(query)
            return None if line is None else [self._bounded(*line)]
        if hasattr(measure, "count_in_top"):
            count = measure.count_in_top(self.lists, query)
            return None if count is None else [self._count(count)]
        choices = [self._share(share) for share in measure.shares_in_top(self.lists, query)]
        return [[row for part in each for row in part] for each in product(*choices)] if choices else None

    def _bounded(self, weights: Floats, values: Floats) -> list[Row]:
        """The condition on Σ_i weights[i] · values[document at rank i]."""
        bound = self.condition.bound
        return [
            self._strict(Row(weights, values * side, bound if self.condition.absolute else bound * side))
            for side in self.sides
        ]

    def _strict(self, row: Row) -> Row:
        """With < and > a value that equals the bound within rounding exceeds it."""
        if "=" in self.condition.op:
            return row
        return replace(row, upper=row.upper - 2 * (row.bound - row.upper))

    def _holds(self, value: float) -> bool:
        """Whether a value keeps to the condition, within rounding."""
        slack = ROUNDING if "=" in self.condition.op else -ROUNDING
        value = abs(value) if self.condition.absolute else value
        if self.condition.op.startswith("<"):
            return value <= self.condition.bound + slack
        return value >= self.condition.bound - slack

    def _count(self, count: CountInTop) -> list[Row]:
        """At least and at most so many of the top n."""
        shown, n, target = count
        if shown.dtype.kind == "f":  # a share of the top, minus the target
            return self._bounded(np.full(n, 1 / n), shown - target)
        # Looked for beyond 0 and n too: a limit that no list can keep then still says in which direction.
        numbers = range(-n, 2 * n + 1)
        values = representation_bias(np.array(numbers), n, target).tolist()
        kept = [c for c, value in zip(numbers, values, strict=True) if self._holds(value)]
        least, most = (min(kept), max(kept)) if kept else (n + 1, -1)
        return _between(np.ones(n), shown, least, most, n)

    def _share(self, share: ShareInTop) -> Alternatives:
        """Skew within its bounds: with the group present its share is bounded, absent the number labelled."""
        group, labelled, target, t = share
        ones = np.ones(t)
        condition = self.condition
        below = condition.absolute or condition.op.startswith("<")
        least = float(group[group > 0].min(initial=1.0))  # of a document that shows the group at all
        present = [Row(ones, -1.0 * group, -least)]
        bounds = []
        if below:
            bounds.append((1.0, condition.bound))
        if condition.absolute or not below:
            bounds.append((-1.0, -condition.bound if condition.absolute else condition.bound))
        for side, at in bounds:
            share_at = target * np.exp(min(max(at, -_STEEP), _STEEP))
            present.append(self._strict(Row(ones, side * (group - share_at * labelled), 0.0)))
        # How much may be labelled when none shows the group: these numbers are contiguous.
        smallest = float(labelled[labelled > 0].min(initial=1.0))
        if labelled.dtype.kind == "f":
            absent = self._absent_totals(target, smallest, t)
        else:
            absent = [x for x in range(1, t + 1) if self._holds(_absent(x, target))]
        if not absent:
            return [present]
        if len(bounds) == 1 and below and absent[0] <= smallest:
            return [[*present[1:], Row(ones, -1.0 * labelled, -smallest)]]
        none = [Row(ones, 1.0 * group, 0.0), *_between(ones, labelled, absent[0], absent[-1], t)]
        return [present, none]

    def _absent_totals(self, target: float, smallest: float, t: int) -> list[float]:
        """How much may be labelled, at least and at most, when nothing of it shows the group; or nothing.

        The skew is then ln ½ up to 1/target, and falls as ln(½ / (labelled · target)) beyond.
        """
        condition = self.condition
        if condition.absolute or condition.op.startswith(">"):
            bound = -condition.bound if condition.absolute else condition.bound
            if not self._holds(_absent(smallest, target)):
                return []
            most = ABSENT / (target * np.exp(max(bound, -_STEEP)))
            return [smallest, min(most, float(t))]
        if self._holds(_absent(smallest, target)):
            return [smallest, float(t)]
        least = ABSENT / (target * np.exp(max(condition.bound, -_STEEP)))
        return [least, float(t)] if least <= t else []


def _between(weights: Floats, values: Any, least: float, most: float, t: int) -> list[Row]:
    """At least so many and at most so many, where that says something."""
    rows = [Row(weights, 1.0 * values, float(most))] if most < t else []
    return [*rows, Row(weights, -1.0 * values, float(-least))] if least > 0 else rows


def _absent(labelled: float, target: float) -> float:
    """Skew of a group that none of so many labelled documents shows."""
    return float(skews(np.array([0, labelled]), np.array([target, 1.0]))[0])


def parse_limits(limit: Any) -> list[Condition]:
    """Conditions that can be limits on one list, each as its measure takes it."""
    given = [limit] if isinstance(limit, str | Condition) else list(limit)
    if not given:
        raise InputError("name at least one limit, as in abs(ARaB@10)<=0.1")
    conditions = []
    for condition in map(parse_condition, given):
        measure: Any = condition.measure
        if math.isinf(condition.bound):
            if condition.op.startswith(">"):
                raise InputError(f"{condition}: no ranking can keep to it")
            condition = replace(condition, bound=_UNBOUNDED)
        if not _can_be_limit(measure):
            known: list[Any] = [m for m in ir_measures.measures.registry.values() if _can_be_limit(m)]
            names = [m.NAME for m in sorted(known, key=lambda m: (not m.SIGN_NAMES_GROUP, not m.LINEAR))]
            raise InputError(
                f"{condition}: {measure.NAME} cannot be a limit; {', '.join(names[:-1])} and {names[-1]} can"
            )
        conditions.append(_checked(condition, measure))
    return conditions


def _checked(condition: Condition, measure: Any) -> Condition:
    """The condition as a limit on one list; refused where it cannot be one."""
    if is_sum(measure) and not measure.LINEAR:  # the size of a sum: LIWC
        condition = replace(condition, absolute=True)
    if measure.params.get("cutoff") is None:
        raise InputError(f"{condition}: no order changes it over the whole list; add a cut-off: @10")
    refused, instead = getattr(measure, "LIMIT_REFUSED", ("", ""))
    if refused and condition.absolute:
        raise InputError(f"{condition}: its sign is known; write MinSkew@10>=-0.2 or MaxSkew@10<=0.2")
    if condition.absolute:
        refused, instead = ">", "limit it from above with <="
    if refused and condition.op.startswith(refused):
        raise InputError(f"{condition}: {instead}")
    if condition.absolute and not condition.holds(0.0):
        raise InputError(f"{condition}: an absolute value is never below 0; the smallest bound is <=0")
    return condition


def _can_be_limit(measure: Measure) -> bool:
    able = (hasattr(measure, name) for name in ("count_in_top", "shares_in_top"))
    return is_bias(measure) and (is_sum(measure) or any(able))


def apply_limits(
    conditions: Iterable[Condition], lists_of: Mapping[Hashable, RankedLists | None]
) -> list[Limit]:
    """The conditions on the lists of a run, each as the view of its measure sees them."""
    limits: list[Limit] = []
    for condition in conditions:
        measure: Any = condition.measure
        lists = lists_of.get(view_key(measure))
        if lists is None:
            raise InputError(f"{condition} needs {measure.VIEW.NEEDED}")
        measure.check_groups(lists.groups)
        limits.append(Limit(condition, lists))
    return limits


def rows_of(limits: Sequence[Limit], query: int) -> Alternatives:
    """What one list has to keep to: one of the alternatives, every row of it."""
    applied = [rows for limit in limits if (rows := limit.alternatives(query)) is not None]
    if math.prod(map(len, applied)) > MAX_ALTERNATIVES:
        raise InputError("too many groups are limited at once; limit Skew of the ones that matter")
    return [[row for rows in each for row in rows] for each in product(*applied)]
