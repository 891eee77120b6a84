"""Queries with the gender they are about: what a classifier learns from."""

from __future__ import annotations

import os
from typing import NamedTuple

from evenrank.data import labels as label_files
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS


class Labelled(NamedTuple):
    """Texts, the label of each, and how many queries were left out because theirs is another."""

    texts: list[str]
    labels: list[str]
    left_out: int


def read_labelled(path: str | os.PathLike[str]) -> Labelled:
    """``query_id<TAB>text<TAB>label``, with or without a header.

    Labels may be spelled as in annotation sheets (f, women, non-gendered). Queries of other or multiple
    genders are too few to learn from: they are left out and counted. So are empty queries.
    """
    table = label_files.read_texts(path)
    if "text" not in table.columns:
        raise InputError("expected query_id<TAB>text<TAB>label", path=path, line=1)
    rows = table.select("text", "gender").iter_rows()
    kept = [(text, gender) for text, gender in rows if gender in LABELS and text.strip()]
    if not kept:
        raise InputError("no query is labelled female, male or neutral", path=path)
    return Labelled([text for text, _ in kept], [label for _, label in kept], len(table) - len(kept))
