"""A gate for continuous integration: bounds that no run may exceed."""

from __future__ import annotations

from collections.abc import Iterable

from evenrank.measures.measurements import Measurements
from evenrank.measures.parse import Condition


def exceeded(measured: Measurements, conditions: Iterable[Condition]) -> tuple[str, ...]:
    """One line for each run where a condition holds, or cannot be checked; none if all is well."""
    found = []
    for condition in conditions:
        for run in measured.runs:
            value = measured[run, condition.measure].value
            if value is None:
                found.append(f"{condition} cannot be checked for {run}, where it is undefined")
            elif condition.holds(value):
                found.append(f"{condition} for {run}, where {condition.measure} is {value:+.4f}")
    return tuple(found)
