"""Tables out of what Python holds: frames, dicts, rows of tuples; and a short name for their content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from evenrank.data import irds
from evenrank.data.columns import Place, listing, pick, show
from evenrank.errors import InputError

Names = Mapping[str, Sequence[str]]
"""Of each column, its name here and all the names it may have outside."""

NUMBERS = ("relevance", "score", "rank")


def as_frame(x: Any, names: Names, *, part: str, optional: Sequence[str] = ()) -> pl.DataFrame:
    """A table with our column names out of what Python holds; ``part`` is ir_datasets' name for such rows."""
    x = _framed(x)
    if is_frame(x):
        return rename(x, names, optional)
    if isinstance(x, Mapping):
        return _of_mapping(x, [name for name in names if name not in optional])
    if irds.is_name(x):
        x = irds.dataset(x)
    if irds.is_dataset(x):
        x = irds.Rows(x, part)
    if isinstance(x, (str, bytes)) or not isinstance(x, Iterable):
        raise InputError(f"{show(x)} is not a table; give a path, a frame, a dict or rows")
    return _of_rows(list(x), names, optional)


def is_pandas(x: object) -> bool:
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "iloc")


def is_spark(x: object) -> bool:
    """A frame of Spark, on this machine or through Spark Connect?"""
    return type(x).__module__.startswith("pyspark.") and hasattr(x, "mapInArrow")


def spark() -> Any:
    """What works on frames of Spark. Loaded by name: it stands above all that it uses."""
    return import_module("evenrank.spark")


def is_frame(x: object) -> bool:
    """A Polars, pandas or Arrow table?"""
    kinds = (pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatch)
    return isinstance(x, kinds) or is_pandas(x)


def is_ranx(x: object) -> bool:
    """A Run or Qrels of ranx?"""
    return type(x).__module__.partition(".")[0] == "ranx" and hasattr(x, "to_dict")


def _framed(x: Any) -> Any:
    if is_ranx(x):
        return x.to_dict()
    if isinstance(x, pl.LazyFrame):
        return x.collect()
    return pa.Table.from_batches([x]) if isinstance(x, pa.RecordBatch) else x


def column_names(frame: Any) -> list[str]:
    """The names of the columns of a table; none twice."""
    found = list(frame.column_names if isinstance(frame, (pa.Table, pa.RecordBatch)) else frame.columns)
    names = [str(name) for name in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"column {listing([twice])} is there twice")
    return names


def rename(
    frame: Any,
    names: Names,
    optional: Sequence[str] = (),
    *,
    path: Place = None,
    line: int | None = None,
) -> pl.DataFrame:
    """The columns of a Polars, pandas or Arrow table that we want, under our names."""
    found = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    chosen = {
        name: pick(found, known, path=path, line=line)
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


def every_column(x: Any) -> pl.DataFrame:
    """All columns of a frame, or all values of rows of dicts and named tuples, under their own names."""
    x = _framed(x)
    if isinstance(x, pl.DataFrame):
        return x
    if is_frame(x):
        names = column_names(x)
        take = x.column if isinstance(x, pa.Table) else lambda i: _free(x.iloc[:, i])
        return pl.DataFrame([pl.Series(name, _series(take(i))) for i, name in enumerate(names)])
    if isinstance(x, (str, bytes, Mapping)) or not isinstance(x, Iterable):
        raise InputError(f"{show(x)} is not a table; give a path, a frame or rows")
    rows = [row_values(item) for item in x]
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    return pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in names])


def _series(column: Any) -> Any:
    return pl.from_arrow(column) if isinstance(column, (pa.Array, pa.ChunkedArray)) else column


def _free(column: Any) -> Any:
    """A pandas column as Arrow; what Arrow has no type for, as Polars holds it."""
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError):
        return pl.Series(column.tolist(), strict=False)


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


def row_values(item: Any) -> Mapping[str, Any]:
    """A row with named values: a mapping, a named tuple, or an object with attributes."""
    if isinstance(item, Mapping):
        return item
    if hasattr(item, "_asdict"):
        values: dict[str, Any] = item._asdict()
        return values
    if hasattr(item, "__dict__") and vars(item):
        return vars(item)
    raise InputError(f"{show(item)} is not a row; give {listing(('tuples', 'dicts', 'named tuples'))}")


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


def pandas_column(column: Any) -> pa.Array:
    """A pandas column of text or whole numbers, as one Arrow array."""
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError):
        array = text_values(column.tolist(), str(column.name))
    if isinstance(array, pa.ChunkedArray):
        return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array


def text_values(values: Iterable[Any], what: str) -> pa.Array:
    """Python values as text: strings and whole numbers; None stays missing."""
    texts: list[str | None] = []
    for row, value in enumerate(values):
        if value is None or isinstance(value, str):
            texts.append(value)
        elif isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InputError(f"row {row + 1}: {what} is {show(value)}; it must be text or a whole number")
        else:
            texts.append(str(int(value)))
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError as error:
        raise InputError(f"{what} holds half a character (a lone surrogate)") from error


_SLICE = 65_536


def fingerprint(frames: Iterable[pl.DataFrame | None], *, numbers: bool = False) -> str:
    """xxh3 (128 bits, hexadecimal) of the columns' names, ids, texts and whole numbers, in their order.

    Of other numbers, such as scores, only this counts: which ones equal the one before them. Ids and ranks
    say the rest, and the last bit of a score that another machine computed makes no other name.

    Parameters
    ----------
    numbers
        For tables that say what they say in such numbers: they count too, to about ten digits.
    """
    digest = xxhash.xxh3_128()
    for frame in frames:
        digest.update(b"\x00frame" if frame is not None else b"\x00none")
        for column in [] if frame is None else frame.get_columns():
            digest.update(f"\x00{column.name}\x00{column.dtype}\x00{len(column)}\x00".encode())
            if column.dtype == pl.String:
                for start in range(0, len(column), _SLICE):
                    joined = column[start : start + _SLICE].fill_null("").str.join("\n").item()
                    digest.update(joined.encode())
            elif not column.dtype.is_float():
                digest.update(column.to_numpy().tobytes())
            else:
                values = column.to_numpy()
                digest.update((_ten_digits(values) if numbers else _repeated(values)).tobytes())
    return digest.hexdigest()


def described(facts: Any) -> pl.DataFrame:
    """Settings, and what is known of a source, as a table for :func:`fingerprint`."""
    return pl.DataFrame({"facts": [json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str)]})


def _repeated(values: NDArray[Any]) -> NDArray[Any]:
    """For each value whether it equals the one before it: where a run has ties."""
    return values[1:] == values[:-1]


def _ten_digits(values: NDArray[Any]) -> NDArray[Any]:
    """Sign, exponent and the first 32 bits of floating-point numbers, rounded."""
    wide = values.astype(np.float64) + 0.0  # −0 becomes 0
    return (wide.view(np.int64) + (1 << 19)) >> 20
