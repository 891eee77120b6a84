"""Comparing runs query by query: what is tested, how it is corrected, what can be given."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo, stats

QUERIES = [f"q{i}" for i in range(8)]
VALUES = {
    name: dict(zip(QUERIES, np.random.default_rng(seed).normal(seed / 4, 0.3, 8).tolist(), strict=True))
    for seed, name in enumerate(("old", "new", "newer"))
}


def table(values: dict[str, dict[str, float]]) -> pl.DataFrame:
    rows = [(run, query, value) for run, of_run in values.items() for query, value in of_run.items()]
    return pl.DataFrame(rows, schema=["run", "query_id", "value"], orient="row")


def test_each_run_is_tested_against_the_baseline_and_corrected_by_holm() -> None:
    found = list(er.compare(VALUES, baseline="old"))
    tests = [stats.paired([*VALUES[run].values()], [*VALUES["old"].values()]) for run in ("new", "newer")]
    assert [one.run for one in found] == ["new", "newer"] and {one.baseline for one in found} == {"old"}
    assert [one.comparison for one in found] == tests
    assert [one.p_holm for one in found] == stats.holm([test.p for test in tests])
    assert [one.significant for one in found] == [one.p_holm < 0.05 for one in found]  # type: ignore[operator]


def test_without_a_baseline_every_pair_is_compared() -> None:
    found = er.compare(VALUES)
    assert [(one.run, one.baseline) for one in found] == [*combinations(VALUES, 2)]
    assert [one.p_holm for one in found] == stats.holm([one.comparison.p for one in found])


def test_p_stays_as_it_is_without_a_correction() -> None:
    found = er.compare(VALUES, correction="none")
    assert all(one.p_holm is None and one.comparison.p is not None for one in found)
    with pytest.raises(er.InputError, match="correction"):
        er.compare(VALUES, correction="bonferroni")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=12))
def test_swapping_the_runs_flips_the_sign(pairs: list[tuple[float, float]]) -> None:
    values = {name: {f"q{i}": pair[at] for i, pair in enumerate(pairs)} for at, name in enumerate("ab")}
    (there,), (back,) = er.compare(values, "a"), er.compare(values, "b")
    assert there.comparison.difference == pytest.approx(-back.comparison.difference)  # type: ignore[operator]
    assert there.comparison.p == pytest.approx(back.comparison.p)


def test_only_queries_that_both_have_are_compared() -> None:
    values = {"a": {"q1": 1.0, "q2": 2.0, "q3": 3.0}, "b": {"q2": 1.5, "q3": 2.0, "q4": 9.0}}
    (one,) = er.compare(values, "b")
    assert one.query_ids.to_list() == ["q2", "q3"] and one.changes.tolist() == [0.5, 1.0]
    assert one.comparison.n == 2


def test_a_table_and_a_file_are_read_as_a_dict_is(tmp_path: Path) -> None:
    path = tmp_path / "values.tsv"
    table(VALUES).write_csv(path, separator="\t")
    expected = er.compare(VALUES, "old").frame()
    for values in (table(VALUES), table(VALUES).to_dicts(), path):
        assert er.compare(values, "old").frame().equals(expected)


def test_measures_are_compared_each_with_its_own_test() -> None:
    here = demo.folder()
    docs, queries, qrels = er.load(here)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    measured = er.measure(runs, ["ARaB@10", "nDCG@10", "GSR@10"], docs=docs, queries=queries, qrels=qrels)
    found = {str(one.measure): one for one in er.compare(measured, "bm25")}
    assert [one.comparison.test for one in found.values()] == ["t", "t", "permutation"]
    audit = er.audit(runs, ["ARaB@10", "nDCG@10", "GSR@10"], docs=docs, queries=queries, qrels=qrels)
    assert [one.to_dict() for one in audit.comparisons] == er.compare(measured, "bm25").to_dict()[
        "comparisons"
    ]
    from_values = {one.measure: one for one in er.compare(measured.per_query(), "bm25")}
    assert from_values["ARaB@10"].comparison == found["ARaB@10"].comparison


@pytest.mark.parametrize(
    ("values", "baseline", "message"),
    [
        ({"a": {"q": 1.0}}, None, "nothing to compare a with; give at least two runs"),
        ({"a": {"q": 1.0}, "b": {"q": 2.0}}, "c", "there is no run 'c'; one of a, b"),
        ({"a": {"q": "much"}, "b": {"q": 2.0}}, None, "row 1: score is 'much'; it must be a number"),
        ({"a": {"q": float("nan")}, "b": {"q": 2.0}}, None, "must be a finite number"),
        (5, None, "is not a table"),
    ],
)
def test_what_cannot_be_compared_is_refused(values: Any, baseline: str | None, message: str) -> None:
    with pytest.raises(er.InputError, match=message):
        er.compare(values, baseline)


def test_a_value_that_is_given_twice_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "values.tsv"
    path.write_text("run\tquery_id\tvalue\na\tq1\t0.5\nb\tq1\t0.4\na\tq1\t0.6\n")
    with pytest.raises(er.InputError, match=r"values\.tsv:4: .*q1"):
        er.compare(path)
