"""Finding documents in a table."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.measures.lists import find_rows

IDS = st.lists(st.text(max_size=3), max_size=60)


def plain(ids: list[str], table: list[str]) -> list[int]:
    rows = {doc: row for row, doc in enumerate(table)}
    return [rows.get(doc, -1) for doc in ids]


@given(ids=IDS, table=IDS.map(lambda docs: list(dict.fromkeys(docs))))
def test_every_id_is_found_in_its_row_or_nowhere(ids: list[str], table: list[str]) -> None:
    found = find_rows(pl.Series(ids, dtype=pl.String), pl.Series(table, dtype=pl.String))
    assert found.tolist() == plain(ids, table)


def test_two_ids_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl.Series, "hash", lambda ids: pl.Series([7] * len(ids), dtype=pl.UInt64))
    assert find_rows(pl.Series(["b", "a", "c"]), pl.Series(["a", "b"])).tolist() == [1, 0, -1]
