"""The verdict: a card for each run, with its lean as a bar around balance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.auditing.verdict import Finding, correction, headline, side, size_of, unjudged
from evenrank.measures.base import leans
from evenrank.measures.results import Measurement
from evenrank.show.figure import Section, first_runs

CARDS = 12
"""Runs that get a card; the table of measures has all."""


@dataclass(frozen=True)
class Gauge:
    """Places on the bar, in percent from the left; None where there is nothing to mark.

    `offered` is what the same queries were offered.
    """

    value: float
    low: float | None
    high: float | None
    offered: float | None
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
    unjudged: str | None
    size: Measurement | None
    findings: tuple[Finding, ...]


def verdict(audit: Audit, more: Mapping[str, Any]) -> Section:
    """The headline, the gate and a card for each run."""
    found = cards(audit)
    content = {
        "headline": headline(audit),
        "cards": found,
        "offered": next((one.kind for one in audit.offered.values()), None),
        "corrected": correction(audit),
    }
    return Section("verdict", "Verdict", template="verdict.html", content=content)


def cards(audit: Audit) -> list[Card]:
    """One card for each of the first runs; all bars have the same scale."""
    measure = audit.headline
    if measure is None:
        return []
    rows = [audit.measured[run, measure] for run in audit.runs]
    reach = [abs(x) for m in rows for x in (m.value, m.low, m.high, _offered(audit, m.run)) if x is not None]
    shown = set(first_runs(audit, CARDS))
    bound = _round_up(max(reach, default=0.1) * 1.1)
    return [
        Card(
            run=m.run,
            baseline=m.run == audit.baseline,
            side=side(m, audit.groups),
            value=m.value,
            measurement=m,
            unjudged=unjudged(m),
            size=size_of(audit, m.run),
            gauge=_gauge(m, bound, _offered(audit, m.run))
            if leans(measure) and m.value is not None
            else None,
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
        open_ = f"Whether {finding.run} and {baseline} differ is not judged"
        text = text.replace(open_, f"Difference from {baseline} not judged", 1)
        text = text.removeprefix(f"{finding.run} ").removeprefix("is ")
    return replace(finding, text=text[:1].upper() + text[1:])


def _gauge(m: Measurement, bound: float, offered: float | None) -> Gauge:
    def place(x: float | None) -> float | None:
        return None if x is None else round(50 + 50 * max(-1.0, min(1.0, x / bound)), 2)

    assert m.value is not None
    return Gauge(place(m.value) or 0.0, place(m.low), place(m.high), place(offered), bound)


def _offered(audit: Audit, run: str) -> float | None:
    """The lean of what the run's queries were offered, if it is known."""
    found = audit.offered.get(run)
    return None if found is None else found.value


def _round_up(x: float) -> float:
    """The next of 1, 2, 2.5 or 5 times a power of ten."""
    if x <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(x))
    return next(
        float(f"{step * power:.6g}") for step in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if step * power >= x
    )
