"""A figure: a chart with its words and the numbers behind it. A section: a title, a lead, figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from evenrank.auditing.result import Audit
from evenrank.errors import InputError

RUNS = 6
"""Runs that get figures of their own; tables have all."""
SHARED = 12
"""Runs that a shared chart draws: more cannot be told apart. Its numbers have all."""
ROWS = 40
"""Rows of the table beneath a chart; the CSV has all."""
_NAMES = {"x": "query", "y": "results", "low": "from", "high": "to", "cutoff": "cut-off"}


@dataclass(frozen=True, eq=False)
class Figure:
    """One chart of the report.

    Attributes
    ----------
    id
        Part of its address in the page and of its file names.
    title, caption
        What it shows, and how to read it.
    alt
        What a reader who does not see it should know.
    chart, frame
        The Altair chart, and the numbers it draws.
    wide
        Whether it takes the whole width of the page.
    """

    id: str
    title: str
    caption: str
    alt: str
    chart: Any
    frame: pl.DataFrame
    wide: bool = False

    def spec(self) -> dict[str, Any]:
        """The chart as Vega-Lite, without its theme and with rounded numbers."""
        result = dict(self.chart.to_dict(validate=False))  # the tests validate all of them
        for name in ("config", "$schema", "usermeta"):
            result.pop(name, None)
        result["autosize"] = {"type": "fit-x", "contains": "padding"}
        result["datasets"] = {name: _rounded(rows) for name, rows in result.get("datasets", {}).items()}
        return result

    def data(self) -> dict[str, Any]:
        """The numbers, for the CSV."""
        frame = _shown(self.frame)
        return {"columns": frame.columns, "rows": [list(row) for row in frame.iter_rows()]}

    def table(self) -> tuple[list[str], list[list[str]], int]:
        """Headings, the first rows as text, and how many rows there are."""
        frame = _shown(self.frame)
        rows = [[_cell(value) for value in row] for row in frame.head(ROWS).iter_rows()]
        return [_NAMES.get(name, name.replace("_", " ")) for name in frame.columns], rows, frame.height


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the report.

    Attributes
    ----------
    id, title, lead
        Its address, its heading, and the sentences beneath that.
    figures
        Its charts.
    template, content
        A template that writes what comes beneath the lead, where that is more than the charts, and what it
        needs; it sees the section as `section`.
    """

    id: str
    title: str
    lead: str = ""
    figures: Sequence[Figure] = ()
    template: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, id: str, title: str, lead: str, figures: Sequence[Figure]) -> Section | None:
        """A section of charts; none without charts."""
        return cls(id, title, lead, figures) if figures else None


def first_runs(audit: Audit, most: int) -> list[str]:
    """The baseline and the first of the other runs, in their order; all if they are few."""
    others = [run for run in audit.runs if run != audit.baseline]
    shown = set(others[: most - 1] if audit.baseline in audit.runs else others[:most]) | {audit.baseline}
    return [run for run in audit.runs if run in shown]


def drawn_runs(audit: Audit, frame: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows that a shared chart draws, and a sentence where these are not all."""
    if len(audit.runs) <= SHARED:
        return frame, ""
    shown = frame.filter(pl.col("run").is_in(first_runs(audit, SHARED)))
    return shown, f" {SHARED} of {len(audit.runs):,} runs are drawn."


LONGEST = 26
"""Characters of a run's name in a legend."""


def short_names(runs: Sequence[str], most: int = LONGEST) -> dict[str, str]:
    """Names that fit into a legend and differ: the middle of a long one is left out.

    >>> short_names(["bm25", "model-of-the-third-experiment-seed-42"], 16)
    {'bm25': 'bm25', 'model-of-the-third-experiment-seed-42': 'model-of…seed-42'}
    """
    result: dict[str, str] = {}
    for run in runs:
        name, tail = run, most // 2 - 1
        if len(run) > most:
            name = f"{run[: most - tail - 1]}…{run[-tail:]}"
        while name in result.values():  # alike at both ends: count them
            name = f"{name[: most - 4]}…{len(result) + 1}"
        result[run] = name
    return result


def with_short_names(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame for a chart: runs by their short names."""
    names = short_names(frame["run"].unique(maintain_order=True).to_list())
    return frame.with_columns(pl.col("run").replace_strict(names, return_dtype=pl.String))


def asked(counts: Iterable[int], one: str = "query", more: str = "queries") -> str:
    """How many queries stand behind a chart: `n = 48 queries`, or from and to where they differ."""
    result = sorted({*counts})
    if not result:
        return ""
    many = f"{result[0]:,}" if len(result) == 1 else f"{result[0]:,} to {result[-1]:,}"
    return f"n = {many} {one if result == [1] else more}"


def first_of(audit: Audit, shown: int) -> str:
    """A sentence where only the first runs are shown."""
    return "" if shown >= len(audit.runs) else f" {shown} of {len(audit.runs):,} runs; audit.json has all."


def listed(names: pl.Series) -> str:
    """Each name once, in order."""
    return ", ".join(names.unique(maintain_order=True).to_list())


def as_frame(given: Any, name: str, columns: tuple[str, ...]) -> pl.DataFrame:
    """What was given for the report as a frame, if it has the columns."""
    frame = given if isinstance(given, pl.DataFrame) else pl.DataFrame(given)
    for column in columns:
        if column not in frame.columns:
            raise InputError(f"{name} needs a column {column!r}; it has {', '.join(frame.columns)}")
    return frame


def slug(text: str) -> str:
    """Text as part of an address or a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def embedded(value: Any) -> str:
    """JSON that is safe within a script element: no <, > or & in it, so that nothing can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _shown(frame: pl.DataFrame) -> pl.DataFrame:
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    return frame.with_columns(pl.col(floats).round_sig_figs(6)) if floats else frame


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: float(f"{v:.6g}") if isinstance(v, float) else v for name, v in row.items()} for row in rows
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
