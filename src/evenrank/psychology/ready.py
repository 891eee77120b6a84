"""Tables of scores made elsewhere: LIWC's own output, one row for each query or document."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.data.columns import DOC_ID, GENDER, QUERY_ID
from evenrank.data.files import reading
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
    path: str | os.PathLike[str] | None = None
    if isinstance(x, str | os.PathLike):
        path = x
        frame = _read(Path(x))
    elif isinstance(x, pl.DataFrame):
        frame = x
    elif hasattr(x, "iloc"):
        frame = pl.from_pandas(x)
    else:
        raise InputError(f"a table of scores is a file or a frame, not {type(x).__name__}")
    ids = {"query_id": QUERY_ID, "doc_id": DOC_ID, "gender": GENDER}
    names: dict[str, str] = {}
    for ours, known in ids.items():
        match = next((column for column in frame.columns if column.lower() in known), None)
        if match is not None and match not in names:
            names[match] = ours
    if not {"query_id", "doc_id"} & set(names.values()):
        found = ", ".join(frame.columns[:8])
        raise InputError(f"a table of scores needs a column query_id or doc_id; found: {found}", path=path)
    scored = renamed(column for column in frame.columns if column not in names)
    frame = frame.rename({**names, **scored})
    keys = [name for name in ids if name in frame.columns]
    held = categories(frame.drop(keys))
    if not held:
        raise InputError("a table of scores needs a column of numbers for each category", path=path)
    bad = [name for name in held if not frame[name].cast(pl.Float64).is_finite().fill_null(False).all()]
    if bad:
        raise InputError(f"the category {bad[0]!r} has cells without a number", path=path)
    frame = frame.select(
        *(pl.col(key).cast(pl.String) for key in keys), *(pl.col(name).cast(pl.Float64) for name in held)
    )
    if "gender" in frame.columns:
        frame = frame.with_columns(pl.col("gender").map_elements(normal_gender, return_dtype=pl.String))
    return frame


def _read(path: Path) -> pl.DataFrame:
    with reading(path):
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        separator = "\t" if ".tsv" in path.name else ","
        try:
            frame = pl.read_csv(path, separator=separator, infer_schema_length=None)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"not readable as a table: {str(error).splitlines()[0]}", path=path) from None
    known = {name.lower(): name for name in frame.columns}
    # Ids are text: 001 stays 001.
    text = [known[name] for name in (*QUERY_ID, *DOC_ID) if name in known]
    if not text:
        return frame
    ids = pl.read_csv(
        path, separator=separator, columns=text, schema_overrides=dict.fromkeys(text, pl.String)
    )
    return frame.with_columns(ids)


def _stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    if not {"query_id", "doc_id"} & set(shared):
        raise InputError("the tables of scores have no id column in common")
    return pl.concat([part.select(shared) for part in parts])
