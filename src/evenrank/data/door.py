"""Tables of files as frames, for the readers of document groups."""

from typing import Any

import polars as pl

from evenrank.data.formats import read_table_file
from evenrank.data.schema import Names, Path, choose_columns


def read(path: Path, **how: Any) -> tuple[pl.DataFrame, Any]:
    """Return the frame of a file and the line of its first row."""
    rows = read_table_file(path, **how)
    return rows.frame, rows.line


def rename(
    frame: Any, names: Names, optional: Any = (), *, path: Any = None, line: Any = None
) -> pl.DataFrame:
    """Return the wanted columns under our names."""
    chosen = choose_columns(frame.columns, names, optional, path=path, line=line)
    return frame.select(pl.col(old).alias(new) for new, old in chosen.items())
