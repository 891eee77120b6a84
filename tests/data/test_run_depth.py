"""A run that is read to a depth holds the top of each query, of files of any size and in any order."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from evenrank.data import files, runs
from evenrank.errors import InputError

ROWS = [(f"q{q}", f"d{d}", (q * 7 + d * 13) % 31 / 4) for q in range(40) for d in range(50)]


def trec(rows: list[tuple[str, str, float]]) -> str:
    return "".join(f"{q} Q0 {d} {n} {s} tag\n" for n, (q, d, s) in enumerate(rows, 1))


@pytest.fixture(params=["grouped", "shuffled", "by rank"])
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float]]:
    monkeypatch.setattr(runs, "_PIECE", 100)
    monkeypatch.setattr(files.raw_blocks, "__kwdefaults__", {"block": 1000, "part": None})
    if request.param == "shuffled":
        return random.Random(1).sample(ROWS, len(ROWS))
    return ROWS if request.param == "grouped" else sorted(ROWS, key=lambda row: int(row[1][1:]))


@pytest.mark.parametrize("order", ["score", "rank"])
@pytest.mark.parametrize("depth", [1, 10, 50, 99])
def test_the_top_of_each_query_is_kept(
    rows: list[tuple[str, str, float]], depth: int, order: runs.Order, tmp_path: Path
) -> None:
    path = tmp_path / "a.run"
    path.write_text(trec(rows))
    whole = runs.read_run(path, order=order)
    assert len(whole) == len(ROWS)
    found = runs.read_run(path, order=order, depth=depth)
    assert found.equals(whole.filter(pl.col("rank") <= depth))
    assert runs.read_run(found) is found
    whole.write_parquet(tmp_path / "a.parquet", row_group_size=130)
    for source in (tmp_path / "a.parquet", whole, whole.to_pandas()):
        assert runs.read_run(source, depth=depth).equals(found)


def test_rows_below_the_depth_are_checked_too(rows: list[tuple[str, str, float]], tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    lowest = min(rows, key=lambda row: row[2])
    path.write_text(trec([*rows, lowest]))
    problem = f":{len(rows) + 1}: repeats line {rows.index(lowest) + 1}: query_id '{lowest[0]}' with doc_id"
    with pytest.raises(InputError, match=problem):
        runs.read_run(path, depth=1)
    lines = trec(rows).splitlines()
    lines[1500] = "q0 Q0 d99 2001 nan tag"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r":1501: score is 'nan'"):
        runs.read_run(path, depth=1)
    lines[1500] = f"{lines[3].split()[0]} Q0 d99 4 1 tag"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r":1501: repeats line 4: query_id 'q\d+' with rank 4"):
        runs.read_run(path, order="rank", depth=2)
    frame = pl.DataFrame([*rows, lowest], schema=["query_id", "doc_id", "score"], orient="row")
    frame.write_parquet(tmp_path / "a.parquet")
    problem = f"row {len(rows) + 1} repeats row {rows.index(lowest) + 1}: query_id"
    with pytest.raises(InputError, match=problem):
        runs.read_run(tmp_path / "a.parquet", depth=1)
