"""What the verdict says: by what it is judged, where nothing is, and in which words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.auditing import Audit, verdict
from evenrank.auditing.comparing import cutoff_curves
from evenrank.measures.inputs import Inputs
from evenrank.measures.results import QUANTILES, Options
from evenrank.show import tables

DOCS = {"m": "he he he", "f": "she she she", "n": "nothing at all", "x": "his", "y": "her own"}
QUERIES = [f"q{i}" for i in range(10)]


def lists(*order: str) -> dict[str, dict[str, float]]:
    """The same list for every query, and every other query without its last document."""
    ranked = {doc: 9.0 - rank for rank, doc in enumerate(order)}
    short = {doc: score for doc, score in ranked.items() if doc != order[-1]}
    return {query: ranked if i % 2 else short for i, query in enumerate(QUERIES)}


def audit(run: Any, measures: Any = ("ARaB@2",), **more: Any) -> Audit:
    return er.audit(run, list(measures), docs=more.pop("docs", DOCS), resamples=200, **more)


def test_the_yardstick_is_the_relevant_documents_of_the_same_queries() -> None:
    qrels = {query: {"m": 1} for query in QUERIES} | {"other": {"f": 1}}  # one that nobody asked
    found = audit(lists("m", "x"), qrels=qrels)
    offered = found.offered["run"]
    assert offered.kind == "relevant documents" and offered.queries == 10
    assert offered.value == pytest.approx(np.log(4))  # three male words in each
    mine = found.measured["run", "ARaB@2"].values
    assert offered.difference == pytest.approx(mine.mean() - np.log(4))
    assert "The relevant documents of the same 10 queries are at +1.386" in found.verdict()
    assert "leans more female than they do" in found.verdict()


def test_without_judgments_it_is_all_that_was_ranked_for_them() -> None:
    found = audit(lists("m", "x", "f", "f2", "n"), docs=DOCS | {"f2": "she"})
    offered = found.offered["run"]
    assert offered.kind == "candidates"
    assert offered.value < found.measured["run", "ARaB@2"].value  # type: ignore[operator]
    assert "leans more male than they do" in found.verdict()


def test_lists_that_are_looked_at_whole_have_no_candidates_beyond_them() -> None:
    assert not audit(lists("m", "f")).offered


def test_the_whole_collection_is_context_and_nothing_is_concluded_from_it() -> None:
    text = audit(lists("m", "x"), qrels={query: {"m": 1} for query in QUERIES}).verdict()
    assert re.search(r"For context: all \d+ documents of the collection are at", text)
    assert "than what it searches" not in text and "pass on what is there" not in text


def test_a_yardstick_of_one_query_is_not_judged() -> None:
    found = audit(lists("m", "x"), qrels={"q1": {"m": 1}})
    assert found.offered["run"].low is None
    assert "whether the ranking leans more is not judged (fewer than two queries)" in found.verdict()


@pytest.mark.parametrize(("share", "said"), [(0.1, True), (0.09, False)])
def test_ties_are_told_from_a_tenth_of_the_queries_on(share: float, said: bool) -> None:
    found = audit(lists("m", "x"))
    run = tuple(replace(m, ties=share) for m in found.measured.runs["run"])
    told = replace(found, measured=replace(found.measured, runs={"run": run}))
    assert any(finding.kind == "ties" for finding in verdict.findings(told)) is said


def test_runs_that_cannot_be_judged_stand_apart_from_those_without_a_lean() -> None:
    one = {"q0": {"m": 2.0, "x": 1.0}}
    found = audit({"old": lists("m", "x"), "one": one})
    assert verdict.headline(found).endswith("one is not judged (fewer than two queries).")


def test_groups_of_ones_own_are_leant_toward() -> None:
    lexicon = {"museums": ["museum"], "libraries": ["library"]}
    docs = {"a": "library library", "b": "library", "c": "museum"}
    found = audit(lists("a", "b"), docs=docs, lexicon=lexicon)
    assert verdict.headline(found) == "The top 2 results of run lean toward libraries."
    assert "run leans toward libraries: ARaB@2" in found.verdict()


def test_what_is_corrected_is_said_once_where_an_interval_seems_to_contradict_it() -> None:
    rng = np.random.default_rng(3)
    other = {
        query: {doc: float(score) for doc, score in zip("mfnxy", rng.random(5), strict=True)}
        for query in QUERIES
    }
    found = audit({"old": lists("f", "m"), "new": other}, ["ARaB@2", "RaB@2"])
    near = next(c for c in found.comparisons)
    torn = replace(near, comparison=replace(near.comparison, low=0.01, high=0.2), p_holm=0.2)
    assert verdict.correction(replace(found, comparisons=(torn,))) is not None
    assert replace(found, comparisons=(torn, torn)).verdict().count("can exclude 0") == 1
    clear = replace(torn, p_holm=0.01)
    assert verdict.correction(replace(found, comparisons=(clear,))) is None


def test_a_gauge_puts_balance_in_the_middle_and_the_bound_at_the_end() -> None:
    found = audit(lists("m", "x"), qrels={query: {"m": 1} for query in QUERIES})
    (card,) = tables.cards(found)
    gauge, m = card.gauge, found.measured["run", "ARaB@2"]
    assert gauge is not None and m.value is not None and m.low is not None and m.high is not None
    assert gauge.value == pytest.approx(50 + 50 * m.value / gauge.bound, abs=0.01)
    assert gauge.low == pytest.approx(50 + 50 * m.low / gauge.bound, abs=0.01)
    assert gauge.high == pytest.approx(50 + 50 * m.high / gauge.bound, abs=0.01)
    assert gauge.offered == pytest.approx(50 + 50 * np.log(4) / gauge.bound, abs=0.01)
    assert 50 < gauge.low < gauge.value < gauge.offered < 100  # type: ignore[operator]
    assert gauge.bound == 2.0  # the next round number beyond all of them, with room


@pytest.mark.parametrize(("tied", "said"), [(1, False), (2, True)])
def test_ties_are_said_from_a_tenth_of_the_queries_on(tied: int, said: bool) -> None:
    assert verdict.TIED == 0.1
    run = {f"q{i}": {"m": 1.0, "f": 1.0 if i < tied else 0.5} for i in range(19 if tied == 1 else 20)}
    found = audit(run, ["ARaB@1"])
    assert found.measured["run", "ARaB@1"].ties == pytest.approx(tied / len(run))
    assert any(finding.kind == "ties" for finding in found.findings) == said


@pytest.mark.parametrize(
    ("deep", "expected"),
    [
        (5, [1, 2, 3, 4, 5]),
        (10, list(range(1, 11))),
        (30, [*range(1, 11), 15]),
        (80, [*range(1, 11), 15, 20, 30, 40]),
    ],
)
def test_curves_go_down_to_half_of_what_half_of_the_lists_reach(deep: int, expected: list[int]) -> None:
    docs = {f"d{i}": "he" for i in range(80)}
    whole, deepest = ({f"d{i}": 80.0 - i for i in range(n)} for n in (deep, 80))
    inputs = Inputs.open({"a": whole, "b": whole, "c": {"d0": 1.0}, "d": deepest}, docs=docs)
    curves = cutoff_curves(inputs, [er.parse("ARaB@10")], Options(confidence=None))
    assert curves.filter(measure="ARaB")["cutoff"].to_list() == expected


def test_quantiles_are_those_they_are_called_by() -> None:
    assert QUANTILES == (0.05, 0.25, 0.5, 0.75, 0.95)
    docs = {f"d{i}": "he " * i + "x" for i in range(21)}
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(21)}
    found = er.measure(run, "RaB(magnitude='count')@1", docs=docs, confidence=None)
    quantiles = found["RaB(magnitude='count')@1"].quantiles
    assert quantiles == {"0.05": 1.0, "0.25": 5.0, "0.5": 10.0, "0.75": 15.0, "0.95": 19.0}


def test_json_says_which_group_is_positive() -> None:
    plain, turned = "ARaB@2", "ARaB(of='female',against='male')@2"
    rows = {
        row["measure"]: row
        for row in audit(lists("m", "f"), [plain, turned]).to_dict()["runs"][0]["measures"]
    }
    assert (rows[plain]["positive"], rows[turned]["positive"]) == ("male", "female")
    assert rows[plain]["value"] == -rows[turned]["value"] > 0


def test_queries_that_all_lean_one_way_are_called_least_of_it() -> None:
    from evenrank.measures.gsr.measure import GenderedQuery
    from evenrank.show.tables import gendered

    def query(g: float) -> GenderedQuery:
        return GenderedQuery("q", "text", g, (("text", g),))

    found = replace(audit(lists("m", "f")), gendered=((query(-0.1),), (query(-0.3),)))
    section = gendered(found, {})
    assert section is not None
    assert [label for _, label, _ in section.content["gendered"]] == ["least male", "most male"]


def test_the_axis_of_results_that_all_lean_one_way_says_so() -> None:
    from evenrank.show.charts.query_gender import _ends

    assert _ends(pl.Series([-0.1, 0.2])) == "female ← genderedness → male"
    assert _ends(pl.Series([0.1, 0.2])) == "least male ← genderedness → most male"
    assert _ends(pl.Series([-0.1, -0.2])) == "most female ← genderedness → least female"
