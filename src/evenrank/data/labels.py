"""Known genders of queries: ``query_id<TAB>label``, with or without the text between, or a CSV."""

from __future__ import annotations

import csv
import os
import re

import polars as pl

from evenrank.data import files, parquet, rows
from evenrank.data.columns import (
    GENDER,
    QUERY_ID,
    QUERY_TEXT,
    header,
    id_column,
    listing,
    pick,
    refuse_repeats,
    show,
)
from evenrank.errors import InputError

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


def normal_gender(label: str) -> str:
    """``female``, ``male``, ``neutral``, or ``other`` for any other label."""
    return _GENDERS.get(plain(label), "other")


def _known_gender(label: str, path: str | os.PathLike[str], place: str = "", line: int | None = None) -> str:
    """The class that a label in a file spells; any other text is a mistake, perhaps the wrong file."""
    gender = _GENDERS.get(plain(label))
    if gender is None:
        problem = f"{place}unknown label {show(label)}; use one of {listing(SPELLINGS)}"
        raise InputError(problem, path=path, line=line)
    return gender


def read(path: str | os.PathLike[str]) -> pl.DataFrame:
    """``query_id`` and ``gender`` from a file of tab- or comma-separated columns, or Parquet."""
    if os.path.isfile(path) and files.magic(path) == parquet.MAGIC:  # noqa: PTH113
        return _parquet(path)
    raw = files.whole(path)
    files.check_utf8(raw, path)
    lines = raw.tobytes().decode().split("\n")[:-1]
    first = lines[0].removesuffix("\r")
    separator = "\t" if "\t" in first else ","
    names = header(first.encode(), {*QUERY_ID, *QUERY_TEXT, *GENDER}, separator, needs=(QUERY_ID, GENDER))
    if names:
        columns = len(names)
        id_at = names.index(pick(names, QUERY_ID, path=path, line=1))
        label_at = names.index(pick(names, GENDER, path=path, line=1))
    else:
        columns = len(_cells(first, separator, path, 1))
        if columns not in (2, 3):
            raise InputError(
                f"{columns} columns; expected query_id<TAB>label or query_id<TAB>text<TAB>label",
                path=path,
                line=1,
            )
        id_at, label_at = 0, columns - 1
    ids, genders = [], []
    for number, line in enumerate(lines[1:] if names else lines, start=2 if names else 1):
        cells = _cells(line.removesuffix("\r"), separator, path, number)
        if len(cells) != columns:
            raise InputError(f"{len(cells)} columns instead of {columns}", path=path, line=number)
        if not cells[id_at] or not cells[label_at].strip():
            raise InputError("the query_id or the label is empty", path=path, line=number)
        ids.append(cells[id_at])
        genders.append(_known_gender(cells[label_at], path, line=number))
    if not ids:
        raise InputError("the file has no rows", path=path)
    frame = pl.DataFrame(
        {"query_id": ids, "gender": genders}, schema={"query_id": pl.String, "gender": pl.String}
    )
    refuse_repeats(frame, ["query_id"], path=path, line=2 if names else 1)
    return frame


def _parquet(path: str | os.PathLike[str]) -> pl.DataFrame:
    table = parquet.frame(path, {*QUERY_ID, *GENDER})
    table = rows.rename(table, {"query_id": QUERY_ID, "gender": GENDER}, path=path)
    if table.is_empty():
        raise InputError("the file has no rows", path=path)
    given = enumerate(id_column(table, "gender", path=path), start=1)
    genders = [_known_gender(label, path, f"row {row}: ") for row, label in given]
    frame = pl.DataFrame([id_column(table, "query_id", path=path), pl.Series("gender", genders)])
    refuse_repeats(frame, ["query_id"], path=path)
    return frame


def _cells(line: str, separator: str, path: str | os.PathLike[str], number: int) -> list[str]:
    if not line:
        raise InputError("blank line", path=path, line=number)
    if separator == "\t":
        return line.split("\t")
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise InputError(f"not a line of CSV: {error}", path=path, line=number) from None
