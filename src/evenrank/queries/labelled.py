"""Queries with the gender they are about: what a classifier learns from."""

from __future__ import annotations

import os
from typing import NamedTuple

from evenrank.data import labels as label_files
from evenrank.data.columns import GENDER, QUERY_ID, QUERY_TEXT, header, pick
from evenrank.data.files import check_utf8, whole
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
    genders = label_files.read(path)["gender"].to_list()
    raw = whole(path)
    check_utf8(raw, path)
    lines = raw.tobytes().decode().split("\n")[:-1]
    known = {*QUERY_ID, *QUERY_TEXT, *GENDER}
    names = header(lines[0].removesuffix("\r").encode(), known, "\t", needs=(QUERY_ID, GENDER))
    at = 1
    if names:
        at = names.index(pick(names, QUERY_TEXT, path=path, line=1))
        lines = lines[1:]
    texts = [line.split("\t") for line in lines]
    if len(texts[0]) < 3:
        raise InputError("expected query_id<TAB>text<TAB>label", path=path, line=1)
    kept = [
        (cells[at], gender)
        for cells, gender in zip(texts, genders, strict=True)
        if gender in LABELS and cells[at].strip()
    ]
    if not kept:
        raise InputError("no query is labelled female, male or neutral", path=path)
    return Labelled([text for text, _ in kept], [label for _, label in kept], len(texts) - len(kept))
