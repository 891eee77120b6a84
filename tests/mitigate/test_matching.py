"""Query matching: pairs are the best there are, and the distributions come out level."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import evenrank as er
from evenrank.mitigate.balance.matching import Balanced, association_scores, drawn, matched

numbers = st.lists(st.integers(0, 30).map(lambda n: n / 4), min_size=1, max_size=12).map(np.array)


def best_by_assignment(a: np.ndarray, b: np.ndarray, caliper: float) -> tuple[int, float]:
    """Most pairs within the caliper and their least distance, by the Hungarian method."""
    distance = np.abs(a[:, None] - b[None, :])
    worth = 1e6
    cost = np.where(distance <= caliper, distance - worth, 0.0)
    rows, columns = linear_sum_assignment(cost)
    good = distance[rows, columns] <= caliper
    return int(good.sum()), float(distance[rows, columns][good].sum())


@given(numbers, numbers, st.sampled_from([0.0, 0.25, 1.0, 3.0, 100.0]))
def test_matching_is_as_good_as_the_hungarian_method(a: np.ndarray, b: np.ndarray, caliper: float) -> None:
    f, m = matched(a, b, caliper=caliper)
    assert len(set(f.tolist())) == len(set(m.tolist())) == len(f)
    assert (np.abs(a[f] - b[m]) <= caliper).all()
    count, distance = best_by_assignment(a, b, caliper)
    assert len(f) == count
    assert np.abs(a[f] - b[m]).sum() == pytest.approx(distance)


@given(numbers, numbers, st.integers(1, 5), st.sampled_from(["pooled", "male"]), st.integers(0, 3))
def test_bins_keep_equally_many_and_as_many_as_the_shorter_side_has(
    a: np.ndarray, b: np.ndarray, bins: int, edges_of: str, seed: int
) -> None:
    f, m = drawn(a, b, bins=bins, edges_of=edges_of, seed=seed)  # type: ignore[arg-type]
    edges = np.histogram_bin_edges(b if edges_of == "male" else np.concatenate([a, b]), bins)
    counts = [np.histogram(side, edges)[0] for side in (a, b)]
    assert np.histogram(a[f], edges)[0].tolist() == np.minimum(*counts).tolist()
    assert np.histogram(b[m], edges)[0].tolist() == np.minimum(*counts).tolist()
    assert len(set(f.tolist())) == len(f) == len(m)


def levelled(female: dict[str, float], male: dict[str, float], **settings: Any) -> Balanced:
    """Balanced judgments of queries whose genders are known."""
    genders = dict.fromkeys(female, "female") | dict.fromkeys(male, "male")
    return er.balance({**female, **male}, genders, **settings)


@pytest.fixture(scope="module")
def scores(shared: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The published scores, and the genders of their queries."""
    sides = [
        pl.read_csv(shared / f"data/association/{gender}.tsv.gz", separator="\t").with_columns(
            pl.col("query_id").cast(pl.String), gender=pl.lit(gender)
        )
        for gender in ("female", "male")
    ]
    table = pl.concat(sides)
    return table.drop("gender"), table.select("query_id", "gender").unique()


def test_on_real_scores_matching_levels_the_sides_and_keeps_nine_in_ten(
    scores: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    even = er.balance(*scores)
    assert even.before.p < 1e-6
    assert even.after.p > 0.9
    assert even.after.pairs["female"] >= 0.9 * min(even.before.pairs.values())
    assert even.after.pairs["female"] == even.after.pairs["male"] == even.pairs.height // 2
    distances = even.pairs.group_by("pair").agg((pl.col("score").max() - pl.col("score").min()).alias("d"))
    assert distances["d"].max() <= even.provenance["caliper"]


def test_on_real_scores_pooled_bins_keep_13342_of_each(scores: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    even = er.balance(*scores, method="bins")
    assert even.after.pairs == {"female": 13342, "male": 13342}
    assert even.after.wasserstein > er.balance(*scores).after.wasserstein  # within a bin differences remain


def test_the_same_seed_draws_the_same_queries() -> None:
    sides = {f"f{n}": n / 7 for n in range(50)}, {f"m{n}": n / 9 for n in range(50)}
    kept = [levelled(*sides, method="bins", seed=seed).pairs for seed in (1, 1, 2)]
    assert kept[0].equals(kept[1])
    assert not kept[0].equals(kept[2])


def test_queries_of_neither_gender_all_stay() -> None:
    gamma = {"a": 1.0, "b": 1.0, "c": 5.0, "d": 2.0}
    genders = {"a": "female", "b": "male", "c": "male", "d": "neutral"}
    even = er.balance(gamma, genders, caliper=0.1)
    texts = {"a": "x", "b": "y", "c": "z", "d": "w"}
    assert even.queries(texts)["query_id"].to_list() == ["a", "b", "d"]
    qrels = {q: {f"d{q}": 1} for q in gamma}
    assert even.qrels(qrels)["query_id"].to_list() == ["a", "b", "d"]


def test_queries_of_neither_gender_stay_without_a_score_and_others_are_counted() -> None:
    texts = dict.fromkeys(["a", "b", "c", "n", "o", "f"], "x")
    genders = {"a": "female", "b": "male", "c": "male", "n": "neutral", "f": "female"}
    gamma = {"a": 1.0, "b": 1.0, "c": 5.0}
    even = er.balance(gamma, genders, caliper=0.1)
    assert even.queries(texts)["query_id"].to_list() == ["a", "b", "n", "o"]
    qrels = {q: {f"d{q}": 1} for q in texts}
    assert even.qrels(qrels)["query_id"].to_list() == ["a", "b", "n", "o"]
    assert even.left_out == {"female and male queries without a score": 1}
    assert even.remarks() == ["female and male queries without a score: 1"]


def test_the_command_keeps_neutral_queries_without_a_judgment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.cli import main

    er.index({"d1": "the nurse", "d2": "the doctor", "d3": "boats"}, tmp_path / "i")
    (tmp_path / "q.tsv").write_text("f\tnurse\nm\tdoctor\nn\tboats\no\tships\ng\tgirls\n")
    (tmp_path / "qrels.txt").write_text("f 0 d1 1\nm 0 d2 1\nn 0 d3 0\n")
    (tmp_path / "g.tsv").write_text("f\tfemale\nm\tmale\nn\tneutral\no\tneutral\ng\tfemale\nx\tfemale\n")
    given = [f"--{name}={tmp_path / file}" for name, file in (("queries", "q.tsv"), ("qrels", "qrels.txt"))]
    more = [f"--genders={tmp_path / 'g.tsv'}", f"--index={tmp_path / 'i'}"]
    assert main(["mitigate", "balance", *given, *more, "-o", str(tmp_path / "even")]) == 0
    kept = (tmp_path / "even" / "queries.tsv").read_text().splitlines()
    assert [line[0] for line in kept] == ["f", "m", "n", "o"]
    assert "female and male queries without a score: 1" in capsys.readouterr().out


def test_of_a_query_with_two_documents_one_may_go() -> None:
    scores = pl.DataFrame({"query_id": ["a", "a", "b"], "doc_id": ["x", "y", "z"], "score": [1.0, 9.0, 1.0]})
    even = er.balance(scores, {"a": "female", "b": "male"}, caliper=0.5)
    judged = even.qrels({"a": {"x": 1, "y": 1, "w": 0}, "b": {"z": 1}})
    assert judged.rows() == [("a", "x", 1), ("a", "w", 0), ("b", "z", 1)]


def test_genders_are_written_only_if_asked_for(tmp_path: Path) -> None:
    even = levelled({"a": 1.0}, {"b": 1.0, "c": 7.0}, caliper=1)
    queries = {"a": "she runs", "b": "he runs", "c": "no"}
    qrels = {"a": {"x": 1}, "b": {"y": 1}, "c": {"z": 1}}
    out = tmp_path / "even"
    assert {path.name for path in even.write(out, queries, qrels)} == {
        "queries.tsv", "qrels.txt", "report.json",
    }  # fmt: skip
    assert (out / "queries.tsv").read_text() == "a\tshe runs\nb\the runs\n"
    assert (out / "qrels.txt").read_text() == "a 0 x 1\nb 0 y 1\n"
    report = json.loads((out / "report.json").read_text())
    assert report["before"]["pairs"] == {"female": 1, "male": 2}
    assert report["after"]["pairs"] == {"female": 1, "male": 1}
    told = even.write(tmp_path / "told", queries, qrels, genders=True)
    assert "genders.tsv" in {path.name for path in told}


def test_a_folder_that_holds_files_is_refused(tmp_path: Path) -> None:
    """It could hold the genders of an earlier set, or an input."""
    even = levelled({"a": 1.0}, {"b": 1.0})
    given = {"a": "x", "b": "y"}, {"a": {"x": 1}, "b": {"y": 1}}
    even.write(tmp_path / "even", *given, genders=True)
    with pytest.raises(er.InputError, match="even: the folder holds files already"):
        even.write(tmp_path / "even", *given)


def test_histograms_before_and_after_are_a_frame() -> None:
    even = levelled({"a": 1.0, "b": 3.0}, {"c": 1.0, "d": 3.1}, caliper=0.2, bins=3)
    frame = even.frame()
    assert frame.columns[0] == "when"
    assert frame.group_by("when").agg(pl.col("pairs").sum())["pairs"].to_list() == [4, 4]


def test_scores_of_an_index_are_those_of_its_bm25(tmp_path: Path) -> None:
    docs = {"d1": "the nurse helps a man", "d2": "a doctor doctor and a nurse", "d3": "boats at sea"}
    made = er.index(docs, tmp_path / "i")
    queries = {"q1": "nurse man nurse", "q2": "doctor", "q3": "boats"}
    qrels = {"q1": {"d1": 1, "d2": 1}, "q2": {"d2": 2, "d1": 0}, "q3": {"d1": 1, "gone": 1}}
    found = {(q, d): s for q, d, s in association_scores(made, queries, qrels).iter_rows()}
    run = er.search(made, queries)
    expected = {(q, d): s for q, d, s, _ in run.iter_rows()}
    assert found == {
        key: pytest.approx(expected.get(key, 0.0))
        for key in [("q1", "d1"), ("q1", "d2"), ("q2", "d2"), ("q3", "d1")]
    }


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": 1.0, "x": 1.0}, "no scores of male"),
        ({"a": 1.0, "b": float("nan")}, "finite"),
        ({"a": 1.0, "b": 99.0}, "close enough"),
        (3, "table"),
        (pl.DataFrame({"q": ["x"]}), "header"),
    ],
)
def test_bad_input_is_explained(scores: object, message: str) -> None:
    with pytest.raises(er.InputError, match=message):
        er.balance(scores, {"a": "female", "b": "male"}, caliper=0.1)


def test_too_wide_a_caliper_is_refused_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenrank.mitigate.balance import matching

    monkeypatch.setattr(matching, "CELLS", 10)
    with pytest.raises(er.InputError, match="narrower"):
        matched(np.arange(5.0), np.arange(5.0), caliper=9)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("query_id\tscore\na\t1\n\t2\n", ":3: query_id is empty"),
        ("query_id\tdoc_id\tscore\na\tx\t1\na\tx\t2\n", ":3: repeats line 2"),
        ("query_id\tscore\na\t1\nb\tn/a\n", ":3: score is 'n/a'; it must be a finite number"),
        ("query_id\tscore\na\t1e999\n", ":2: score is '1e999'; it must be a finite number"),
        ("query_id\tgamma\na\t1\n", ": scores need a header with query_id and score"),
    ],
)
def test_a_table_of_scores_that_cannot_be_used_is_named(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.tsv"
    path.write_text(content)
    for read in (er.balance, er.association):
        with pytest.raises(er.InputError, match=f"^{path}{problem}"):
            read(path, {"b": "male"} if read is er.balance else [1.0])
