"""Tables of scores made elsewhere: LIWC's own output, one row for each query or document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.data import door
from evenrank.data.columns import DOC_ID, GENDER, QUERY_ID, QUERY_TEXT, listing, show
from evenrank.data.labels import normal_gender
from evenrank.errors import InputError
from evenrank.psychology.scoring import categories, with_concerns
from evenrank.text.dictionaries import renamed


def read_scores(x: Any) -> pl.DataFrame:
    """A table of percents: ``query_id`` and/or ``doc_id``, perhaps ``gender``, and the categories.

    Parameters
    ----------
    x
        A CSV or TSV file with a header, Parquet, or a frame; several of them, one for each query gender,
        as a mapping from gender to table or as files named after it (``female.csv``, ``male.csv``).
        Categories may have LIWC's names or ours.
    """
    if isinstance(x, Mapping):
        parts = [_one(table).with_columns(gender=pl.lit(_gender(str(name)))) for name, table in x.items()]
        return with_concerns(_stacked(parts))
    if isinstance(x, Sequence) and not isinstance(x, str):
        paths = [Path(path) for path in x]
        if len(paths) == 1:
            return read_scores(paths[0])
        return read_scores({path.name.split(".")[0]: path for path in paths})
    return with_concerns(_one(x))


def _gender(name: str) -> str:
    gender = normal_gender(name)
    if gender == "other":
        raise InputError(f"{name!r} is no gender; name the tables female, male and neutral")
    return gender


def _one(x: Any) -> pl.DataFrame:
    table = door.table(x)
    frame = table.frame
    ids = {"query_id": QUERY_ID, "doc_id": DOC_ID, "gender": GENDER}
    names: dict[str, str] = {}
    for ours, known in ids.items():
        match = next((column for column in frame.columns if column.lower() in known), None)
        if match is not None and match not in names:
            names[match] = ours
    if not {"query_id", "doc_id"} & set(names.values()):
        found = listing(frame.columns, 8)
        raise table.error(f"a table of scores needs a column query_id or doc_id; found: {found}")
    scored = renamed(column for column in frame.columns if column not in names)
    table = replace(table, frame=frame.rename({**names, **scored}))
    keys = [name for name in ids if name in table.frame.columns]
    numbers = _numbers(replace(table, frame=table.frame.drop(keys)))
    held = categories(numbers)
    if not held:
        raise table.error("a table of scores needs a column of numbers for each category")
    frame = pl.DataFrame([*(table.ids(key) for key in keys), *numbers.select(held)])
    if "doc_id" in keys:
        replace(table, frame=frame).once(*(key for key in keys if key != "gender"))
    if "gender" in keys:
        frame = frame.with_columns(pl.col("gender").map_elements(normal_gender, return_dtype=pl.String))
    return frame


def _numbers(table: door.Table) -> pl.DataFrame:
    """The columns that hold numbers, most cells at least; a cell among them that is none is refused."""
    columns = []
    for column in table.frame:
        kind = column.dtype
        if not (kind.is_numeric() or kind == pl.String):
            continue
        parsed = column.cast(pl.Float64, strict=False)
        good = parsed.is_finite().fill_null(False)
        if kind == pl.String and (column.name.lower() in QUERY_TEXT or 2 * good.sum() < len(good)):
            continue  # a text, such as the query's or a file's name
        table.refuse(
            ~good,
            lambda row, column=column: (  # type: ignore[misc]
                f"the category {show(column.name)} has cells without a number: {show(column[row])}"
            ),
        )
        columns.append(parsed)
    return pl.DataFrame(columns)


def _stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    if not {"query_id", "doc_id"} & set(shared):
        raise InputError("the tables of scores have no id column in common")
    return pl.concat([part.select(shared) for part in parts])
