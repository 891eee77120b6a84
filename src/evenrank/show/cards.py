"""The verdict: a card for each run, with its lean as a bar around balance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.auditing.verdict import Finding, headline, side
from evenrank.measures.base import leans
from evenrank.measures.measurements import Measurement
from evenrank.show.figure import Section, first_runs

CARDS = 12
"""Runs that get a card; the table of measures has all."""


@dataclass(frozen=True)
class Gauge:
    """Places on the bar, in percent from the left; None where there is nothing to mark."""

    value: float
    low: float | None
    high: float | None
    collection: float | None
    bound: float


@dataclass(frozen=True)
class Card:
    """What the verdict says about one run."""

    run: str
    baseline: bool
    side: str | None
    value: float | None
    measurement: Measurement
    gauge: Gauge | None
    findings: tuple[Finding, ...]


def verdict(audit: Audit, more: Mapping[str, Any]) -> Section:
    """The headline, the gate and a card for each run."""
    content = {"headline": headline(audit), "cards": cards(audit)}
    return Section("verdict", "Verdict", template="verdict.html", content=content)


def cards(audit: Audit) -> list[Card]:
    """One card for each of the first runs; all bars have the same scale."""
    measure = audit.headline
    if measure is None:
        return []
    rows = [audit.measured[run, measure] for run in audit.runs]
    reach = [abs(x) for m in rows for x in (m.value, m.low, m.high, _collection(m)) if x is not None]
    shown = set(first_runs(audit, CARDS))
    bound = _round_up(max(reach, default=0.1) * 1.1)
    return [
        Card(
            run=m.run,
            baseline=m.run == audit.baseline,
            side=side(m, audit.groups),
            value=m.value,
            measurement=m,
            gauge=_gauge(m, bound) if leans(measure) and m.value is not None else None,
            findings=tuple(_within(f, audit.baseline) for f in audit.findings if f.run == m.run),
        )
        for m in rows
        if m.run in shown
    ]


def _within(finding: Finding, baseline: str | None) -> Finding:
    """The finding without the name of the run that the card bears already."""
    text = finding.text.removeprefix(f"{finding.run}: ")
    if finding.kind == "change":
        same = f"{finding.run} and {baseline} do not differ clearly"
        text = text.replace(same, f"No clear difference from {baseline}", 1)
        text = text.removeprefix(f"{finding.run} ").removeprefix("is ")
    return replace(finding, text=text[:1].upper() + text[1:])


def _gauge(m: Measurement, bound: float) -> Gauge:
    def place(x: float | None) -> float | None:
        return None if x is None else round(50 + 50 * max(-1.0, min(1.0, x / bound)), 2)

    assert m.value is not None
    return Gauge(place(m.value) or 0.0, place(m.low), place(m.high), place(_collection(m)), bound)


def _collection(m: Measurement) -> float | None:
    return m.background["collection"]["value"] if "collection" in m.background else None


def _round_up(x: float) -> float:
    """The next of 1, 2, 2.5 or 5 times a power of ten."""
    if x <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(x))
    return next(
        float(f"{step * power:.6g}") for step in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if step * power >= x
    )
