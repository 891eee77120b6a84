"""Limits on measures as rows of a linear program: bounds on Σ_i w_i · v(d_i), weights of ranks times values.

RaB, ARaB, FaiRR and NFaiRR are such sums already. MB depends on how many of the top n show a group, Skew on
the share of a group among those labelled, and both become bounds on these numbers. Where the numbers within
the limit are not contiguous (Skew counts an absent group as half a document), there are several alternatives,
each of them linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, is_sum
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.representation import CountInTop, representation_bias
from evenrank.measures.skew import ShareInTop, skews

MAX_ALTERNATIVES = 64
_UNBOUNDED = 1e300  # in place of infinity, with which the solvers cannot reckon
_STEEP = 50.0  # no share of a list is e to this times another
ROUNDING = 1e-12
"""A bound that is exceeded by no more than this, relative to the numbers added up, counts as kept: on paper
such values are equal to it."""


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
            Row(weights, values * side, bound if self.condition.absolute else bound * side)
            for side in self.sides
        ]

    def _holds(self, value: float) -> bool:
        """Whether a value keeps to the condition, within rounding."""
        value, bound = abs(value) if self.condition.absolute else value, self.condition.bound
        return value <= bound + ROUNDING if self.sides[0] > 0 else value >= bound - ROUNDING

    def _count(self, count: CountInTop) -> list[Row]:
        """At least and at most so many of the top n."""
        shown, n, target = count
        # Beyond 0 and n too: a limit that no list can keep then still says in which direction.
        numbers = range(-n, 2 * n + 1)
        values = representation_bias(np.array(numbers), n, target).tolist()
        kept = [c for c, value in zip(numbers, values, strict=True) if self._holds(value)]
        least, most = (min(kept), max(kept)) if kept else (n + 1, -1)
        return _between(np.ones(n), shown, least, most, n)

    def _share(self, share: ShareInTop) -> Alternatives:
        """Skew within its bounds: with the group present its share is bounded, absent the number labelled."""
        group, labelled, target, t = share
        ones = np.ones(t)
        bounds = []
        for side in self.sides:
            at = self.condition.bound * (side if self.condition.absolute else 1.0)
            most = target * np.exp(min(max(at, -_STEEP), _STEEP))
            bounds.append(Row(ones, side * (group - most * labelled), 0.0))
        present = [Row(ones, -1.0 * group, -1.0), *bounds]
        # How many may be labelled when none shows the group: these numbers are contiguous.
        absent = [x for x in range(1, t + 1) if self._holds(_absent(x, target))]
        if not absent:
            return [present]
        if self.sides == [1.0] and absent[0] == 1:
            return [[*bounds, Row(ones, -1.0 * labelled, -1.0)]]
        none = [Row(ones, 1.0 * group, 0.0), *_between(ones, labelled, absent[0], absent[-1], t)]
        return [present, none]


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
        if not (is_sum(measure) or hasattr(measure, "count_in_top") or hasattr(measure, "shares_in_top")):
            raise InputError(
                f"{condition}: {measure.NAME} cannot be a limit; RaB, ARaB and other sums over documents, "
                "Skew, MinSkew, MaxSkew and MB can"
            )
        conditions.append(_checked(condition, measure))
    return conditions


def _checked(condition: Condition, measure: Any) -> Condition:
    """The condition as a limit on one list; refused where it cannot be one."""
    if condition.op in ("<", ">"):
        raise InputError(f"{condition}: write a limit with {condition.op}=")
    if measure.params.get("cutoff") is None:
        raise InputError(f"{condition}: no order changes it over the whole list; add a cut-off: @10")
    if is_sum(measure) and not measure.LINEAR:  # the size of a sum: LIWC
        condition = replace(condition, absolute=True)
    refused, instead = getattr(measure, "LIMIT_REFUSED", ("", ""))
    if refused and condition.absolute:
        raise InputError(f"{condition}: its sign is known; write MinSkew@10>=-0.2 or MaxSkew@10<=0.2")
    if condition.absolute:
        refused, instead = ">", "limit it from above with <="
    if refused and condition.op.startswith(refused):
        raise InputError(f"{condition}: {instead}")
    if condition.absolute and condition.bound < 0:
        raise InputError(f"{condition}: an absolute value is never below 0; the smallest bound is <=0")
    return replace(condition, bound=min(max(condition.bound, -_UNBOUNDED), _UNBOUNDED))


def apply_limits(
    conditions: Iterable[Condition], lists_of: Callable[[BiasMeasure], RankedLists]
) -> list[Limit]:
    """The conditions on the lists of a run, each on those of its measure."""
    limits: list[Limit] = []
    for condition in conditions:
        measure: Any = condition.measure
        lists = lists_of(measure)
        measure.check_groups(lists.groups)
        if not is_sum(measure) and lists.counts().dtype.kind == "f":
            raise InputError(f"{condition} counts documents that show one group; these labels are shares")
        limits.append(Limit(condition, lists))
    return limits


def rows_of(limits: Sequence[Limit], query: int) -> Alternatives:
    """What one list has to keep to: one of the alternatives, every row of it."""
    applied = [rows for limit in limits if (rows := limit.alternatives(query)) is not None]
    if math.prod(map(len, applied)) > MAX_ALTERNATIVES:
        raise InputError("too many groups are limited at once; limit Skew of the ones that matter")
    return [[row for rows in each for row in rows] for each in product(*applied)]
