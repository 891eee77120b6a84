"""Runs × measures as text for a terminal, as LaTeX and as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from evenrank.auditing.comparing import between
from evenrank.data.latex import escaped
from evenrank.measures.measurements import Measurement

if TYPE_CHECKING:
    from evenrank.auditing.result import Audit

MARK = "†"
ACROSS = 6
"""Runs beside one another in a terminal; further ones stand below."""
_COMPARED = {
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "effect": pl.Float64,
}


def frame(audit: Audit) -> pl.DataFrame:
    """One row for each run and measure: value, interval, parts, and the comparison with the baseline."""
    rows = []
    for m in audit.measured:
        one = between(audit.comparisons, m.run, m.measure)
        c = None if one is None else one.comparison
        rows.append(
            {
                "difference": None if c is None else c.difference,
                "difference_low": None if c is None else c.low,
                "difference_high": None if c is None else c.high,
                "p": None if c is None else c.p,
                "p_holm": None if one is None else one.p_holm,
                "effect": None if c is None else c.effect,
            }
        )
    return pl.concat([audit.measured.frame(), pl.DataFrame(rows, schema=_COMPARED)], how="horizontal")


def text(audit: Audit) -> str:
    """A table: measures down, runs across, intervals beneath, marks where a run differs from the baseline."""
    said = [f"{MARK} differs from {audit.baseline}: paired test, p < 0.05 after Holm's correction."]
    notes = said if any(one.significant for one in audit.comparisons) else []
    blocks = [_block(audit, audit.runs[i : i + ACROSS]) for i in range(0, len(audit.runs), ACROSS)]
    return "\n".join(["\n\n".join(blocks), *notes])


def _block(audit: Audit, runs: Sequence[str]) -> str:
    """The table of some runs, without notes."""
    heads = ["", *(f"{run} (baseline)" if run == audit.baseline else run for run in runs)]
    lines: list[list[str]] = [heads]
    for measure in audit.measures:
        cells = [audit.measured[run, measure] for run in runs]
        lines.append([str(measure), *(value(m) + mark(audit, m) for m in cells)])
        if any(m.low is not None for m in cells):
            lines.append(["", *(bounds(m) for m in cells)])
    widths = [max(len(row[i]) for row in lines) for i in range(len(heads))]
    rows = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in lines
    ]
    return "\n".join(row.rstrip() for row in rows)


def latex(audit: Audit) -> str:
    """A table for a paper (package booktabs): runs down, measures across, intervals beneath."""
    names = [str(m) for m in audit.measures]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(names)}}}",
        r"\toprule",
        " & ".join(["Run", *map(escaped, names)]) + r" \\",
        r"\midrule",
    ]
    for run in audit.runs:
        row = [audit.measured[run, measure] for measure in audit.measures]
        daggers = [r"^{\dagger}" if mark(audit, m) else "" for m in row]
        cells = [f"${value(m).replace('–', '-')}{d}$" for m, d in zip(row, daggers, strict=True)]
        lines.append(" & ".join([escaped(run), *cells]) + r" \\")
        if any(m.low is not None for m in row):
            small = [rf"{{\scriptsize ${bounds(m)}$}}" if bounds(m) else "" for m in row]
            lines.append(" & ".join(["", *small]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def mark(audit: Audit, m: Measurement) -> str:
    """A dagger where the run differs from the baseline."""
    one = between(audit.comparisons, m.run, m.measure)
    return MARK if one is not None and one.significant else ""


def value(m: Measurement) -> str:
    return _number(m.value, m)


def bounds(m: Measurement) -> str:
    if m.low is None or m.high is None:
        return ""
    return f"[{_number(m.low, m)}, {_number(m.high, m)}]"


def _number(value: float | None, m: Measurement) -> str:
    if value is None:
        return "–"
    return f"{value:+.3f}" if getattr(m.measure, "SIGNED", False) else f"{value:.3f}"
