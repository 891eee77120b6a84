"""Mirrored collections and queries as files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import IO, Literal

import polars as pl

from evenrank.data.files import writing
from evenrank.data.tables import Docs
from evenrank.rankers.base import Progress

Form = Literal["tsv", "jsonl"]
_BLANKS = str.maketrans("\t\r\n", "   ")  # a line of TSV is one document


def write_docs(
    docs: Docs, path: str | os.PathLike[str], *, form: Form = "tsv", progress: Progress | None = None
) -> int:
    """Write a collection as it is read: ``doc_id`` and ``text``. Returns how many documents there were."""
    count = done = 0
    with writing(path) as out:
        for block in docs.blocks():
            batch = block.read()
            ids, texts = batch.column("doc_id").to_pylist(), batch.column("text").to_pylist()
            _write(out, zip(ids, texts, strict=True), "doc_id", form)
            count += len(ids)
            done += block.size
            if progress:
                progress(done, docs.size)
    return count


def write_queries(queries: pl.DataFrame, path: str | os.PathLike[str], *, form: Form = "tsv") -> int:
    """Write queries: ``query_id`` and ``text``. Returns how many there were."""
    with writing(path) as out:
        _write(out, queries.select("query_id", "text").iter_rows(), "query_id", form)
    return len(queries)


def _write(out: IO[bytes], rows: Iterable[tuple[str, str]], key: str, form: Form) -> None:
    if form == "jsonl":
        lines = (json.dumps({key: each, "text": text}, ensure_ascii=False) + "\n" for each, text in rows)
    else:
        lines = (f"{each}\t{text.translate(_BLANKS)}\n" for each, text in rows)
    out.write("".join(lines).encode())
