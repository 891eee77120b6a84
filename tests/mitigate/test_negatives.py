"""Bias-aware negatives: which documents are taken, and what the files hold."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli import main
from evenrank.cli.app import app
from evenrank.data.docs import open_docs
from evenrank.data.read import read_qrels
from evenrank.data.runs import read_run
from evenrank.measures.document_bias import document_bias
from evenrank.mitigate.negatives import _most_first, negative_pairs, negatives

DATA = demo.folder()
DOCS = {"a": "he and his son", "b": "she said", "c": "rain", "d": "he said", "e": "her mother", "f": "sun"}
RUN = {"q": {"a": 6.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 2.0, "f": 1.0}}
QRELS = {"q": {"f": 1, "c": 0}}
TALLY = er.tally(DOCS)


def chosen(**more: Any) -> list[str]:
    return negatives(RUN, QRELS, TALLY, **more).frame["doc_id"].to_list()


def test_lambda_1_takes_the_most_one_sided_ties_in_the_order_of_the_first_stage() -> None:
    assert chosen(bias_lambda=1, n=3) == ["a", "e", "b"], "b and d are alike; b stands higher"


@pytest.mark.parametrize("bias", ["tf", "count", "FaiRR@5"])
@pytest.mark.parametrize("order", list(permutations("ABC")))
def test_sizes_that_differ_only_by_rounding_are_ties(order: tuple[str, ...], bias: str) -> None:
    times = {"tf": ((2, 1), (8, 5), (5, 3)), "count": ((3, 2), (4, 3), (1, 0)), "FaiRR@5": ((2, 1),) * 3}[
        bias
    ]
    docs = {doc: "he " * he + "she " * she for doc, (he, she) in zip("ABC", times, strict=True)}
    run = {"q": {doc: 3.0 - rank for rank, doc in enumerate(order)} | {"f": 0.0}}
    tally = er.tally({**docs, "f": "sun"})
    sizes = document_bias(run, bias, tally=tally)[:3]
    assert np.ptp(sizes) < 1e-15 and (bias != "tf" or len({*sizes.tolist()}) > 1)
    found = negatives(run, {"q": {"f": 1}}, tally, bias_lambda=1, n=3, bias=bias)
    assert found.frame["doc_id"].to_list() == list(order)


@given(st.lists(st.integers(0, 4), max_size=30), st.floats(-30, 30), st.randoms())
def test_rounding_of_any_scale_changes_no_order(steps: list[int], scale: float, chance: Any) -> None:
    exact = np.array(steps, float) * 10**scale
    noisy = exact * (1 + np.array([chance.uniform(-4e-16, 4e-16) for _ in steps]))
    assert _most_first(noisy).tolist() == sorted(range(len(steps)), key=lambda place: -steps[place])


def test_sizes_that_are_no_numbers_come_last_and_small_differences_count() -> None:
    assert _most_first(np.array([np.nan, 1.0, 1 + 1e-9, np.nan, 0.0])).tolist() == [2, 1, 4, 0, 3]
    assert _most_first(np.zeros(0)).tolist() == []


def test_judged_documents_are_no_candidates_whatever_the_judgment() -> None:
    assert set(chosen(bias_lambda=0, n=6)) == {"a", "b", "d", "e"}


@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 5))
def test_the_floor_of_lambda_n_are_the_most_one_sided_and_none_comes_twice(
    twentieths: int, n: int, seed: int
) -> None:
    found = negatives(RUN, QRELS, TALLY, bias_lambda=twentieths / 20, n=n, seed=seed)
    taken = min(twentieths * n // 20, 4)
    assert found.frame["biased"].to_list() == [True] * taken + [False] * (min(n, 4) - taken)
    assert found.frame["doc_id"].to_list()[:taken] == ["a", "e", "b", "d"][:taken]
    assert found.frame["doc_id"].n_unique() == min(n, 4)


def test_the_draw_of_a_query_hangs_neither_on_other_queries_nor_on_the_order_of_rows() -> None:
    run, qrels = read_run(DATA / "bm25.run"), read_qrels(DATA / "qrels.txt")
    tally = er.tally(DATA / "docs.tsv")
    whole = negatives(run, qrels, tally, bias_lambda=0.4, n=10, seed=3).frame
    turned = negatives(run.reverse(), qrels, tally, bias_lambda=0.4, n=10, seed=3).frame
    assert whole.sort("query_id", maintain_order=True).equals(turned.sort("query_id", maintain_order=True))
    some = run.filter(pl.col("query_id").is_in(["q07", "q21"]))
    alone = negatives(some, qrels, tally, bias_lambda=0.4, n=10, seed=3).frame
    assert alone.equals(whole.filter(pl.col("query_id").is_in(["q07", "q21"])))
    assert not whole.equals(negatives(run, qrels, tally, bias_lambda=0.4, n=10, seed=4).frame)


def test_higher_lambda_brings_more_one_sided_negatives() -> None:
    tally = er.tally(DATA / "docs.tsv")
    means = [
        negatives(DATA / "bm25.run", DATA / "qrels.txt", tally, bias_lambda=each, n=10).frame["bias"].mean()
        for each in (0.0, 0.5, 1.0)
    ]
    assert means[0] < means[1] < means[2]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ("count", [3, 1, 0, 1, 2, 0]),
        ("boolean", [1, 1, 0, 1, 1, 0]),
        ("label", [1, 1, 0, 1, 1, 0]),
        ("FaiRR@5", [1, 0, 0, 0, 1, 0]),
    ],
)
def test_any_measure_that_is_a_sum_over_documents_says_how_one_sided_they_are(
    bias: str, expected: list[float]
) -> None:
    assert document_bias(RUN, bias, tally=TALLY).tolist() == pytest.approx(expected)


def test_liwc_looks_at_the_texts_and_labels_at_the_groups_given() -> None:
    by_words = document_bias(RUN, "liwc", docs=DOCS)
    assert by_words[2] == by_words[5] == 0 < by_words[0]
    given = document_bias(RUN, "label", labels={"c": "female", "a": "male"})
    assert given.tolist() == [1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"bias_lambda": 1.5}, "bias_lambda is 1.5"),
        ({"n": 0}, "n is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"bias": "nDCG@10"}, "not a sum over documents"),
        ({"bias": "tff"}, "choose one of tf"),
    ],
)
def test_settings_that_cannot_be_used_are_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(**more)


def test_files_hold_what_the_trainers_of_sentence_transformers_read(tmp_path: Path) -> None:
    found = negatives(RUN, QRELS, TALLY, bias_lambda=1, n=2)
    path = tmp_path / "n.jsonl"

    def written(form: Any) -> list[dict[str, Any]]:
        texts: dict[str, Any] = {} if form == "ids" else {"docs": DOCS, "queries": {"q": "weather"}}
        found.write(path, form=form, **texts)
        return [json.loads(line) for line in path.read_text().splitlines()]

    query = {"query": "weather", "positive": "sun"}
    assert written("n-tuple") == [{**query, "negative_1": DOCS["a"], "negative_2": DOCS["e"]}]
    assert written("triplet") == [{**query, "negative": DOCS[each]} for each in "ae"]
    assert written("ids") == [{"query_id": "q", "doc_id": "a"}, {"query_id": "q", "doc_id": "e"}]
    assert negative_pairs(path).rows() == [("q", "a", 1), ("q", "e", 2)]
    found.write(tmp_path / "n.parquet", form="ids")
    assert negative_pairs(tmp_path / "n.parquet").select("query_id", "doc_id").equals(found.pairs())


def test_triplets_are_of_each_positive_with_each_negative() -> None:
    judged = {"q": {"f": 1, "c": 1}, "none": {"gone": 1}}
    found = negatives({**RUN, "none": {"gone": 2.0, "a": 1.0}}, judged, TALLY, n=4, missing="zero")
    rows, _ = found.examples("triplet", DOCS, {"q": "weather", "none": "nothing"})
    assert len(rows) == 8
    assert {row["query"] for row in rows} == {"weather"}, "no relevant document of the other has a text"


def test_what_is_left_out_is_counted_for_each_file(tmp_path: Path) -> None:
    found = negatives(RUN, {"q": {"f": 1, "gone": 1}}, TALLY, n=9)
    lost = {"documents without a text": 1}
    assert found.left_out == {"queries with fewer than 9 candidates": 1}
    short = {"queries with fewer than 9 negatives (not written as n-tuple)": 1}
    assert found.examples("n-tuple", DOCS, {"q": "weather"}) == ([], lost | short)
    written = found.write(tmp_path / "n.jsonl", form="triplet", docs=DOCS, queries={"q": "weather"})
    assert written == {"examples": 5} | lost
    assert found.write(tmp_path / "n.jsonl", form="ids") == {"examples": 5}
    with pytest.raises(InputError, match="1 query has no text, such as 'q'"):
        found.write(tmp_path / "n.jsonl", docs=DOCS, queries={"other": "text"})


@pytest.mark.parametrize("name", ["docs", "opened", "queries"])
def test_the_texts_are_not_written_over(name: str, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    ids = {"q": "weather"} if name == "queries" else DOCS
    key = "query_id" if name == "queries" else "doc_id"
    path.write_text("".join(json.dumps({key: each, "text": text}) + "\n" for each, text in ids.items()))
    before = path.read_bytes()
    given: dict[str, Any] = {"docs": DOCS, "queries": {"q": "weather"}}
    given["docs" if name == "opened" else name] = open_docs(path) if name == "opened" else path
    with pytest.raises(InputError, match="this is the input itself; give the examples another name"):
        negatives(RUN, QRELS, TALLY, n=2).write(path, **given)
    assert path.read_bytes() == before


def test_documents_without_a_text_are_left_out_and_counted(tmp_path: Path) -> None:
    judged = {"q": {"f": 1, "gone": 1, "c": 0}}
    docs = {doc: text for doc, text in DOCS.items() if doc != "e"}
    found = negatives(RUN, judged, TALLY, bias_lambda=1, n=3)
    rows, left_out = found.examples("triplet", docs, {"q": "weather"})
    assert [row["negative"] for row in rows] == [DOCS["a"], DOCS["b"]]
    assert left_out == {"documents without a text": 2}
    with pytest.raises(InputError, match=r"nothing to write .*fewer than 3 negatives"):
        found.write(tmp_path / "n.jsonl", docs=docs, queries={"q": "weather"})
    with pytest.raises(InputError, match="1 query has no text, such as 'q'"):
        found.examples("triplet", docs, {"other": "weather"})
    with pytest.raises(InputError, match="the collection has none of the documents"):
        found.examples("triplet", {"other": "text"}, {"q": "weather"})


def test_the_command_says_how_many_documents_have_no_text(tmp_path: Path) -> None:
    lines = (DATA / "docs.tsv").read_text().splitlines()
    (tmp_path / "docs.tsv").write_text("\n".join(lines[:300]) + "\n")
    given = ["--run", DATA / "bm25.run", "--qrels", DATA / "qrels.txt", "--docs", tmp_path / "docs.tsv"]
    more = ["--queries", DATA / "queries.tsv", "--missing", "zero", "--n", "5", "-o", tmp_path / "n.jsonl"]
    found = CliRunner().invoke(app, ["mitigate", "negatives", *map(str, [*given, *more])])
    assert found.exit_code == 0, found.output
    assert "documents without a text: " in found.output


def test_a_file_of_texts_is_no_file_of_ids(tmp_path: Path) -> None:
    negatives(RUN, QRELS, TALLY, n=2).write(tmp_path / "n.jsonl", docs=DOCS, queries={"q": "weather"})
    with pytest.raises(InputError, match=r"n\.jsonl.*query_id"):
        negative_pairs(tmp_path / "n.jsonl")


def test_the_command_writes_ids_and_says_what_it_took(tmp_path: Path) -> None:
    given = ["--run", DATA / "bm25.run", "--qrels", DATA / "qrels.txt", "--docs", DATA / "docs.tsv"]
    more = ["--bias-lambda", "0.5", "--n", "4", "--form", "ids", "-o", tmp_path / "n.jsonl"]
    found = CliRunner().invoke(app, ["mitigate", "negatives", *map(str, [*given, *more])])
    assert found.exit_code == 0, found.output
    assert "240 negatives for 60 queries, 118 of them skewed toward one group" in found.output
    assert "2 are not, because a query ran out of skewed candidates" in found.output
    assert len(negative_pairs(tmp_path / "n.jsonl")) == 240


def command(tmp_path: Path, *more: str) -> Any:
    given = ["--run", DATA / "bm25.run", "--qrels", DATA / "qrels.txt", "--docs", DATA / "docs.tsv"]
    asked = ["mitigate", "negatives", *map(str, given), "-o", str(tmp_path / "n.jsonl"), *more]
    return CliRunner().invoke(app, asked)


def test_queries_that_fit_into_no_n_tuple_are_counted_as_not_written(tmp_path: Path) -> None:
    found = command(tmp_path, "--queries", str(DATA / "queries.tsv"), "--n", "40")
    asked = {json.loads(line)["query"] for line in (tmp_path / "n.jsonl").read_text().splitlines()}
    assert f"fewer than 40 negatives (not written as n-tuple): {60 - len(asked)}\n" in found.output
    assert len(asked) < 60
    found = command(tmp_path, "--queries", str(DATA / "queries.tsv"), "--n", "40", "--form", "triplet")
    assert f"fewer than 40 candidates: {60 - len(asked)}\n" in found.output


def test_documents_that_are_not_one_sided_are_not_called_the_most_one_sided(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("word,group\nzebra,x\ngnu,y\n")
    found = command(tmp_path, "--form", "ids", "--n", "5", "--lexicon", str(tmp_path / "words.csv"))
    assert found.exit_code == 0, found.output
    assert "0 of them skewed toward one group" in found.output
    assert "180 are not, because a query ran out of skewed candidates" in found.output


def test_texts_need_queries(tmp_path: Path) -> None:
    found = command(tmp_path)
    assert "give --docs and --queries, or --form ids" in str(found.exception)
    assert not (tmp_path / "n.jsonl").exists()


@pytest.mark.parametrize("bias", ["label", "Label", "LABEL"])
def test_without_labels_words_tell_the_groups_however_label_is_written(bias: str, tmp_path: Path) -> None:
    (tmp_path / "young.json").write_text('{"young": ["boy", "girl"], "old": ["man", "woman"]}')
    made = command(
        tmp_path, "--form", "ids", "--n", "5", "--bias", bias, "--lexicon", str(tmp_path / "young.json")
    )
    assert made.exit_code == 0, made.output
    tally = er.tally(DATA / "docs.tsv", tmp_path / "young.json")
    drawn = negatives(DATA / "bm25.run", DATA / "qrels.txt", tally, n=5, bias="label")
    assert (
        negative_pairs(tmp_path / "n.jsonl")
        .drop("line")
        .sort("query_id", maintain_order=True)
        .equals(drawn.pairs().sort("query_id", maintain_order=True))
    )


@pytest.mark.parametrize(
    "option", ["--run", "--qrels", "--docs", "--queries", "--tally", "--lexicon", "--labels", "--dictionary"]
)
def test_no_input_is_written_over(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text('{"doc_id": "d001", "text": "he"}\n')
    (tmp_path / "same.jsonl").symlink_to(path)
    given = {"--run": DATA / "bm25.run", "--qrels": DATA / "qrels.txt", "--docs": DATA / "docs.tsv"}
    options = [str(part) for pair in (given | {option: path}).items() for part in pair]
    for output in (path, tmp_path / "same.jsonl"):
        assert main(["mitigate", "negatives", *options, "--form", "ids", "-o", str(output)]) == 2
        said = f"{output}: this is the input itself; give the examples another name"
        assert said in capsys.readouterr().err
    assert path.read_text() == '{"doc_id": "d001", "text": "he"}\n'


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bias_lambda": "0.5"}, "bias_lambda is '0.5'"),
        ({"bias": None}, "bias is None; choose one of"),
        ({"bias": 3}, "bias is 3; choose one of"),
    ],
)
def test_wrong_values_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        negatives(RUN, QRELS, TALLY, **wrong)


def test_a_penalty_lowers_each_score_by_the_bias_of_its_document() -> None:
    found = er.penalise(RUN, TALLY, 2.0, bias="count")
    scores = dict(found.select("doc_id", "score").iter_rows())
    assert scores == {"a": 0, "b": 3, "c": 4, "d": 1, "e": -2, "f": 1}
    assert er.penalise(RUN, TALLY, 0.0)["doc_id"].to_list() == list("abcdef")
    with pytest.raises(InputError, match="strength is -1"):
        er.penalise(RUN, TALLY, -1)
