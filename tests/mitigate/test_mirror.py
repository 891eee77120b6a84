"""The counterfactual audit: what gender alone does, and nothing where there is nothing to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import evenrank as er
from evenrank.cli.app import app
from evenrank.show.charts import shift_data

DOCS = {
    "d1": "The nurse said she loves her patients.",
    "d2": "The nurse said he loves his patients and his work.",
    "d3": "A pilot flies his plane; he is a good pilot.",
    "d4": "Pilots fly planes.",
    "d5": "She and he are nurse and pilot.",
}
QUERIES = {"q1": "nurse", "q2": "pilot plane", "q3": "her nurse"}
VECTORS = """7 3
nurse 1 0.8 0
pilot 1 -0.8 0
she 0 1 0
her 0 1 0
he 0 -1 0
his 0 -1 0
patients 0.5 0 1
"""


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return str(path)


def test_bm25_cannot_tell_a_document_from_its_mirror_image_by_neutral_queries() -> None:
    found = er.mirror(DOCS, QUERIES, rankers=["bm25", "qld"], pairs=True)
    for line in found.summary.iter_rows(named=True):
        assert line["ties"] == 1.0
        assert line["rank_shift"] == line["score_shift"] == line["moved"] == 0.0
        assert line["p"] == 1.0
    assert found.left_out == {
        "queries left out because they name a gender": 1,
        "documents left out because no word shows a gender": 1,
        "documents left out because they are as female as male": 1,
    }


def test_a_gendered_query_prefers_its_gender() -> None:
    found = er.mirror(DOCS, {"q3": "her nurse"}, gendered_queries=True, pairs=True)
    line = found["bm25"]
    assert line["female_wins"] == 1.0
    assert line["rank_shift"] < 0
    with pytest.raises(er.InputError, match="gendered_queries"):
        er.mirror(DOCS, {"q3": "her nurse"}, pairs=True)


def test_word_vectors_follow_the_stereotype_in_them(vectors: str) -> None:
    found = er.mirror(DOCS, QUERIES, rankers={"plain": "w2v_add"}, vectors=vectors, pairs=True)
    shifts = found.values.group_by("query_id").agg(pl.col("score_shift").mean(), pl.col("rank_shift").mean())
    by_query = {q: (score, rank) for q, score, rank in shifts.iter_rows()}
    assert by_query["q1"][0] < 0 and by_query["q1"][1] < 0  # nurses are women to these vectors
    assert by_query["q2"][0] > 0 and by_query["q2"][1] > 0  # and pilots men


def test_shifts_are_positive_where_the_male_version_stands_higher(vectors: str) -> None:
    pairs = er.mirror(DOCS, QUERIES, rankers=["w2v_add"], vectors=vectors, pairs=True).values
    female = pairs.filter(pl.col("lean") == "female")
    male = pairs.filter(pl.col("lean") == "male")
    assert (female["rank_shift"] == female["rank"] - female["mirror_rank"]).all()
    assert (male["rank_shift"] == male["mirror_rank"] - male["rank"]).all()
    assert len(female) and len(male)


def test_auditing_the_mirrored_collection_gives_the_same_shifts(vectors: str) -> None:
    texts = {"a": DOCS["d1"], "b": DOCS["d3"]}  # unambiguous: mirrored twice they are as before
    turned = {each: er.swap(text) for each, text in texts.items()}
    queries = {"q1": "nurse", "q2": "pilot"}
    lines = [
        er.mirror(docs, queries, rankers=["w2v_add"], vectors=vectors, pairs=True)["w2v_add"]
        for docs in (texts, turned)
    ]
    assert lines[0]["score_shift"] == pytest.approx(lines[1]["score_shift"])
    assert lines[0]["rank_shift"] == lines[1]["rank_shift"]
    assert lines[0]["original"] == pytest.approx(-lines[1]["original"])


def test_given_variants_are_compared_instead(vectors: str) -> None:
    variants = pl.DataFrame({"female": ["d1"], "male": ["d2"]})
    found = er.mirror(DOCS, QUERIES, rankers=["w2v_add"], variants=variants, vectors=vectors)
    assert set(found.values["mirror_id"]) == {"d2"}
    assert found["w2v_add"]["original"] is None
    bad = pl.DataFrame({"female": ["d1"], "male": ["none"]})
    with pytest.raises(er.InputError, match="none"):
        er.mirror(DOCS, QUERIES, variants=bad)


def test_a_list_that_is_not_there_or_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(er.InputError, match="no such file"):
        er.mirror(DOCS, QUERIES, variants=tmp_path / "none.tsv")
    (tmp_path / "bad.tsv").write_text("f\tm\nd1\td2\n")
    with pytest.raises(er.InputError, match="columns female and male"):
        er.mirror(DOCS, QUERIES, variants=tmp_path / "bad.tsv")


def test_queries_that_find_nothing_leave_nothing_to_say() -> None:
    line = er.mirror(DOCS, {"q": "zebra"}, pairs=True)["bm25"]
    names = ("queries", "pairs", "rank_shift", "ties", "p")
    assert [line[name] for name in names] == [0, 0, None, None, None]


def test_judgments_choose_the_pairs() -> None:
    found = er.mirror(DOCS, QUERIES, candidates={"q1": {"d1": 1, "d4": 0}, "q2": {"d3": 1}}, pairs=True)
    assert found.values.select("query_id", "doc_id").rows() == [("q1", "d1"), ("q2", "d3")]


def test_the_report_draws_the_pairs_of_a_ranker(vectors: str) -> None:
    found = er.mirror(DOCS, QUERIES, rankers=["bm25", "w2v_add"], vectors=vectors, pairs=True)
    frame = found.rank_shift("w2v_add")
    assert frame.columns == ["query_id", "doc_id", "before", "after", "group"]
    assert shift_data(frame)["queries"].sum() == len(frame)
    with pytest.raises(er.InputError, match="was not tested"):
        found.rank_shift("dense")


@pytest.mark.parametrize(
    ("rankers", "message"),
    [
        (["perfect"], "index"),
        (["sqlite:///x.db?table=t"], "index"),
        (["bm52"], "bm25"),
        (["bm25(k1=2"], "NAME"),
        (["bm25(k3=2)"], "k3"),
        ([], "list of names"),
    ],
)
def test_bad_rankers_are_explained(rankers: list[str], message: str) -> None:
    with pytest.raises(er.InputError, match=message):
        er.mirror(DOCS, QUERIES, rankers=rankers, pairs=True)
    with pytest.raises(er.InputError, match="colour"):
        er.mirror(DOCS, QUERIES, colour="red", pairs=True)


def test_a_collection_without_gender_is_refused() -> None:
    with pytest.raises(er.InputError, match="nothing to mirror"):
        er.mirror({"d": "boats"}, {"q": "boats"}, pairs=True)


def test_mirror_images_agree_with_what_people_wrote(shared: Path) -> None:
    """On Grep-BiasIR, whose variants were written by hand, both see the same in the same queries."""
    from benchmarks.counterfactual_evidence import _agreement, variants

    folder = shared / "data" / "grepbiasir"
    given: dict[str, Any] = {
        "rankers": ["w2v_add"],
        "vectors": str(shared / "data/vectors/glove-100d.bin.gz"),
        "candidates": folder / "qrels.txt",
        "pairs": True,
        "at": None,
        "depth": 2000,
    }
    files = folder / "docs.jsonl", folder / "queries.tsv"
    mirrored = er.mirror(*files, **given)
    written = er.mirror(*files, variants=variants(folder).select("female", "male"), **given)
    assert _agreement(mirrored.values, written.values, "w2v_add")["spearman"] > 0.7


def write(tmp_path: Path) -> tuple[str, str]:
    docs, queries = tmp_path / "docs.tsv", tmp_path / "queries.tsv"
    docs.write_text("".join(f"{k}\t{v}\n" for k, v in DOCS.items()))
    queries.write_text("".join(f"{k}\t{v}\n" for k, v in QUERIES.items()))
    return str(docs), str(queries)


def test_the_command_prints_a_line_for_each_ranker(tmp_path: Path, vectors: str) -> None:
    docs, queries = write(tmp_path)
    command = ["mirror", "--pairs", "--docs", docs, "--queries", queries, "--vectors", vectors]
    command += ["--ranker", "bm25(k1=1.2)", "--ranker", "w2v_add"]
    done = CliRunner().invoke(app, [*command, "--values", str(tmp_path / "pairs.csv")])
    assert done.exit_code == 0, done.output
    assert "bm25(k1=1.2)" in done.output and "queries left out because they name a gender: 1" in done.output
    assert pl.read_csv(tmp_path / "pairs.csv")["ranker"].n_unique() == 2
    done = CliRunner().invoke(app, [*command, "--format", "json", "-o", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "out.json").read_text())
    assert [line["ranker"] for line in content["rankers"]] == ["bm25(k1=1.2)", "w2v_add"]


def test_the_swap_command_writes_collections_and_queries(tmp_path: Path) -> None:
    docs, queries = write(tmp_path)
    runner = CliRunner()
    done = runner.invoke(app, ["mitigate", "swap", docs, "-o", str(tmp_path / "m.jsonl")])
    assert done.exit_code == 0, done.output
    first = json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])
    assert first == {"doc_id": "d1", "text": "The nurse said he loves his patients."}
    done = runner.invoke(app, ["mitigate", "swap", queries, "--queries", "-o", str(tmp_path / "q.tsv")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "q.tsv").read_text().splitlines()[2] == "q3\this nurse"
