"""er.classify: any queries in, a label and its reasons out."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank as er
from evenrank import InputError
from evenrank.queries.features import LONGEST, clean
from evenrank.queries.model import query_hashes


def test_queries_become_labels_with_probabilities() -> None:
    found = er.classify({"1": "who is marie curie", "2": "how tall is tom hanks", "3": "python list sort"})
    assert found.columns == ["query_id", "text", "label", "female", "male", "neutral", "note"]
    assert found["label"].to_list() == ["female", "male", "neutral"]
    assert np.allclose(found.select("female", "male", "neutral").sum_horizontal(), 1)
    assert found["note"].to_list() == ["", "", ""]


def test_a_query_without_words_is_neutral_by_the_prior_and_flagged() -> None:
    found = er.classify({"a": "?!", "b": "🎉🎉 😀", "c": " \u2028 ", "d": "…"})
    assert found["label"].to_list() == ["neutral"] * 4
    assert found["note"].to_list() == ["empty"] * 4
    assert found.select("female", "male", "neutral").unique().height == 1
    assert found["neutral"][0] < 0.9  # the share of neutral queries, not certainty


def test_a_very_long_query_is_cut_with_a_note() -> None:
    long = "who is marie curie " * 600
    found = er.classify({"a": long, "b": long[: LONGEST - 1]})
    assert found["note"].to_list() == ["truncated", ""]
    assert found["text"][0] == long
    assert found["label"].to_list() == ["female", "female"]


@pytest.mark.parametrize(
    "text",
    [
        "кто такая мария кюри",
        "谁是居里夫人",
        "من هي ماري كوري",
        "quién fue marie curie",
        "zażółć gęślą jaźń",
        "👩‍🔬 nobel",
    ],
)
@pytest.mark.parametrize("model", ["static", "lexicon"])
def test_other_languages_get_a_label_and_never_an_error(text: str, model: str) -> None:
    found = er.classify({"a": text}, model)
    assert found["label"][0] in ("female", "male", "neutral", "other")
    assert found["female"][0] + found["male"][0] + found["neutral"][0] == pytest.approx(1)


def test_case_blanks_and_quotes_play_no_part() -> None:
    found = er.classify({"a": "Who is  MARIE Curie’s\tdaughter", "b": "who is marie curie's daughter"})
    assert found["female"][0] == found["female"][1]


def test_below_the_confidence_the_label_is_other() -> None:
    queries = {"a": "who is marie curie", "b": "who is robin"}
    sure = er.classify(queries)
    best = sure.select("female", "male", "neutral").max_horizontal()
    found = er.classify(queries, min_confidence=float(best.max()))
    assert sorted(found["label"] == "other") == [False, True]
    assert (er.classify(queries, min_confidence=1.0)["label"] == "other").all()
    assert (er.classify(queries, min_confidence=0.0)["label"] == sure["label"]).all()
    with pytest.raises(InputError, match="between 0 and 1"):
        er.classify(queries, min_confidence=1.5)


def test_reasons_are_the_words_that_drove_the_label() -> None:
    found = er.classify({"a": "who is marie curie", "b": ""}, explain=True)
    assert found["reasons"][0][0]["word"] in ("marie", "curie")
    assert found["reasons"][0][0]["group"] == "female"
    assert found["reasons"][1].to_list() == []


def test_hashes_ignore_case_and_blanks_only() -> None:
    a, b, c = query_hashes(["Who is she", "who  is she ", "who is he"])
    assert a == b != c


def test_cleaning_twice_changes_nothing() -> None:
    for text in ("A b’c", "ÀÉ ✨ x", "İstanbul", "x" * 2 * LONGEST):
        assert clean(clean(text)) == clean(text)
