"""The columns of tables: their names, their checks, and the errors that name file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from evenrank.errors import InputError, closest_match

DOC_ID = ("doc_id", "docno", "docid", "_id", "id", "corpus-id")
QUERY_ID = ("query_id", "qid", "query-id", "_id", "id", "number")
QUERY_TEXT = ("text", "query", "title")
RELEVANCE = ("relevance", "label", "rel", "grade", "score")
SCORE = ("score",)
RANK = ("rank",)
GENDER = ("gender", "label")
SEQ = ("seq", "seq_no", "sequence")
BODY = ("text", "contents", "body")
"""Names of the column with a document's text; the first that exists is taken."""
TITLE = "title"

QUERIES_SCHEMA = pl.Schema({"query_id": pl.String, "text": pl.String})
QRELS_SCHEMA = pl.Schema({"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64})
RUN_SCHEMA = pl.Schema({"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Int64})
GENDERS_SCHEMA = pl.Schema({"query_id": pl.String, "gender": pl.String})
SCHEMA = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
"""Of documents."""

ROWS = 8192
"""Documents in a block of a collection that is not a file of lines."""
_LARGEST = 1 << 30  # bytes that 32-bit offsets can surely address

Path = str | os.PathLike[str]
Names = Mapping[str, Sequence[str]]
"""Our name of each column, and all names it may have in the input."""


def show(value: object, limit: int = 60) -> str:
    """A value in a one-line message."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listing(names: Iterable[object], limit: int = 12) -> str:
    """Names in a one-line message: ``doc_id, text``."""
    shown = [name if isinstance(name, str) and name.isprintable() else repr(name) for name in names]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return (", ".join(name[:60] for name in shown[:limit]) + more) or "none"


def pick(
    columns: Sequence[str], names: Sequence[str], *, path: Path | None = None, line: int | None = None
) -> str:
    """The column with one of these names; the first name wins."""
    for name in names:
        if name in columns:
            if list(columns).count(name) > 1:
                raise InputError(f"column {name} is there twice", path=path, line=line)
            return name
    raise InputError(f"no column {names[0]}; found {listing(columns)}", path=path, line=line)


def pick_fields(
    columns: Sequence[str], fields: Sequence[str], *, path: Path | None = None, line: int | None = None
) -> list[str]:
    """The columns that make up a document's text.

    A title may be missing; ``text`` may be called ``contents`` or ``body``; other fields must exist.
    """
    if not fields:
        raise InputError("fields is empty; name the fields that make up the text")
    chosen = []
    for field in fields:
        if field in columns:
            chosen.append(pick(columns, (field,), path=path, line=line))
        elif field == "text":
            chosen.append(pick(columns, BODY, path=path, line=line))
        elif field != TITLE or len(fields) == 1:
            raise InputError(f"no field {field}; found {listing(columns)}", path=path, line=line)
    return chosen


def choose_columns(
    columns: Sequence[str],
    names: Names,
    optional: Sequence[str] = (),
    *,
    path: Path | None = None,
    line: int | None = None,
) -> dict[str, str]:
    """Our name of each wanted column, and its name in the input."""
    return {
        name: pick(columns, outside, path=path, line=line)
        for name, outside in names.items()
        if name not in optional or set(outside) & set(columns)
    }


def is_header(names: Sequence[str], known: Iterable[str], needs: Sequence[Iterable[str]] = ()) -> bool:
    """Whether the cells of a first line, in lower case, are the names of columns.

    They are if all are known names; or if among three or more there is one of each of `needs`, such as an id
    and a text. A line of two cells may well be data, since such files need no header; so may long cells.
    """
    if len(names) > 1 and set(names) <= set(known):
        return True
    is_named = len(names) > 2 and bool(needs) and all(set(names) & set(need) for need in needs)
    return is_named and all(name.isprintable() and len(name) <= 60 for name in names)


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A frame, where it was read, and the checks of its columns.

    Attributes
    ----------
    frame
        The rows.
    path
        The file, if any.
    line
        The line of the first row; None where the input has no lines (Parquet, frames). Errors then give the
        number of the row.
    lines
        The line, or the number, of each row, if they do not follow one another.
    offset
        How many rows come before these, if they are a piece of a larger table.
    """

    frame: pl.DataFrame
    path: Path | None = None
    line: int | None = None
    lines: pl.Series | None = None
    offset: int = 0

    def error(self, problem: str, row: int | None = None) -> InputError:
        """An error about the table, or about one of its rows (from 0)."""
        if row is None:
            return InputError(problem, path=self.path)
        if self.line is None:
            return InputError(f"row {self.number(row)}: {problem}", path=self.path)
        return InputError(problem, path=self.path, line=self.number(row))

    def number(self, row: int) -> int:
        """The line of a row, or its number, from 1."""
        if self.lines is not None:
            return int(self.lines[row])
        return row + (self.offset + 1 if self.line is None else self.line)

    def refuse(self, bad: pl.Series, problem: str | Callable[[int], str]) -> None:
        """Raise InputError about the first row where ``bad`` is true, if there is one."""
        if bad.any():
            row = int(bad.arg_true()[0])
            raise self.error(problem if isinstance(problem, str) else problem(row), row)

    def ids(self, name: str) -> pl.Series:
        """A column as text, none missing, none empty."""
        column = self.texts(name)
        self.refuse(column.str.len_bytes() == 0, f"{name} is empty")
        return column

    def texts(self, name: str) -> pl.Series:
        """A column as text, none missing; whole numbers become text."""
        column = self.text(name)
        if column.null_count():
            self.refuse(column.is_null(), f"{name} is missing")
        return column

    def text(self, name: str) -> pl.Series:
        """A column as text, null where it is missing."""
        column, kind = self.frame[name], self.frame[name].dtype
        if kind == pl.Binary:  # some writers of Parquet
            try:
                return column.cast(pl.String)
            except pl.exceptions.PolarsError:
                raise self.error(f"column {name} holds bytes that are not UTF-8") from None
        if not (
            kind == pl.String or kind.is_integer() or isinstance(kind, (pl.Categorical, pl.Enum, pl.Null))
        ):
            raise self.error(f"column {name} holds {kind}; make it text")
        return column.cast(pl.String)

    def numbers(self, name: str, *, whole: bool = False) -> pl.Series:
        """A column as finite floats, or as integers; text is parsed only where a file of lines has it."""
        column, kind = self.frame[name], self.frame[name].dtype
        is_text = kind == pl.String and self.line is not None
        if not (kind.is_numeric() or kind == pl.Null or is_text or (whole and kind == pl.Boolean)):
            raise self.error(f"column {name} holds {kind}; it must be {'whole ' * whole}numbers")
        parsed = column.cast(pl.Int64 if whole else pl.Float64, strict=False)
        bad = parsed.is_null() if whole else ~parsed.is_finite().fill_null(False)
        if whole and kind.is_float():  # what pandas makes of integers when one is missing
            bad |= (parsed != column).fill_null(True)
        wanted = "a whole number" if whole else "a finite number"
        self.refuse(bad, lambda row: f"{name} is {show(column[row])}; it must be {wanted}")
        return parsed if whole else parsed + 0.0  # no negative zero: it sorts apart from zero in some places

    def require_unique(self, *keys: str) -> None:
        """Raise InputError if two rows agree in all of these columns."""
        duplicates = DuplicateCheck(*keys)
        duplicates.add(*(self.frame[key] for key in keys))
        duplicates.finish(lambda: [self])

    def require_rows(self, what: str = "") -> None:
        """Raise InputError if there are no rows."""
        if self.frame.is_empty():
            raise self.error(
                "the file has no rows" if self.path is not None else f"the {what} table has no rows"
            )

    def renamed(self, names: Names, optional: Sequence[str] = ()) -> Table:
        """Only these columns, under our names."""
        line = None if self.line is None else 1  # of the header
        chosen = choose_columns(self.frame.columns, names, optional, path=self.path, line=line)
        return replace(self, frame=self.frame.select([pl.col(old).alias(new) for new, old in chosen.items()]))


class DuplicateCheck:
    """Sees all rows of a table, and refuses it at the end if two of them agree in all keys.

    Of each row a hash is kept. If one repeats the rows are read again to compare the keys themselves, so a
    collision of hashes is never mistaken for a duplicate.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = keys
        self._hashes: list[NDArray[np.uint64]] = []

    def add(self, *columns: Any) -> None:
        """The keys of some rows, as series or Arrow arrays; in any order and from any thread."""
        self._hashes.append(row_hashes(*columns))

    def finish(self, tables: Callable[[], Iterable[Table]]) -> None:
        """Raise InputError, naming both places, if two rows of all tables together are the same."""
        hashes = np.sort(np.concatenate([np.empty(0, np.uint64), *self._hashes]))
        repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not len(repeated):
            return
        suspects = []
        for table in tables():
            rows = table.frame.select(self.keys)
            is_suspect = pl.Series(np.isin(row_hashes(*rows), repeated))
            first = table.number(0) if len(rows) else 0
            at = pl.int_range(first, first + len(rows), eager=True) if table.lines is None else table.lines
            suspects.append(rows.with_columns(at.alias("at")).filter(is_suspect))
        frame = pl.concat(suspects).with_columns(first=pl.col("at").min().over(self.keys))
        for row in frame.filter(pl.col("at") > pl.col("first")).head(1).iter_rows(named=True):
            what = " with ".join(f"{key} {show(row[key])}" for key in self.keys)
            if table.line is None:
                problem = f"row {row['at']} repeats row {row['first']}: {what}"
                raise InputError(problem, path=table.path)
            raise InputError(f"repeats line {row['first']}: {what}", path=table.path, line=row["at"])


def row_hashes(*columns: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of each row. Equal rows have equal hashes within one process.

    Column by column: hashing a frame wakes the threads of Polars, which a forked process lacks.
    """
    first, *others = (pl.Series(column).hash().to_numpy() for column in columns)
    return sum((other * np.uint64(0x9E3779B97F4A7C15) for other in others), first)


def strings(values: Sequence[str | None]) -> pa.StringArray:
    """Texts as an Arrow array; `pa.array` would load pandas to ask whether they are its."""
    array = pl.Series(values, dtype=pl.String).to_arrow(compat_level=pl.CompatLevel.oldest())
    return array if array.nbytes > _LARGEST else array.cast(pa.string())


class Block(NamedTuple):
    """A piece of a collection: ``read()`` parses it, in whatever thread calls; ``size`` is for progress.

    ``size`` is the number of bytes of the stored input that were read for it: the sizes of all blocks add
    up to the size of a file.
    """

    read: Callable[[], pa.RecordBatch]
    size: int


def batch_of(ids: pa.Array, texts: pa.Array) -> pa.RecordBatch:
    """A batch of documents."""
    return pa.RecordBatch.from_arrays([ids, texts], ["doc_id", "text"])


def documents(rows: Table, id_column: str, fields: Sequence[str]) -> pa.RecordBatch:
    """Rows as documents, their fields joined with one space; missing and empty ones leave no trace."""
    ids = rows.ids(id_column).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())
    texts = [
        rows.text(field) if field == TITLE and len(fields) > 1 else rows.texts(field) for field in fields
    ]
    text = texts[0]
    if len(texts) > 1:
        joined = pl.concat_str(pl.all().replace("", None), separator=" ", ignore_nulls=True)
        text = pl.DataFrame(texts).select(joined).to_series()
    return batch_of(ids, text.to_arrow(compat_level=pl.CompatLevel.newest()))  # a view of its memory


SPELLINGS = {
    "neutral": ("n", "neutral", "nongendered", "nogender", "genderneutral", "none"),
    "female": ("f", "female", "females", "woman", "women"),
    "male": ("m", "male", "males", "man", "men"),
    "other": ("o", "other", "multiple", "both", "otherormultiple", "otherormultiplegenders", "othermultiple"),
}
"""The classes of queries, each with its spellings as :func:`plain` leaves them."""
_GENDERS = {spelling: gender for gender, spellings in SPELLINGS.items() for spelling in spellings}
_GENDERS["unknown"] = "other"  # what a classifier says when it abstains


def plain(label: str) -> str:
    """A label without case, blanks and punctuation: ``Non-gendered`` is ``nongendered``."""
    return re.sub(r"[\W_]+", "", label).casefold()


def known_gender(label: str) -> str:
    """``female``, ``male``, ``neutral`` or ``other``; any other label is an error."""
    gender = _GENDERS.get(plain(label))
    if gender is None:
        near = closest_match(plain(label), [spelling for spelling in _GENDERS if len(spelling) > 1])
        hint = f"did you mean {near!r}?" if near else f"use one of {listing(SPELLINGS)}"
        raise InputError(f"unknown label {show(label)}; {hint}")
    return gender
