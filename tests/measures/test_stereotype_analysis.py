"""The analyses that go with GSR."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import evenrank as er
from evenrank import GSR, InputError
from evenrank.measures.gsr.results import most_gendered, scatter
from evenrank.reproduce.gsr_toy import gsr_parity
from evenrank.reproduce.stereotype_tables import (
    census_given_names,
    debiasing_distances,
    direct_stereotype,
    effectiveness_table,
    kendall_distance,
    reinforcement_table,
    reliability,
    spearman,
)
from evenrank.vectors import genderedness

LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=6)


def fagin(first: list[str], second: list[str]) -> float:
    """K^(0) by its four cases (Fagin, Kumar and Sivakumar 2003)."""
    total = 0
    for i, j in itertools.combinations(sorted({*first, *second}), 2):
        ordered = [[x for x in each if x in (i, j)] for each in (first, second)]
        if len(ordered[0]) == len(ordered[1]) == 2:
            total += ordered[0] != ordered[1]
        elif {len(ordered[0]), len(ordered[1])} == {1, 2}:
            short, long = sorted(ordered, key=len)
            total += long[0] != short[0]
        elif len(ordered[0]) == len(ordered[1]) == 1:
            total += 1
    return total / (len(first) * len(second))


@given(first=LISTS, second=LISTS)
def test_the_distance_of_lists_is_that_of_fagin(first: list[str], second: list[str]) -> None:
    distance = kendall_distance(first, second)
    assert distance == pytest.approx(fagin(first, second))
    assert distance == kendall_distance(second, first)
    assert 0 <= distance <= 1
    assert (distance == 0) == (
        first == second or first[: len(second)] == second or second[: len(first)] == first
    )


def test_lists_without_a_common_document_are_as_far_apart_as_can_be() -> None:
    assert kendall_distance("abc", "def") == 1
    assert kendall_distance([], []) == 0
    assert kendall_distance([], ["a"]) == 1
    with pytest.raises(InputError, match="twice"):
        kendall_distance("aa", "b")


def test_gsr_follows_the_share_of_stereotypical_documents() -> None:
    found = gsr_parity()
    assert found.r == pytest.approx(0.95, abs=0.01)
    assert found.r == gsr_parity().r
    assert len(found.points) == 10_000
    extreme = found.points.filter(pl.col("share") == 1)["gsr"]
    assert extreme.max() == pytest.approx(0.8985, abs=1e-3)  # the stereotypical system


def test_most_gendered_queries_show_the_words_that_count() -> None:
    queries = {"1": "the nurse", "2": "plumber's boss", "3": "the of", "4": "women in parliaments"}
    female, male = most_gendered(queries, count=1)
    assert [query.query_id for query in (*female, *male)] == ["1", "2"]
    assert female[0].words[0] == ("the", None)
    assert female[0].words[1] == ("nurse", pytest.approx(genderedness()["nurse"]))
    assert male[0].g < 0 < female[0].g


@pytest.fixture(scope="module")
def time(shared: Path) -> dict:
    data = er.load(shared / "data" / "time")
    return {"docs": data.docs, "queries": data.queries, "qrels": data.qrels}


@pytest.fixture(scope="module")
def runs(shared: Path) -> dict[str, Path]:
    return {name: shared / "runs" / f"time.{name}.run" for name in ("bm25", "qld", "bm25.rm3")}


def test_the_points_of_a_scatter_lie_around_the_line(time: dict, runs: dict[str, Path]) -> None:
    found = er.measure(runs["bm25"], GSR, **time, confidence=None)[GSR]
    drawn = scatter(found)
    slope, intercept = np.polyfit(drawn.points["x"], drawn.points["y"], 1)
    assert drawn.line is not None and drawn.perfect is not None
    assert (drawn.line.slope, drawn.line.intercept) == pytest.approx((slope, intercept))
    assert drawn.perfect.slope == pytest.approx(found.baselines["perfect"].value)
    assert drawn.points["contribution"].mean() == pytest.approx(found.value)


def test_systems_by_vectors_with_the_baselines(time: dict, runs: dict[str, Path]) -> None:
    table = genderedness()
    turned = type(table)(table.words, -table.values)
    found = reinforcement_table(runs, {"shipped": None, "turned": turned}, **time, confidence=None)
    assert found["system"].to_list() == [*runs, "perfect", "random"] * 2
    # a direction and its opposite measure the same
    one, other = found["GSR"].to_numpy().reshape(2, -1)
    assert one == pytest.approx(other)
    perfect = found.filter(pl.col("system") == "perfect")
    assert perfect["relative"].to_list() == pytest.approx([0, 0])


def test_vectors_agree_with_themselves(time: dict, runs: dict[str, Path]) -> None:
    found = reliability(runs, None, None, **time)
    assert (found.spearman, found.pearson) == pytest.approx((1, 1))
    assert found.systems.columns == ["system", "first", "second"]


def test_the_p_of_a_few_ranks_is_exact() -> None:
    assert spearman(np.arange(5), np.arange(5) ** 2) == (pytest.approx(1), pytest.approx(2 / 120))
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    expected = spearmanr(x, y)
    assert spearman(x, y) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert spearman(np.ones(4), np.arange(4)) == (None, None)


def test_debiasing_distances_are_paired_with_how_gendered_the_query_is(time: dict, runs: dict) -> None:
    found = debiasing_distances(runs["bm25"], runs["bm25.rm3"], time["queries"])
    assert found.points["distance"].is_between(0, 1).all()
    assert found.r == pytest.approx(np.corrcoef(found.points["g"], found.points["distance"])[0, 1])
    assert debiasing_distances(runs["bm25"], runs["bm25"], time["queries"]).r is None


def test_effectiveness_is_compared_with_the_regular_run(time: dict, runs: dict[str, Path]) -> None:
    found = effectiveness_table(runs, time["qrels"], against={"qld": "bm25"})
    assert found["measure"].to_list() == ["AP", "nDCG@100", "P@10"] * 3
    row = found.row(3, named=True)
    assert row["difference"] == pytest.approx(row["value"] - found.row(0, named=True)["value"])
    with pytest.raises(InputError, match="there is no run 'bert'"):
        effectiveness_table(runs, time["qrels"], against={"qld": "bert"})


DOCS = {
    "m1": "He and his brother",
    "m2": "his father, the king",
    "f1": "She and her mother",
    "f2": "queen of women",
    "n": "nothing at all",
    "amy": "amy amy amy and he",
}


def test_gaps_are_compared_with_the_perfect_engine_by_their_sign() -> None:
    queries = {
        "male": "plumber",  # m1 m2 against f1: infinite against 0
        "female": "nurse",  # one of each against m1: 1 against infinite
        "same": "guitar",  # infinite both
        "none": "football",  # no gendered document
    }
    qrels = {
        "male": {"f1": 1, "f2": 1},
        "female": {"m1": 1, "m2": 1},
        "same": {"m1": 1},
        "none": {"m1": 1},
    }
    run = {
        "male": {"m1": 2.0, "m2": 1.0},
        "female": {"m1": 2.0, "f1": 1.0},
        "same": {"m2": 1.0},
        "none": {"n": 1.0},
    }
    found = direct_stereotype(run, docs=DOCS, queries=queries, qrels=qrels, names={})
    assert dict(found.queries.select("query_id", "side").iter_rows()) == {"male": "male", "female": "female"}
    assert found.left_out == {"no gendered document": 1, "no female document in either": 1}
    assert found.bins["queries"].sum() == 2
    assert found.bins["low"].to_list() == [None, -0.1, -0.05, 0.0, 0.05, 0.1]


def test_given_names_make_documents_gendered() -> None:
    given = {"docs": DOCS, "queries": {"q": "nurse"}, "qrels": {"q": {"m1": 1}}}
    run = {"q": {"amy": 1.0}}
    with_names = direct_stereotype(run, **given, names={"female": ["amy"], "male": []})
    assert with_names.queries["side"].to_list() == ["female"]
    assert direct_stereotype(run, **given, names={}).left_out == {"no female document in either": 1}


def test_given_names_come_with_the_package_and_say_a_gender_alone() -> None:
    names = census_given_names()
    assert "mary" in names["female"] and "john" in names["male"]
    assert not {"grace", "may", "mark", "will"} & {*names["female"], *names["male"]}
    given = {"docs": {"d": "amanda smith", "m": "he"}, "queries": {"q": "nurse"}, "qrels": {"q": {"m": 1}}}
    assert direct_stereotype({"q": {"d": 1.0}}, **given).queries["side"].to_list() == ["female"]


def test_bins_may_hold_equally_many_queries() -> None:
    words = ("nurse", "plumber", "guitar", "football", "secretary", "electrician")
    queries = dict(zip("abcdef", words, strict=True))
    qrels, run = {q: {"m1": 1} for q in queries}, {q: {"f1": 1.0} for q in queries}
    found = direct_stereotype(run, docs=DOCS, queries=queries, qrels=qrels, names={}, edges=3)
    assert found.bins["queries"].to_list() == [2, 2, 2]
    assert found.bins["female"].to_list() == [1, 1, 1]
