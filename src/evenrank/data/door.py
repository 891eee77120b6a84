"""Old import path, until importers are renamed: see read, formats and schema."""

# ruff: noqa: F401
from typing import Any

import polars as pl

from evenrank.data.formats import is_parquet, read_table
from evenrank.data.formats import json_objects as objects
from evenrank.data.formats import read_sheet as sheet
from evenrank.data.formats import text_lines as lines
from evenrank.data.formats import text_of as text
from evenrank.data.read import as_frame, is_frame, is_path, table
from evenrank.data.schema import Names, Path, Table, choose_columns


def read(path: Path, **how: Any) -> tuple[pl.DataFrame, Any]:
    rows = read_table(path, **how)
    return rows.frame, rows.line


def rename(
    frame: Any, names: Names, optional: Any = (), *, path: Any = None, line: Any = None
) -> pl.DataFrame:
    chosen = choose_columns(frame.columns, names, optional, path=path, line=line)
    return frame.select(pl.col(old).alias(new) for new, old in chosen.items())
