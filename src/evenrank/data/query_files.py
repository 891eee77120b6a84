"""Queries in a file: TSV, JSONL, TREC topics or Parquet."""

from __future__ import annotations

import os

import polars as pl

from evenrank.data import files, jsonl, parquet, topics, tsv
from evenrank.data.columns import QUERY_ID, QUERY_TEXT, header, pick, refuse_repeats, show
from evenrank.errors import InputError

Path = str | os.PathLike[str]


def read(path: Path) -> tuple[pl.DataFrame, bool]:
    """``query_id`` and ``text``, checked; or, with False, the columns of a Parquet file as they are."""
    if os.path.isfile(path) and files.magic(path) == parquet.MAGIC:  # noqa: PTH113
        return parquet.frame(path, {*QUERY_ID, *QUERY_TEXT}), False
    raw = files.whole(path)
    files.check_utf8(raw, path)
    data = raw.tobytes()
    first = data.split(b"\n", 1)[0].removesuffix(b"\r")
    if jsonl.is_json(path, first):
        found = list(jsonl.parse_object(first, path, 1))
        fields = (pick(found, QUERY_TEXT, path=path, line=1),)
        batch = jsonl.parse(raw, jsonl.keys(first, ids=QUERY_ID, fields=fields, path=path), path)
        line = 1
    elif files.format_suffix(path) != ".tsv" and topics.looks_like(text := data.decode()):
        return _topics(text, path), True
    else:
        names = header(first, {*QUERY_ID, *QUERY_TEXT}, needs=(QUERY_ID, QUERY_TEXT))
        fields = (pick(names, QUERY_TEXT, path=path, line=1),) if names else ("text",)
        layout = tsv.layout(first, ids=QUERY_ID, fields=fields, path=path)
        batch = tsv.parse(raw, layout, path)
        line = 2 if layout.header else 1
        if not len(batch):
            raise InputError("the file has no rows", path=path)
    columns = zip(("query_id", "text"), batch.columns, strict=True)
    frame = pl.DataFrame({name: pl.from_arrow(column) for name, column in columns})
    refuse_repeats(frame, ["query_id"], path=path, line=line)
    return frame, True


def _topics(text: str, path: Path) -> pl.DataFrame:
    ids, titles, lines = topics.parse(text, path)
    first: dict[str, int] = {}
    for query_id, line in zip(ids, lines, strict=True):
        if query_id in first:
            problem = f"topic {show(query_id)} was already on line {first[query_id]}"
            raise InputError(problem, path=path, line=line)
        first[query_id] = line
    return pl.DataFrame({"query_id": ids, "text": titles})
