"""A figure: a chart with its words, and the numbers behind it as a table."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import polars as pl

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
        found = dict(self.chart.to_dict(validate=False))  # the tests validate all of them
        for name in ("config", "$schema", "usermeta"):
            found.pop(name, None)
        found["autosize"] = {"type": "fit-x", "contains": "padding"}
        found["datasets"] = {name: _rounded(rows) for name, rows in found.get("datasets", {}).items()}
        return found

    def data(self) -> dict[str, Any]:
        """The numbers, for the CSV."""
        frame = _shown(self.frame)
        return {"columns": frame.columns, "rows": [list(row) for row in frame.iter_rows()]}

    def table(self) -> tuple[list[str], list[list[str]], int]:
        """Headings, the first rows as text, and how many rows there are."""
        frame = _shown(self.frame)
        rows = [[_cell(value) for value in row] for row in frame.head(ROWS).iter_rows()]
        return [_NAMES.get(name, name.replace("_", " ")) for name in frame.columns], rows, frame.height


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
