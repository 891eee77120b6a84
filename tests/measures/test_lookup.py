"""Finding documents in a table, by join and by hash."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.measures import lists
from evenrank.measures.lists import find_rows
from evenrank.text import hashing

IDS = st.lists(st.text(max_size=3), max_size=60)


def plain(ids: list[str], table: list[str]) -> list[int]:
    rows = {doc: row for row, doc in enumerate(table)}
    return [rows.get(doc, -1) for doc in ids]


@given(ids=IDS, table=IDS.map(lambda docs: list(dict.fromkeys(docs))), by_hash=st.booleans())
def test_every_id_is_found_in_its_row_or_nowhere(ids: list[str], table: list[str], by_hash: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "_SMALL", 0 if by_hash else 10**9)
        found = find_rows(pl.Series(ids, dtype=pl.String), pl.Series(table, dtype=pl.String))
    assert found.tolist() == plain(ids, table)


def test_two_ids_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_collide(table: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        return np.zeros(len(hashes), np.int64)

    monkeypatch.setattr(lists, "_SMALL", 0)
    monkeypatch.setattr(hashing, "find_hashes", all_collide)
    assert find_rows(pl.Series(["b", "a", "c"]), pl.Series(["a", "b"])).tolist() == [1, 0, -1]
