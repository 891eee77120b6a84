"""GSR: the slope of the lists' genderedness on the queries', its baselines, and who is left out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

import evenrank as er
from evenrank import GSR, InputError, nDCG
from evenrank.data.runs import read_run
from evenrank.measures.gsr.measure import Reinforcement
from evenrank.text.tokens import tokens
from evenrank.vectors import genderedness
from evenrank.vectors.texts import GENDERED_STOP_WORDS, stop_words

DOCS = {
    "d1": "The queen and her daughter",
    "d2": "A boss and his army",
    "d3": "The ballet dancer was pregnant",
    "d4": "The captain of the football team",
    "d5": "Nurses and more nurses",
    "d6": "12 34",
}
QUERIES = {"q1": "nurse", "q2": "plumber", "q3": "secretary wanted", "q4": "guitar"}
RUN = {
    "q1": {"d1": 3.0, "d3": 2.0, "d5": 1.0},
    "q2": {"d2": 3.0, "d4": 2.0, "d1": 1.0},
    "q3": {"d3": 2.0, "d2": 1.0},
    "q4": {"d4": 2.0, "d6": 1.0},
}
QRELS = {"q1": {"d1": 2, "d5": 1, "d2": 0}, "q2": {"d2": 1, "d4": 1}, "q3": {"d3": 1}, "q4": {"d4": 1}}
WORDS = st.sampled_from("nurse nurses plumber queen king she his boss ballet guitar the 12 army zzq".split())
TEXTS = st.lists(WORDS, min_size=0, max_size=8).map(" ".join)
SOME = st.lists(TEXTS, min_size=2, max_size=6)


def measured(measure: Any = "GSR@3", run: Any = RUN, **changes: Any) -> Reinforcement:
    given = {"docs": DOCS, "queries": QUERIES, "qrels": QRELS, "confidence": None} | changes
    (found,) = er.measure(run, [measure], **given)
    assert isinstance(found, Reinforcement)
    return found


def words_of(text: str) -> list[str]:
    kept = [w for w in tokens(text) if len(w) > 1 and not any(c.isnumeric() for c in w)]
    return [w for w in kept if w in GENDERED_STOP_WORDS or w not in stop_words()]


class Reference:
    """GSR in plain Python, from the definitions."""

    def __init__(self) -> None:
        table = genderedness()
        self.g = dict(zip(table.words, table.values.astype(float).tolist(), strict=True))
        self.stem = Stemmer.Stemmer("english").stemWord

    def of(self, text: str, query: str = "") -> float:
        own = {self.stem(w) for w in tokens(query) if len(w) > 1}
        found = [self.g[w] for w in words_of(text) if w in self.g and self.stem(w) not in own]
        return sum(found) / len(found) if found else math.nan

    def points(
        self, lists: dict[str, list[tuple[str, int]]], docs: dict[str, str], queries: dict[str, str]
    ) -> dict[str, tuple[float, float]]:
        points = {}
        for query, ranked in lists.items():
            x, total, weights = self.of(queries[query]), 0.0, 0.0
            for doc, rank in ranked:
                value = self.of(docs[doc], queries[query])
                if not math.isnan(value):
                    total += value / math.log2(rank + 1)
                    weights += 1 / math.log2(rank + 1)
            if weights and not math.isnan(x):
                points[query] = (x, total / weights)
        return points


REFERENCE = Reference()


def top(run: dict[str, dict[str, float]], depth: dict[str, int]) -> dict[str, list[tuple[str, int]]]:
    ordered = {q: sorted(docs, key=lambda d, of=docs: (of[d], d), reverse=True) for q, docs in run.items()}
    return {q: [(d, i) for i, d in enumerate(docs[: depth[q]], 1)] for q, docs in ordered.items()}


def test_it_is_the_slope_of_plain_python() -> None:
    found = measured("GSR@2")
    points = REFERENCE.points(top(RUN, dict.fromkeys(RUN, 2)), DOCS, QUERIES)
    line = linregress(*zip(*points.values(), strict=True))
    assert found.value == pytest.approx(line.slope)
    content = found.to_dict()
    assert content["r"] == pytest.approx(line.rvalue)
    assert content["p"] == pytest.approx(line.pvalue)
    assert content["error"] == pytest.approx(line.stderr)


@given(
    queries=st.lists(TEXTS, min_size=2, max_size=6),
    docs=st.lists(TEXTS, min_size=2, max_size=6),
    k=st.integers(1, 4),
)
def test_it_is_the_slope_of_plain_python_for_any_texts(queries: list[str], docs: list[str], k: int) -> None:
    asked = {f"q{i}": text for i, text in enumerate(queries)}
    held = {f"d{i}": text for i, text in enumerate(docs)}
    run = {q: {d: float((i + j) % 3) for j, d in enumerate(held)} for i, q in enumerate(asked)}
    points = REFERENCE.points(top(run, dict.fromkeys(run, k)), held, asked)
    try:
        found = measured(f"GSR@{k}", run, docs=held, queries=asked, qrels=None)
    except InputError as error:
        assert "has a value in the" in str(error)
        return
    x, y = np.array(list(points.values())).reshape(-1, 2).T
    if len(x) < 2 or np.ptp(x) < 1e-6:
        assert found.value is None
        return
    assert found.value == pytest.approx(linregress(x, y).slope, abs=1e-9)
    assert found.queries == len(x)
    assert sum(found.left_out.values()) == len(asked) - len(x)


@pytest.mark.parametrize("collection", ["time", "squad"])
def test_it_is_the_slope_of_plain_python_on_real_collections(shared: Path, collection: str) -> None:
    data = er.load(shared / "data" / collection, split="test" if collection == "squad" else None)
    run = read_run(next((shared / "runs").glob(f"{collection}.bm25.run*")))
    run = run.filter(pl.col("query_id").is_in(run["query_id"].unique(maintain_order=True).head(60).implode()))
    queries = data.queries.filter(pl.col("query_id").is_in(run["query_id"].unique().implode()))
    texts, asked = data.docs.texts(run["doc_id"]), dict(queries.iter_rows())
    lists = {
        q: list(zip(docs, ranks, strict=True))
        for q, docs, ranks in run.filter(pl.col("rank") <= 5)
        .group_by("query_id", maintain_order=True)
        .agg("doc_id", "rank")
        .iter_rows()
    }
    points = REFERENCE.points(lists, texts, asked)
    found = measured("GSR@5", run, docs=data.docs, queries=queries, qrels=None)
    assert found.queries == len(points)
    assert found.value == pytest.approx(linregress(*zip(*points.values(), strict=True)).slope, rel=1e-9)


def test_contributions_have_the_slope_as_their_mean_and_parts_add_up_to_it() -> None:
    found = measured()
    assert np.mean(list(found.per_query().values())) == pytest.approx(found.value)
    assert sum(found.parts.values()) == pytest.approx(found.value)


def test_parts_are_told_apart_by_polarity_and_not_by_what_they_add() -> None:
    queries = {"p": "plumber", "e": "electrician"}  # both lean male, one further
    either = [{"p": {"d2": 1.0}, "e": {"d4": 1.0}}, {"p": {"d4": 1.0}, "e": {"d2": 1.0}}]
    found = [measured("GSR@1", run, queries=queries, qrels=None).parts for run in either]
    assert [parts["counter-stereotypical"] for parts in found] == [0, 0]  # both documents lean male
    assert found[0]["stereotypical"] == pytest.approx(-found[1]["stereotypical"])


def test_the_perfect_engine_is_cut_where_the_run_is() -> None:
    """Of three documents at rank 2, two fit above the cut at 3: each counts as two thirds of one."""
    graded = {"q1": {"d1": 2, "d3": 1, "d4": 1, "d2": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}}
    found = measured("GSR@3", qrels=graded)

    def mean(query: str, docs: dict[str, float]) -> float:
        values = {doc: REFERENCE.of(DOCS[doc], QUERIES[query]) for doc in docs}
        return sum(values[doc] * weight for doc, weight in docs.items()) / sum(docs.values())

    second = 2 / 3 / math.log2(3)
    lists = {
        "q1": {"d1": 1.0, "d3": second, "d4": second, "d2": second},
        "q2": {"d2": 1.0},
        "q3": {"d3": 1.0},
    }
    x = [REFERENCE.of(QUERIES[query]) for query in lists]
    y = [mean(query, docs) for query, docs in lists.items()]
    assert found.baselines["perfect"].value == pytest.approx(linregress(x, y).slope)
    only_first = lists | {"q1": {"d1": 1.0}}
    y = [mean(query, docs) for query, docs in only_first.items()]
    assert measured("GSR@1", qrels=graded).baselines["perfect"].value == pytest.approx(linregress(x, y).slope)


def test_stop_words_of_indri_are_another_reading_of_the_same_texts() -> None:
    both = er.measure(
        RUN, ["GSR@3", "GSR(stop_words='indri')@3"], docs=DOCS, queries=QUERIES, confidence=None
    )
    assert [one.measure for one in both] == [GSR @ 3, GSR(stop_words="indri") @ 3]
    assert all(one.value is not None for one in both)


def test_what_makes_it_up_adds_up_by_word_document_and_query() -> None:
    attribution = measured(explain=True).attribution
    for frame in (attribution.words, attribution.documents, attribution.queries):
        assert frame["contribution"].sum() == pytest.approx(attribution.value)
    assert "nurses" not in attribution.words["word"].to_list()
    assert set(attribution.words["group"]) == {"female", "male"}


def test_without_a_depth_it_looks_as_deep_as_there_are_relevant_documents() -> None:
    depth = {q: sum(r > 0 for r in docs.values()) for q, docs in QRELS.items()}
    points = REFERENCE.points(top(RUN, depth), DOCS, QUERIES)
    found = measured(GSR)
    assert found.value == pytest.approx(linregress(*zip(*points.values(), strict=True)).slope)
    assert found.value != pytest.approx(measured(GSR @ 3).value)


def test_a_depth_never_looks_at_judgments() -> None:
    assert measured("GSR@3", qrels=None).value == measured("GSR@3").value
    with pytest.raises(
        InputError, match=r"^GSR needs relevance judgments; give qrels, or a depth, as in GSR@"
    ):
        measured(GSR, qrels=None)


def test_documents_of_equal_grade_share_a_rank_in_the_perfect_engine() -> None:
    lists = {
        "q1": [("d1", 1), ("d5", 2)],
        "q2": [("d2", 1), ("d4", 1)],
        "q3": [("d3", 1)],
        "q4": [("d4", 1)],
    }
    expected = linregress(*zip(*REFERENCE.points(lists, DOCS, QUERIES).values(), strict=True)).slope
    found = measured(GSR)
    assert found.baselines["perfect"].value == pytest.approx(expected)
    assert found.relative == pytest.approx((found.value - expected) / expected)
    assert measured("GSR@3", qrels=None).relative is None


def test_a_random_engine_has_no_stereotype_and_a_seed(shared: Path) -> None:
    data = er.load(shared / "data" / "squad", split="test")
    run = next((shared / "runs").glob("squad.bm25.run*"))
    given = {"docs": data.docs, "queries": data.queries, "qrels": data.qrels}
    found = measured(GSR, run, **given, seed=1)
    assert abs(found.baselines["random"].value) < 0.03 < found.value
    assert found.baselines["random"] == measured(GSR, run, **given, seed=1).baselines["random"]
    assert found.baselines["random"] != measured(GSR, run, **given, seed=2).baselines["random"]


def test_random_lists_do_not_depend_on_the_order_of_the_collection() -> None:
    one = measured().baselines["random"].value
    other = measured(docs=dict(reversed(DOCS.items()))).baselines["random"].value
    assert one == pytest.approx(other)


def test_queries_without_a_value_are_counted_with_the_reason() -> None:
    found = measured(
        GSR,
        {q: docs for q, docs in RUN.items() if q != "q4"}
        | {"q5": {"d1": 1.0}, "q7": {"d6": 1.0}, "q8": {"d1": 1.0}},
        queries=QUERIES | {"q5": "the 99", "q6": "doctor", "q7": "teacher"},
        qrels=QRELS | {"q5": {"d1": 1}, "q7": {"d1": 1}},
    )
    assert found.left_out == {
        "no ranked document has a value": 1,
        "no relevant document": 1,
        "nothing ranked": 1,
        "the query has no text": 1,
        "the query has no word with a value": 1,
    }
    assert set(found.per_query()) == {"q1", "q2", "q3"}


def test_equally_gendered_queries_have_no_slope() -> None:
    found = measured("GSR@3", queries=dict.fromkeys(QUERIES, "nurse"))
    content = found.to_dict()
    assert content["value"] is content["low"] is content["r"] is content["p"] is content["relative"] is None
    assert found.left_out == {"all queries are equally gendered": 4}
    assert found.notes == ("undefined: all queries are equally gendered, and no line can be fitted",)
    assert found.per_query() == {}


def test_labels_choose_queries_only_when_asked_to() -> None:
    genders = {"q1": "F", "q2": "M", "q3": "F", "q4": "M"}
    assert measured(genders=genders).value == measured().value
    female = measured(genders=genders, only="female")
    assert set(female.per_query()) == {"q1", "q3"}
    assert measured(genders=genders).subsets["female"].value == pytest.approx(female.value)
    assert female.left_out == {"labelled male": 2}


def test_the_interval_refits_the_slope(shared: Path) -> None:
    data = er.load(shared / "data" / "time")
    run = shared / "runs" / "time.bm25.run"
    found = measured("GSR@10", run, docs=data.docs, queries=data.queries, qrels=None, confidence=0.95)
    assert found.low < found.value < found.high
    by_contributions = er.stats.mean_interval(found.values)
    assert (found.low, found.high) != pytest.approx((by_contributions.low, by_contributions.high), rel=1e-3)


def test_discounts_differ_and_none_ignores_the_order() -> None:
    values = [measured(f"GSR(discount='{d}')@3").value for d in ("log", "released", "none")]
    assert len(set(values)) == 3
    upside_down = {q: {d: -s for d, s in docs.items()} for q, docs in RUN.items()}
    assert measured("GSR(discount='none')@3", upside_down).value == pytest.approx(values[2])
    with pytest.raises(InputError, match="GSR: discount cannot be 'half'"):
        GSR(discount="half")


def test_two_runs_are_compared_over_the_same_queries(shared: Path) -> None:
    data = er.load(shared / "data" / "time")
    runs = {name: shared / "runs" / f"time.{name}.run" for name in ("bm25", "qld")}
    found = er.measure(runs, "GSR@10", docs=data.docs, queries=data.queries)
    one, other = (found[name, "GSR@10"] for name in runs)
    difference = one.measure.compare(one, other).comparison
    assert difference.difference == pytest.approx(one.value - other.value)
    assert difference.low < difference.difference < difference.high
    assert difference.p > 0.05
    same = one.measure.compare(one, one).comparison
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_documents_that_the_collection_lacks() -> None:
    docs = {d: text for d, text in DOCS.items() if d != "d3"}
    with pytest.raises(InputError, match=r"run: the collection lacks 1 of its documents \(d3\)"):
        measured("GSR@2", docs=docs, qrels=None)
    without = {q: {d: s for d, s in of.items() if d != "d3"} for q, of in RUN.items()}
    skipped = measured("GSR@2", docs=docs, qrels=None, missing="skip")
    assert skipped.value == pytest.approx(measured("GSR@2", without, docs=docs, qrels=None).value)
    zero = measured("GSR@2", docs=docs, qrels=None, missing="zero")
    assert zero.value == pytest.approx(measured("GSR@2", docs=DOCS | {"d3": ""}, qrels=None).value)


@pytest.mark.parametrize("lacking", ["docs", "queries"])
def test_it_needs_texts_and_says_so(lacking: str) -> None:
    with pytest.raises(InputError, match=f"GSR@3 needs the text of the .*; give {lacking}"):
        measured("GSR@3", **{lacking: None})


def test_vectors_without_a_word_of_the_queries_are_refused() -> None:
    strangers = {
        "she": [1.0, 0.2],
        "he": [-1, 0.1],
        "her": [1, 0.4],
        "his": [-1, 0.3],
        "man": [-1, 0.5],
        "woman": [1, 0.5],
    }
    with (
        pytest.raises(InputError, match="no word of any query has a value in the 6 words of the vectors"),
        pytest.warns(),
    ):
        measured(vectors=strangers)


def test_a_tally_is_made_only_for_measures_that_need_one() -> None:
    found = er.measure(RUN, [GSR @ 3, er.ARaB @ 3, nDCG @ 3], docs=DOCS, queries=QUERIES, qrels=QRELS)
    assert [str(m.measure) for m in found] == ["GSR@3", "ARaB@3", "nDCG@3"]
    alone = er.measure(RUN, [GSR @ 3], docs=DOCS, queries=QUERIES, qrels=QRELS)
    assert alone.provenance["tally"] == {}
    assert alone.provenance["genderedness"]["stemmer"] == "Snowball english"
    json.dumps(alone.to_dict(), allow_nan=False)
    assert alone["GSR@3"].value == found["GSR@3"].value


@pytest.mark.parametrize("measures", [[GSR], [GSR @ 2], [GSR, nDCG @ 3, er.ARaB @ 2]])
@pytest.mark.parametrize("more", [{}, {"q9": {"d1": 1}}])
def test_inside_ir_measures_the_mean_is_the_slope(measures: list[Any], more: Any) -> None:
    qrels = QRELS | more
    bound = er.bind(measures, docs=DOCS, queries=QUERIES)
    found = ir_measures.calc_aggregate(bound, qrels, RUN)
    expected = er.measure(RUN, measures, docs=DOCS, queries=QUERIES, qrels=qrels, confidence=None)
    # A judged query that was not asked is none of ours; ir_measures counts it as 0 in effectiveness.
    share = {nDCG @ 3: len(QRELS) / len(qrels)}
    values = [m.value * share.get(m.measure, 1) for m in expected]
    assert [found[m] for m in bound] == pytest.approx(values)


def test_inside_pyterrier_it_is_the_slope_and_batches_are_refused() -> None:
    pt = pytest.importorskip("pyterrier")
    run = pd.DataFrame(
        [(q, d, s) for q, docs in RUN.items() for d, s in docs.items()], columns=["qid", "docno", "score"]
    )
    run["rank"] = run.groupby("qid")["score"].rank(ascending=False).astype(int) - 1
    topics = pd.DataFrame(list(QUERIES.items()), columns=["qid", "query"])
    qrels = pd.DataFrame(
        [(q, d, r) for q, docs in QRELS.items() for d, r in docs.items()], columns=["qid", "docno", "label"]
    )
    bound = er.bind([GSR, GSR @ 2], docs=DOCS, queries=QUERIES)
    frame = pt.Experiment([pt.Transformer.from_df(run)], topics, qrels, bound)
    found = [frame[str(m)].item() for m in bound]
    assert found == pytest.approx([measured(GSR).value, measured(GSR @ 2).value])
    for size in (1, 2, 3):
        with pytest.raises(InputError, match="evaluate without batch_size"):
            pt.Experiment([pt.Transformer.from_df(run)], topics, qrels, bound, batch_size=size)


def test_bindings_with_other_vectors_do_not_collapse() -> None:
    tilted = genderedness()
    other = type(tilted)(tilted.words, -tilted.values)
    one, two = (er.bind([GSR @ 2], docs=DOCS, queries=QUERIES, vectors=v)[0] for v in (None, other))
    assert one != two
    with pytest.raises(InputError, match="GSR@2 needs the text of the queries; give queries"):
        er.bind([GSR @ 2], docs=DOCS)


def test_everything_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(InputError) as refused:
        measured("GSR", docs=None, queries=None, qrels=None)
    assert str(refused.value) == (
        "GSR needs the text of the documents; give docs. "
        "GSR needs relevance judgments; give qrels, or a depth, as in GSR@10. "
        "GSR needs the text of the queries; give queries"
    )
    with pytest.raises(InputError) as refused:
        er.measure(RUN, ["nDCG@10", "AP", "ARaB@5"])
    assert str(refused.value) == (
        "nDCG@10, AP need relevance judgments; give qrels. ARaB@5 needs a tally, or docs to make one from"
    )
