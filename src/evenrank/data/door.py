"""The one door for small tables (labels, targets, pairs, scores …): whatever looks like one comes in here.

A path (TSV or CSV with a header, JSONL, Parquet; plain, gzip or zstd), a Polars, pandas or Arrow table, a
dict, or rows of tuples, dicts or named tuples. Cells of a text file stay text, so that 001 stays 001 and
0.15 is fifteen hundredths. What is wrong is told with file and line.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evenrank.data import columns, files, irds, jsonl, parquet
from evenrank.data.columns import header, listing, show
from evenrank.data.frames import Names, as_frame, every_column, is_frame, rename
from evenrank.errors import InputError
from evenrank.process import refuse_after_fork
from evenrank.show.numbers import counted

__all__ = ["Names", "Table", "as_frame", "is_frame", "is_path", "read", "rename", "table"]

Path = str | os.PathLike[str]

BYTES = 1 << 29
ROWS = 20_000_000
"""A small table has no more text and no more rows: a file that unpacks to more is refused, not held."""


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A frame that knows where it comes from: its file, if any, and the line of its first row.

    A row of a file without lines (Parquet), or of no file, is named by its number instead.
    """

    frame: pl.DataFrame
    path: Path | None = None
    line: int | None = None

    def error(self, problem: str, row: int | None = None) -> InputError:
        """An error about the table, or about one of its rows (from 0)."""
        if row is None:
            return InputError(problem, path=self.path)
        if self.line is None:
            return InputError(f"row {row + 1}: {problem}", path=self.path)
        return InputError(problem, path=self.path, line=self.line + row)

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
        """A column as text, none missing."""
        return columns.text_column(self.frame, name, path=self.path, line=self.line)

    def texts_or_nulls(self, name: str) -> pl.Series:
        """A column as text; null where it is missing or empty."""
        columns.text_column(self.frame.select(name).drop_nulls(), name, path=self.path)  # refuses other kinds
        return self.frame[name].cast(pl.String, strict=False).replace("", None)

    def numbers(self, name: str) -> pl.Series:
        """A column as finite numbers."""
        return columns.finite_numbers(self.frame[name], path=self.path, line=self.line)

    def whole_numbers(self, name: str) -> pl.Series:
        """A column as whole numbers."""
        return columns.whole_numbers(self.frame[name], path=self.path, line=self.line)

    def once(self, *keys: str) -> None:
        """Raise InputError if two rows agree in all of these columns."""
        columns.refuse_repeats(self.frame, list(keys), path=self.path, line=self.line)

    def renamed(self, names: Names, optional: Sequence[str] = ()) -> Table:
        """Only the wanted columns, under our names."""
        line = None if self.line is None else 1  # where the header stands
        return replace(self, frame=rename(self.frame, names, optional, path=self.path, line=line))


def table(
    x: Any,
    names: Names | None = None,
    *,
    optional: Sequence[str] = (),
    part: str = "docs",
    layouts: Sequence[Sequence[str]] = (),
) -> Table:
    """Whatever looks like a table.

    Parameters
    ----------
    x
        A path, a frame, a dict (``{first: second}``, or ``{first: {second: third}}``), rows, or an
        ir_datasets dataset.
    names
        The columns that are wanted, each with the names it may have outside. Without them every column
        stays, under its own name.
    optional
        Of these names, those that may be missing.
    part
        What ir_datasets calls such rows.
    layouts
        The columns of a text file whose first line is not made of known names; see :func:`read`.
    """
    refuse_after_fork()
    if isinstance(x, Table):
        return x if names is None else x.renamed(names, optional)
    if isinstance(x, (str, os.PathLike)) and not irds.is_name(x):
        known = {outside for all_names in (names or {}).values() for outside in all_names}
        frame, line = read(x, layouts=layouts, known=known)
        found = Table(frame, x, line)
        return found if names is None else found.renamed(names, optional)
    if names is None:
        return Table(every_column(x))
    return Table(as_frame(x, names, part=part, optional=optional))


def is_path(x: object) -> bool:
    return isinstance(x, str | os.PathLike)


def read(
    path: Path,
    *,
    layouts: Sequence[Sequence[str]] = (),
    known: Iterable[str] = (),
    needs: Sequence[Iterable[str]] = (),
) -> tuple[pl.DataFrame, int | None]:
    """The columns under the names of the header, and the line of the first row (None for Parquet).

    A comma separates where the first line has no tab. With ``layouts`` the file may lack a header: a
    first line that is not made of ``known`` names (or has, among three or more, one of each of ``needs``)
    is a row, and its columns are those of the layout with as many.
    """
    if is_parquet(path):
        return parquet.frame(path), None
    blocks = _line_blocks(path, limit=BYTES)
    lines = next(blocks)
    first = lines[0]
    if jsonl.is_json(path, first.encode()):
        return _objects(lines, blocks, path), 1
    separator = "\t" if "\t" in first else ","
    names = _header(first, separator, path, layouts, known, needs)
    begin = 2
    if names is None:
        begin, found = 1, len(cells(first, separator, path, 1))
        names = next((list(layout) for layout in layouts if len(layout) == found), None)
        if names is None:
            wanted = " or ".join("<TAB>".join(layout) for layout in layouts)
            raise InputError(f"{found} columns; expected {wanted}", path=path, line=1)
    schema = dict.fromkeys(names, pl.String)
    parts: list[pl.DataFrame] = []
    number = 1
    for block in _chained(lines, blocks):
        rows = []
        for at, line in enumerate(block):
            if number + at >= begin:
                row = cells(line, separator, path, number + at)
                if len(row) != len(names):
                    problem = f"{counted(len(row), 'column')} instead of {len(names)}"
                    raise InputError(problem, path=path, line=number + at)
                rows.append(row)
        number += len(block)
        _refuse_many(number - begin, path)
        parts.append(pl.DataFrame(rows, schema=schema, orient="row"))
    frame = pl.concat(parts)
    if frame.is_empty():
        raise InputError("the file has no rows", path=path)
    return frame, begin


def _header(
    first: str,
    separator: str,
    path: Path,
    layouts: Sequence[Sequence[str]],
    known: Iterable[str],
    needs: Sequence[Iterable[str]],
) -> list[str] | None:
    """The names of the columns; None where the first line is a row already."""
    if layouts:
        names = header(first.encode(), known, separator, needs=needs)
        if names is None:
            return None
    else:
        names = [name.strip() for name in cells(first, separator, path, 1)]
    if len(names) < 2:
        raise InputError("one column; expected a header with several", path=path, line=1)
    seen: set[str] = set()
    for name in names:
        if not name:
            raise InputError("the header has a column without a name", path=path, line=1)
        if name in seen:
            raise InputError(f"the header names the column {listing([name])} twice", path=path, line=1)
        seen.add(name)
    return names


def is_parquet(path: Path) -> bool:
    return os.path.isfile(path) and files.magic(path) == parquet.MAGIC  # noqa: PTH113


def _line_blocks(path: Path, *, limit: int | None = None) -> Iterator[list[str]]:
    """The lines of a file, some thousand at a time."""
    size = 0
    for raw in files.raw_blocks(path):
        size += raw.size
        if limit is not None and size > limit:
            problem = f"more than {limit >> 20} MB of text, too much for a table; give fewer rows, or Parquet"
            raise InputError(problem, path=path)
        files.check_utf8(raw, path)
        yield [line.removesuffix("\r") for line in raw.tobytes().decode().split("\n")[:-1]]
    if not size:
        raise InputError("the file is empty", path=path)


def _chained(first: list[str], others: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from others


def _refuse_many(rows: int, path: Path) -> None:
    if rows > ROWS:
        raise InputError(f"more than {ROWS:,} rows, too many for a table; give fewer", path=path)


def _objects(first: list[str], blocks: Iterator[list[str]], path: Path) -> pl.DataFrame:
    """One object a line, all with the fields of the first; null is an empty cell."""
    names: list[str] = []
    parts: list[pl.DataFrame] = []
    number = 0
    for block in _chained(first, blocks):
        rows: list[list[str]] = []
        for line in block:
            number += 1
            found = jsonl.parse_object(line.encode(), path, number)
            names = names or list(found)
            if len(found) != len(names) or not all(name in found for name in names):
                problem = f"fields {listing(found)} instead of {listing(names)}"
                raise InputError(problem, path=path, line=number)
            rows.append([_cell(found[name], name, path, number) for name in names])
        _refuse_many(number, path)
        try:
            parts.append(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"))
        except UnicodeEncodeError:
            line_number = (
                number - len(rows) + 1 + next(i for i, row in enumerate(rows) if _is_torn(row, names))
            )
            raise InputError(jsonl.TORN, path=path, line=line_number) from None
    return pl.concat(parts)


def _cell(value: Any, name: str, path: Path, number: int) -> str:
    if isinstance(value, bool | list | dict):
        problem = f"{listing([name])} is {show(value)}; give text or a number"
        raise InputError(problem, path=path, line=number)
    return "" if value is None else str(value)


def _is_torn(row: list[str], names: list[str]) -> bool:
    """Does it hold half a character, which no text may?"""
    try:
        "".join([*row, *names]).encode()
    except UnicodeEncodeError:
        return True
    return False


def cells(line: str, separator: str, path: Path, number: int) -> list[str]:
    """The cells of one line."""
    if not line.strip():
        raise InputError("blank line", path=path, line=number)
    if separator == "\t":
        return line.split("\t")
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise InputError(f"not a line of CSV: {error}", path=path, line=number) from None


def sheet(path: Path, known: Iterable[str]) -> tuple[list[str], list[tuple[int, list[str]]]] | None:
    """What a spreadsheet exports: the names in lower case, and every row with its line.

    Columns may be separated by tabs, semicolons or commas, a cell may go over several lines, empty rows
    are passed over. None where the first line has none of the ``known`` names.
    """
    lines = io.StringIO(text(path), newline="")
    first = lines.readline().strip().lower()
    for separator in "\t;,":
        names = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
        if len(names) > 1 and set(names) & set(known):
            break
    else:
        return None
    reader = csv.reader(lines, delimiter=separator)
    found, line = [], 2
    try:
        for row in reader:
            if any(map(str.strip, row)):
                if len(row) != len(names):
                    problem = f"found {counted(len(row), 'column')} where the header has {len(names)}"
                    raise InputError(problem, path=path, line=line)
                found.append((line, row))
            line = reader.line_num + 2
    except csv.Error as error:
        raise InputError(f"cannot be read: {error}", path=path, line=line) from None
    return names, found


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """The objects of a JSONL file: the line's number, what it says, and the line as it is written."""
    number = 0
    for block in _line_blocks(path):
        for line in block:
            number += 1
            try:
                found = jsonl.parse_object(line.encode())
            except InputError as error:
                problem = f"not readable as JSONL: {error.message}"
                raise InputError(problem, path=path, line=number) from None
            yield number, found, line


def text(path: Path) -> str:
    """A small file as text: UTF-8, with or without a byte order mark."""
    raw = files.whole(path, limit=BYTES)
    files.check_utf8(raw, path)
    return raw.tobytes().decode()


def lines(path: Path, *, remark: str | None = "#") -> list[tuple[int, str]]:
    """The lines of a file that say something, stripped, with their numbers; a remark says nothing."""
    stripped = ((number, line.strip()) for number, line in enumerate(text(path).split("\n"), start=1))
    return [(number, line) for number, line in stripped if line and not (remark and line.startswith(remark))]
