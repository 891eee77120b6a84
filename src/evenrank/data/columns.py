"""Checks of frames for the readers of document groups."""

from typing import Any

import polars as pl

from evenrank.data.schema import Table


def refuse_repeats(frame: pl.DataFrame, keys: list[str], *, path: Any = None, line: Any = None) -> None:
    """Raise InputError if two rows agree in the keys."""
    Table(frame, path, line).require_unique(*keys)


def whole_numbers(column: pl.Series, *, path: Any = None, line: Any = None) -> pl.Series:
    """Return a column as whole numbers."""
    return Table(column.to_frame(), path, line).whole_numbers(column.name)
