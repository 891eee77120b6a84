"""The names that columns go by (ir_datasets, PyTerrier, BEIR, TREC), and what may stand in them.

A collection's two columns come as blocks: promises of a few thousand documents that any thread can keep.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from evenrank.errors import InputError

DOC_ID = ("doc_id", "docno", "docid", "_id", "id", "corpus-id")
QUERY_ID = ("query_id", "qid", "query-id", "_id", "id", "number")
QUERY_TEXT = ("text", "query", "title")
RELEVANCE = ("relevance", "label", "rel", "grade", "score")
SCORE = ("score",)
RANK = ("rank",)
GENDER = ("gender", "label")
BODY = ("text", "contents", "body")
"""Where a document's text is looked for: the first of these that is there."""
TITLE = "title"

_LONGEST = 1 << 30  # bytes that offsets of 32 bits can surely point to

Place = str | os.PathLike[str] | None


def show(value: object, limit: int = 60) -> str:
    """A value as it may stand in a one-line message."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listing(names: Iterable[object], limit: int = 12) -> str:
    """Names as they may stand in a one-line message: ``doc_id, text``."""
    shown = [name if isinstance(name, str) and name.isprintable() else repr(name) for name in names]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return (", ".join(name[:60] for name in shown[:limit]) + more) or "none"


def pick(found: Sequence[str], names: Sequence[str], *, path: Place = None, line: int | None = None) -> str:
    """The column that goes by one of these names; the first name wins."""
    for name in names:
        if name in found:
            if list(found).count(name) > 1:
                raise InputError(f"column {name} is there twice", path=path, line=line)
            return name
    raise InputError(f"no column {names[0]}; found {listing(found)}", path=path, line=line)


def pick_fields(
    found: Sequence[str], fields: Sequence[str], *, path: Place = None, line: int | None = None
) -> list[str]:
    """The columns that make up a document's text.

    A title may be missing; ``text`` may be called ``contents`` or ``body``; all else has to be there.
    """
    if not fields:
        raise InputError("fields is empty; name the fields that make up the text")
    chosen = []
    for field in fields:
        if field in found:
            chosen.append(pick(found, (field,), path=path, line=line))
        elif field == "text":
            chosen.append(pick(found, BODY, path=path, line=line))
        elif field != TITLE or len(fields) == 1:
            raise InputError(f"no field {field}; found {listing(found)}", path=path, line=line)
    return chosen


def header(
    line: bytes,
    known: Iterable[str],
    separator: str | None = "\t",
    *,
    needs: Sequence[Iterable[str]] = (),
) -> list[str] | None:
    """The column names in lower case, if this first line is made of known ones.

    Or if it has, among three columns or more, one of each of ``needs``: such as an id and a text.
    """
    try:
        cells = line.rstrip(b"\r\n").decode().lower().split(separator)
    except UnicodeDecodeError:
        return None
    names = [cell.strip() for cell in cells]
    if len(names) > 1 and set(names) <= set(known):
        return names
    # Two columns need no header, so that a line of two might well be data; so might long cells.
    short = all(name.isprintable() and len(name) <= 60 for name in names)
    enough = len(names) > 2 and short and needs and all(set(names) & set(need) for need in needs)
    return names if enough else None


def strings(values: Sequence[str | None]) -> pa.StringArray:
    """Texts as an Arrow array; `pa.array` would load pandas to ask whether they are its."""
    whole = pl.Series(values, dtype=pl.String).to_arrow(compat_level=pl.CompatLevel.oldest())
    return whole if whole.nbytes > _LONGEST else whole.cast(pa.string())


def text_array(column: pa.Array, what: str, *, row: int = 0, path: Place = None) -> pa.Array:
    """An Arrow column as text: whole numbers are ids too, anything else is refused."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if not (pa.types.is_integer(kind) or _is_text(kind) or pa.types.is_null(kind)):
        raise InputError(f"column {what} holds {kind}; make it text", path=path)
    try:
        column = column if kind == pa.string() else pc.cast(column, pa.string())
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {what} holds bytes that are not UTF-8 (rows {row + 1} to {row + len(column)})", path=path
        ) from error
    return column


def _is_text(kind: pa.DataType) -> bool:
    """Strings of any width; and bytes, which some writers of Parquet use for strings."""
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    views = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return wide or views or pa.types.is_string(kind) or pa.types.is_binary(kind)


def id_array(column: pa.Array, what: str, *, row: int = 0, path: Place = None) -> pa.Array:
    """An Arrow column as ids: text, none missing, none empty."""
    ids = text_array(column, what, row=row, path=path)
    bad = pc.index(pc.fill_null(pc.equal(pc.binary_length(ids), 0), True), True).as_py()
    if bad >= 0:
        missing = "is missing" if ids[bad].as_py() is None else "is empty"
        raise InputError(f"row {row + bad + 1}: {what} {missing}", path=path)
    return ids


def id_column(frame: pl.DataFrame, what: str, *, path: Place = None) -> pl.Series:
    """The ids of a table as text: none missing, none empty."""
    column = text_column(frame, what, path=path)
    if (empty := column.str.len_bytes() == 0).any():
        raise InputError(f"row {_first(empty)}: {what} is empty", path=path)
    return column


def text_column(frame: pl.DataFrame, what: str, *, path: Place = None, line: int | None = None) -> pl.Series:
    """A column of a table as text, nothing missing; whole numbers are ids too."""
    column = frame[what]
    kind = column.dtype
    if kind == pl.Binary:
        column = column.cast(pl.String, strict=False)
    elif not (kind == pl.String or kind.is_integer() or isinstance(kind, (pl.Categorical, pl.Enum, pl.Null))):
        raise InputError(f"column {what} holds {kind}; make it text", path=path)
    if column.null_count():
        row = _first(column.is_null())
        if line is not None:
            raise InputError(f"{what} is missing", path=path, line=line + row - 1)
        raise InputError(f"row {row}: {what} is missing", path=path)
    return column if kind == pl.String else column.cast(pl.String)


def whole_numbers(column: pl.Series, *, path: Place = None, line: int | None = None) -> pl.Series:
    """A column as integers. Text is parsed only where it comes from a file: ``line`` is its first line."""
    kind = column.dtype
    text = kind == pl.String and line is not None
    if not (kind.is_integer() or kind.is_float() or kind in (pl.Boolean, pl.Null) or text):
        raise InputError(f"column {column.name} holds {kind}; it must be whole numbers", path=path)
    parsed = column.cast(pl.Int64, strict=False)
    if kind.is_float():  # what pandas makes of integers when one is missing
        parsed = parsed.to_frame().select(pl.when(parsed == column).then(parsed)).to_series()
    if parsed.null_count():
        _refuse(parsed.is_null(), column, "a whole number", path=path, line=line)
    return parsed


def finite_numbers(column: pl.Series, *, path: Place = None, line: int | None = None) -> pl.Series:
    """A column as finite floats. Text is parsed only where it comes from a file."""
    kind = column.dtype
    if not (kind.is_numeric() or kind == pl.Null or (kind == pl.String and line is not None)):
        raise InputError(f"column {column.name} holds {kind}; it must be numbers", path=path)
    parsed = column.cast(pl.Float64, strict=False)
    if parsed.null_count() or not np.isfinite(parsed.to_numpy()).all():
        bad = ~parsed.is_finite().fill_null(False)
        _refuse(bad, column, "a finite number", path=path, line=line)
    return parsed + 0.0  # no negative zero: it sorts apart from zero in some places


def _refuse(bad: pl.Series, column: pl.Series, wanted: str, *, path: Place, line: int | None) -> None:
    row = _first(bad) - 1
    problem = f"{column.name} is {show(column[row])}; it must be {wanted}"
    if line is None:
        raise InputError(f"row {row + 1}: {problem}", path=path)
    raise InputError(problem, path=path, line=line + row)


def _first(where: pl.Series) -> int:
    return int(where.arg_true()[0]) + 1


def refuse_repeats(
    frame: pl.DataFrame, keys: list[str], *, path: Place = None, line: int | pl.Series | None = None
) -> None:
    """Raise InputError if two rows agree in ``keys``; ``line``: of the first row, or of each."""
    every = np.sort(pl.DataFrame([frame[key] for key in keys]).hash_rows().to_numpy())
    if not (every[1:] == every[:-1]).any():
        return
    numbered = frame.select(*keys, at=pl.int_range(pl.len()))
    again = numbered.with_columns(first=pl.col("at").min().over(keys)).filter(pl.col("at") > pl.col("first"))
    if again.is_empty():
        return
    row = again.row(0, named=True)
    what = " with ".join(f"{key} {show(row[key])}" for key in keys)
    if line is None:
        raise InputError(f"row {row['at'] + 1} repeats row {row['first'] + 1}: {what}", path=path)
    first, at = (line[row[n]] if isinstance(line, pl.Series) else row[n] + line for n in ("first", "at"))
    raise InputError(f"repeats line {first}: {what}", path=path, line=at)


SCHEMA = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
ROWS = 8192
"""Documents per block where the input is rows and not bytes."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a collection: ``read()`` parses it, in whatever thread calls; ``size`` is for progress.

    ``size`` is the number of bytes of the input, as stored, that were read to get it: the sizes of all
    blocks add up to the size of a file.
    """

    read: Callable[[], pa.RecordBatch]
    size: int

    def __call__(self) -> pa.RecordBatch:
        return self.read()


def batch_of(ids: pa.Array, texts: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([ids, texts], schema=SCHEMA)


def join_fields(fields: Sequence[pa.Array]) -> pa.Array:
    """The fields of each document joined with one space; a missing or empty one leaves no trace."""
    first, *others = (pc.fill_null(field, "") for field in fields)
    for other in others:
        # Not null_handling="skip": Arrow drops rows in which all fields are null.
        joined = pc.binary_join_element_wise(first, other, " ")
        joined = pc.if_else(pc.equal(pc.binary_length(other), 0), first, joined)
        first = pc.if_else(pc.equal(pc.binary_length(first), 0), other, joined)
    return first
