"""What other tools hold: transformers of PyTerrier; plain texts; names of bound measures."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenrank as er

RUN = {"q1": {"d2": 2.0, "d1": 1.5}, "q2": {"d1": 1.0}}
DOCS = {"d1": "he said", "d2": "she said"}


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
