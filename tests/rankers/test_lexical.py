"""Lexical search is exact, agrees with Lucene, and obeys the laws of its formulas."""

from __future__ import annotations

import json
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import RUN_SCHEMA
from evenrank.rankers import lexical, make
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import BM25, Dirichlet, TfIdf, retrieve

MODELS = [BM25(), BM25(k1=0.6, b=0.8), BM25(k1=0, b=0), Dirichlet(), Dirichlet(mu=0.5), TfIdf()]
WORDS = "ant bee cat dog elk fox".split()

texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
collections = st.lists(texts, min_size=1, max_size=12)
bags = st.dictionaries(st.sampled_from(WORDS), st.floats(0.01, 5), max_size=4)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An index of these texts, documents named by their number."""

    def build(documents: list[str]) -> Index:
        path = tmp_path_factory.mktemp("index") / "x"
        return er.index({f"d{i}": text for i, text in enumerate(documents)}, path, stemmer=None)

    return build


def plain(documents: list[str], bag: dict[str, float], model: Any) -> dict[str, float]:
    """The formulas, one document at a time."""
    counts = [Counter(text.split()) for text in documents]
    total, tokens = len(counts), sum(count.total() for count in counts)
    df = Counter(term for count in counts for term in count)
    cf = Counter(term for count in counts for term in count.elements())
    cosine_idf = {term: math.log1p(total / n) for term, n in df.items()}
    scores: dict[str, float] = {}
    for number, count in enumerate(counts):
        matched = [(term, weight) for term, weight in bag.items() if count[term]]
        length = count.total()
        score = 0.0
        for term, weight in matched:
            tf = count[term]
            if isinstance(model, BM25):
                norm = model.k1 * (1 - model.b + model.b * length / (tokens / total))
                score += weight * math.log(1 + (total - df[term] + 0.5) / (df[term] + 0.5)) * tf / (tf + norm)
            elif isinstance(model, Dirichlet):
                prior = model.mu * (cf[term] + 1) / (tokens + 1)
                gain = math.log(1 + tf / prior) + math.log(model.mu / (length + model.mu))
                score += weight * max(gain, 0)
            else:
                own = math.sqrt(sum(((1 + math.log(n)) * cosine_idf[t]) ** 2 for t, n in count.items()))
                asked = math.sqrt(sum((w * cosine_idf[t]) ** 2 for t, w in bag.items() if t in df))
                score += weight * cosine_idf[term] ** 2 * (1 + math.log(tf)) / (own * asked)
        if matched:
            scores[f"d{number}"] = score
    return scores


def found(index: Index, bag: dict[str, float], model: Any, depth: int = 1000) -> list[tuple[str, float]]:
    numbers = {index.number(term): weight for term, weight in bag.items() if index.number(term) >= 0}
    counts, documents, scores = retrieve(index, [numbers], model=model, depth=depth)
    assert counts.tolist() == [len(documents)]
    assert (documents.dtype, scores.dtype) == (np.uint32, np.float64)
    return list(zip(index.doc_ids(documents), scores.tolist(), strict=True))


@given(collections, bags, st.sampled_from(MODELS))
def test_search_finds_what_the_formulas_say(
    indexed: Any, documents: list[str], bag: dict[str, float], model: Any
) -> None:
    expected = plain(documents, bag, model)
    got = found(indexed(documents), bag, model)
    assert dict(got) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    keys = [(score, doc_id.encode()) for doc_id, score in got]
    assert keys == sorted(keys, reverse=True)


@given(st.lists(texts, min_size=30, max_size=200), bags, st.integers(1, 40), st.sampled_from(MODELS))
def test_a_shorter_list_begins_like_a_longer_one(
    indexed: Any, documents: list[str], bag: dict[str, float], depth: int, model: Any
) -> None:
    index = indexed(documents)
    assert found(index, bag, model, depth) == found(index, bag, model)[:depth]


@given(collections, bags, st.floats(0.1, 10), st.sampled_from([BM25(), Dirichlet()]))
def test_scores_are_linear_in_the_weights(
    indexed: Any, documents: list[str], bag: dict[str, float], factor: float, model: Any
) -> None:
    index = indexed(documents)
    one = dict(found(index, bag, model))
    scaled = dict(found(index, {term: factor * weight for term, weight in bag.items()}, model))
    assert scaled == pytest.approx({key: factor * value for key, value in one.items()})
    parts = [dict(found(index, {term: weight}, model)) for term, weight in bag.items()]
    assert one == pytest.approx({key: sum(part.get(key, 0) for part in parts) for key in one})


@given(st.integers(1, 9), st.sampled_from([BM25(), BM25(k1=2, b=0), Dirichlet(mu=50)]))
def test_one_more_occurrence_raises_the_score(indexed: Any, times: int, model: Any) -> None:
    pair = [" ".join(["ant"] * n + ["bee"] * (10 - n)) for n in (times, times + 1)]
    index = indexed([*pair, *["cat dog elk " * 20] * 8])
    scores = dict(found(index, {"ant": 1}, model))
    assert scores["d1"] > scores["d0"] > 0


@given(collections, bags)
def test_a_cosine_lies_between_0_and_1(indexed: Any, documents: list[str], bag: dict[str, float]) -> None:
    assert all(0 < score <= 1 + 1e-12 for _, score in found(indexed(documents), bag, TfIdf()))


def test_the_cosine_of_a_document_with_itself_is_1(indexed: Any) -> None:
    index = indexed(["ant bee cat", "ant dog", "elk"])
    assert found(index, {"ant": 1, "bee": 1, "cat": 1}, TfIdf())[0] == ("d0", pytest.approx(1))


@pytest.mark.parametrize("depth", [1, 7, 1000])
def test_a_long_tie_is_cut_at_any_depth(indexed: Any, depth: int) -> None:
    chance = np.random.default_rng(3)
    documents = [" ".join(chance.choice(WORDS, chance.integers(1, 9))) for _ in range(700)]
    documents += ["ant bee"] * 700  # a long tie
    index = indexed(documents)
    for bag in ({"ant": 1.0}, {"ant": 1.0, "fox": 2.0}, dict.fromkeys(WORDS, 1.0)):
        expected = found(index, bag, BM25(), depth)
        everything = plain(documents, bag, BM25())
        assert dict(expected).items() <= {k: pytest.approx(v) for k, v in everything.items()}.items()
        kth = sorted(everything.values(), reverse=True)[: len(expected)][-1]
        assert expected[-1][1] == pytest.approx(kth)


@pytest.mark.parametrize(("weight", "k1"), [(1e-250, 0.9), (1e-10, 1e200), (1e-10, 1e305)])
def test_a_match_that_is_worth_next_to_nothing_is_found(indexed: Any, weight: float, k1: float) -> None:
    index = indexed(["ant bee", "ant"])
    for bag in ({"ant": weight}, {"ant": weight, "bee": weight}):  # also where all postings are read
        assert found(index, bag, BM25(k1=k1)) == [("d1", 0.0), ("d0", 0.0)]


def test_of_equal_scores_the_greater_id_comes_first(tmp_path: Path) -> None:
    ids = ["9", "10", "b", "a", "é", "B", "aa"]
    index = er.index(dict.fromkeys(ids, "nurse"), tmp_path / "x")
    run = er.search(index, {"q": "nurses"})
    assert run["doc_id"].to_list() == sorted(ids, key=str.encode, reverse=True)
    assert er.search(index, {"q": "nurses"}, depth=3)["doc_id"].to_list() == run["doc_id"].to_list()[:3]
    assert read_run(run).equals(run)


def test_documents_whose_matches_are_worth_nothing_are_found_with_score_0(indexed: Any) -> None:
    index = indexed(["ant " + "bee " * 50, "ant bee", "ant"] + ["ant"] * 60 + ["cat"])
    got = found(index, {"ant": 1.0, "bee": 1e-9}, Dirichlet(mu=1))
    assert len(got) == 63
    zeros = [doc_id for doc_id, score in got if score == 0.0]
    assert zeros == sorted(zeros, key=str.encode, reverse=True)


def test_a_repeated_word_counts_as_often_as_it_is_said(indexed: Any) -> None:
    index = indexed(["ant bee", "bee cat"])
    once, twice = (er.search(index, {"q": q})["score"].to_list() for q in ("bee", "bee bee"))
    assert twice == pytest.approx([2 * score for score in once])


def test_queries_without_a_known_word_are_left_out(indexed: Any) -> None:
    index = indexed(["ant bee", "cat"])
    run = er.search(index, {"q1": "unicorn", "q2": "", "q3": "cat", "q4": "the of", "q5": "ant"})
    assert run["query_id"].to_list() == ["q3", "q5"]
    assert run.schema == RUN_SCHEMA
    assert er.search(index, {"q": "unicorn"}).schema == RUN_SCHEMA


def test_bags_may_be_empty_and_weights_zero(indexed: Any) -> None:
    index = indexed(["ant bee", "cat"])
    number = index.number("ant")
    counts, documents, _ = retrieve(index, [{}, {number: 0.0}, {number: 1.0}], model=BM25(), depth=5)
    assert counts.tolist() == [0, 0, 1]
    assert documents.tolist() == [0]
    assert retrieve(index, [], model=BM25(), depth=5)[0].tolist() == []


@pytest.mark.parametrize("bag", [{-1: 1.0}, {99: 1.0}, {0: -1.0}, {0: math.nan}, {0: math.inf}])
def test_bags_that_mean_nothing_are_refused(indexed: Any, bag: dict[int, float]) -> None:
    with pytest.raises(er.InputError, match="a query has a term"):
        retrieve(indexed(["ant bee"]), [bag], model=BM25(), depth=5)


@pytest.mark.parametrize(
    ("ranker", "wrong", "message"),
    [
        ("bm25", {"k1": -1}, "k1 is -1; it must be"),
        ("bm25", {"b": 1.5}, "b is 1.5; it must be a number from 0 to 1"),
        ("qld", {"mu": 0}, "mu is 0; it must be"),
        ("bm25", {"k1": math.nan}, "k1 is nan"),
        ("bm25", {"k3": 7}, "bm25 has no setting 'k3'; it has: k1, b"),
        ("bm52", {}, "unknown ranker 'bm52'; there are: bm25, qld, tfidf, .*random"),
        ("bm25", {"depth": 0}, "depth is 0; it must be a whole number from 1 on"),
    ],
)
def test_settings_are_checked(indexed: Any, ranker: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(er.InputError, match=message):
        er.search(indexed(["ant"]), {"q": "ant"}, ranker=ranker, **wrong)


def test_a_ranker_says_what_it_is(indexed: Any) -> None:
    index = indexed(["ant"])
    made = make("bm25", index=index, k1=0.6)
    assert made.describe()["settings"] == {"k1": 0.6, "b": 0.4}
    assert made.describe()["index"]["fingerprint"] == index.fingerprint
    with pytest.raises(er.InputError, match="bm25 searches an index"):
        make("bm25")


def test_threads_get_what_one_gets(indexed: Any) -> None:
    chance = np.random.default_rng(5)
    index = indexed([" ".join(chance.choice(WORDS, chance.integers(1, 20))) for _ in range(3000)])
    queries = {f"q{i}": " ".join(chance.choice(WORDS, 3)) for i in range(300)}
    alone = er.search(index, queries, depth=50)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: er.search(index, queries, depth=50), range(16)))
    assert all(run.equals(alone) for run in runs)
    one_by_one = [er.search(index, {key: text}, depth=50) for key, text in list(queries.items())[:20]]
    assert all(run.equals(alone.filter(query_id=run["query_id"][0])) for run in one_by_one)


def test_progress_counts_the_queries(indexed: Any) -> None:
    seen: list[tuple[int, int | None]] = []
    index = indexed(["ant bee", "cat"])
    er.search(index, {str(i): "ant" for i in range(300)}, progress=lambda *step: seen.append(step))
    assert seen[-1] == (300, 300)
    assert seen == sorted(seen)


@pytest.mark.parametrize("collection", ["time", "grepbiasir", "squad"])
@pytest.mark.parametrize("ranker", ["bm25", "qld"])
def test_effectiveness_is_that_of_lucene(shared: Path, tmp_path: Path, collection: str, ranker: str) -> None:
    split = {"split": "test"} if collection == "squad" else {}
    docs, queries, qrels = er.load(shared / "data" / collection, **split)
    run = er.search(er.index(docs, tmp_path / "x"), queries, ranker=ranker, depth=100)
    oracle = json.loads((shared / "oracles" / f"{collection}.json").read_text())
    expected = oracle["runs"][ranker]["effectiveness"]
    wanted = [er.AP @ 100, er.nDCG @ 10, er.RR @ 10]
    got = er.measure(run, wanted, qrels=qrels, confidence=None)
    for measure in wanted:
        assert got[measure].value == pytest.approx(expected[str(measure)], abs=0.005)


def test_scores_are_those_of_lucene_where_lengths_are_not_rounded(shared: Path, tmp_path: Path) -> None:
    """Lucene keeps lengths up to 40 exactly; most sentences are shorter, so most scores agree."""
    docs, queries, _ = er.load(shared / "data" / "squad", split="test")
    index = er.index(docs, tmp_path / "x")
    for ranker, file in (("bm25", "squad.bm25.run.gz"), ("qld", "squad.qld.run.gz")):
        theirs = read_run(shared / "runs" / file)
        both = theirs.join(er.search(index, queries, ranker=ranker, depth=100), on=["query_id", "doc_id"])
        assert len(both) > 0.97 * len(theirs)
        difference = (both["score"] - both["score_right"]).abs()
        assert (difference < 0.01).mean() > 0.95


@pytest.mark.parametrize("depth", [1, 10, 300])
def test_ties_of_many_documents_are_cut_by_id(indexed: Any, depth: int) -> None:
    index = indexed([*["ant bee cat"] * 3000, *["ant bee"] * 3000, "bee " * 10_000])
    by_id = sorted((f"d{i}" for i in range(3000, 6000)), reverse=True)
    assert [doc_id for doc_id, _ in found(index, {"ant": 1.0}, BM25(), depth)] == by_id[:depth]
    first, *rest = found(index, {"bee": 1.0}, Dirichlet(mu=1e-3), depth + 1)
    assert first[0] == "d6000"
    by_id = sorted((f"d{i}" for i in range(6000)), reverse=True)
    assert rest == [(doc_id, 0.0) for doc_id in by_id[:depth]]


def test_models_are_values() -> None:
    assert BM25() == BM25(0.9, 0.4)
    assert hash(Dirichlet()) == hash(Dirichlet(1000))
    assert lexical.Model


@pytest.mark.parametrize("name", ["bm25", "qld", "tfidf"])
def test_scores_of_pairs_are_those_of_the_whole_ranking(name: str, tmp_path: Path) -> None:
    here = demo.folder()
    index = er.index(here / "docs.tsv", tmp_path / "index")
    ranker: Any = make(name, index=index)
    queries = read_queries(here / "queries.tsv").head(20)
    ids = [*index.doc_ids(range(index.documents)), "no such document"]
    unknown = pl.DataFrame({"query_id": ["no such query"]})
    pairs = pl.concat([queries.select("query_id"), unknown]).join(pl.DataFrame({"doc_id": ids}), how="cross")
    pairs = pairs.sample(fraction=1.0, shuffle=True, seed=0)
    found = ranker.scores(queries, pairs)
    assert found.select("query_id", "doc_id").equals(pairs)
    whole = ranker.rank(queries, depth=index.documents)
    known = {(query, doc): score for query, doc, score, _ in whole.iter_rows()}
    expected = [known.get(pair, 0.0) for pair in pairs.iter_rows()]
    assert sum(score > 0 for score in expected) > 100
    np.testing.assert_allclose(found["score"], expected, rtol=1e-13, atol=0)
    assert ranker.scores(queries, pairs.head(0)).is_empty()


@pytest.mark.parametrize(
    "text", ["learn node.js", "and/or", "what is a .tsv file", "he/she pronouns", "nurse"]
)
def test_the_words_of_a_query_are_not_taken_for_a_file(text: str, tmp_path: Path) -> None:
    docs = {"d1": "learn node.js", "d2": "either or", "d3": "nurse he she file pronouns"}
    index = er.index(docs, tmp_path / "index", stop_words=None)
    assert set(er.search(index, text)["query_id"]) == {"q1"}


@pytest.mark.parametrize(
    "name", ["topics.tsv", "my folder/topics.tsv.gz", "/topics", "./topics", "../topics"]
)
def test_a_file_of_queries_that_is_missing_is_not_searched_for(name: str, tmp_path: Path) -> None:
    index = er.index({"d1": "topics"}, tmp_path / "index")
    with pytest.raises(er.InputError, match="topics"):
        er.search(index, name)
