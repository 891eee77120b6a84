"""The studies: what they print beside published numbers, how claims are judged, and what they record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from experiments import __main__ as program
from experiments import common
from experiments.common import Results


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(common, "BUILD", tmp_path / "build")
    return Results("representation", tmp_path, quick=False)


@pytest.mark.parametrize(
    ("low", "high", "side", "result"),
    [
        (0.1, 0.3, {"above": 0.0}, "holds"),
        (-0.3, -0.1, {"above": 0.0}, "does not hold"),
        (-0.1, 0.3, {"above": 0.0}, "cannot tell"),
        (-0.3, -0.1, {"below": 0.0}, "holds"),
        (0.1, 0.3, {"below": 0.0}, "does not hold"),
        (-0.1, 0.1, {"within": 0.2}, "holds"),
        (0.3, 0.5, {"within": 0.2}, "does not hold"),
        (0.1, 0.3, {"within": 0.2}, "cannot tell"),
        (None, None, {"above": 0.0}, "cannot tell"),
    ],
)
def test_a_claim_is_judged_by_its_interval(
    results: Results, low: float | None, high: float | None, side: dict[str, float], result: str
) -> None:
    assert results.claim("it is so", n=50, value=0.2, low=low, high=high, **side) == result


def test_no_interval_is_shown_for_fewer_than_five_queries_in_a_group(results: Results) -> None:
    assert results.claim("it is so", n=(2, 50), value=0.2, low=0.1, high=0.3, above=0.0) == "cannot tell"
    (claim,) = results.record["claims"]
    assert claim["low"] is None and common.claim_evidence(claim) == "no interval, n = 2 and 50"


def test_a_table_says_on_how_many_queries_it_rests(results: Results) -> None:
    with pytest.raises(ValueError, match="give n"):
        results.table("Table 1", [{"run": "bm25", "RR@10": 0.5}])


def test_published_rows_follow_ours(results: Results) -> None:
    results.table("Table 1", [{"target and group": "K male", "MB": 0.5}], n=33, published="Table 1")
    rows = results.record["tables"][0]["rows"]
    assert [row["target and group"] for row in rows[:2]] == ["K male", "K male (published)"]
    assert rows[1]["MB"] == 0.026


def test_the_record_names_commit_command_data_and_seconds(results: Results, tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_text("d1\tshe\n")
    results.path("docs.tsv")
    record = json.loads(results.finish().read_text())
    assert set(record["data"]) == {"docs.tsv"}
    assert {"commit", "command", "seconds", "claims", "tables", "differences", "left_out"} <= set(record)


def test_a_step_is_kept_with_its_seconds(results: Results) -> None:
    calls = []

    def work() -> int:
        calls.append(1)
        return sum(range(100))

    assert results.step("sum", work) == results.step("sum", work) == 4950
    assert len(calls) == 1


def test_each_study_says_what_it_shows() -> None:
    for name, study in program.studies().items():
        assert study.PAPER and study.CONTENT and study.__doc__, name


def test_records_are_of_complete_runs_and_committed_code() -> None:
    for path in common.HERE.glob("results/*.json"):
        record = json.loads(path.read_text())
        assert not record["quick"] and record["study"] == path.stem
        assert "+" not in record["commit"], f"{path.name} was made from changes that were not committed"
        for table in record["tables"]:
            assert table["n"] is not None or "n" in table["columns"], table["title"]


def test_every_published_number_is_shown_beside_ours() -> None:
    for path in common.HERE.glob("results/*.json"):
        published = common.HERE / "published" / f"{path.stem}.tsv"
        if not published.exists():
            continue
        tables = json.loads(path.read_text())["tables"]
        shown = [
            (next(iter(row.values())), column, value)
            for table in tables
            for row in table["rows"]
            for column, value in row.items()
        ]
        frame = pl.read_csv(published, separator="\t", comment_prefix="#")
        for table, row, column, value in frame.select("table", "row", "column", "value").rows():
            assert (f"{row} (published)", column, value) in shown, f"{path.stem}, {table}: {row}, {column}"


def test_unknown_studies_and_missing_data_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        program.main(["representaton", "--data", str(tmp_path)])
    assert stop.value.code == 2 and "did you mean" in capsys.readouterr().err
    assert program.main(["representation", "--data", str(tmp_path)]) == 2
    assert "--data names the folder" in capsys.readouterr().err


def test_representation_agrees_with_the_command(results: Results, shared: Path) -> None:
    from experiments import representation

    import evenrank as er

    results._data = shared
    representation.run(results)
    table: dict[str, Any] = results.record["tables"][0]
    row = next(row for row in table["rows"] if row["target and group"] == "K female")
    folder = shared / "data" / "image-search"
    summary = er.represent(folder / "results.tsv", folder / "targets.tsv").summary("female")
    assert (row["MB"], row["SB"], row["MAB"]) == (summary["MB"], summary["SB"], summary["MAB"])
