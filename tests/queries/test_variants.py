"""Queries for women and for men, written by patterns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import InputError
from evenrank.queries.variants import learned, shipped


@pytest.mark.parametrize(
    ("neutral", "female", "male"),
    [
        (
            "the best engineers of France",
            "the best female engineers of France",
            "the best male engineers of France",
        ),
        ("Who are famous German engineers?", "Who are famous female German engineers?", None),
        ("How can I sleep better?", "How can I sleep better as woman?", "How can I sleep better as man?"),
        ("running shoes", "running shoes for women", "running shoes for men"),
        ("People who swim", "Women who swim", "Men who swim"),
        ("toys for a newborn", "toys for a newborn for moms", "toys for a newborn for dads"),
    ],
)
def test_a_query_is_rewritten(neutral: str, female: str, male: str | None) -> None:
    found = er.variants({"q": neutral}).row(0)
    assert found[:3] == ("q", neutral, female) and found[3] == (male or female.replace("female", "male"))


def test_queries_that_name_a_gender_are_left_out() -> None:
    assert er.variants({"a": "shoes for women", "b": "shoes"})["triple_id"].to_list() == ["b"]


@given(st.text(min_size=1, max_size=40))
def test_both_variants_differ_from_any_query_and_from_one_another(text: str) -> None:
    female, male = shipped().write(text)
    assert len({text, female, male}) == 3


def test_patterns_of_four_topics_write_most_of_the_other_four_verbatim(shared: Path) -> None:
    path = shared / "data" / "query-variants" / "triples.tsv"
    triples = pl.read_csv(path, separator="\t", infer_schema=False)
    for built_on in (["0", "1", "2", "3"], ["4", "5", "6", "7"]):
        patterns = learned(triples.filter(pl.col("topic").is_in(built_on)))
        rest = triples.filter(~pl.col("topic").is_in(built_on)).select("neutral", "female", "male").rows()
        verbatim = sum((a == f) + (b == m) for n, f, m in rest for a, b in [patterns.write(n)])
        assert verbatim / (2 * len(rest)) >= 0.6


def test_triples_of_people_teach_words(tmp_path: Path) -> None:
    like = tmp_path / "like.tsv"
    like.write_text("triple_id\tneutral\tfemale\tmale\n1\tkids toys\tgirls toys\tboys toys\n")
    assert er.variants({"q": "Kids shoes"}, like=like)["male"].to_list() == ["Boys shoes"]
    like.write_text("triple_id\tneutral\tfemale\n1\ta\tb\n")
    with pytest.raises(InputError, match="male"):
        er.variants({"q": "shoes"}, like=like)
