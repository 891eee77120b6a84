"""RM3 and bias-aware RM3: the laws they obey, and what Anserini makes of the same collections."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenrank as er
from evenrank import demo
from evenrank.errors import InputError
from evenrank.rankers import make
from evenrank.rankers.feedback import document_bias
from evenrank.rankers.index import Index
from evenrank.rankers.indexing import index as build
from evenrank.rankers.relevance_models import (
    DocumentTerms,
    anserini_model,
    debiased_relevance,
    feedback_order,
    interpolate,
    min_max,
    thesis_model,
)

amounts = st.floats(0, 1e6, allow_subnormal=False)
columns = st.integers(1, 30).flatmap(lambda n: st.tuples(*[hnp.arrays(float, n, elements=amounts)] * 2))
strengths = st.floats(0, 1)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return build(demo.folder() / "docs.tsv", tmp_path_factory.mktemp("feedback") / "demo")


@pytest.fixture(scope="module")
def queries() -> pl.DataFrame:
    return er.load(demo.folder()).queries


@given(columns)
def test_a_normalised_column_lies_between_0_and_1(columns: tuple[np.ndarray, np.ndarray]) -> None:
    values = min_max(columns[0])
    assert ((values >= 0) & (values <= 1)).all()
    if columns[0].max() > columns[0].min():
        assert values.min() == 0 and values.max() == 1


@given(st.floats(-1e9, 1e9), st.integers(0, 20))
def test_a_constant_column_normalises_to_0(value: float, size: int) -> None:
    assert (min_max(np.full(size, value)) == 0).all()


@given(columns, strengths)
def test_debiased_relevance_keeps_its_bounds(columns: tuple[np.ndarray, np.ndarray], strength: float) -> None:
    values = debiased_relevance(*columns, strength)
    assert values.min() >= -strength - 1e-12
    assert values.max() <= 1 - strength + 1e-12


def test_relevance_is_not_scaled_where_the_equation_is_used_as_printed() -> None:
    relevance, bias = np.array([10.0, 9.0]), np.array([-3.0, 1.0])
    assert debiased_relevance(relevance, bias, 0.5, normalise=False).tolist() == [3.5, 4.0]
    assert feedback_order(relevance, bias, 0.5, normalise=False).tolist() == [1, 0]
    assert feedback_order(relevance, bias, 0.2, normalise=False).tolist() == [0, 1]


@given(columns, strengths)
def test_the_sign_of_the_bias_does_not_matter(
    columns: tuple[np.ndarray, np.ndarray], strength: float
) -> None:
    scores, bias = columns
    assert (feedback_order(scores, bias, strength) == feedback_order(scores, -bias, strength)).all()


@given(columns)
def test_lambda_one_orders_by_least_bias_and_keeps_the_order_of_equals(
    columns: tuple[np.ndarray, np.ndarray],
) -> None:
    scores, bias = columns
    normal = np.round(min_max(bias), 9)  # nearer than that is equal
    order = feedback_order(scores, bias, 1.0)
    assert order.tolist() == sorted(range(len(bias)), key=lambda place: normal[place])


@given(columns)
def test_lambda_zero_keeps_the_given_order(columns: tuple[np.ndarray, np.ndarray]) -> None:
    assert feedback_order(*columns, 0.0).tolist() == list(range(len(columns[0])))


def test_each_document_speaks_with_its_score() -> None:
    loud = DocumentTerms(np.array([1, 2]), np.array([3.0, 1.0]), 4)
    quiet = DocumentTerms(np.array([2, 3]), np.array([1.0, 1.0]), 2)
    weights = anserini_model([loud, quiet], np.array([3.0, 1.0]), fb_terms=3)
    # term 1: 3 · 3/4; term 2: 3 · 1/4 + 1 · 1/2; term 3: 1 · 1/2; all over their sum, 4
    assert weights == pytest.approx({1: 2.25 / 4, 2: 1.25 / 4, 3: 0.5 / 4})


def test_a_document_gives_its_most_frequent_terms_only() -> None:
    document = DocumentTerms(np.array([7, 8, 9]), np.array([1.0, 5.0, 1.0]), 7)
    assert list(anserini_model([document], np.array([2.0]), fb_terms=1)) == [8]


def test_a_document_without_terms_adds_nothing() -> None:
    empty = DocumentTerms(np.zeros(0, np.int64), np.zeros(0), 0)
    assert anserini_model([empty], np.array([1.0]), fb_terms=5) == {}
    assert thesis_model([empty], {}, [{}], {}, fb_terms=5) == {}


def test_the_printed_equations_by_hand() -> None:
    documents = [
        DocumentTerms(np.array([1, 2]), np.array([2.0, 1.0]), 3),
        DocumentTerms(np.array([2]), np.array([1.0]), 2),
    ]
    share = {1: 0.1, 2: 0.3, 5: 0.2}
    found = thesis_model(documents, {5: 1.0}, [{}, {5: 1.0}], share, fb_terms=2, mu=10.0)

    def smooth(tf: float, term: int, length: float) -> float:
        return (tf + 10 * share[term]) / (length + 10)

    likelihood = [smooth(0, 5, 3), smooth(1, 5, 2)]
    first = smooth(2, 1, 3) * likelihood[0] + smooth(0, 1, 2) * likelihood[1]
    second = smooth(1, 2, 3) * likelihood[0] + smooth(1, 2, 2) * likelihood[1]
    assert found == pytest.approx({1: first / (first + second), 2: second / (first + second)})


weights = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 1), max_size=8)


@given(weights, weights, st.floats(0, 1))
def test_the_weights_of_an_expanded_query_sum_to_1(
    query: dict[str, float], model: dict[str, float], alpha: float
) -> None:
    total = sum(model.values())
    mixed = interpolate(query, {term: weight / total for term, weight in model.items()}, alpha)
    assert sum(mixed.values()) == pytest.approx(1 if query else 0)
    assert all(weight > 0 for weight in mixed.values())


@pytest.mark.parametrize("name", ["bm25+rm3", "qld+rm3"])
def test_lambda_zero_is_plain_rm3_to_the_byte(
    index: Index, queries: pl.DataFrame, name: str, tmp_path: Path
) -> None:
    from evenrank.data.runs import write_run

    plain = make(name, index=index)
    aware = make(name, index=index, bias_lambda=0.0, lexicon="fabris2020", magnitude="boolean", candidates=50)
    for file, ranker in (("plain", plain), ("aware", aware)):
        write_run(ranker.rank(queries, depth=100), tmp_path / file, name="rm3")
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "aware").read_bytes()


@pytest.mark.parametrize("estimator", ["anserini", "thesis"])
@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_every_expanded_query_sums_to_1(
    index: Index, queries: pl.DataFrame, estimator: str, strength: float
) -> None:
    ranker = make("bm25+rm3", index=index, estimator=estimator, bias_lambda=strength)
    for query in ranker.expand(queries).values():  # type: ignore[attr-defined]
        assert sum(query.values()) == pytest.approx(1)


@pytest.mark.parametrize(("name", "base"), [("bm25+rm3", "bm25"), ("qld+rm3", "qld")])
def test_alpha_one_is_the_first_stage(index: Index, queries: pl.DataFrame, name: str, base: str) -> None:
    first = make(base, index=index).rank(queries, depth=50)
    again = make(name, index=index, alpha=1.0, bias_lambda=0.5).rank(queries, depth=50)
    assert again.select("query_id", "doc_id", "rank").equals(first.select("query_id", "doc_id", "rank"))


def test_swapping_the_groups_leaves_the_run_as_it_is(index: Index, queries: pl.DataFrame) -> None:
    groups = er.lexicon("rekabsaz2020").groups
    swapped = {"female": groups["male"], "male": groups["female"]}
    runs = [
        make("bm25+rm3", index=index, bias_lambda=0.7, lexicon=words).rank(queries)
        for words in ("rekabsaz2020", swapped)
    ]
    assert runs[0].equals(runs[1])


def test_lambda_one_learns_from_the_least_biased_candidates(index: Index) -> None:
    bias = document_bias(index, kind="count")
    tally = er.tally(index.docs)
    expected = (tally["female"] - tally["male"]).abs().to_list()
    assert bias.tolist() == expected


def test_a_tally_gives_the_same_bias_as_the_text(index: Index, tmp_path: Path) -> None:
    er.tally(index.docs).write(tmp_path / "t.parquet")
    read = document_bias(index, tally=tmp_path / "t.parquet")
    assert read.tolist() == document_bias(index).tolist()


def test_liwc_is_a_document_bias_too(index: Index) -> None:
    values = document_bias(index, kind="liwc")
    assert 0 < values.max() <= 100


def test_a_query_without_known_terms_finds_nothing(index: Index) -> None:
    queries = pl.DataFrame({"query_id": ["a", "b"], "text": ["zzzqqq", "nurse"]})
    run = make("bm25+rm3", index=index, bias_lambda=0.5).rank(queries)
    assert run["query_id"].unique().to_list() == ["b"]


@pytest.mark.parametrize(
    "settings",
    [
        {"bias_lambda": 1.5},
        {"alpha": -0.1},
        {"fb_docs": 0},
        {"fb_terms": 0},
        {"estimator": "rm1"},
        {"magnitude": "loud", "bias_lambda": 0.5},
    ],
)
def test_settings_are_checked(index: Index, settings: dict[str, object]) -> None:
    with pytest.raises(InputError):
        make("bm25+rm3", index=index, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["time", "grepbiasir", "squad"])
def test_effectiveness_is_that_of_anserini(collection: str, shared: Path, tmp_path: Path) -> None:
    data = er.load(shared / "data" / collection, split="test" if collection == "squad" else None)
    built = build(data.docs, tmp_path / "index")
    run = make("bm25+rm3", index=built).rank(data.queries, depth=100)
    oracle = json.loads((shared / "oracles" / f"{collection}.json").read_text())
    expected = oracle["runs"]["bm25.rm3"]["effectiveness"]
    for name in ("AP@100", "nDCG@10", "RR@10"):
        value = er.measure(run, name, qrels=data.qrels, confidence=None)[name].value
        assert value == pytest.approx(expected[name], abs=0.03), name
