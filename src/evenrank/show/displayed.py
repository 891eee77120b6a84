"""What results have in common for people: printing, a pandas frame, and how a notebook shows them.

How each looks is said in `notebook.py`, which knows charts and reports; it is looked up when it is needed, so
that results can be made without either.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenrank.errors import InputError
from evenrank.show.grid import Grid

if TYPE_CHECKING:
    import polars as pl

ROWS = 12
"""Rows of a result that is printed as its frame."""


class Displayed:
    """A result: `print` it, look at it in a notebook, or take its numbers on as a frame."""

    def frame(self) -> pl.DataFrame:
        """The numbers."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The numbers as a pandas frame."""
        return as_pandas(self.frame())

    def __str__(self) -> str:
        return frame_grid(self.frame()).text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        page: str = import_module("evenrank.show.notebook").page(self)
        return page


class Drawn(Displayed):
    """A result that has a chart."""

    def chart(self) -> Any:
        """Its chart, an Altair object: a notebook draws it, `save` writes it."""
        return import_module("evenrank.show.notebook").chart(self)


def as_pandas(frame: pl.DataFrame) -> Any:
    """The frame, in pandas."""
    try:
        return frame.to_pandas()
    except ModuleNotFoundError:
        raise InputError("pandas is not installed; pip install pandas, or use frame()") from None


def frame_grid(frame: pl.DataFrame, rows: int = ROWS) -> Grid:
    """A frame as a table of text: numbers to three digits, the first rows if there are many."""
    texts = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    ordered = frame.select(*texts, *(name for name in frame.columns if name not in texts))
    cells = [[_cell(value) for value in row] for row in ordered.head(rows).iter_rows()]
    if frame.height > rows:
        cells.append([f"… {frame.height - rows:,} more", *[""] * (len(frame.columns) - 1)])
    return Grid([name.replace("_", " ") for name in ordered.columns], cells, max(len(texts), 1))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
