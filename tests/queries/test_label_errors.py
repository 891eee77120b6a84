"""Guessed genders: confusion tables from files and dicts, and the commands that adjust for them."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.queries.label_errors import ASSUMED, AdjustedMeans, label_errors, word_confusion
from evenrank.show.label_errors import counts_said
from evenrank.show.report import sections
from evenrank.stats import Interval

HERE = demo.folder()
DOCS = Path(__file__).parents[2] / "docs"
EVIDENCE, SCHEMA = DOCS / "evidence" / "query-gender.json", DOCS / "audit-schema.json"
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


@pytest.mark.slow
def test_psychology_adjusts_unbalanced_judgments(capsys: pytest.CaptureFixture[str]) -> None:
    qrels = ["--qrels", str(HERE / "qrels.txt"), *GIVEN, "--confusion", "shipped"]
    assert main(["psychology", *qrels]) == 2
    assert "--no-balance" in capsys.readouterr().err
    assert main(["psychology", *qrels, "--no-balance", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["adjusted"]
    assert found["affect"]["problem"] is None and found["affect"]["difference"]["of"] == ["male", "female"]
    assert main(["psychology", *qrels, "--no-balance"]) == 0
    assert "This assumes that labels are wrong" in capsys.readouterr().out


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


CONFUSION = {
    "female": {"female": 180, "male": 5, "neutral": 15},
    "male": {"female": 5, "male": 170, "neutral": 25},
    "neutral": {"female": 10, "male": 10, "neutral": 380},
}


def test_an_audit_shows_means_as_they_would_be_with_true_labels() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    given = {"docs": HERE / "docs.tsv", "genders": HERE / "genders.tsv", "resamples": 50}
    found = er.audit({"bm25": HERE / "bm25.run"}, ["ARaB@10"], confusion=CONFUSION, **given)
    own = er.measure(HERE / "bm25.run", "ARaB@10", docs=given["docs"], genders=given["genders"], only="all")
    alone = er.adjusted(own["ARaB@10"], given["genders"], CONFUSION, resamples=50)
    (one,) = json.loads(found.to_json())["runs"][0]["measures"]
    jsonschema.validate(json.loads(found.to_json()), json.loads(SCHEMA.read_text()))
    assert one["adjusted"]["queries"] == json.loads(json.dumps(alone.to_dict()))
    assert one["adjusted"]["queries"]["labelled"] == {"female": 200, "male": 200, "neutral": 400}
    page = found.page()
    (section,) = [each for each in sections(found) if each.id == "label-errors"]
    assert "800 labelled queries (200 female, 200 male, 400 neutral)" in section.lead
    assert ASSUMED in section.lead and section.lead in unescape(page)
    (row,) = section.content["blocks"][0].rows
    assert row.problem is None and row.queries == alone.queries
    assert row.adjusted[2] == (f"{alone.means['neutral'].value:+.3f}", _ends(alone.means["neutral"]))
    assert row.labelled[3] == (f"{alone.naive_difference.value:+.3f}", _ends(alone.naive_difference))


def _ends(found: Interval) -> str:
    return f"[{found.low:+.3f}, {found.high:+.3f}]"


def test_the_section_says_why_nothing_could_be_adjusted() -> None:
    blind = {group: dict.fromkeys(CONFUSION, 50) for group in CONFUSION}
    given = {"docs": HERE / "docs.tsv", "genders": HERE / "genders.tsv", "resamples": 50}
    found = er.audit({"bm25": HERE / "bm25.run"}, ["ARaB@10"], confusion=blind, **given)
    assert "not adjusted: the guesses say too little about the true groups to be inverted" in found.page()
    one_query = {"1": {"a": 2.0, "b": 1.0}}
    few = er.audit(
        one_query, ["ARaB@2"], docs={"a": "she", "b": "he"}, genders={"1": "neutral"}, confusion=CONFUSION,
        confidence=None,
    )  # fmt: skip
    assert "not adjusted: fewer than two values" in few.page()
    (section,) = [each for each in sections(few) if each.id == "label-errors"]
    assert ASSUMED not in section.lead and ASSUMED not in few.measured[0].notes
    plain = er.audit(one_query, ["ARaB@2"], docs={"a": "she", "b": "he"}, confidence=None)
    assert "label-errors" not in [section.id for section in sections(plain)]


def test_what_a_table_counts_is_said_in_the_singular_too() -> None:
    one = AdjustedMeans(
        ("male", "female"),
        1,
        {},
        Interval(None, None, None),
        {},
        {},
        Interval(None, None, None),
        labelled={"male": 1},
    )
    assert counts_said(one, "queries") == "The confusion table counts 1 labelled query (1 male)."
    assert counts_said(one, "documents") == "The confusion table counts 1 labelled document."


def test_an_audit_adjusts_booleans_for_words_that_the_lexicon_misses(tmp_path: Path) -> None:
    docs = {f"{n}": "she" if n % 3 == 0 else "he" if n % 3 == 1 else "it" for n in range(60)}
    truth = {f"{n}": "female" if n % 3 == 0 else "male" if n % 4 else "neutral" for n in range(60)}
    run = {f"q{n}": {f"{n + k}": 1.0 / (k + 1) for k in range(10)} for n in range(20)}
    labels = tmp_path / "labels.tsv"
    labels.write_text("doc_id\tgender\n" + "".join(f"{doc}\t{group}\n" for doc, group in truth.items()))
    asked = ["RaB(magnitude='boolean')@5", "RaB@5"]
    found = er.audit(run, asked, docs=docs, true_groups=labels, resamples=50)
    boolean, counted = found.measured
    assert "documents" in boolean.adjusted and not counted.adjusted
    (section,) = [each for each in sections(found) if each.id == "label-errors"]
    assert section.content["blocks"][0].groups[-1] == "male − female"
    assert "60 labelled documents" in section.lead


def test_too_few_labelled_documents_are_named() -> None:
    run = {"q": {"a": 2.0, "b": 1.0}, "r": {"b": 2.0, "a": 1.0}}
    given = {"docs": {"a": "she", "b": "he"}, "true_groups": {"a": "female", "b": "male"}}
    found = er.audit(run, ["RaB(magnitude='boolean')@2"], confidence=None, **given)
    assert "not adjusted: fewer than 5 labelled documents show the group male" in found.page()


def test_audit_takes_a_confusion_table_on_the_command_line_and_into_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "confusion.tsv"
    rows = [f"{t}\t{g}\t{n}\n" for t, row in CONFUSION.items() for g, n in row.items()]
    table.write_text("true\tpredicted\tcount\n" + "".join(rows))
    asked = ["audit", str(HERE / "bm25.run"), "ARaB@10", "--resamples", "50", "--confusion", str(table)]
    assert main([*asked, "--docs", str(HERE / "docs.tsv")]) == 2
    assert "give --genders too" in capsys.readouterr().err
    folder, bundle = tmp_path / "audit", tmp_path / "audit.zip"
    for name in ("docs.tsv", "genders.tsv", "bm25.run"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    sealed = [
        "--bundle",
        str(bundle),
        "--no-pdf",
        "--auditor",
        "A",
        "--date",
        "2026-01-01",
        "--purpose",
        "a test",
    ]
    assert main([*asked, *GIVEN, "-o", str(folder), *sealed]) in (0, 4)
    assert "If labels err" in (folder / "report.html").read_text()
    assert main(["verify", str(bundle), "--inputs", str(tmp_path)]) == 0
