"""Tables made out of anything that looks like one, and runs in the one order everything relies on."""

from __future__ import annotations

import gzip
import random
from collections import namedtuple
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data.docs import load
from evenrank.data.read import fingerprint, read_genders, read_qrels, read_queries
from evenrank.data.runs import perfect_run, random_run, read_run, write_run
from evenrank.data.schema import QRELS_SCHEMA, QUERIES_SCHEMA, RUN_SCHEMA
from evenrank.errors import InputError

Scored = namedtuple("Scored", "query_id doc_id score")
RUN = [("q1", "d2", 3.0, 1), ("q1", "d1", 1.0, 2), ("7", "d1", 2.0, 1)]
QRELS = [("q1", "d1", 2), ("q1", "d2", 0), ("7", "d1", -1)]
QUERIES = [("q1", "hats"), ("7", "cats")]


def runs() -> list[Any]:
    triples = [row[:3] for row in (RUN[1], RUN[0], RUN[2])]
    frame = pl.DataFrame(triples, schema=["query_id", "doc_id", "score"], orient="row")
    return [
        {"q1": {"d1": 1.0, "d2": 3.0}, "7": {"d1": 2.0}},
        triples,
        iter(triples),
        [list(triple) for triple in triples],
        [Scored(*triple) for triple in triples],
        [ir_measures.ScoredDoc(*triple) for triple in triples],
        [{"qid": q, "docno": d, "score": s, "rank": 0, "docid": 3} for q, d, s in triples],
        frame,
        frame.lazy(),
        frame.to_arrow(),
        frame.to_pandas(),
        frame.to_pandas().astype({"query_id": "category"}),
        frame.rename({"query_id": "qid", "doc_id": "docno"}).with_columns(docid=pl.lit(9)).to_pandas(),
        frame.with_columns(pl.col("doc_id").cast(pl.Categorical), pl.col("score").cast(pl.Int32)),
    ]


@pytest.mark.parametrize("source", runs())
def test_anything_that_looks_like_a_run_becomes_one(source: Any) -> None:
    run = read_run(source)
    assert run.schema == RUN_SCHEMA
    assert run.rows() == RUN
    assert read_run(run) is run, "and only once"


@pytest.mark.parametrize(
    "source",
    [
        {"q1": {"d1": 2, "d2": 0}, "7": {"d1": -1}},
        QRELS,
        [ir_measures.Qrel(*row) for row in QRELS],
        pl.DataFrame(QRELS, schema=["query_id", "doc_id", "relevance"], orient="row"),
        pd.DataFrame(QRELS, columns=["qid", "docno", "label"]),
        pd.DataFrame(QRELS, columns=["qid", "docno", "label"]).astype({"label": float}),
    ],
)
def test_anything_that_looks_like_judgments_becomes_them(source: Any) -> None:
    qrels = read_qrels(source)
    assert qrels.schema == QRELS_SCHEMA
    assert qrels.rows() == QRELS
    assert read_qrels(qrels).equals(qrels)


@pytest.mark.parametrize(
    "source",
    [
        dict(QUERIES),
        QUERIES,
        pl.DataFrame(QUERIES, schema=["query_id", "text"], orient="row"),
        pd.DataFrame(QUERIES, columns=["qid", "query"]),
        [{"query_id": q, "title": t, "description": "long"} for q, t in QUERIES],
    ],
)
def test_anything_that_looks_like_queries_becomes_them(source: Any) -> None:
    queries = read_queries(source)
    assert queries.schema == QUERIES_SCHEMA
    assert queries.rows() == QUERIES
    assert read_queries(queries).equals(queries)


def test_whole_numbers_are_ids() -> None:
    assert read_run({1: {2: 3}}).rows() == [("1", "2", 3.0, 1)]
    assert read_queries(pd.DataFrame({"qid": [1], "query": ["a"]})).rows() == [("1", "a")]
    assert read_run(pl.DataFrame({"qid": [1], "docno": [2], "score": [1]})).rows() == [("1", "2", 1.0, 1)]


@pytest.mark.parametrize(
    ("reader", "source", "message"),
    [
        (read_run, {"q": {"d": float("nan")}}, "row 1: score is nan; it must be a finite number"),
        (read_run, {"q": {"d": "high"}}, "row 1: score is 'high'; it must be a number"),
        (read_run, {"q": 5}, "'q' has 5; expected {query_id: {doc_id: score}}"),
        (read_run, [("q", "d", 1.0), ("q", "d", 2.0)], "row 2 repeats row 1: query_id 'q' with doc_id 'd'"),
        (
            read_run,
            [("q", "d", 1.0), ("q", "d")],
            r"row 2: \('q', 'd'\); expected \(query_id, doc_id, score\)",
        ),
        (read_run, [("q", None, 1.0)], "row 1: doc_id is missing"),
        (read_run, [("", "d", 1.0)], "row 1: query_id is empty"),
        (read_run, [(1.5, "d", 1.0)], "row 1: query_id is 1.5"),
        (read_run, [("q", "d", 10**400)], "score holds a number that is too large"),
        (read_run, {}, "the run table has no rows"),
        (read_run, 7, "7 is not a table"),
        (read_run, pl.DataFrame({"qid": ["a"], "docno": ["b"]}), "no column score; found qid, docno"),
        (read_run, pl.DataFrame({"qid": ["a"], "docno": ["b"], "score": ["1"]}), "column score holds String"),
        (
            read_run,
            pd.DataFrame({"qid": [1.0], "docno": ["b"], "score": [1]}),
            "column query_id holds Float64",
        ),
        (read_qrels, [("q", "d", 1.5)], "row 1: relevance is 1.5; it must be a whole number"),
        (read_qrels, [("q", "d", None)], "row 1: relevance is None"),
        (read_qrels, [{"qid": "q", "docno": "d", "label": 1}, {"qid": "q"}], "row 2: no docno"),
        (read_queries, {"q": None}, "row 1: text is missing"),
        (read_queries, [("q", "a"), ("q", "b")], "row 2 repeats row 1: query_id 'q'"),
        (read_queries, [("q", "\ud800")], "lone surrogate"),
        (read_genders, {"q": ""}, "row 1: gender is empty"),
    ],
)
def test_what_cannot_be_a_table_is_refused_with_its_row(reader: Any, source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader(source)


def test_ties_go_to_the_greater_id_as_text() -> None:
    run = read_run({"q": {"9": 1.0, "10": 1.0, "é": 1.0, "z": 1.0, "𝄞": 1.0, "\uffff": 1.0, "a": 1.5}})
    assert run["doc_id"].to_list() == ["a", "𝄞", "\uffff", "é", "z", "9", "10"], "in the order of UTF-8 bytes"


def test_scores_are_compared_in_double_precision_as_written(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("q Q0 a 1 1.00000000000001 x\nq Q0 b 2 1.00000000000000 x\n")
    assert read_run(tmp_path / "x.run")["doc_id"].to_list() == ["a", "b"]


def test_zero_has_no_sign() -> None:
    assert read_run({"q": {"a": 0.0, "b": -0.0}})["doc_id"].to_list() == ["b", "a"]
    assert read_run({"q": {"b": 0.0, "a": -0.0}})["doc_id"].to_list() == ["b", "a"]


scores = st.dictionaries(
    st.text("ab1é", min_size=1, max_size=3),
    st.dictionaries(
        st.text("xyz9\u00e9\U0001d11e", min_size=1, max_size=3),
        st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-40, 2.5, -3.0, 1e300, -1e300, 5e-324]),
        min_size=1,
    ),
    min_size=1,
)


@given(scores, st.randoms(use_true_random=False))
def test_the_order_is_that_of_slow_code_whatever_the_order_of_rows(
    found: dict[str, dict[str, float]], rng: random.Random
) -> None:
    rows = [(q, d, s) for q, part in found.items() for d, s in part.items()]
    rng.shuffle(rows)
    expected = []
    for query in dict.fromkeys(q for q, _, _ in rows):
        part = sorted(found[query].items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
        expected += [(query, d, s, rank) for rank, (d, s) in enumerate(part, start=1)]
    run = read_run(rows)
    assert run.rows() == expected
    assert read_run(run) is run
    ranked = read_run(run.sample(fraction=1, shuffle=True, seed=1), order="rank").sort("query_id", "rank")
    assert ranked["doc_id"].equals(run.sort("query_id", "rank")["doc_id"])


@given(found=scores, suffix=st.sampled_from([".run", ".run.gz", ".run.zst"]))
def test_a_written_run_keeps_its_order_even_in_single_precision(
    found: dict[str, dict[str, float]], suffix: str, tmp_path: Path
) -> None:
    run = read_run(found)
    path = tmp_path / f"bm25{suffix}"
    write_run(run, path, name="bm25")
    again = read_run(path)
    assert again.select("query_id", "doc_id", "rank").equals(run.select("query_id", "doc_id", "rank"))
    single = again["score"].to_numpy().astype(np.float32)
    falls = single[1:] < single[:-1]
    assert np.isfinite(single).all()
    assert (falls | (again["rank"].to_numpy()[1:] == 1)).all()


def test_scores_that_fall_already_are_written_as_they_are(tmp_path: Path) -> None:
    write_run({"q": {"a": 8.0327, "b": 8.032699, "c": -2.5, "d": -2.5}}, tmp_path / "x.run", name="x")
    assert (tmp_path / "x.run").read_text().splitlines() == [
        "q Q0 a 1 8.0327 x",
        "q Q0 b 2 8.032699 x",
        "q Q0 d 3 -2.5 x",
        "q Q0 c 4 -2.5000002 x",
    ]


@pytest.mark.parametrize(
    ("run", "name"),
    [({"q 1": {"d": 1}}, "x"), ({"q": {"d\t1": 1}}, "x"), ({"q": {"d": 1}}, "my run"), ({"q": {"d": 1}}, "")],
)
def test_what_trec_format_cannot_hold_is_not_written(run: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="blank"):
        write_run(run, tmp_path / "x.run", name=name)
    assert not list(tmp_path.iterdir())


def test_a_run_that_only_looks_normal_is_sorted_and_checked_again() -> None:
    run = read_run({"a": {"x": 3, "y": 2, "z": 2}, "b": {"x": 1}})
    assert run["doc_id"].to_list() == ["x", "z", "y", "x"]
    assert read_run(run.reverse())["query_id"].to_list() == ["b", "a", "a", "a"]
    assert read_run(run.with_columns(rank=pl.lit(1, pl.Int64))).equals(run)
    assert read_run(run.with_columns(score=-pl.col("score")))["doc_id"].to_list() == ["z", "y", "x", "x"]
    split = pl.concat([run.head(2), run.tail(1), run.slice(2, 1)])
    assert read_run(split).equals(run)
    for row, message in (
        ({"doc_id": "x"}, "repeats row"),
        ({"score": float("nan")}, "score is nan"),
        ({"doc_id": None}, "doc_id is missing"),
        ({"query_id": ""}, "query_id is empty"),
    ):
        last = pl.DataFrame([{**run.row(2, named=True), **row}], schema=run.schema)
        with pytest.raises(InputError, match=message):
            read_run(pl.concat([run.head(2), last]))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(InputError, match="order cannot be 'Score'"):
        read_run({"q": {"d": 1}}, order="Score")  # type: ignore[arg-type]


def test_the_perfect_run_has_all_and_only_relevant_documents() -> None:
    qrels = {"q": {"a": 1, "b": 3, "c": 0, "d": 1}, "none": {"a": 0, "b": -1}, "r": {"x": 2}}
    run = perfect_run(qrels)
    assert run.rows() == [("q", "b", 3.0, 1), ("q", "d", 1.0, 2), ("q", "a", 1.0, 3), ("r", "x", 2.0, 1)]
    assert read_run(run) is run


def test_a_random_run_depends_on_the_seed_and_not_on_the_rows() -> None:
    qrels = read_qrels({str(q): {f"d{n}": n % 2 for n in range(20)} for q in range(10)})
    run = random_run(qrels, seed=1)
    assert len(run) == len(qrels)
    assert read_run(run) is run
    assert random_run(qrels, seed=1).equals(run)
    assert not random_run(qrels, seed=2).equals(run)
    shuffled = random_run(qrels.sample(fraction=1, shuffle=True, seed=3), seed=1)
    assert shuffled.sort("query_id", "rank").equals(run.sort("query_id", "rank"))


def folder(tmp_path: Path, *names: str) -> Path:
    content = {"docs": "d1\ttext\n", "queries": "q1\ttext\n", "qrels": "q1 0 d1 1\n"}
    for name in names:
        data = content[name.split(".")[0]].replace("text", name).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    docs, queries, qrels = load(folder(tmp_path, "docs.tsv.gz", "queries.txt", "qrels.txt"))
    assert docs.texts(["d1"]) == {"d1": "docs.tsv.gz"}
    assert queries["text"].to_list() == ["queries.txt"]
    assert qrels is not None
    assert len(qrels) == 1


def test_a_folder_need_not_have_judgments(tmp_path: Path) -> None:
    assert load(str(folder(tmp_path, "docs.tsv", "queries.tsv"))).qrels is None


def test_a_split_is_chosen_and_never_guessed(tmp_path: Path) -> None:
    names = (
        "docs.tsv",
        "queries.train.tsv",
        "queries.dev.small.tsv",
        "qrels.train.txt",
        "qrels.dev.small.txt",
    )
    folder(tmp_path, *names)
    (tmp_path / "queries.train.tsv.bak").write_text("left alone")
    assert load(tmp_path, split="dev.small").queries["text"].to_list() == ["queries.dev.small.tsv"]
    with pytest.raises(InputError, match=r"no file queries.tsv; found queries.dev.small.tsv, .* with split="):
        load(tmp_path)
    with pytest.raises(InputError, match=r"no file queries.test.tsv; found queries.dev.small.tsv"):
        load(tmp_path, split="test")


@pytest.mark.parametrize(
    ("names", "split", "message"),
    [
        (["queries.tsv"], None, "no file docs.tsv"),
        (["docs.tsv"], None, "no file queries.tsv"),
        (
            ["docs.tsv", "docs.tsv.gz", "queries.tsv"],
            None,
            "several docs files: docs.tsv, docs.tsv.gz; keep one",
        ),
        (["docs.tsv", "queries.tsv"], "test", "no file queries.test.tsv; found queries.tsv"),
        (["docs.tsv", "queries.a.tsv", "qrels.b.txt"], "a", "no file qrels.a.tsv; found qrels.b.txt"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(
    names: list[str], split: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path}: {message}"):
        load(folder(tmp_path, *names), split=split)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "docs.tsv").write_text("a\tb")
    with pytest.raises(InputError, match="this is a file; name its folder"):
        load(tmp_path / "docs.tsv")


def test_a_run_of_a_million_rows_is_read_and_sorted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    frame = pl.DataFrame(
        {
            "q": np.repeat(np.arange(1000), 1000),
            "q0": "Q0",
            "d": rng.permutation(n) * 7,
            "r": 1,
            "s": rng.random(n).round(4) * 20,
            "t": "tag",
        }
    )
    frame.write_csv(tmp_path / "big.run", include_header=False, separator=" ")
    run = read_run(tmp_path / "big.run")
    assert len(run) == n
    scores = run["score"].to_numpy().reshape(1000, 1000)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert read_run(run) is run


@pytest.mark.parametrize(
    ("name", "split", "sizes"),
    [
        ("time", None, (423, 83, 253)),
        ("grepbiasir", None, (702, 117, 702)),
        ("squad", "test", (6795, 2114, 2114)),
        ("squad", "train", (6795, 8456, 8456)),
    ],
)
def test_the_test_collections_are_loaded(
    name: str, split: str | None, sizes: tuple[int, int, int], shared: Path
) -> None:
    docs, queries, qrels = load(shared / "data" / name, split=split)
    assert qrels is not None
    assert (len(docs.frame()), len(queries), len(qrels)) == sizes


@pytest.mark.parametrize("name", ["time", "grepbiasir", "squad"])
def test_real_runs_are_in_the_order_they_print(name: str, shared: Path) -> None:
    found = sorted((shared / "runs").glob(f"{name}.*"))
    assert len(found) == 3
    for path in found:
        run = read_run(path)
        assert run["doc_id"].equals(read_run(path, order="rank")["doc_id"]), path.name


def test_a_run_that_was_changed_in_place_is_checked_again() -> None:
    rows = [("q", f"d{i}", float(9 - i)) for i in range(5)]
    made = read_run(rows)
    assert read_run(made) is made
    made[0, "score"] = 0.0
    assert read_run(made)["doc_id"].to_list() == ["d1", "d2", "d3", "d4", "d0"]
    made = read_run(rows)
    made.extend(made[:1])
    with pytest.raises(InputError, match="repeats"):
        read_run(made)


def test_a_known_run_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = read_run([("q", f"d{i}", float(9 - i)) for i in range(5)])
    for check in ("_checked", "_sorted"):
        monkeypatch.setattr("evenrank.data.runs." + check, lambda *_, **__: pytest.fail("checked again"))
    assert read_run(made) is made


def test_a_fingerprint_covers_ids_ranks_and_scores_but_not_their_last_bits() -> None:
    run = pl.DataFrame({"query_id": ["1", "1", "1"], "score": [3.0, 2.0, 1.0], "rank": [1, 2, 3]})
    same = run.with_columns(score=pl.col("score") * (1 + 2**-50))
    tied = run.with_columns(score=pl.Series([3.0, 2.0, 2.0]))
    assert fingerprint([run]) == fingerprint([same]) != fingerprint([tied])
    assert fingerprint([run]) != fingerprint([run.with_columns(rank=pl.Series([1, 3, 2]))])
    assert fingerprint([run]) != fingerprint([run.with_columns(score=pl.col("score") * 2)])


def test_two_tallies_with_the_same_counts_of_other_words_have_different_names() -> None:
    import evenrank as er

    docs = [{"d": "he him"}, {"d": "he he"}]
    assert er.tally(docs[0]).frame["male"].to_list() == er.tally(docs[1]).frame["male"].to_list() == [2]
    # While both are in use: one that nobody holds any more leaves its plain name to the next.
    bound = [er.bind("ARaB(magnitude='tf')@5", docs=one) for one in docs]
    names = {str(each) for each in bound}
    del bound
    bare = [er.bind("ARaB(magnitude='tf')@5", tally=er.Tally(er.tally(one).frame)) for one in docs]
    assert len(names) == len({str(each) for each in bare}) == 2
