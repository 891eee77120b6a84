"""`evenrank index` and `evenrank search`, as a user types them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evenrank as er
from evenrank import demo
from evenrank.data.read import read_queries
from evenrank.data.runs import perfect_run, read_run
from evenrank.data.schema import RUN_SCHEMA
from evenrank.rankers import Ranker, make, names
from evenrank.rankers.index import Index
from evenrank.rankers.registry import parse_settings, settings

COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]


def evenrank(*arguments: object, code: int = 0) -> str:
    """What a command says on stderr."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def refused(*arguments: object) -> str:
    line = evenrank(*arguments, code=2)
    assert len(line.splitlines()) == 1, line
    return line


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection, and its index."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "docs.tsv").write_text("a\tA nurse.\nb\tThe nurses and the doctor\nc\tA doctor\n")
    (folder / "queries.tsv").write_text("q1\tnurse\nq2\tunicorn\nq3\tthe doctor\n")
    (folder / "qrels.txt").write_text("q1 0 a 1\nq3 0 c 1\nq3 0 b 0\n")
    said = evenrank("index", folder / "docs.tsv", "-o", folder / "idx")
    assert said == f"3 documents, 2 terms: {folder / 'idx'}"
    return folder


def test_search_writes_a_run_that_other_tools_read(place: Path) -> None:
    said = evenrank(
        "search", "--index", place / "idx", "--queries", place / "queries.tsv", "-o", place / "r.run"
    )
    assert said.splitlines() == [
        "nothing was found for 1 of 3 queries: q2",
        f"4 documents for 2 queries: {place / 'r.run'}",
    ]
    lines = [line.split() for line in (place / "r.run").read_text().splitlines()]
    assert [(q, d, r, tag) for q, _, d, r, _, tag in lines] == [
        ("q1", "a", "1", "bm25"), ("q1", "b", "2", "bm25"),
        ("q3", "c", "1", "bm25"), ("q3", "b", "2", "bm25"),
    ]  # fmt: skip


def test_the_number_of_threads_changes_nothing(place: Path) -> None:
    for count in ("1", "3"):
        evenrank("index", place / "docs.tsv", "-o", place / f"idx{count}", "--threads", count)
        evenrank(
            "search", "--index", place / f"idx{count}", "--queries", place / "queries.tsv",
            "--threads", count, "-o", place / f"{count}.run",
        )  # fmt: skip
    assert (place / "1.run").read_bytes() == (place / "3.run").read_bytes()


def test_settings_and_depth_reach_the_ranker(place: Path) -> None:
    common = ("search", "--index", place / "idx", "--queries", place / "queries.tsv", "--depth", "1")
    evenrank(*common, "--set", "k1=0.6", "--set", "b=0.8", "--tag", "mine", "-o", place / "set.run")
    run = read_run(place / "set.run")
    expected = er.search(place / "idx", place / "queries.tsv", k1=0.6, b=0.8, depth=1)
    assert run["doc_id"].to_list() == expected["doc_id"].to_list() == ["a", "c"]
    assert run["score"].to_list() == pytest.approx(expected["score"].to_list(), abs=1e-5)
    assert (place / "set.run").read_text().splitlines()[0].endswith(" mine")


def test_perfect_and_random_need_judgments_and_no_index(place: Path) -> None:
    for name in ("perfect", "random"):
        evenrank(
            "search", "--ranker", name, "--qrels", place / "qrels.txt",
            "--queries", place / "queries.tsv", "-o", place / f"{name}.run",
        )  # fmt: skip
    assert read_run(place / "perfect.run").equals(read_run(perfect_run(place / "qrels.txt")))
    assert len(read_run(place / "random.run")) == 3


def test_bad_input_gets_one_line(place: Path) -> None:
    asked = ("--queries", place / "queries.tsv", "-o", place / "no.run")
    index = ("--index", place / "idx")
    assert "bm25 has no setting 'k3'; it has: k1, b" in refused("search", *index, *asked, "--set", "k3=1")
    assert "write it as KEY=VALUE" in refused("search", *index, *asked, "--set", "k1")
    assert "k1 is 'much'; it must be a number" in refused("search", *index, *asked, "--set", "k1=much")
    assert "k1 is given twice" in refused("search", *index, *asked, "--set", "k1=1", "--set", "k1=2")
    assert "unknown ranker 'bm26'" in refused("search", *index, *asked, "--ranker", "bm26")
    assert "--lexicon: bm25 does not use it" in refused("search", *index, *asked, "--lexicon", "x")
    assert "choose one" in refused("search", *index, *asked, "--engine", "sqlite:///x.db?table=t")
    assert "evenrank index DOCS -o IDX" in refused("search", *asked)
    assert "is not an index" in refused("search", "--index", place, *asked)
    assert "--force" in refused("index", place / "docs.tsv", "-o", place / "idx")
    assert "unknown stemmer" in refused("index", place / "docs.tsv", "-o", place / "y", "--stemmer", "x")
    (place / "strange.tsv").write_text("q1\tunicorn\n")
    strange = ("--queries", place / "strange.tsv", "-o", place / "no.run")
    assert "nothing was found for any query" in refused("search", *index, *strange)
    assert not (place / "no.run").exists()
    assert not (place / "y").exists()


def test_an_index_can_be_replaced_and_do_without_stemming(place: Path) -> None:
    path = place / "again"
    evenrank("index", place / "docs.tsv", "-o", path)
    said = evenrank(
        "index",
        place / "docs.tsv",
        "-o",
        path,
        "--force",
        "--stemmer",
        "none",
        "--stop-words",
        "none",
    )
    assert said.startswith("3 documents, 6 terms")
    assert er.Index.open(path).number("nurses") >= 0


def test_the_demo_collection_is_searched_in_three_lines(tmp_path: Path) -> None:
    docs, queries, qrels = er.load(demo.folder())
    run = er.search(er.index(docs, tmp_path / "idx"), queries)
    assert er.measure(run, er.nDCG @ 10, qrels=qrels)[er.nDCG @ 10].value > 0.3


def test_values_of_settings_have_the_type_the_ranker_wants() -> None:
    assert parse_settings("bm25", ["k1=1", " b = 0.5 "]) == {"k1": 1.0, "b": 0.5}
    found = parse_settings("random", ["seed=7", "qrels=a=b.txt"])
    assert found == {"seed": 7, "qrels": "a=b.txt"}
    assert isinstance(found["seed"], int)


FEEDBACK = ("fb_docs", "fb_terms", "alpha", "bias_lambda", "lexicon", "magnitude", "tokenizer", "tally")
SETTINGS = {
    "bm25": {"k1", "b"},
    "qld": {"mu"},
    "tfidf": set(),
    "bm25+rm3": {*FEEDBACK, "k1", "b"},
    "qld+rm3": {*FEEDBACK, "mu"},
    "w2v_add": {"vectors", "debias", "stop_words"},
    "w2v_si": {"vectors", "debias", "stop_words"},
    "dense": {"model", "batch", "max_length", "similarity", "approximate"},
    "hybrid": {"checkpoint", "weight", "first", "candidates", "keep_rest", "backend"},
    "cross-encoder": {"checkpoint", "first", "candidates", "keep_rest", "backend"},
    "llm": {"checkpoint", "first", "candidates", "keep_rest"},
    "perfect": {"qrels"},
    "random": {"qrels", "seed"},
}
NEED_A_MODEL = {"dense", "hybrid", "cross-encoder", "llm"}
NEEDED = {
    "w2v_add": {"vectors": {"nurse": [1.0, 0.0], "doctor": [0.0, 1.0]}},
    "w2v_si": {"vectors": {"nurse": [1.0, 0.0], "doctor": [0.0, 1.0]}},
    "perfect": {"qrels": {"q": {"a": 1}}},
    "random": {"qrels": {"q": {"a": 1}}},
}


def test_every_ranker_that_is_named_has_its_settings() -> None:
    assert set(names()) == set(SETTINGS)
    for name, known in SETTINGS.items():
        assert known <= set(settings(name)), name


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - NEED_A_MODEL))
def test_every_ranker_that_is_named_ranks(place: Path, name: str) -> None:
    made = make(name, index=Index.open(place / "idx"), **NEEDED.get(name, {}))
    assert isinstance(made, Ranker)
    assert made.name == made.describe()["name"] == name
    run = made.rank(read_queries({"q": "nurse"}))
    assert run["doc_id"].to_list()[0] == "a"
    assert run.schema == RUN_SCHEMA


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_documentation_names_every_ranker(name: str) -> None:
    pages = Path(__file__).parents[2] / "docs"
    text = (pages / "rankers.md").read_text() + (pages / "semantic-rankers.md").read_text()
    assert f"`{name}`" in text
