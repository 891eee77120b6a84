"""Balanced by generated queries: no real query goes, and pairs that read alike are the nearest there are."""

from __future__ import annotations

import json
from dataclasses import replace
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
from evenrank.mitigate.balance import Filled
from evenrank.mitigate.judgments import EvenJudgments, angular, nearest_pairs
from evenrank.mitigate.training_sets import data_set

HERE = demo.folder()
RANDOM = np.random.default_rng(5)


def scores(prefix: str, values: Any) -> dict[str, float]:
    return {f"{prefix}{place}": float(value) for place, value in enumerate(values)}


def filled(method: str, **more: Any) -> Filled:
    female, male = RANDOM.normal(10, 2, 60), RANDOM.normal(11, 2, 150)
    stock = RANDOM.uniform(2, 20, 4000)
    real = {**scores("f", female), **scores("m", male)}
    genders = {query: "female" if query[0] == "f" else "male" for query in real}
    extra = scores("g", stock)
    made = pl.DataFrame({"query_id": list(extra), "doc_id": list(extra), "text": list(extra)})
    labels = {query: ("female", "male")[place % 2] for place, query in enumerate(extra)}
    return er.fill(
        real, made, genders=genders, generated_scores=extra, generated_genders=labels, method=method, **more
    )


@pytest.mark.parametrize("method", ["matching", "bins"])
def test_no_real_query_is_dropped_and_the_sides_come_out_level(method: str) -> None:
    found = filled(method)
    assert found.scores.height == 210
    assert found.missing == {"female": 0, "male": 0}
    assert found.after.pairs["female"] == found.after.pairs["male"] >= 150
    assert (found.after.p or 0) > 0.9 if method == "matching" else found.after.p > found.before.p
    asked = {**{f"f{n}": "x" for n in range(60)}, **{f"m{n}": "x" for n in range(150)}}
    assert found.queries(asked)["query_id"].to_list()[:210] == list(asked)


def test_bins_are_level_one_by_one() -> None:
    found = filled("bins", bins=6)
    edges = found.before.edges
    every = pl.concat([found.scores.select("score", "gender"), found.added.select("score", "gender")])
    counts = [
        np.histogram(every.filter(pl.col("gender") == gender)["score"], edges)[0]
        for gender in ("female", "male")
    ]
    assert counts[0].tolist() == counts[1].tolist()


def test_it_says_so_where_few_generated_queries_part_the_sides_further() -> None:
    male = {f"m{n}": float(n) for n in range(40)}
    made = pl.DataFrame({"query_id": ["g", "h"], "doc_id": ["d", "e"], "text": ["x", "y"]})
    found = er.fill(
        {"f": 20.0, **male},
        made,
        genders={"f": "female", **dict.fromkeys(male, "male")},
        generated_scores={"g": 39.0, "h": 38.0},
        generated_genders={"g": "female", "h": "female"},
        caliper=0.5,
    )
    assert len(found.added) == 2 and found.after.kolmogorov_smirnov > found.before.kolmogorov_smirnov
    assert "further apart than before" in found.remarks()[-1]


def test_what_finds_no_counterpart_is_counted() -> None:
    made = pl.DataFrame({"query_id": ["g"], "doc_id": ["d"], "text": ["x"]})
    found = er.fill(
        {"f": 1.0, "m": 1.0, "n": 9.0},
        made,
        genders={"f": "female", "m": "male", "n": "male"},
        generated_scores={"g": 3.0},
        generated_genders={"g": "female"},
        caliper=1.0,
    )
    assert found.added.is_empty() and found.missing == {"female": 0, "male": 1}
    assert "1 male pair has no counterpart: generate more female queries" in found.remarks()


def filled_one(scores: dict[str, float], made: dict[str, float], **more: Any) -> Filled:
    """Filled with female generated queries; ids say the genders."""
    table = pl.DataFrame({"query_id": list(made), "doc_id": list(made), "text": list(made)})
    genders = {query: "female" if query[0] == "f" else "male" for query in scores}
    labels = dict.fromkeys(made, "female")
    return er.fill(scores, table, genders=genders, generated_scores=made, generated_genders=labels, **more)


def test_female_scores_outside_the_male_range_have_no_counterpart() -> None:
    scores = {"f1": 1.0, "f2": 9.0, "f3": -4.0, "m1": 1.0, "m2": 2.0}
    found = filled_one(scores, {"g": 2.0}, method="bins", bins=1, range="male")
    assert found.missing == {"female": 2, "male": 0} and found.report()["outside the range"] == 2
    assert "2 female pairs lie outside the range of male scores" in " ".join(found.remarks())
    assert "generate more male" not in " ".join(found.remarks())


def test_too_few_queries_are_blamed_only_where_some_are_missing() -> None:
    one = filled_one({"f1": 1.0, "m1": 1.2, "m2": 1.2}, {"g": 1.0}, caliper=0.5)
    sides = one.before, one.after
    further = [
        replace(side, kolmogorov_smirnov=k, wasserstein=w)
        for side, k, w in zip(sides, (1, 2), (1, 2), strict=True)
    ]
    found = replace(one, before=further[0], after=further[1])
    assert not any(found.missing.values())
    assert found.remarks()[-1] == "the two sides are further apart than before"
    nearer = replace(found, after=replace(further[1], wasserstein=0.5))
    assert nearer.remarks()[-1] == "KS is larger than before, though Wasserstein is not"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "bins", "bins": 0}, "bins is 0"),
        ({"method": "bins", "seed": -1}, "seed is -1"),
        ({"caliper": float("inf")}, "caliper is inf; it must be a finite number"),
    ],
)
def test_settings_that_a_method_cannot_use_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        filled_one({"f": 1.0, "m": 2.0}, {"g": 2.0}, **given)
    with pytest.raises(InputError, match=said):
        er.balance({"f": 1.0}, {"m": 1.0}, **given)


def test_pairs_without_a_counterpart_are_not_called_queries() -> None:
    """One query with two documents is two pairs."""
    scores = pl.DataFrame({"query_id": ["f", "m", "m"], "doc_id": ["a", "b", "c"], "score": [1.0, 8.0, 9.0]})
    found = er.fill(
        scores,
        pl.DataFrame({"query_id": ["g"], "doc_id": ["d"], "text": ["x"]}),
        genders={"f": "female", "m": "male"},
        generated_scores={"g": 3.0},
        generated_genders={"g": "neutral"},
        caliper=1.0,
    )
    assert any("2 male pairs have no counterpart" in said for said in found.remarks())
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
    assert found.left_out == {"their document has no word of the dictionary": 1}
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


def test_repeats_of_male_queries_are_not_called_a_lack() -> None:
    ids = ["f1", "m1", "f2", "m2"]
    made = pl.DataFrame({"query_id": ids, "doc_id": ids, "text": ids})
    docs = {"f1": "fear", "f2": "fear", "m1": "fear", "m2": "money"}
    genders = {query: "female" if query[0] == "f" else "male" for query in ids}
    found = er.even_judgments(made, docs, genders=genders, reuse=True, ratio=1, size=4)
    assert found.remarks() == ["asked for 4 queries, 3 are added: 2 pairs, in which male queries recur"]


def test_one_pair_has_nothing_in_common() -> None:
    made = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["a", "b"], "text": ["a", "b"]})
    found = er.even_judgments(made, {"a": "fear", "b": "money"}, genders={"a": "female", "b": "male"})
    assert found.remarks()[0].startswith("1 of 1 pair has nothing in common")


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


def test_judgments_are_written_without_genders(built: Path, tmp_path: Path) -> None:
    given = ("--generated", built / "made.tsv", "--genders", built / "labels.tsv", *COLLECTION)
    out = tmp_path / "even"
    run(
        "mitigate", "judgments", "--docs", HERE / "docs.tsv", *given, "--index", built / "index", "-o", out
    )  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == [
        "qrels.txt", "queries.tsv", "report.json", "triples.jsonl",
    ]  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    size = len(er.load(HERE).qrels.filter(pl.col("relevance") > 0))
    assert report["pairs"] == round(0.25 * size / 2) and report["queries added"] == 2 * report["pairs"]
    before, after = er.load(HERE), read_qrels(out / "qrels.txt")
    assert len(after) == len(before.qrels) + report["queries added"]
    lines = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    assert len(lines) == size + report["queries added"] and set(lines[0]) == {
        "query_id", "query", "positive", "negative",
    }  # fmt: skip
    assert report["pairs without a triple"] == 0
    assert all(line["positive"] != line["negative"] for line in lines)


def test_balancing_by_generation_keeps_every_query(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    given = ("--generated", built / "made.tsv", "--generated-genders", built / "labels.tsv", *COLLECTION)
    shown = run(
        "mitigate", "balance", "--by", "generation", *given, "--index", built / "index",
        "--genders", HERE / "genders.tsv", "--caliper", "2", "-o", out,
    )  # fmt: skip
    assert "no real query is dropped" in shown
    kept = read_queries(out / "queries.tsv")["query_id"].to_list()
    assert kept[:60] == er.load(HERE).queries["query_id"].to_list()
    assert not (out / "added.tsv").exists()
    report = json.loads((out / "report.json").read_text())
    assert len(kept) == 60 + sum(report["added"].values())


def test_predicted_genders_of_generated_queries_are_counted(built: Path, tmp_path: Path) -> None:
    texts = {"a": "what do women fear", "b": "what do men fear", "c": "price of coal"}
    documents = er.load(HERE).docs.frame()["doc_id"].to_list()[:3]
    rows = [f"{query}\t{doc}\t{text}\n" for (query, text), doc in zip(texts.items(), documents, strict=True)]
    (tmp_path / "made.tsv").write_text("query_id\tdoc_id\ttext\n" + "".join(rows))
    given = ("--generated", tmp_path / "made.tsv", *COLLECTION, "--index", built / "index")
    filled = ("balance", "--by", "generation", "--genders", HERE / "genders.tsv")
    for command in (("judgments", "--docs", HERE / "docs.tsv"), filled):
        words = [str(each) for each in ("mitigate", *command, *given, "-o", tmp_path / command[0])]
        done = CliRunner().invoke(app, words)
        counts = "3 of 3 queries labelled by the classifier: 1 female, 1 male, 1 neutral"
        assert f"generated queries: {counts}" in done.stderr, done.output


def test_generation_asks_for_all_it_needs() -> None:
    done = CliRunner().invoke(app, ["mitigate", "balance", "--by", "generation", "-o", "x"])
    assert isinstance(done.exception, InputError) and "--generated, --index" in str(done.exception)


def added_to(built: Path, out: Path, *more: object, source: Path = HERE) -> tuple[str, dict[str, Any]]:
    """What `mitigate judgments` prints and reports."""
    real = ("--queries", source / "queries.tsv", "--qrels", source / "qrels.txt")
    made = ("--generated", built / "made.tsv", "--genders", built / "labels.tsv")
    shown = run("mitigate", "judgments", "--docs", HERE / "docs.tsv", *made, *real, *more, "-o", out)
    return shown, json.loads((out / "report.json").read_text())


def filled_to(built: Path, out: Path, *more: object, source: Path = HERE) -> None:
    real = ("--queries", source / "queries.tsv", "--qrels", source / "qrels.txt")
    made = ("--generated", built / "made.tsv", "--generated-genders", built / "labels.tsv")
    scored = ("--index", built / "index", "--genders", HERE / "genders.tsv", "--caliper", "2")
    run("mitigate", "balance", "--by", "generation", *made, *real, *scored, *more, "-o", out)


@pytest.mark.parametrize("make", [added_to, filled_to])
def test_triples_are_of_real_and_added_queries(make: Any, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    make(built, out, *(("--index", built / "index") if make is added_to else ()))
    rows = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    asked = read_qrels(out / "qrels.txt").filter(pl.col("relevance") > 0)
    assert [row["query_id"] for row in rows] == asked["query_id"].to_list()
    (tmp_path / "own.jsonl").write_text('{"query_id": "q", "n": 1}\n')
    make(built, out, "--index", built / "index", "--triples", tmp_path / "own.jsonl")
    rows = [json.loads(line) for line in (out / "triples.jsonl").read_text().splitlines()]
    added = len(asked) - len(er.load(HERE).qrels.filter(pl.col("relevance") > 0))
    assert rows[0] == {"query_id": "q", "n": 1} and len(rows) == 1 + added


def test_an_index_of_another_collection_makes_no_triples(built: Path, tmp_path: Path) -> None:
    er.index({"x1": "boats at sea"}, tmp_path / "other")
    with pytest.raises(InputError, match="other: the index lacks"):
        added_to(built, tmp_path / "out", "--index", tmp_path / "other")
    assert not (tmp_path / "out").exists()


def test_the_summary_is_csv_where_asked_for(built: Path, tmp_path: Path) -> None:
    shown, _ = added_to(built, tmp_path / "out", "--format", "csv")
    lines = shown.splitlines()
    assert lines[0].startswith("generated female,male,pairs,") and len(lines) == 2
    assert len(lines[1].split(",")) == 7


def test_labels_in_the_folder_are_not_removed(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    filled_to(built, out, "--with-genders")
    labels = out / "added.tsv"
    before = labels.read_text()
    with pytest.raises(InputError, match="this is the input itself"):
        filled_to(built, out, "--generated-genders", labels)
    assert labels.read_text() == before


@pytest.mark.parametrize("make", [added_to, filled_to])
def test_a_query_is_not_added_twice(make: Any, built: Path, tmp_path: Path) -> None:
    make(built, tmp_path / "once")
    with pytest.raises(InputError, match="is to be added, but is there already"):
        make(built, tmp_path / "twice", source=tmp_path / "once")
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
        found.write(tmp_path / "out", queries={"q": "x"}, qrels={"q": {"d": 1}})
    assert not (tmp_path / "out").exists()
    judged = pl.DataFrame({"query_id": ["q"], "doc_id": [f"d{blank}1"], "relevance": [1]})
    with pytest.raises(InputError, match=r"doc_id .* has a blank, which judgments"):
        data_set(None, judged)


def test_queries_alone_keep_the_blanks_of_their_ids() -> None:
    queries = pl.DataFrame({"query_id": ["a  b"], "text": ["two \t words"]})
    assert data_set(queries, None) == {"queries.tsv": "a  b\ttwo words\n"}


def test_the_order_of_added_queries_does_not_tell_their_genders() -> None:
    ids = [f"g{n}" for n in range(40)]
    found, swapped = alike(*ids), alike(*ids, genders=("male", "female"))
    order = found.added["query_id"].to_list()
    assert sorted(order) == sorted(ids) and order == swapped.added["query_id"].to_list()
    female = set(ids[::2])
    assert 0 < len(female.intersection(order[:20])) < 20


def test_what_an_earlier_call_told_of_genders_is_removed(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "even"
    out.mkdir()
    (out / "added.tsv").write_text("somebody's own\n")
    added_to(built, out, "--with-genders", "--index", built / "index")
    assert {"pairs.tsv", "triples.jsonl"} <= {path.name for path in out.iterdir()}
    added_to(built, out)
    names = sorted(path.name for path in out.iterdir())
    assert names == ["added.tsv", "qrels.txt", "queries.tsv", "report.json"]
    filled_to(built, out, "--with-genders")
    assert "gender" in (out / "added.tsv").read_text().splitlines()[0]
    filled_to(built, out)
    assert not (out / "added.tsv").exists() and (out / "triples.jsonl").exists()


def test_it_says_so_where_fewer_queries_are_added_than_asked_for(built: Path, tmp_path: Path) -> None:
    found = alike("g1", "g2", "g3", "g4", ratio=0.5, size=100)
    assert found.remarks() == ["asked for 50 queries, only 4 could be added: generate more queries"]
    assert found.report()["queries asked for"] == 50 and found.report()["remarks"] == found.remarks()
    for size in (7, 8, 9):
        assert alike("g1", "g2", "g3", "g4", ratio=0.5, size=size).remarks() == []
    odd = alike("g1", "g2", "g3", "g4", ratio=0.5, size=6)
    assert odd.remarks() == ["queries are added in pairs: 4 in the place of 3"]
    assert alike("g1", "g2").remarks() == []
    few = tmp_path / "few"
    few.mkdir()
    for name, wanted in (("made.tsv", 21), ("labels.tsv", 20)):
        (few / name).write_text("".join((built / name).read_text().splitlines(keepends=True)[:wanted]))
    shown, report = added_to(few, tmp_path / "out", "--ratio", 1)
    size = report["provenance"]["size"]
    assert f"asked for {size} queries, only {report['queries added']} could be added" in shown


def test_the_help_of_the_ratio_is_what_is_checked(tmp_path: Path) -> None:
    shown = " ".join(run("mitigate", "judgments", "--help").replace("│", " ").split())
    assert "above 0, at most 1" in shown and "0<=x<=1" not in shown.replace(" ", "")
    given = ("--generated", "m.tsv", "--docs", HERE / "docs.tsv", *COLLECTION, "-o", tmp_path / "out")
    for ratio in ("0", "1.5", "nan"):
        words = [str(each) for each in ("mitigate", "judgments", *given, "--ratio", ratio)]
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, InputError) and "above 0 and at most 1" in str(done.exception)


@pytest.mark.parametrize("how", [("--method", "bins"), ("--by", "generation")])
def test_a_negative_seed_is_a_mistake_of_the_caller(how: tuple[str, ...], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["mitigate", "balance", *how, "--seed", "-1", "-o", str(tmp_path / "x")])
    assert done.exit_code == 2 and "--seed" in done.output


def test_a_folder_that_holds_an_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evenrank.cli import main

    own = tmp_path / "queries.tsv"
    own.write_text("q\twho is he\n")
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    (tmp_path / "docs.tsv").write_text("d\the\n")
    (tmp_path / "made.tsv").write_text("query_id\tdoc_id\ttext\nx\td\twho\n")
    given = [
        f"--{name}={tmp_path / file}" for name, file in (("queries", "queries.tsv"), ("qrels", "qrels.txt"))
    ]
    more = [f"--docs={tmp_path / 'docs.tsv'}", f"--generated={tmp_path / 'made.tsv'}"]
    assert main(["mitigate", "judgments", *given, *more, "-o", str(tmp_path)]) == 2
    assert "this is the input itself; give the folder another name" in capsys.readouterr().err
    assert (
        main(["mitigate", "balance", *given, f"--genders={own}", f"--scores={own}", "-o", str(tmp_path)]) == 2
    )
    assert "this is the input itself" in capsys.readouterr().err and own.read_text() == "q\twho is he\n"
