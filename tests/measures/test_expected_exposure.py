"""Expected exposure of groups over several rankings: by hand, laws, and what the files look like."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.data.runs import read_run
from evenrank.measures.exposure import attention, deserved

LABELS = {"a": "f", "b": "f", "c": "m", "d": "m"}
ALL = ("EEL", "EED", "EER")
ALL_AT_2 = [f"{name}@2" for name in ALL]


def sequences(*rankings):
    rows = [("q", str(s), doc, r) for s, ranking in enumerate(rankings) for r, doc in enumerate(ranking, 1)]
    return pl.DataFrame(rows, schema=["query_id", "seq", "doc_id", "rank"], orient="row")


def values(run, qrels, k=4, labels=LABELS, more=""):
    found = er.measure(
        run, [f"{name}({more})@{k}" for name in ALL], labels=labels, qrels=qrels, confidence=None
    )
    return {name: one.value for name, one in zip(ALL, found, strict=True)}


def test_by_hand():
    # Two rankings; the first two ranks get attention 1 each, so 2 in all, half of it for each group.
    found = values(sequences("abc", "cba"), {"q": {"a": 1, "c": 1}}, k=2)
    # f: a is first in one of two rankings, below the cut in the other: 0.5; so is c
    assert found == {"EEL": 0.5, "EED": 0.5, "EER": 1.0}
    whole = values(sequences("ac", "ca"), {"q": {"a": 1, "c": 1}}, k=2)
    assert whole == {"EEL": 0.0, "EED": 2.0, "EER": 2.0}


def test_what_is_not_relevant_counts_only_if_asked_for():
    run, qrels = sequences("ab", "ba"), {"q": {"a": 1}}
    assert values(run, qrels, k=2) == {"EEL": 1.0, "EED": 1.0, "EER": 2.0}
    assert values(run, qrels, k=2, more="only_relevant=False") == {"EEL": 0.0, "EED": 4.0, "EER": 4.0}


def test_relevant_documents_of_one_grade_deserve_the_same():
    weights = attention(np.arange(1, 5))
    assert deserved(np.array([2, 1, 1, 1])) == pytest.approx([weights[0], *[weights[1:].mean()] * 3])
    assert deserved(np.array([1, 1])) == pytest.approx([1, 1])
    assert deserved(np.array([1] * 5)).sum() == pytest.approx(attention(np.arange(1, 6)).sum())


def test_unknown_documents_of_one_query_leave_the_others_alone():
    docs = {"a": "she", "c": "he"}
    qrels = {query: {"a": 1, "c": 1} for query in ("q1", "q2")}
    known = {"a": 2.0, "c": 1.0}

    def each(first):
        run = {"q1": first, "q2": known}
        found = er.measure(run, ALL_AT_2, docs=docs, qrels=qrels, missing="skip", confidence=None)
        return {str(one.measure): one.per_query() for one in found}

    expected = each(known)
    assert expected["EED@2"] == {"q1": 2.0, "q2": 2.0}
    assert each({"x": 4.0, "y": 3.0, **known}) == expected  # skipped: the known documents move up
    only_unknown = each({"x": 4.0, "y": 3.0})  # q1 is left out, and q2 keeps its values
    assert only_unknown == {name: {"q2": of["q2"]} for name, of in expected.items()}


def test_a_ranking_without_a_known_document_is_left_out():
    docs, qrels = {"a": "she", "c": "he"}, {"q": {"a": 1, "c": 1}}
    runs = {"one": sequences("ac"), "two": sequences("ac", "xy"), "mixed": sequences("xayc")}
    found = er.measure(runs, ALL_AT_2, docs=docs, qrels=qrels, missing="skip", confidence=None)
    one, two, mixed = ([m.value for m in found.runs[name]] for name in runs)
    assert one == two == mixed


@given(
    st.lists(st.permutations("abcd"), min_size=1, max_size=4),
    st.lists(st.integers(0, 2), min_size=4, max_size=4).filter(any),
    st.integers(1, 4),
)
def test_the_loss_is_disparity_minus_twice_relevance_plus_a_constant(rankings, grades, k):
    qrels = {"q": dict(zip("abcd", grades, strict=True))}
    found = values(sequences(*rankings), qrels, k)
    weights = deserved(np.array(sorted((g for g in grades if g), reverse=True)))
    by_doc = dict(zip(sorted((d for d in "abcd" if qrels["q"][d]), key=lambda d: -qrels["q"][d]), weights,
                      strict=True))  # fmt: skip
    target = np.array([sum(w for d, w in by_doc.items() if LABELS[d] == g) for g in "fm"])
    target *= attention(np.arange(1, k + 1)).sum() / target.sum()
    assert found["EEL"] == pytest.approx(found["EED"] - 2 * found["EER"] + target @ target, abs=1e-9)
    assert found["EEL"] >= 0
    assert found["EED"] <= attention(np.arange(1, k + 1)).sum() ** 2 + 1e-9
    more = values(sequences(*rankings, *rankings), qrels, k)  # every ranking twice: the mean is the same
    assert more == pytest.approx(found, abs=1e-9)


@given(st.permutations("abcd"), st.permutations("abcd"), st.integers(1, 4))
def test_mixing_two_rankings_never_costs_more_than_their_mean(one, other, k):
    qrels = {"q": dict.fromkeys("abcd", 1)}
    apart = [values(sequences(ranking), qrels, k) for ranking in (one, other)]
    mixed = values(sequences(one, other), qrels, k)
    for name in ("EEL", "EED"):  # squares are convex
        assert mixed[name] <= (apart[0][name] + apart[1][name]) / 2 + 1e-9
    assert mixed["EER"] == pytest.approx((apart[0]["EER"] + apart[1]["EER"]) / 2)


def test_one_ranking_without_seq_is_a_sequence_of_one():
    qrels = {"q": {"a": 1, "d": 2}}
    plain = {"q": {"d": 4.0, "a": 3.0, "b": 2.0, "c": 1.0}}
    assert values(plain, qrels) == values(sequences("dabc"), qrels)


def test_queries_without_relevant_documents_are_left_out_and_counted():
    run = pl.concat([sequences("ab"), sequences("ba").with_columns(query_id=pl.lit("r"))])
    found = er.measure(run, "EEL@2", labels=LABELS, qrels={"q": {"a": 1}, "r": {"a": 0}}, confidence=None)[0]
    assert found.left_out == {"nothing is judged relevant": 1}


@pytest.mark.parametrize("name", ["runs.tsv", "runs.csv", "runs.parquet", "runs.tsv.gz"])
def test_a_file_with_a_column_seq(tmp_path, name):
    frame, path = sequences("abc", "cba"), tmp_path / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    else:
        text = frame.write_csv(separator="\t" if ".tsv" in name else ",").encode()
        import gzip

        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    read = read_run(path)
    assert read.columns == ["query_id", "doc_id", "score", "rank", "seq"]
    assert read["doc_id"].to_list() == list("abccba")
    assert read["rank"].to_list() == [1, 2, 3, 4, 5, 6]
    assert read_run(read).equals(read)
    assert values(path, {"q": {"a": 1}}) == values(frame, {"q": {"a": 1}})


def test_scores_order_a_ranking_where_there_are_no_ranks():
    frame = pl.DataFrame(
        {"query_id": "q", "seq": [2, 1, 1, 2], "doc_id": list("abcd"), "score": [1.0, 2.0, 3.0, 4.0]}
    )
    assert read_run(frame)["doc_id"].to_list() == list("dacb")
    assert read_run(frame.lazy())["doc_id"].to_list() == list("dacb")


def test_other_measures_refuse_several_rankings(tmp_path):
    run = sequences("ab", "ba")
    for measure in ("AWRF@2", "nDCG@2"):
        with pytest.raises(er.InputError, match="several rankings of a query"):
            er.measure(run, measure, labels=LABELS, qrels={"q": {"a": 1}})
    with pytest.raises(er.InputError, match="several rankings"):
        er.constrain(run, limit="abs(MB@2)<=0.5", labels=LABELS)
    with pytest.raises(er.InputError, match=r"repeats .*doc_id 'a'"):
        read_run(sequences("aa"))
    path = tmp_path / "run.tsv"
    path.write_text("query_id\tseq\tdoc_id\trank\nq\t1\ta\tfirst\n")
    with pytest.raises(er.InputError, match=r"run.tsv:2: "):
        read_run(path)
