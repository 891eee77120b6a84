"""abs(m): the mean of absolute values, as a measure like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import ARaB, demo
from evenrank.errors import InputError
from evenrank.measures.base import preferred_direction

DOCS = {"a": "he he", "b": "she she she", "c": "nothing at all", "d": "he and she"}
RUN = {"q1": {"a": 2.0, "c": 1.0}, "q2": {"b": 2.0, "c": 1.0}, "q3": {"d": 2.0, "a": 1.0}}


@pytest.mark.parametrize(
    "name",
    [
        "abs(ARaB@10)",
        "abs(RaB(magnitude='boolean')@5)",
        "abs(ARaB(of='male',against='female')@3)",
        "abs(MB(group='female')@10)",
        "abs(Skew(group='female')@10)",
    ],
)
def test_it_prints_as_it_is_written_and_is_read_back(name: str) -> None:
    measure = er.parse(name)
    assert str(measure) == name
    assert er.parse(str(measure)) == measure and er.parse(measure) is measure
    assert preferred_direction(measure) == "low"


def test_python_has_it_too() -> None:
    assert abs(ARaB @ 10) == er.parse("abs(ARaB@10)")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("abs(nDCG@10)", "takes a measure with a sign"),
        ("abs(NFaiRR@10)", "takes a measure with a sign"),
        ("abs(abs(ARaB@10))", "takes a measure with a sign"),
        ("abs(GSR)", "is one value over all queries"),
        ("abs(ARaB)", "needs a cut-off"),
        ("abs(ARaB@10, RaB@10)", "takes one measure"),
        ("abs(AraB@10)", "did you mean 'ARaB'"),
    ],
)
def test_what_has_no_absolute_value_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why.replace("(", r"\(")):
        er.parse(text)


@given(st.lists(st.permutations(["a", "b", "c", "d"]), min_size=2, max_size=8))
def test_it_is_the_mean_of_absolute_values_whatever_the_lists(orders: list[list[str]]) -> None:
    run = {f"q{i}": {d: 4.0 - r for r, d in enumerate(order)} for i, order in enumerate(orders)}
    found = er.measure(run, ["abs(ARaB@2)", "ARaB@2"], docs=DOCS, resamples=20)
    plain, size = found["ARaB@2"], found["abs(ARaB@2)"]
    assert size.value == pytest.approx(np.abs(plain.values).mean())
    assert size.value == pytest.approx(plain.abs)
    assert size.per_query() == {query: abs(value) for query, value in plain.per_query().items()}
    assert size.low is not None and size.high is not None and size.low >= 0
    assert size.low - 1e-9 <= size.value <= size.high + 1e-9  # type: ignore[operator]


def test_it_can_be_measured_alone_and_with_labels_of_documents() -> None:
    labels = pl.DataFrame({"doc_id": list(DOCS), "group": ["male", "female", "female", "male"]})
    targets = {query: {"female": 0.5} for query in RUN}
    found = er.measure(RUN, "abs(MB(group='female')@2)", labels=labels, targets=targets, confidence=None)
    plain = er.measure(RUN, "MB(group='female')@2", labels=labels, targets=targets, confidence=None)
    assert found["abs(MB(group='female')@2)"].value == plain["MB(group='female')@2"].abs


def test_bound_it_has_the_same_value_in_ir_measures() -> None:
    qrels = {query: {"a": 1} for query in RUN}
    (bound,) = er.bind("abs(ARaB@2)", docs=DOCS)
    expected = er.measure(RUN, "abs(ARaB@2)", docs=DOCS, confidence=None)["abs(ARaB@2)"].value
    assert ir_measures.calc_aggregate([bound], qrels, RUN)[bound] == pytest.approx(expected)


def test_mitigation_shows_in_it_with_a_paired_test(tmp_path: Path) -> None:
    here = demo.folder()
    docs, queries, _ = er.load(here)
    tally = er.tally(docs)
    fair = er.constrain(here / "bm25.run", tally, limit=["abs(ARaB@10)<=0.1"])
    given_inputs: dict[str, Any] = {"tally": tally, "queries": queries, "genders": here / "genders.tsv"}
    found = er.audit({"bm25": here / "bm25.run", "fair": fair}, **given_inputs)
    before, after = (found.measured[run, "abs(ARaB@10)"] for run in ("bm25", "fair"))
    assert before.value == pytest.approx(0.486, abs=0.001) and after.value < 0.1  # type: ignore[operator]
    change = next(one for one in found.comparisons if str(one.measure) == "abs(ARaB@10)")
    assert change.significant and change.comparison.high < 0  # type: ignore[operator]
    assert "fair is less biased than bm25: abs(ARaB@10) -0.4" in found.verdict()
    page = found.report(tmp_path / "r.html").read_text()
    assert page.count("how far single queries lean") == 2 and f"<b>{after.value:.3f}</b>" in page
