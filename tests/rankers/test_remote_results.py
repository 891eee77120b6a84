"""From what an engine shows to a run and a collection."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.rankers.remote.ranker import Hit, SearchResults, listed, run_scores
from evenrank.rankers.remote.requests import QueryFailed


def answers(**lists: list[Hit]) -> SearchResults:
    return SearchResults(pl.concat([listed(name, hits, 100)[0] for name, hits in lists.items()]))


@given(
    st.lists(st.text("abc", min_size=1, max_size=3), unique=True, min_size=1),
    st.data(),
)
def test_the_run_keeps_the_order_of_the_engine(doc_ids: list[str], data: st.DataObject) -> None:
    score = st.none() | st.sampled_from([0.0, -0.0, 1.0, 1e300, -5.0]) | st.floats(allow_nan=True)
    hits = [Hit(doc_id, data.draw(score)) for doc_id in doc_ids]
    run = answers(q=hits).run
    assert run["doc_id"].to_list() == doc_ids
    again = read_run({"q": dict(zip(run["doc_id"], run["score"], strict=True))})
    assert again["doc_id"].to_list() == doc_ids


@given(st.lists(st.floats(-1e6, 1e6), unique=True, min_size=1))
def test_scores_that_fall_stay_as_they_are(scores: list[float]) -> None:
    falling = sorted(scores, reverse=True)
    assert run_scores([f"d{at}" for at in range(len(falling))], falling) == falling


def test_ties_in_the_order_of_the_tie_rule_stay_as_they_are() -> None:
    assert run_scores(["b", "a"], [1.0, 1.0]) == [1.0, 1.0]


def test_ties_in_another_order_are_told_apart_by_the_least_step() -> None:
    first, second = run_scores(["a", "b"], [1.0, 1.0])
    assert first == 1.0
    assert 1 - 1e-15 < second < 1


def test_without_scores_the_rank_counts() -> None:
    assert run_scores(["a", "b"], [None, None]) == [-1.0, -2.0]
    assert run_scores(["a", "b"], [1.0, 2.0]) == [-1.0, -2.0]


def test_a_document_shown_twice_keeps_its_better_rank() -> None:
    frame, repeated = listed("q", [Hit("a"), Hit("b"), Hit("a"), Hit("c")], 3)
    assert frame["doc_id"].to_list() == ["a", "b", "c"]
    assert frame["rank"].to_list() == [1, 2, 3]
    assert repeated == 1


def test_more_than_was_asked_for_is_cut() -> None:
    assert len(listed("q", [Hit(f"d{at}") for at in range(50)], 10)[0]) == 10


@pytest.mark.parametrize("wrong", [None, "", True, 1.5, {"a": 1}])
def test_a_result_without_an_id_is_refused(wrong: object) -> None:
    with pytest.raises(QueryFailed, match="result 2 has no id"):
        listed("q", [Hit("a"), Hit(wrong)], 10)


def test_numbers_as_ids_become_text() -> None:
    assert listed("q", [Hit(7)], 10)[0]["doc_id"].to_list() == ["7"]


def test_half_a_surrogate_pair_does_no_harm() -> None:
    frame = listed("q", [Hit("a\ud800", 1.0, "t\udfff", ["x", None, "y\ud800"])], 10)[0]
    assert frame.row(0) == ("q", "a?", 1, 1.0, "t?", "x y?")


def test_what_was_shown_is_a_collection() -> None:
    run, docs = answers(
        q1=[Hit("a", 2.0, "T", "x"), Hit("b", 1.0, None, "y")], q2=[Hit("b", 3.0, None, "y")]
    ).run_and_docs()
    assert run.select("query_id", "doc_id").rows() == [("q1", "a"), ("q1", "b"), ("q2", "b")]
    assert docs.frame()["doc_id"].to_list() == ["a", "b"]
    assert dict(docs.texts(["b", "a"])) == {"a": "T x", "b": "y"}


def test_snippets_of_one_document_are_told_apart() -> None:
    shown = answers(
        q1=[Hit("a", 2.0, None, "x")], q2=[Hit("a", 1.0, None, "y")], q3=[Hit("a", 1.0, None, "x")]
    )
    run, docs = shown.run_and_docs()
    assert run["doc_id"].to_list() == ["a", "a::2", "a"]
    assert docs.frame()["doc_id"].to_list() == ["a", "a::2"]
    assert shown.run["doc_id"].to_list() == ["a", "a", "a"]


def test_without_texts_there_is_nothing_to_audit() -> None:
    with pytest.raises(InputError, match="no result has a text"):
        answers(q=[Hit("a", 1.0)]).run_and_docs()


def test_results_that_lack_a_text_are_counted() -> None:
    assert answers(q=[Hit("a", 2.0, None, "x"), Hit("b", 1.0)]).notes == ("1 result without text",)
    assert answers(q=[Hit("a", 2.0), Hit("b", 1.0)]).notes == ()
