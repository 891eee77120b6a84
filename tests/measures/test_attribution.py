"""Attribution: contributions of words, documents and queries are exact."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import ARaB, InputError, RaB
from evenrank.measures.base import BiasMeasure
from evenrank.measures.explain import summed
from evenrank.text.tally import MAGNITUDES

WORDS = ["he", "his", "men", "she", "her", "women", "ball", "tree"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=6),
    orders=st.lists(st.permutations(range(6)), min_size=1, max_size=4),
    measure=st.sampled_from([RaB, ARaB]),
    magnitude=st.sampled_from(MAGNITUDES),
    t=st.integers(1, 8),
    ties=st.sampled_from(["order", "expected"]),
)
def test_contributions_sum_to_the_value(
    texts: list[str], orders: list[list[int]], measure: BiasMeasure, magnitude: str, t: int, ties: str
) -> None:
    docs = {f"d{i}": text for i, text in enumerate(texts)}
    run = {
        f"q{q}": {f"d{i}": float(i // 2) for i in order if i < len(texts)} for q, order in enumerate(orders)
    }
    wanted = measure(magnitude=magnitude) @ t
    found = er.measure(run, [wanted], docs=docs, ties=ties, confidence=None, explain=True)[wanted]
    for frame in (found.attribution.words, found.attribution.documents, found.attribution.queries):
        assert frame["contribution"].sum() == pytest.approx(found.value, abs=1e-12)


def test_words_share_a_magnitude_by_how_often_they_occur() -> None:
    docs = {"d": "he he his she"}
    found = er.measure({"q": {"d": 1.0}}, ["RaB@1"], docs=docs, explain=True)["RaB@1"]
    shares = {row["word"]: row["contribution"] for row in found.attribution.words.to_dicts()}
    assert shares["he"] == pytest.approx(2 * shares["his"])
    assert shares["she"] < 0
    assert found.attribution.words["word"].to_list()[0] == "he"


def test_only_the_measured_queries_are_explained() -> None:
    docs = {"d1": "he", "d2": "she"}
    run = {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}
    found = er.measure(run, ["RaB@1"], docs=docs, genders={"q1": "neutral", "q2": "female"}, explain=True)[
        "RaB@1"
    ]
    assert found.attribution.queries["query_id"].to_list() == ["q1"]
    assert found.attribution.words["word"].to_list() == ["he"]


def test_a_tally_alone_explains_documents_but_not_words() -> None:
    found = er.measure({"q": {"d": 1.0}}, ["RaB@1"], tally=er.tally({"d": "he"}), explain=True)["RaB@1"]
    assert found.attribution.words is None
    assert "without the documents" in found.notes[0]


def test_documents_that_are_not_those_of_the_tally_are_refused() -> None:
    with pytest.raises(InputError, match="document d holds other words than the tally says"):
        er.measure(
            {"q": {"d": 1.0}}, ["RaB@1"], tally=er.tally({"d": "he"}), docs={"d": "he he"}, explain=True
        )


def test_documents_that_are_not_given_are_named() -> None:
    with pytest.raises(InputError, match="the documents lack d, which the tally holds"):
        er.measure({"q": {"d": 1.0}}, ["RaB@1"], tally=er.tally({"d": "he"}), docs={"e": "he"}, explain=True)


def test_sums_are_made_row_by_row() -> None:
    rows = np.random.default_rng(0).normal(size=10_000) * 10.0 ** np.tile(np.arange(10), 1000)
    frame = pl.DataFrame({"key": ["a", "b"] * 5000, "contribution": rows})
    found = summed(frame, ["key"], ["contribution"])
    assert found.rows() == [("a", sum(rows[::2].tolist())), ("b", sum(rows[1::2].tolist()))]


def test_a_real_run_is_explained_exactly(shared: Path) -> None:
    docs = er.load(shared / "data" / "time").docs
    wanted = [measure(magnitude=m) @ 10 for measure in (RaB, ARaB) for m in MAGNITUDES]
    found = er.measure(shared / "runs" / "time.bm25.run", wanted, docs=docs, explain=True, confidence=None)
    for measurement in found:
        for frame in (
            measurement.attribution.words,
            measurement.attribution.documents,
            measurement.attribution.queries,
        ):
            assert frame["contribution"].sum() == pytest.approx(measurement.value, abs=1e-12)
    json.dumps(found.to_dict(), allow_nan=False)
