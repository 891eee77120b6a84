"""Balanced by generated queries: no real query goes, and pairs that read alike are the nearest there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenrank as er
from evenrank import InputError, demo
from evenrank.cli.app import app
from evenrank.data.read import read_qrels, read_queries
from evenrank.mitigate.balance.judgments import EvenJudgments, angular, nearest_pairs
from evenrank.mitigate.balance.matching import Balanced

HERE = demo.folder()
RANDOM = np.random.default_rng(5)


def scores(prefix: str, values: Any) -> dict[str, float]:
    return {f"{prefix}{place}": float(value) for place, value in enumerate(values)}


def filled(**more: Any) -> Balanced:
    female, male = RANDOM.normal(10, 2, 60), RANDOM.normal(11, 2, 150)
    stock = RANDOM.uniform(2, 20, 4000)
    real = {**scores("f", female), **scores("m", male)}
    genders = {query: "female" if query[0] == "f" else "male" for query in real}
    extra = scores("g", stock)
    made = pl.DataFrame({"query_id": list(extra), "doc_id": list(extra), "text": list(extra)})
    labels = {query: ("female", "male")[place % 2] for place, query in enumerate(extra)}
    return er.fill(real, made, genders=genders, generated_scores=extra, generated_genders=labels, **more)


def test_no_real_query_is_dropped_and_the_sides_come_out_level() -> None:
    found = filled()
    assert found.removed.is_empty() and sum(found.before.pairs.values()) == 210
    assert set(found.left_out.values()) == {0}
    assert found.after.pairs["female"] == found.after.pairs["male"] >= 150
    assert found.after.p > found.before.p
    asked = {**{f"f{n}": "x" for n in range(60)}, **{f"m{n}": "x" for n in range(150)}}
    assert found.queries(asked)["query_id"].to_list()[:210] == list(asked)


def test_bins_are_level_one_by_one() -> None:
    found = filled(bins=6)
    before, edges = found.before.histogram, found.before.edges
    counts = [
        before[gender] + np.histogram(found.pairs.filter(pl.col("gender") == gender)["score"], edges)[0]
        for gender in ("female", "male")
    ]
    assert counts[0].tolist() == counts[1].tolist()


def test_what_finds_no_counterpart_is_counted() -> None:
    made = pl.DataFrame({"query_id": ["g"], "doc_id": ["d"], "text": ["x"]})
    found = er.fill(
        {"f": 1.0, "m": 1.0, "n": 9.0},
        made,
        genders={"f": "female", "m": "male", "n": "male"},
        generated_scores={"g": 3.0},
        generated_genders={"g": "female"},
        bins=2,
    )
    assert found.added.is_empty()
    assert found.left_out == {
        "female pairs without a counterpart": 0,
        "male pairs without a counterpart": 1,
    }
    assert found.remarks() == ["male pairs without a counterpart: 1"]


def filled_one(scores: dict[str, float], made: dict[str, float], **more: Any) -> Balanced:
    """Filled with female generated queries; ids say the genders."""
    table = pl.DataFrame({"query_id": list(made), "doc_id": list(made), "text": list(made)})
    genders = {query: "female" if query[0] == "f" else "male" for query in scores}
    labels = dict.fromkeys(made, "female")
    return er.fill(scores, table, genders=genders, generated_scores=made, generated_genders=labels, **more)


def test_female_scores_outside_the_male_range_have_no_counterpart() -> None:
    scores = {"f1": 1.0, "f2": 9.0, "f3": -4.0, "m1": 1.0, "m2": 2.0}
    found = filled_one(scores, {"g": 2.0}, bins=1, range="male")
    assert found.remarks() == ["female pairs without a counterpart: 2"]


def test_settings_that_cannot_be_used_are_refused() -> None:
    pair = {"f": 1.0, "m": 1.0}, {"f": "female", "m": "male"}
    for settings, said in (({"bins": 0}, "bins is 0"), ({"seed": -1}, "seed is -1")):
        with pytest.raises(InputError, match=said):
            filled_one({"f": 1.0, "m": 2.0}, {"g": 2.0}, **settings)
        with pytest.raises(InputError, match=said):
            er.balance(*pair, **settings)
    with pytest.raises(InputError, match="caliper is inf; it must be a finite number"):
        er.balance(*pair, caliper=float("inf"))


def test_pairs_without_a_counterpart_are_not_called_queries() -> None:
    """One query with two documents is two pairs."""
    scores = pl.DataFrame({"query_id": ["f", "m", "m"], "doc_id": ["a", "b", "c"], "score": [1.0, 8.0, 9.0]})
    found = er.fill(
        scores,
        pl.DataFrame({"query_id": ["g"], "doc_id": ["d"], "text": ["x"]}),
        genders={"f": "female", "m": "male"},
        generated_scores={"g": 3.0},
        generated_genders={"g": "neutral"},
        bins=2,
    )
    assert "male pairs without a counterpart: 2" in found.remarks()
    assert "female pairs  male pairs" in found.grid().text()


vectors = st.lists(
    st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any), min_size=1, max_size=9
).map(lambda rows: np.array(rows, float) / np.linalg.norm(rows, axis=1, keepdims=True))


def greedily(female: np.ndarray, male: np.ndarray) -> list[tuple[int, int]]:
    """All pairs in order, each taken if both are free."""
    cosine = np.round(female @ male.T, 9)
    order = sorted((-cosine[f, m], f, m) for f in range(len(female)) for m in range(len(male)))
    found: list[tuple[int, int]] = []
    for _, f, m in order:
        if all(f != a and m != b for a, b in found):
            found.append((f, m))
    return found


@given(vectors, vectors, st.integers(1, 9))
def test_pairs_are_taken_as_if_all_were_sorted(female: np.ndarray, male: np.ndarray, most: int) -> None:
    f, m, away = nearest_pairs(female, male, most=most)
    assert list(zip(f.tolist(), m.tolist(), strict=True)) == greedily(female, male)[:most]
    assert (np.diff(away) >= 0).all() and ((away >= 0) & (away <= 1)).all()


@given(vectors, vectors)
def test_with_reuse_every_document_has_its_very_nearest(female: np.ndarray, male: np.ndarray) -> None:
    f, _, away = nearest_pairs(female, male, reuse=True)
    best = angular((female @ male.T).max(axis=1))
    assert sorted(f.tolist()) == list(range(len(female)))
    np.testing.assert_allclose(away, best[f], atol=1e-4)


def test_documents_without_a_word_of_the_dictionary_have_no_direction() -> None:
    made = pl.DataFrame(
        {"query_id": ["a", "b", "c"], "doc_id": ["d1", "d2", "d3"], "text": ["she", "he", "he too"]}
    )
    docs = {"d1": "fear and money", "d2": "xyzzy", "d3": "money and fear"}
    genders = {"a": "female", "b": "male", "c": "male"}
    found = er.even_judgments(made, docs, genders=genders)
    assert found.pairs.rows() == [("a", "d1", "c", "d3", 0.0)]
    assert found.left_out == {"queries whose document has no word of the dictionary": 1}
    with pytest.raises(InputError, match="no generated query with a vector is female"):
        er.even_judgments(made, docs, genders={"a": "male", "b": "male", "c": "male"})


def test_no_document_is_paired_with_itself() -> None:
    made = pl.DataFrame(
        {"query_id": ["a", "b", "c"], "doc_id": ["d1", "d1", "d2"], "text": ["she", "he", "he too"]}
    )
    docs = {"d1": "fear and money", "d2": "money"}
    genders = {"a": "female", "b": "male", "c": "male"}
    for reuse in (False, True):
        pairs = er.even_judgments(made, docs, genders=genders, reuse=reuse).pairs
        assert pairs.select("female", "male").rows() == [("a", "c")]
    with pytest.raises(InputError, match="all generated queries are of one document"):
        er.even_judgments(made.head(2), docs, genders=genders)


documents = st.lists(st.integers(0, 2), min_size=9, max_size=9).map(np.array)


@given(vectors, vectors, documents, documents)
def test_pairs_of_other_documents_are_taken_as_if_all_were_sorted(
    female: np.ndarray, male: np.ndarray, own: np.ndarray, theirs: np.ndarray
) -> None:
    own, theirs = own[: len(female)], theirs[: len(male)]
    f, m, _ = nearest_pairs(female, male, documents=(own, theirs))
    cosine = np.round(female @ male.T, 9)
    order = sorted(
        (-cosine[a, b], a, b) for a in range(len(female)) for b in range(len(male)) if own[a] != theirs[b]
    )
    found: list[tuple[int, int]] = []
    for _, a, b in order:
        if all(a != c and b != d for c, d in found):
            found.append((a, b))
    assert list(zip(f.tolist(), m.tolist(), strict=True)) == found


def test_a_size_below_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="size is -5"):
        alike("g1", "g2", size=-5)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("balance")
    er.index(HERE / "docs.tsv", folder / "index")
    made = er.generate(HERE / "docs.tsv", 2, "extractive")
    made.write(folder / "made.tsv")
    ids = made.queries["query_id"].to_list()
    labels = [f"{query}\t{('female', 'male', 'neutral')[place % 3]}" for place, query in enumerate(ids)]
    (folder / "labels.tsv").write_text("\n".join(labels) + "\n")
    return folder


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(done.exception, InputError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


COLLECTION = ("--queries", HERE / "queries.tsv", "--qrels", HERE / "qrels.txt")


def balance(by: str, built: Path, out: Path, *more: object, source: Path = HERE) -> str:
    """What `mitigate balance` prints; it writes to `out`."""
    real = ("--queries", source / "queries.tsv", "--qrels", source / "qrels.txt")
    made = ("--generated", built / "made.tsv", "--generated-genders", built / "labels.tsv")
    genders = () if by == "judgments" else ("--genders", HERE / "genders.tsv")
    given = ("--by", by, "--index", built / "index", *real, *made, *genders)
    return run("mitigate", "balance", *given, *more, "-o", out)


def test_judgments_are_written_without_genders(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    balance("judgments", built, out)
    assert sorted(path.name for path in out.iterdir()) == [
        "qrels.txt", "queries.tsv", "report.json", "triples.jsonl",
    ]  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    size = len(er.load(HERE).qrels.filter(pl.col("relevance") > 0))
    assert report["pairs"] == round(0.25 * size / 2) and report["queries_added"] == 2 * report["pairs"]
    before, after = er.load(HERE), read_qrels(out / "qrels.txt")
    assert len(after) == len(before.qrels) + report["queries_added"]
    lines = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    assert len(lines) == size + report["queries_added"] and set(lines[0]) == {
        "query_id", "query", "positive", "negative",
    }  # fmt: skip
    assert report["pairs without a triple"] == 0
    assert all(line["positive"] != line["negative"] for line in lines)


def test_balancing_by_generation_keeps_every_query(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    shown = balance("generation", built, out)
    assert "female pairs  male pairs" in shown
    kept = read_queries(out / "queries.tsv")["query_id"].to_list()
    assert kept[:60] == er.load(HERE).queries["query_id"].to_list()
    assert not (out / "genders.tsv").exists()
    report = json.loads((out / "report.json").read_text())
    assert len(kept) == 60 + report["queries added"]


@pytest.mark.parametrize("by", ["matching", "generation", "judgments"])
def test_every_way_prints_json_and_csv_and_writes_genders_where_asked_for(
    by: str, built: Path, tmp_path: Path
) -> None:
    assert json.loads(balance(by, built, tmp_path / "one", "--format", "json"))["provenance"]
    shown = balance(by, built, tmp_path / "two", "--format", "csv", "--with-genders")
    assert len(shown.splitlines()) == (2 if by == "judgments" else 37)
    assert (tmp_path / "two" / "genders.tsv").exists()


def test_predicted_genders_of_generated_queries_are_counted(built: Path, tmp_path: Path) -> None:
    texts = {"a": "what do women fear", "b": "what do men fear", "c": "price of coal"}
    documents = er.load(HERE).docs.frame()["doc_id"].to_list()[:3]
    rows = [f"{query}\t{doc}\t{text}\n" for (query, text), doc in zip(texts.items(), documents, strict=True)]
    (tmp_path / "made.tsv").write_text("query_id\tdoc_id\ttext\n" + "".join(rows))
    given = ("--generated", tmp_path / "made.tsv", *COLLECTION, "--index", built / "index")
    for by in ("judgments", "generation"):
        more = ("--by", by, "--genders", HERE / "genders.tsv", "-o", tmp_path / by)
        done = CliRunner().invoke(app, [str(each) for each in ("mitigate", "balance", *given, *more)])
        counts = "3 of 3 queries labelled by the classifier: 1 female, 1 male, 1 neutral"
        assert f"generated queries: {counts}" in done.stderr, done.output


def test_each_way_asks_for_what_it_needs(built: Path) -> None:
    given = ("mitigate", "balance", *COLLECTION, "--index", built / "index", "-o", "x")
    for more, said in (
        (("--by", "generation"), "--by generation adds generated queries; give --generated"),
        (("--by", "matching"), "--by matching compares female with male queries; give --genders"),
    ):
        done = CliRunner().invoke(app, [str(each) for each in (*given, *more)])
        assert isinstance(done.exception, InputError) and said in str(done.exception)


@pytest.mark.parametrize("by", ["generation", "judgments"])
def test_triples_are_of_real_and_added_queries(by: str, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    balance(by, built, out)
    rows = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    asked = read_qrels(out / "qrels.txt").filter(pl.col("relevance") > 0)
    assert [row["query_id"] for row in rows] == asked["query_id"].to_list()


def test_triples_after_matching_are_of_the_queries_that_stay(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    balance("matching", built, out, "--caliper", "0.05")
    rows = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    kept = read_queries(out / "queries.tsv")["query_id"].to_list()
    assert {row["query_id"] for row in rows} <= set(kept) and len(kept) < 60


def test_an_index_of_another_collection_makes_no_triples(tmp_path: Path) -> None:
    other = er.index({"x1": "boats at sea"}, tmp_path / "other")
    with pytest.raises(InputError, match="other: the index lacks"):
        alike("g1", "g2").write(tmp_path / "out", {"q": "x"}, {"q": {"d": 1}}, index=other)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", ["generation", "judgments"])
def test_a_query_is_not_added_twice(by: str, built: Path, tmp_path: Path) -> None:
    balance(by, built, tmp_path / "once")
    with pytest.raises(InputError, match="is to be added, but is there already"):
        balance(by, built, tmp_path / "twice", source=tmp_path / "once")
    assert not (tmp_path / "twice").exists()
    read_queries(tmp_path / "once" / "queries.tsv")


def alike(*query_ids: str, genders: Any = ("female", "male"), **more: Any) -> EvenJudgments:
    """Pairs out of queries that are female and male by turns; all their documents read alike."""
    made = pl.DataFrame({"query_id": query_ids, "doc_id": [f"d{q}" for q in query_ids]})
    labels = {query: genders[place % 2] for place, query in enumerate(query_ids)}
    docs = dict.fromkeys(made["doc_id"].to_list(), "fear and money")
    return er.even_judgments(made.with_columns(text=pl.lit("x y")), docs, genders=labels, **more)


def test_an_id_that_is_there_already_is_named() -> None:
    found = alike("g1", "g2")
    said = "query_id 'g2' is to be added, but is there already; start"
    with pytest.raises(InputError, match=said):
        found.queries({"q": "x", "g2": "y"})
    with pytest.raises(InputError, match=said):
        found.qrels({"g2": {"d": 1}})
    assert found.queries({"q": "x"})["query_id"].to_list()[0] == "q"


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u00a0"])
def test_ids_with_blanks_are_not_written_to_judgments(blank: str, tmp_path: Path) -> None:
    found = alike(f"g{blank}1", "g2")
    with pytest.raises(InputError, match=r"query_id 'g.*1' has a (blank|tab)"):
        found.write(tmp_path / "out", {"q": "x"}, {"q": {"d": 1}})
    judged = pl.DataFrame({"query_id": ["q"], "doc_id": [f"d{blank}1"], "relevance": [1]})
    with pytest.raises(InputError, match=r"doc_id .* has a blank, which judgments"):
        alike("g1", "g2").write(tmp_path / "out", {"q": "x"}, judged)
    assert not (tmp_path / "out").exists()


def test_the_order_of_added_queries_does_not_tell_their_genders() -> None:
    ids = [f"g{n}" for n in range(40)]
    found, swapped = alike(*ids), alike(*ids, genders=("male", "female"))
    order = found.added["query_id"].to_list()
    assert sorted(order) == sorted(ids) and order == swapped.added["query_id"].to_list()
    female = set(ids[::2])
    assert 0 < len(female.intersection(order[:20])) < 20


def test_it_says_so_where_fewer_queries_are_added_than_asked_for() -> None:
    found = alike("g1", "g2", "g3", "g4", ratio=0.5, size=100)
    assert found.remarks() == ["50 queries were to be added: generate more, or lower the ratio"]
    assert found.to_dict()["queries_requested"] == 50 and found.to_dict()["queries_added"] == 4
    for size in (6, 7, 8, 9):
        assert alike("g1", "g2", "g3", "g4", ratio=0.5, size=size).remarks() == []
    assert alike("g1", "g2").remarks() == []


def test_a_ratio_that_cannot_be_used_is_refused() -> None:
    for ratio in (0, 1.5, float("nan")):
        with pytest.raises(InputError, match="above 0 and at most 1"):
            alike("g1", "g2", ratio=ratio)


@pytest.mark.parametrize("how", [("--method", "bins"), ("--by", "generation")])
def test_a_negative_seed_is_a_mistake_of_the_caller(how: tuple[str, ...], tmp_path: Path) -> None:
    given = [str(each) for each in ("--index", tmp_path, *COLLECTION, "-o", tmp_path / "x")]
    done = CliRunner().invoke(app, ["mitigate", "balance", *how, *given, "--seed", "-1"])
    assert done.exit_code == 2 and "--seed" in done.output
