"""Tables out of whatever Python holds: frames, dicts, rows of tuples, dicts or named tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data import irds
from evenrank.data.columns import Place, pick, show
from evenrank.data.memory import is_pandas, pandas_column, row_values, text_values
from evenrank.errors import InputError

Names = Mapping[str, Sequence[str]]
"""Of each column, its name here and all the names it may have outside."""

NUMBERS = ("relevance", "score", "rank")


def as_frame(x: Any, names: Names, *, part: str, optional: Sequence[str] = ()) -> pl.DataFrame:
    """A table with our column names. ``part`` is what ir_datasets calls such rows."""
    if isinstance(x, pl.LazyFrame):
        x = x.collect()
    if isinstance(x, pa.RecordBatch):
        x = pa.Table.from_batches([x])
    if isinstance(x, (pl.DataFrame, pa.Table)) or is_pandas(x):
        return rename(x, names, optional)
    if isinstance(x, Mapping):
        return _of_mapping(x, list(names))
    if irds.is_name(x):
        x = irds.dataset(x)
    if irds.is_dataset(x):
        x = irds.Rows(x, part)
    if isinstance(x, (str, bytes)) or not isinstance(x, Iterable):
        raise InputError(f"{show(x)} is not a table; give a path, a frame, a dict or rows")
    return _of_rows(list(x), names, optional)


def rename(frame: Any, names: Names, optional: Sequence[str] = (), *, path: Place = None) -> pl.DataFrame:
    """The columns of a Polars, pandas or Arrow table that we want, under our names."""
    found = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    chosen = {
        name: pick(found, known, path=path)
        for name, known in names.items()
        if name not in optional or set(known) & set(found)
    }
    if isinstance(frame, pl.DataFrame):
        return frame.select(pl.col(column).alias(name) for name, column in chosen.items())
    if isinstance(frame, pa.Table):
        return pl.DataFrame({name: pl.from_arrow(frame.column(column)) for name, column in chosen.items()})
    return pl.DataFrame(
        {name: pl.from_arrow(pandas_column(frame[column])) for name, column in chosen.items()}
    )


def _of_mapping(x: Mapping[Any, Any], names: list[str]) -> pl.DataFrame:
    if len(names) == 2:
        return _columns({names[0]: list(x), names[1]: list(x.values())})
    outer: list[Any] = []
    inner: list[Any] = []
    values: list[Any] = []
    for key, part in x.items():
        if not isinstance(part, Mapping):
            raise InputError(f"{show(key)} has {show(part)}; expected {{query_id: {{doc_id: {names[2]}}}}}")
        outer.extend([key] * len(part))
        inner.extend(part)
        values.extend(part.values())
    return _columns(dict(zip(names, (outer, inner, values), strict=False)))


def _of_rows(rows: list[Any], names: Names, optional: Sequence[str]) -> pl.DataFrame:
    wanted = [name for name in names if name not in optional]
    if not rows:
        return _columns({name: [] for name in wanted})
    if _plain(rows[0]):
        for row, item in enumerate(rows):
            if not _plain(item) or len(item) != len(wanted):
                raise InputError(f"row {row + 1}: {show(item)}; expected ({', '.join(wanted)})")
        return _columns(dict(zip(wanted, map(list, zip(*rows, strict=True)), strict=True)))
    if "text" in names and not {*names["text"]} & {*row_values(rows[0])} and hasattr(rows[0], "default_text"):
        rows = [{**row_values(item), "text": item.default_text()} for item in rows]
    found = list(row_values(rows[0]))
    chosen = {
        name: pick(found, known)
        for name, known in names.items()
        if name not in optional or set(known) & set(found)
    }
    columns: dict[str, list[Any]] = {name: [] for name in chosen}
    for row, item in enumerate(rows):
        values = row_values(item)
        for name, column in chosen.items():
            if column not in values:
                raise InputError(f"row {row + 1}: no {column}")
            columns[name].append(values[column])
    return _columns(columns)


def _plain(item: Any) -> bool:
    return isinstance(item, list) or (isinstance(item, tuple) and not hasattr(item, "_fields"))


def _columns(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            name: _numbers(values, name) if name in NUMBERS else pl.from_arrow(text_values(values, name))
            for name, values in columns.items()
        }
    )


def _numbers(values: list[Any], what: str) -> pl.Series:
    for row, value in enumerate(values):
        if not isinstance(value, (int, float, np.integer, np.floating)):
            raise InputError(f"row {row + 1}: {what} is {show(value)}; it must be a number")
    whole = all(isinstance(value, (int, np.integer)) for value in values)
    try:
        return pl.Series(what, np.array(values, np.int64 if whole else np.float64))
    except OverflowError as error:
        raise InputError(f"{what} holds a number that is too large") from error
