"""A document that comes twice is found, in whatever holds the collection; one that does not is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data import schema
from evenrank.data.docs import Docs, open_docs
from evenrank.data.schema import DuplicateCheck
from evenrank.errors import InputError


def check(docs: Docs) -> None:
    checker = DuplicateCheck("doc_id")
    for batch in docs.batches():
        checker.add(batch.column("doc_id"))
    checker.finish(docs.tables)


def test_both_lines_are_named_even_blocks_apart(tmp_path: Path) -> None:
    lines = [f"d{n}\t{'x' * 100}" for n in range(60_000)]
    lines[50_000] = "d7\tagain"
    (tmp_path / "docs.tsv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"docs.tsv:50001: repeats line 8: doc_id 'd7'"):
        check(open_docs(tmp_path / "docs.tsv"))


def test_a_header_counts_as_a_line(tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_text("doc_id\ttext\na\tb\na\tc\n")
    with pytest.raises(InputError, match=r"docs.tsv:3: repeats line 2: doc_id 'a'"):
        check(open_docs(tmp_path / "docs.tsv"))


def test_json_lines_and_rows_of_other_things_are_named(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": 1, "text": ""}\n' * 2)
    with pytest.raises(InputError, match=r"docs.jsonl:2: repeats line 1: doc_id '1'"):
        check(open_docs(tmp_path / "docs.jsonl"))
    frame = pl.DataFrame({"id": ["a", "b", "a"], "text": "x"})
    frame.write_parquet(tmp_path / "docs.parquet")
    for source in (tmp_path / "docs.parquet", frame, iter([("a", ""), ("b", ""), ("a", "")])):
        with pytest.raises(InputError, match="row 3 repeats row 1: doc_id 'a'"):
            check(open_docs(source))


def test_a_collision_of_hashes_is_no_duplicate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "row_hashes", lambda ids: np.zeros(len(ids), np.uint64))
    check(open_docs([("a", ""), ("b", ""), ("c", "")]))
    with pytest.raises(InputError, match="row 3 repeats row 1: doc_id 'a'"):
        check(open_docs([("a", ""), ("b", ""), ("a", "")]))


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=3), min_size=1, max_size=50))
def test_exactly_repeated_ids_are_refused(ids: list[str]) -> None:
    docs = open_docs([(doc_id, "") for doc_id in ids])
    if len(set(ids)) == len(ids):
        check(docs)
    else:
        with pytest.raises(InputError, match="repeats row"):
            check(docs)


def test_slices_hash_like_what_they_hold() -> None:
    ids = pa.array(["a", "bb", "", "ccc", "dddd"])
    assert (schema.row_hashes(ids.slice(1, 3)) == schema.row_hashes(pa.array(["bb", "", "ccc"]))).all()
    assert len(np.unique(schema.row_hashes(pa.array([str(n) for n in range(100_000)])))) == 100_000
