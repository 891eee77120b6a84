"""Known genders of queries: ``query_id<TAB>label``, with or without the text between, or a CSV."""

from __future__ import annotations

import os
import re

import polars as pl

from evenrank.data import door
from evenrank.data.columns import GENDER, QUERY_ID, QUERY_TEXT, listing, show
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


def read(path: str | os.PathLike[str]) -> pl.DataFrame:
    """``query_id`` and ``gender`` from a file of tab- or comma-separated columns, or Parquet."""
    return read_texts(path).select("query_id", "gender")


def read_texts(path: str | os.PathLike[str]) -> pl.DataFrame:
    """``query_id``, ``gender``, and ``text`` where the file has it."""
    frame, line = door.read(
        path,
        layouts=(("query_id", "label"), ("query_id", "text", "label")),
        known={*QUERY_ID, *QUERY_TEXT, *GENDER},
        needs=(QUERY_ID, GENDER),
    )
    names = {"query_id": QUERY_ID, "text": QUERY_TEXT, "gender": GENDER}
    table = door.Table(frame, path, line).renamed(names, optional=("text",))
    if table.frame.is_empty():
        raise InputError("the file has no rows", path=path)
    ids, labels = (table.texts(name) for name in ("query_id", "gender"))
    table.refuse((ids == "") | (labels.str.strip_chars() == ""), "the query_id or the label is empty")
    genders = []
    for row, label in enumerate(labels):
        gender = _GENDERS.get(plain(label))
        if gender is None:  # a mistake, perhaps the wrong file
            raise table.error(f"unknown label {show(label)}; use one of {listing(SPELLINGS)}", row)
        genders.append(gender)
    table.once("query_id")
    return table.frame.with_columns(ids, pl.Series("gender", genders, dtype=pl.String))
