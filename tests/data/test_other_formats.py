"""What other tools write and hold: MS MARCO, BEIR, JSON, ranx, PyTerrier; and plain texts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evenrank as er
from evenrank import demo
from evenrank.data.read import read_qrels
from evenrank.data.runs import read_run

DEMO = demo.folder()
RUN = {"q1": {"d2": 2.0, "d1": 1.5}, "q2": {"d1": 1.0}}
QRELS = {"q1": {"d1": 1}, "q2": {"d1": 0}}
DOCS = {"d1": "he said", "d2": "she said"}


def order(run: Any) -> list[tuple[str, str, int]]:
    return read_run(run).select("query_id", "doc_id", "rank").rows()


def test_a_run_of_ms_marco_is_ordered_by_its_ranks(tmp_path: Path) -> None:
    path = tmp_path / "run.dev.small.tsv"
    path.write_text("q1\td1\t2\nq1\td2\t1\nq2\td1\t1\n")
    assert order(path) == order(RUN)
    assert read_run(path, order="rank").rows() == read_run(path).rows()
    found = er.measure(path, "RaB@1", docs=DOCS, confidence=None)
    assert list(found.runs) == ["run.dev.small"] and found["RaB@1"].per_query()["q1"] < 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("q1\td1\t12.5\nq1\td2\t3.0\n", ":1: rank is '12.5'; it must be a whole number"),
        ("q1\td1\t30\nq1\td2\t20\n", "query 'q1' has no document at rank 1"),
        ("q1\td1\t1\nq1\td2\t1\n", "query 'q1' has several documents at rank 1"),
        ("q1\td1\t1\nq1\td2\t2\textra\n", ":2: 4 columns instead of 3; expected query_id doc_id rank"),
    ],
)
def test_three_columns_that_are_no_ranks_are_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "scores.tsv"
    path.write_text(content)
    with pytest.raises(er.InputError, match=problem.replace(".", r"\.")):
        read_run(path)


def test_json_holds_runs_and_judgments(tmp_path: Path) -> None:
    (tmp_path / "bm25.json").write_text(json.dumps(RUN))
    (tmp_path / "qrels.json").write_text(json.dumps(QRELS))
    assert order(tmp_path / "bm25.json") == order(RUN)
    assert read_qrels(tmp_path / "qrels.json").rows() == read_qrels(QRELS).rows()
    found = er.measure(tmp_path / "bm25.json", "nDCG@10", qrels=tmp_path / "qrels.json", confidence=None)
    assert list(found.runs) == ["bm25"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"q1": {"d1": 1.0, "d1": 2.0}}', "'d1' occurs twice in one object"),
        ('{"q1": 3}', "expected"),
        ("[1]", "expected"),
        ('{"q1": {"d1": "x"}}', "score is 'x'; it must be a number"),
        ('{"q1": {"d1": NaN}}', "score is nan"),
        ('{"q1": {', "not readable as JSON"),
    ],
)
def test_json_that_is_no_run_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(er.InputError) as refused:
        read_run(tmp_path / "x.json")
    assert problem in str(refused.value).lower() or problem in str(refused.value)


def test_a_folder_of_beir_is_a_collection(tmp_path: Path) -> None:
    rows = [{"_id": "d1", "title": "He", "text": "said"}, {"_id": "d2", "title": "", "text": "she said"}]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = [{"_id": f"q{i}", "text": f"text {i}", "metadata": {}} for i in range(3)]
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    docs, queries, qrels = er.load(tmp_path)
    assert docs.texts(["d1"]) == {"d1": "He said"}
    assert queries.rows() == [("q1", "text 1")] and qrels is not None and qrels.rows() == [("q1", "d1", 2)]
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    assert er.load(tmp_path, split="dev").queries["query_id"].to_list() == ["q2"]
    with pytest.raises(er.InputError, match="several splits; choose with split= one of dev, test"):
        er.load(tmp_path)
    with pytest.raises(er.InputError, match="no split 'train'"):
        er.load(tmp_path, split="train")


def test_a_folder_of_ms_marco_is_a_collection(tmp_path: Path) -> None:
    (tmp_path / "collection.tsv").write_text("0\tthe first passage\n1\tshe said\n")
    for split, query in (("train", "7"), ("dev.small", "8")):
        (tmp_path / f"queries.{split}.tsv").write_text(f"{query}\twhat is it\n")
        (tmp_path / f"qrels.{split}.tsv").write_text(f"{query}\t0\t1\t1\n")
    docs, queries, qrels = er.load(tmp_path, split="dev.small")
    assert docs.texts(["1"]) == {"1": "she said"} and queries["query_id"].to_list() == ["8"]
    assert qrels is not None and qrels.rows() == [("8", "1", 1)]


def ranx_like(kind: str, content: dict[str, Any], name: str | None = None) -> Any:
    """An object as ranx has it: a class of its module, with `to_dict` and a name."""
    module = ModuleType("ranx.data_structures")
    made = type(kind, (), {"__module__": module.__name__, "to_dict": lambda self: content})()
    if name is not None:
        made.name = name
    return made


def test_ranx_is_measured_under_its_own_name() -> None:
    run, qrels = ranx_like("Run", RUN, "bm25"), ranx_like("Qrels", QRELS)
    found = er.measure(run, ["RaB@1", "nDCG@10"], docs=DOCS, qrels=qrels, confidence=None)
    plain = er.measure(RUN, ["RaB@1", "nDCG@10"], docs=DOCS, qrels=QRELS, confidence=None)
    assert list(found.runs) == ["bm25"]
    assert [m.value for m in found] == [m.value for m in plain]
    assert (
        er.measure({"a": run}, "RaB@1", docs=DOCS, confidence=None)["a", "RaB@1"].value
        == plain["RaB@1"].value
    )


@pytest.mark.skipif(not os.environ.get("EVENRANK_RANX"), reason="needs ranx, which is no dependency")
def test_ranx_itself_is_measured() -> None:
    ranx = pytest.importorskip("ranx")
    found = er.measure(ranx.Run(RUN, name="bm25"), "nDCG@10", qrels=ranx.Qrels(QRELS), confidence=None)
    assert found["bm25", "nDCG@10"].value == er.measure(RUN, "nDCG@10", qrels=QRELS)["nDCG@10"].value


def test_a_text_is_searched_for_as_it_is(tmp_path: Path) -> None:
    index = er.index({"a": "a nurse at night", "b": "the chief executive"}, tmp_path / "idx")
    assert er.search(index, "nurse").select("query_id", "doc_id").rows() == [("q1", "a")]
    found = er.search(index, ["chief executive", "nurse"])
    assert found.select("query_id", "doc_id").rows() == [("q1", "b"), ("q2", "a")]
    with pytest.raises(er.InputError, match=r"missing\.tsv"):
        er.search(index, "missing.tsv")


def test_constrain_and_sweep_count_the_documents_themselves() -> None:
    words = {"women": ["ada"], "men": ["alan"]}
    docs = {"a": "alan wrote", "b": "ada wrote", "c": "they wrote"}
    run = {"q": {"a": 3.0, "b": 2.9, "c": 1.0}}
    limit = "abs(ARaB@2)<=0.2"
    fair = er.constrain(run, docs=docs, lexicon=words, limit=limit)
    assert fair.equals(er.constrain(run, er.tally(docs, words), limit=limit))
    swept = er.sweep(run, docs=docs, lexicon=words, qrels={"q": {"a": 1}}, strengths=[0.2])
    assert swept.points[1].run["doc_id"].to_list() == fair["doc_id"].to_list()
    both = er.sweep(run, er.tally(docs, words), docs=docs, qrels={"q": {"a": 1}}, strengths=[0.2])
    assert [point.bias for point in both] == [point.bias for point in swept]


def test_bound_measures_are_called_by_their_names() -> None:
    import gc

    first = er.bind(["ARaB@2", "nDCG@10"], docs=DOCS)
    again = er.bind("ARaB@2", docs=DOCS)
    other = er.bind("ARaB@2", docs={"d1": "she", "d2": "he"})
    assert [str(m) for m in first] == ["ARaB@2", "nDCG@10"] and str(again[0]) == "ARaB@2"
    assert first[0] == again[0] and first[0] != other[0] and str(other[0]).startswith("ARaB@2[")
    del first, again, other
    gc.collect()
    assert str(er.bind("ARaB@2", docs={"d1": "she", "d2": "he"})[0]) == "ARaB@2"
