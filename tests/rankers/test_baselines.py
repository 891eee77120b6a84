"""The perfect and the random list, by name like any ranker."""

from __future__ import annotations

import pytest

import evenrank as er
from evenrank.data.runs import read_run
from evenrank.rankers import make

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"a": 0, "d": 1}, "q3": {"a": 0}}
QUERIES = {"q2": "two", "q1": "one", "q9": "nine", "q3": "three"}


def test_the_perfect_ranker_finds_the_relevant_best_first() -> None:
    run = er.search(None, QUERIES, ranker="perfect", qrels=QRELS)
    assert run.select("query_id", "doc_id").rows() == [("q2", "d"), ("q1", "a"), ("q1", "b")]
    assert read_run(run).equals(run)
    assert er.measure(run, er.nDCG @ 10, qrels=QRELS, confidence=None)[er.nDCG @ 10].per_query()["q1"] == 1


def test_depth_cuts_the_lists() -> None:
    run = er.search(None, QUERIES, ranker="perfect", qrels=QRELS, depth=1)
    assert run.select("query_id", "doc_id").rows() == [("q2", "d"), ("q1", "a")]


def test_the_random_ranker_shuffles_what_was_judged_the_same_way_for_a_seed() -> None:
    judged = {"q1": {str(i): i % 2 for i in range(50)}}
    first, again, other = (
        er.search(None, {"q1": "x"}, ranker="random", qrels=judged, seed=seed) for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert first["doc_id"].to_list() != other["doc_id"].to_list()
    assert set(first["doc_id"]) == set(judged["q1"])


def test_they_need_judgments() -> None:
    for name in ("perfect", "random"):
        with pytest.raises(er.InputError, match=f"{name} needs the setting qrels"):
            make(name)
    with pytest.raises(er.InputError, match="seed is -1"):
        make("random", qrels=QRELS, seed=-1)
    assert make("random", qrels=QRELS, seed=3).describe() == {"name": "random", "settings": {"seed": 3}}
