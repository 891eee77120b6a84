"""Bounds on measures as linear constraints on who stands where.

A bound on one list is Σ_i w_i · v(d_i) ≤ b: a weight for each rank times a value of the document there. What
a measure looks like as such rows it says itself, in `limit`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenrank.measures.lists import Floats

if TYPE_CHECKING:
    from evenrank.measures.parse import Condition

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


def bounded(condition: Condition, weights: Floats, values: Floats) -> list[Row]:
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


def between(weights: Floats, values: Any, least: int, most: int, t: int) -> list[Row]:
    """At least so many and at most so many, where that says something."""
    rows = [Row(weights, 1.0 * values, float(most))] if most < t else []
    return [*rows, Row(weights, -1.0 * values, float(-least))] if least > 0 else rows
