"""Guessed genders: confusion tables from files and dicts, and the commands that adjust for them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.queries.label_errors import label_errors, word_confusion

HERE = demo.folder()
EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence" / "query-gender.json"
GIVEN = ["--docs", str(HERE / "docs.tsv"), "--genders", str(HERE / "genders.tsv")]


def test_the_shipped_table_is_that_of_the_cross_validation() -> None:
    kept = json.loads(EVIDENCE.read_text())["results"]["static"]["confusion"]
    assert label_errors("shipped").confusion.to_dict() == label_errors(kept).confusion.to_dict()


def test_tables_come_from_counts_and_from_queries(tmp_path: Path) -> None:
    counts = tmp_path / "counts.tsv"
    counts.write_text("true\tpredicted\tcount\nF\tfemale\t2\nF\tmale\t1\nmale\tunknown\t4\n")
    found = label_errors(counts)
    assert found.labelled is None
    assert found.confusion.to_dict() == {
        "female": {"female": 2, "male": 1, "other": 0},
        "male": {"female": 0, "male": 0, "other": 4},
    }
    queries = tmp_path / "queries.csv"
    queries.write_text("query_id,true,predicted\n1,female,female\n2,female,male\n3,male,male\n")
    found = label_errors(queries)
    assert found.labelled is not None and found.confusion.counts.sum() == 3
    queries.write_text("query_id,true,predicted\n1,female,female\n1,female,male\n")
    with pytest.raises(InputError, match="csv:3: repeats line 2"):
        label_errors(queries)
    counts.write_text("true\tpredicted\tcount\nF\tfemale\tmany\n")
    with pytest.raises(InputError, match="tsv:2"):
        label_errors(counts)


def test_disparity_and_measure_adjust_for_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, qrels = str(HERE / "bm25.run"), str(HERE / "qrels.txt")
    table = tmp_path / "confusion.csv"
    rows = [
        (t, g, 90 if t == g else 5)
        for t in ("female", "male", "neutral")
        for g in ("female", "male", "neutral")
    ]
    table.write_text("true,predicted,count\n" + "".join(f"{t},{g},{n}\n" for t, g, n in rows))
    asked = ["measure", "ARaB@10", run, *GIVEN, "--confusion", str(table), "--resamples", "50"]
    assert main([*asked, "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["runs"][0]["measures"]
    found = one["adjusted"]["queries"]
    values = er.measure(run, "ARaB@10", docs=HERE / "docs.tsv", genders=HERE / "genders.tsv", only="all")
    direct = er.adjusted(values["ARaB@10"], HERE / "genders.tsv", table, resamples=50)
    assert found["means"]["neutral"]["value"] == direct.means["neutral"].value
    assert one["value"] == pytest.approx(found["as_labelled"]["neutral"]["value"])
    assert main(asked) == 0
    assert "Adjusted for errors of the labels" in capsys.readouterr().out
    genders = tmp_path / "genders.tsv"
    labels = er.load(HERE).queries["query_id"].to_list()
    genders.write_text(
        "".join(f"{q}\t{('female', 'male', 'neutral')[n % 3]}\n" for n, q in enumerate(labels))
    )
    asked = [
        "disparity",
        "--run",
        run,
        "--qrels",
        qrels,
        "--genders",
        str(genders),
        "--confusion",
        str(table),
    ]
    assert main([*asked, "--format", "json", "--draws", "100"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["adjusted"]
    assert row["problem"] is None and row["difference"]["low"] < row["difference"]["high"]
    assert main(["measure", "ARaB@10", run, *GIVEN[:2], "--confusion", "shipped"]) == 2
    assert "--genders" in capsys.readouterr().err


def test_psychology_adjusts_unbalanced_judgments(capsys: pytest.CaptureFixture[str]) -> None:
    qrels = ["--qrels", str(HERE / "qrels.txt"), *GIVEN, "--confusion", "shipped"]
    assert main(["psychology", *qrels]) == 2
    assert "--no-balance" in capsys.readouterr().err
    assert main(["psychology", *qrels, "--no-balance", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["adjusted"]
    assert found["affect"]["problem"] is None and found["affect"]["difference"]["of"] == ["male", "female"]
    assert main(["psychology", *qrels, "--no-balance"]) == 0
    assert "Labels are taken to err" in capsys.readouterr().out


def test_the_assumption_is_tested_where_queries_are_named() -> None:
    truth = {str(i): ("female", "male")[i % 2] for i in range(80)}
    guess = {
        q: ("male" if label == "female" else "female") if int(q) > 60 else label for q, label in truth.items()
    }
    table = pl.DataFrame(
        {"query_id": list(truth), "true": list(truth.values()), "predicted": list(guess.values())}
    )
    values = {q: float(int(q) > 60) + int(q) / 1000 for q in truth}
    found = er.adjusted(values, guess, table, resamples=50)
    assert max(one.p or 0 for one in found.tests.values()) < 0.05
    assert any(sentence.startswith("Doubtful") for sentence in found.sentences())


def test_only_boolean_magnitudes_are_adjusted_for_missed_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    docs = HERE / "docs.tsv"
    tally = er.tally(docs)
    ids = tally.frame["doc_id"].to_list()
    labels = dict(zip(ids, ["female", "male", "neutral", "both"] * len(ids), strict=False))
    tables = word_confusion(labels, tally)
    measured = er.measure(HERE / "bm25.run", ["RaB(magnitude='boolean')@10", "RaB@10"], tally=tally)
    right = {g: {"yes": {"yes": 50, "no": 0}, "no": {"yes": 0, "no": 50}} for g in ("female", "male")}
    same = er.adjusted(measured["RaB(magnitude='boolean')@10"], documents=right, resamples=50)
    assert same.difference.value == pytest.approx(measured["RaB(magnitude='boolean')@10"].value)
    with pytest.raises(InputError, match="no confusion table says"):
        er.adjusted(measured["RaB@10"], documents=tables)
    path = tmp_path / "groups.tsv"
    path.write_text("doc_id\tgender\n" + "".join(f"{d}\t{g}\n" for d, g in labels.items()))
    asked = ["measure", "RaB(magnitude='boolean')@10", str(HERE / "bm25.run"), "--docs", str(docs)]
    assert main([*asked, "--true-groups", str(path), "--format", "json", "--resamples", "50"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["runs"][0]["measures"]
    assert "documents" in one["adjusted"]
