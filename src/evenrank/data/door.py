"""Small tables with named columns: TSV or CSV with a header, JSONL, Parquet; cells stay as written."""

from __future__ import annotations

import csv
import os

import polars as pl

from evenrank.data import files, jsonl, parquet
from evenrank.data.collection import is_json
from evenrank.data.columns import listing, show
from evenrank.errors import InputError

Path = str | os.PathLike[str]


def read(path: Path) -> tuple[pl.DataFrame, int | None]:
    """The columns under the names of the header, and the line of the first row (None for Parquet).

    Cells of a text file are text, so that 001 stays 001 and 0.15 is fifteen hundredths; a comma
    separates where the header has no tab.
    """
    if os.path.isfile(path) and files.magic(path) == parquet.MAGIC:  # noqa: PTH113
        return parquet.frame(path), None
    raw = files.whole(path)
    files.check_utf8(raw, path)
    lines = [line.removesuffix("\r") for line in raw.tobytes().decode().removeprefix("\ufeff").split("\n")]
    lines = lines[:-1] if not lines[-1] else lines
    if is_json(path, lines[0].encode()):
        return _objects(lines, path), 1
    separator = "\t" if "\t" in lines[0] else ","
    names = [name.strip() for name in cells(lines[0], separator, path, 1)]
    if len(names) < 2:
        raise InputError("one column; expected a header with several", path=path, line=1)
    for name in names:
        if not name:
            raise InputError("the header has a column without a name", path=path, line=1)
        if names.count(name) > 1:
            raise InputError(f"the header names the column {name} twice", path=path, line=1)
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        row = cells(line, separator, path, number)
        if len(row) != len(names):
            raise InputError(f"{len(row)} columns instead of {len(names)}", path=path, line=number)
        rows.append(row)
    if not rows:
        raise InputError("the file has no rows", path=path)
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"), 2


def _objects(lines: list[str], path: Path) -> pl.DataFrame:
    """One object a line, all with the fields of the first; null is an empty cell."""
    rows: list[dict[str, str]] = []
    for number, line in enumerate(lines, start=1):
        found = jsonl.parse_object(line.encode(), path, number)
        if rows and found.keys() != rows[0].keys():
            problem = f"fields {listing(found)} instead of {listing(rows[0])}"
            raise InputError(problem, path=path, line=number)
        for name, value in found.items():
            if isinstance(value, bool | list | dict):
                raise InputError(f"{name} is {show(value)}; give text or a number", path=path, line=number)
        rows.append({name: "" if value is None else str(value) for name, value in found.items()})
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))


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
