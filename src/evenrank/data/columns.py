"""Old import path, until importers are renamed: see schema."""

# ruff: noqa: F401
from typing import Any

import polars as pl

from evenrank.data.schema import (
    BODY,
    DOC_ID,
    GENDER,
    QUERY_ID,
    QUERY_TEXT,
    RANK,
    RELEVANCE,
    ROWS,
    SCHEMA,
    SCORE,
    TITLE,
    Block,
    Table,
    batch_of,
    listing,
    pick,
    pick_fields,
    show,
    strings,
)


def refuse_repeats(frame: pl.DataFrame, keys: list[str], *, path: Any = None, line: Any = None) -> None:
    lines = line if isinstance(line, pl.Series) else None
    Table(frame, path, line if lines is None else 1, lines).require_unique(*keys)


def whole_numbers(column: pl.Series, *, path: Any = None, line: Any = None) -> pl.Series:
    return Table(column.to_frame(), path, line).whole_numbers(column.name)
