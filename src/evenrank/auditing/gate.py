"""A gate for continuous integration: bounds that no new run may exceed.

The baseline is exempt: it is what there is already, and a change that mends a bias must not fail because of
what it mends.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenrank import stats
from evenrank.errors import InputError
from evenrank.measures.base import preferred_direction
from evenrank.measures.compare import difference
from evenrank.measures.parse import Condition
from evenrank.measures.results import Measurement, Measurements
from evenrank.show.grid import Grid
from evenrank.show.numbers import counted

Judging = Literal["point", "interval"]

TWO_SIDED = 0.90
"""Level of the two-sided interval whose ends are one-sided 95% bounds."""


@dataclass(frozen=True)
class Check:
    """One condition and one run. `text` says what was found, in one line."""

    condition: Condition
    run: str
    value: float | None
    passed: bool
    text: str


def check_conditions(conditions: Iterable[Condition], *, baseline: str | None) -> None:
    """Refuse relative bounds that cannot be meant: without a baseline, or on the side that is better."""
    for condition in conditions:
        if not condition.relative:
            continue
        if baseline is None:
            raise InputError(
                f"condition '{condition}': there is no baseline to compare with; give a second run"
            )
        measure, rising = condition.subject, condition.op.startswith(">")
        way = preferred_direction(measure)
        if way == "zero" and not getattr(measure, "REFERENCE", ""):
            raise InputError(
                f"condition '{condition}': {measure} is best near 0, so neither a rise nor a fall is worse "
                f"in itself; bound its absolute value, as in abs({measure})>baseline+0.02"
            )
        if (way == "high" and rising) or (way == "low" and not rising):
            better, op, sign = ("higher", "<", "-") if way == "high" else ("lower", ">", "+")
            raise InputError(
                f"condition '{condition}' would stop an improvement: {better} is better for {measure}; "
                f"write {measure}{op}baseline{sign}{abs(condition.bound):g}"
            )


def check(
    measured: Measurements,
    conditions: Iterable[Condition],
    *,
    baseline: str | None = None,
    judging: Judging | None = None,
    seed: int = 0,
) -> tuple[Check, ...]:
    """Every condition of every run but the baseline; a condition that holds, or cannot be checked, fails.

    Parameters
    ----------
    judging
        `point`: the value, or the change from the baseline, must not be beyond the bound. `interval`: its
        one-sided 95% bound must not be, so that chance does not open the gate. Unless given, changes from the
        baseline are judged by the interval, values by the point.
    """
    runs = [run for run in measured.runs if run != baseline]
    return tuple(
        _changed(
            condition, measured[run, condition.subject], measured[baseline, condition.subject], judging, seed
        )
        if condition.relative and baseline is not None
        else _valued(condition, measured[run, condition.subject], judging)
        for condition in conditions
        for run in runs
    )


def failures(checks: Iterable[Check]) -> tuple[str, ...]:
    """One line for each check that failed."""
    return tuple(f"{one.condition}: {one.text}" for one in checks if not one.passed)


def _valued(condition: Condition, m: Measurement, judging: Judging | None) -> Check:
    if m.value is None:
        text = f"{condition.subject} of {m.run} is undefined, so the bound cannot be checked"
        return Check(condition, m.run, None, False, text)
    result, said = m.value, f"{condition.subject} of {m.run} is {_number(m.value, m)}"
    if judging == "interval":
        end = _bound(condition, m)
        if end is None:
            n = counted(m.queries, "query", "queries")
            text = f"{condition.subject} of {m.run} cannot be checked: no interval from {n}"
            return Check(condition, m.run, m.value, False, text)
        result, said = end, f"{said}, its one-sided 95% bound {_number(end, m)}"
    failed = condition.holds(result)
    return Check(condition, m.run, m.value, not failed, said)


def _bound(condition: Condition, m: Measurement) -> float | None:
    """The end of the interval that is nearer to the bound, or beyond it."""
    if getattr(m.measure, "REFERENCE", ""):  # no mean over queries: the interval that was measured
        low, high = m.low, m.high
    else:
        if len(m.values) < 2:
            return None
        interval = stats.mean_interval(m.values, confidence=TWO_SIDED, method="t")
        low, high = interval.low, interval.high
    if low is None or high is None:
        return None
    if condition.absolute and condition.subject == condition.measure:
        return max(abs(low), abs(high)) if condition.op.startswith(">") else min(abs(low), abs(high))
    return high if condition.op.startswith(">") else low


def _changed(
    condition: Condition, mine: Measurement, theirs: Measurement, judging: Judging | None, seed: int
) -> Check:
    change = difference(mine, theirs, confidence=TWO_SIDED, seed=seed).comparison
    end = change.high if condition.op.startswith(">") else change.low
    end = end if change.n > 1 else None
    if change.difference is None or (end is None and judging != "point"):
        why = "no interval" if change.difference is not None else "no change"
        n = counted(change.n, "query", "queries")
        text = f"{condition.subject} of {mine.run} cannot be checked: {why} from {n} shared with {theirs.run}"
        return Check(condition, mine.run, mine.value, False, text)
    said = f"{condition.subject} of {mine.run} changes by {change.difference:+.4f} from {theirs.run}"
    result = change.difference
    if judging != "point" and end is not None:
        result, said = end, f"{said}, one-sided 95% bound {end:+.4f}"
    said += f", over {change.n:,} queries"
    failed = condition.holds(result)
    return Check(condition, mine.run, mine.value, not failed, said)


def _number(value: float, m: Measurement) -> str:
    return format(value, "+.4f" if getattr(m.measure, "SIGNED", False) else ".4f")


def grid(checks: Sequence[Check]) -> Grid:
    """The checks as a table."""
    rows = [["passed" if one.passed else "failed", one.run, str(one.condition), one.text] for one in checks]
    return Grid(["", "run", "must not hold", "found"], rows, left=4)


def junit(checks: Sequence[Check]) -> str:
    """The checks as JUnit XML, which build servers show as tests."""
    failed = sum(not one.passed for one in checks)
    suite = ET.Element("testsuite", name="evenrank", tests=str(len(checks)), failures=str(failed), errors="0")
    for one in checks:
        case = ET.SubElement(
            suite, "testcase", classname=f"evenrank.{_xml(one.run)}", name=_xml(str(one.condition))
        )
        if not one.passed:
            ET.SubElement(case, "failure", message=_xml(one.text), type="bound")
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold, however they are written."""
    return "".join(
        c
        if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        else "\ufffd"
        for c in text
    )
