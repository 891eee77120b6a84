"""Limits as rows of a linear program: bounds on Σ_i w_i · v(d_i), weights of ranks times values of documents.

A measure that is a sum over documents is such a sum already (`limit_sum`). MB depends on how many of the
top n show a group (`limit_count`), Skew on the share of a group among those labelled (`limit_share`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from evenrank.measures.base import LinearMeasure, is_sum
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.parse import Condition
from evenrank.measures.representation import CountInTop, representation_bias
from evenrank.measures.skew import ABSENT, ShareInTop, skews

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


def sides(condition: Condition) -> list[float]:
    """The signs with which a value is bounded from above."""
    if condition.absolute:
        return [1.0, -1.0]
    return [1.0 if condition.op.startswith("<") else -1.0]


def limit_sum(condition: Condition, weights: Floats, values: Floats) -> list[Row]:
    """A condition on Σ_i weights[i] · values[document at rank i]."""
    return [
        strict(
            Row(weights, values * side, condition.bound * (1.0 if condition.absolute else side)), condition
        )
        for side in sides(condition)
    ]


def strict(row: Row, condition: Condition) -> Row:
    """With < and > a value that equals the bound within rounding exceeds it."""
    return replace(row, upper=row.upper - 2 * (row.bound - row.upper)) if "=" not in condition.op else row


def holds(condition: Condition, value: float) -> bool:
    """Whether a value keeps to a condition, within rounding."""
    slack = ROUNDING if "=" in condition.op else -ROUNDING
    value = abs(value) if condition.absolute else value
    if condition.op.startswith("<"):
        return value <= condition.bound + slack
    return value >= condition.bound - slack


def between(weights: Floats, values: Any, least: float, most: float, t: int) -> list[Row]:
    """At least so many and at most so many, where that says something."""
    rows = [Row(weights, 1.0 * values, float(most))] if most < t else []
    return [*rows, Row(weights, -1.0 * values, float(-least))] if least > 0 else rows


def limit_count(condition: Condition, count: CountInTop) -> list[Row]:
    """At least and at most so many of the top n."""
    shown, n, target = count
    if shown.dtype.kind == "f":  # a share of the top, minus the target
        return limit_sum(condition, np.full(n, 1 / n), shown - target)
    # Looked for beyond 0 and n too: a limit that no list can keep then still says in which direction.
    numbers = range(-n, 2 * n + 1)
    values = representation_bias(np.array(numbers), n, target).tolist()
    kept = [c for c, value in zip(numbers, values, strict=True) if holds(condition, value)]
    least, most = (min(kept), max(kept)) if kept else (n + 1, -1)
    return between(np.ones(n), shown, least, most, n)


def limit_share(condition: Condition, share: ShareInTop) -> Alternatives:
    """Skew within its bounds: with the group present its share is bounded, absent the number labelled."""
    group, labelled, target, t = share
    ones = np.ones(t)
    below = condition.absolute or condition.op.startswith("<")
    soft = labelled.dtype.kind == "f"
    least = float(group[group > 0].min(initial=1.0))  # of a document that shows the group at all
    present = [Row(ones, -1.0 * group, -least)]
    bounds = []
    if below:
        bounds.append((1.0, condition.bound))
    if condition.absolute or not below:
        bounds.append((-1.0, -condition.bound if condition.absolute else condition.bound))
    for side, at in bounds:
        row = Row(ones, side * (group - target * np.exp(min(max(at, -_STEEP), _STEEP)) * labelled), 0.0)
        present.append(strict(row, condition))
    # How many labelled documents there may be when none shows the group: these numbers are contiguous.
    smallest = float(labelled[labelled > 0].min(initial=1.0))
    absent = _absent_totals(condition, target, smallest, t) if soft else [
        x for x in range(1, t + 1) if holds(condition, _absent(x, target))
    ]  # fmt: skip
    if not absent:
        return [present]
    if len(bounds) == 1 and below and absent[0] <= smallest:
        return [[*present[1:], Row(ones, -1.0 * labelled, -smallest)]]
    none = [Row(ones, 1.0 * group, 0.0), *between(ones, labelled, absent[0], absent[-1], t)]
    return [present, none]


def _absent_totals(condition: Condition, target: float, smallest: float, t: int) -> list[float]:
    """How much may be labelled, at least and at most, when nothing of it shows the group; or nothing.

    The skew is then ln ½ up to 1/target, and falls as ln(½ / (labelled · target)) beyond.
    """
    if condition.absolute or condition.op.startswith(">"):
        bound = -condition.bound if condition.absolute else condition.bound
        if not holds(condition, _absent(smallest, target)):
            return []
        most = ABSENT / (target * np.exp(max(bound, -_STEEP)))
        return [smallest, min(most, float(t))]
    if holds(condition, _absent(smallest, target)):
        return [smallest, float(t)]
    least = ABSENT / (target * np.exp(max(condition.bound, -_STEEP)))
    return [least, float(t)] if least <= t else []


def _absent(labelled: float, target: float) -> float:
    """Skew of a group that none of so many labelled documents shows."""
    return float(skews(np.array([0, labelled]), np.array([target, 1.0]))[0])


def line_of(measure: LinearMeasure, lists: RankedLists, query: int) -> tuple[Floats, Floats] | None:
    """Weights of the ranks and values of the documents of one list; None where it is undefined."""
    cutoff = int(measure["cutoff"])
    start, n = int(lists.starts[query]), int(lists.lengths[query])
    values = measure.each_value(lists)[start : start + n]
    scale = measure.each_scale(lists)
    if scale is not None:
        if not scale[query] > 0:
            return None
        values = values / scale[query]
    return measure.weights(min(n, cutoff), cutoff), values


def alternatives_for(condition: Condition, lists: RankedLists, query: int) -> Alternatives | None:
    """What one list has to keep to, one of the alternatives; None where the measure is undefined."""
    measure: Any = condition.measure
    if is_sum(measure):
        line = line_of(measure, lists, query)
        return None if line is None else [limit_sum(condition, *line)]
    if hasattr(measure, "count_in_top"):
        count = measure.count_in_top(lists, query)
        return None if count is None else [limit_count(condition, count)]
    choices = [limit_share(condition, share) for share in measure.shares_in_top(lists, query)]
    return [[row for part in each for row in part] for each in product(*choices)] if choices else None
