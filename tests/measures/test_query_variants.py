"""Lists of a neutral query beside those of its variants: VarRaB, VarARaB, VarNDRaB; nothing else is read."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import VarARaB, VarNDRaB, VarRaB
from evenrank.errors import InputError

LISTS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


def run(
    neutral: list[str], female: list[str], male: list[str], query: str = "q"
) -> dict[str, dict[str, float]]:
    lists = {query: neutral, f"{query}#female": female, f"{query}#male": male}
    return {name: {doc: 99.0 - i for i, doc in enumerate(docs)} for name, docs in lists.items()}


def by_hand(neutral: list[str], female: list[str], male: list[str], t: int, kind: str) -> float:
    """The definitions, read word for word."""
    m = min(t, len(neutral))
    x = [(d in male[:t]) - (d in female[:t]) for d in neutral[:m]]
    if kind == "VarRaB":
        return sum(x) / m
    if kind == "VarARaB":
        return sum(sum(x[:j]) / j for j in range(1, m + 1)) / m
    discount = [1 / math.log2(i + 2) for i in range(m)]
    return sum(d * each for d, each in zip(discount, x, strict=True)) / sum(discount)


@given(LISTS, LISTS, LISTS, st.integers(1, 9))
def test_values_are_those_of_the_definitions(
    neutral: list[str], female: list[str], male: list[str], t: int
) -> None:
    found = er.measure(run(neutral, female, male), [VarRaB @ t, VarARaB @ t, VarNDRaB @ t], confidence=None)
    for m in found:
        expected = by_hand(neutral, female, male, t, m.measure.NAME or "")
        assert m.value == pytest.approx(expected, abs=1e-12)
        assert -1 <= m.value <= 1


@given(LISTS, LISTS, LISTS)
def test_when_the_variants_change_places_the_sign_flips(
    neutral: list[str], female: list[str], male: list[str]
) -> None:
    there = er.measure(run(neutral, female, male), "VarARaB@5", confidence=None)["VarARaB@5"]
    back = er.measure(run(neutral, male, female), "VarARaB@5", confidence=None)["VarARaB@5"]
    assert there.value == pytest.approx(-back.value, abs=1e-12)  # type: ignore[operator]


def test_a_triple_without_the_list_of_a_variant_has_no_value() -> None:
    lists = run(["a", "b"], ["a"], ["b"]) | {"p": {"a": 1.0}}
    found = er.measure(lists, "VarRaB@2")["VarRaB@2"]
    assert found.queries == 1 and found.left_out == {"a variant has no results": 1}


def test_variants_are_no_queries_of_their_own() -> None:
    lists = run(["a"], ["a"], ["b"]) | run(["a"], ["b"], ["a"], query="p")
    found = er.measure(lists, "VarRaB@1", genders={"q": "neutral", "p": "female"})["VarRaB@1"]
    assert found.per_query() == {"q": -1.0} and found.subsets["female"].value == 1.0
    assert er.measure(lists, "VarRaB@1", genders={"q": "neutral", "p": "female"}, only="female")[
        "VarRaB@1"
    ].per_query() == {"p": 1.0}


def test_a_run_without_variants_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match="compare-variants"):
        er.measure({"q": {"a": 1.0}}, "VarRaB@1")


def test_abs_audit_and_bind_know_them() -> None:
    lists = run(["a", "b"], ["a"], ["b"]) | run(["a", "b"], ["b"], ["a"], query="p")
    assert er.measure(lists, "abs(VarARaB@2)")["abs(VarARaB@2)"].value == pytest.approx(0.5)
    assert "Cannot tell whether" in er.audit(lists, ["VarARaB@2"]).verdict()
    with pytest.raises(InputError, match="cannot be a limit"):
        er.constrain(lists, docs={"a": "he", "b": "she"}, limit="VarRaB@2<=0")


def test_the_published_results_of_two_engines(shared: Path) -> None:
    oracle = json.loads((shared / "oracles" / "search-engines.json").read_text())
    names = {"VarRaB@10": "RaB", "VarARaB@10": "ARaB", "VarNDRaB@10": "nDRaB"}
    found = er.compare_variants(shared / "data" / "search-engines" / "results.tsv")
    assert len(found.values) == 2 * 8 * 3
    for engine, measure, triple, _, _, value in found.values.iter_rows():
        expected = oracle[engine]["triples"][triple][names[measure]]["male_minus_female"]
        assert value == pytest.approx(expected, abs=1e-12)
    means = {(r.engine, r.measure): r.value for r in found.overall() if r.toward == "stereotype"}
    for (engine, measure), value in means.items():
        assert value == pytest.approx(oracle[engine]["mean_toward_stereotype"][names[measure]], abs=1e-12)
    assert means["Google", "VarRaB@10"] == pytest.approx(0.4375, abs=1e-12)
    assert means["DuckDuckGo", "VarRaB@10"] == pytest.approx(0.1625, abs=1e-12)


def results(triples: int, *, topics: int = 1, engine: str = "e") -> pl.DataFrame:
    """Neutral lists that are the male ones, for so many triples of each topic."""
    rows = []
    for topic in range(topics):
        for i in range(triples):
            lists = {"neutral": "ab", "male": "ab", "female": "xy" if i % 3 else "xa"}
            for variant, docs in lists.items():
                rows += [
                    (engine, f"{topic}-{i}", str(topic), "male", variant, rank, url)
                    for rank, url in enumerate(docs, 1)
                ]
    columns = ["engine", "triple_id", "topic", "stereotype", "variant", "rank", "url"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_fewer_than_five_triples_are_not_judged() -> None:
    found = er.compare_variants(results(4))
    assert {row.verdict for row in found.rows} == {"not judged"}
    assert all(row.value is not None and row.low is None and row.p is None for row in found.rows)
    assert "Not judged: fewer than 5 triples." in str(found)


def test_topics_are_tested_apart_and_corrected_together() -> None:
    found = er.compare_variants(results(9, topics=3))
    topics = [row for row in found.topics() if row.measure == "VarRaB@10"]
    assert [row.topic for row in topics] == ["0", "1", "2"]
    assert all(row.p == pytest.approx(2 / 2**9) and row.p_holm == pytest.approx(6 / 2**9) for row in topics)
    assert all(row.verdict == "leans male" for row in topics)
    assert any("resemble one another" in warning for warning in found.warnings)


def test_where_each_topic_has_one_triple_there_is_no_row_for_it() -> None:
    table = results(1, topics=6).drop("triple_id")
    found = er.compare_variants(table)
    assert not found.topics() and found.overall()[0].triples == 6


def test_what_an_engine_shows_twice_counts_at_each_place() -> None:
    table = results(5)
    twice = table.with_columns(
        url=pl.when((pl.col("variant") == "neutral") & (pl.col("rank") == 2))
        .then(pl.lit("a"))
        .otherwise("url")
    )
    found = er.compare_variants(twice)
    assert found.overall()[0].parts["male"] == 1.0
    assert "10 of 30 results stand more than once" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variant": pl.lit("woman")}, "variant is 'woman'; it must be one of neutral, female, male"),
        ({"rank": pl.lit(0)}, "rank is less than 1"),
        ({"rank": pl.lit(1)}, "the same rank stands twice"),
        (
            {"stereotype": pl.col("variant").replace("neutral", "none")},
            "row 3: triple .* has several values of stereotype",
        ),
        ({"topic": pl.col("rank").cast(pl.String)}, "several values of topic"),
        ({"stereotype": pl.lit("Male")}, "row 1: stereotype is 'Male'; it must be female or male"),
        ({"triple_id": pl.lit("x#male")}, "row 1: triple_id ends in #male, which stands for a variant"),
    ],
)
def test_bad_results_are_refused(change: dict[str, pl.Expr], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        er.compare_variants(results(5).with_columns(**change))


def test_an_index_is_asked_with_all_three_forms(tmp_path: Path) -> None:
    docs = {f"{who}{i}": f"beauty tips {who} {i}" for i in range(3) for who in ("men", "women")}
    index = er.index(docs, tmp_path / "index")
    found = er.compare_variants(index, queries={"a": "beauty tips", "b": "women"}, at=3)
    assert found.overall()[0].triples == 1  # the other query names a gender
    assert set(found.overall()[0].parts) == {"female", "male"}
    with pytest.raises(InputError, match="give one of them"):
        er.compare_variants(index, queries={"a": "x"}, triples={})


def test_kept_results_say_the_same_again(tmp_path: Path) -> None:
    from evenrank.auditing.black_box import ask_variants

    docs = {f"{who}{i}": f"beauty tips {who} {i}" for i in range(3) for who in ("men", "women")}
    index = er.index(docs, tmp_path / "index")
    triples = pl.DataFrame({"triple_id": ["1"], "neutral": ["tips"], "female": ["women"], "male": ["men"]})
    asked = ask_variants(index, triples, at=3)
    asked.write_csv(tmp_path / "kept.tsv", separator="\t")
    again = er.compare_variants(tmp_path / "kept.tsv", at=3)
    assert again.frame().equals(er.compare_variants(asked, at=3).frame(), null_equal=True)
    marked = triples.with_columns(triple_id=pl.lit("1#female"))
    with pytest.raises(InputError, match="row 1: triple_id ends in #female"):
        er.compare_variants(index, triples=marked)


def test_the_report_has_a_section_of_them() -> None:
    audit = er.audit({"q": {"d": 1.0}}, ["RaB@1"], docs={"d": "he"}, variants=results(6), resamples=50)
    from evenrank.show.report import render, sections

    section = next(s for s in sections(audit) if s.id == "variants")
    assert "follows the stereotype (VarARaB@10, 6 triples)" in section.lead and len(section.figures) == 3
    assert audit.to_dict()["variants"]["rows"][0]["positive"] == "male"
    assert "Query variants" in render(audit)
    assert np.isfinite(audit.variants.values["value"].to_numpy()).all()  # type: ignore[union-attr]


def test_a_live_engine_is_asked(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)")
        rows = [(f"{who}{i}", f"running shoes for {who} {i}") for who in ("men", "women") for i in range(4)]
        shop.executemany("INSERT INTO docs VALUES (?, ?)", rows)
    shop.close()
    written = {"triple_id": ["1"], "neutral": ["shoes"], "female": ["shoes women"], "male": ["shoes men"]}
    url = f"sqlite:///{tmp_path}/shop.db?table=docs"
    found = er.compare_variants(url, triples=pl.DataFrame(written), at=4)
    assert found.engines == ("sqlite",) and found.overall()[0].triples == 1


def test_results_without_a_complete_triple_are_refused() -> None:
    rows = [("t", "female", 1, "a"), ("t", "female", 2, "b")]
    results = pl.DataFrame(rows, schema=["triple_id", "variant", "rank", "url"], orient="row")
    with pytest.raises(er.InputError, match="no triple has lists of all its variants"):
        er.compare_variants(results)
