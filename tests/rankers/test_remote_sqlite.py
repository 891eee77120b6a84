"""SQLite's full-text search as a ranker, on real files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo
from evenrank.data.read import read_queries
from evenrank.errors import InputError
from evenrank.rankers.remote import engine
from evenrank.rankers.remote.sql_engine import plain_words

DOCS = [
    ("d1", "Nurses", "she is a nurse and a mother"),
    ("d2", "Surgeons", "he is a surgeon at the hospital"),
    ("d3", "Care", "a nurse and a surgeon work together near the hospital"),
]


def database(path: Path, create: str, rows: list[tuple[str, ...]] = DOCS) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(create)
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO docs VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return database(
        tmp_path / "shop.db",
        "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, title, text, tokenize = 'porter unicode61')",
    )


@pytest.fixture
def demo_shop(tmp_path: Path) -> str:
    rows = er.load(demo.folder()).docs.frame().select("doc_id", "text").rows()
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize='porter')"
    return f"sqlite:///{database(tmp_path / 'demo.db', create, rows)}"


def ids(path: Path | str, asked: str, /, **given: Any) -> list[str]:
    with engine(f"sqlite:///{path}", **({"table": "docs"} | given)) as ranker:
        return ranker.rank({"q": asked})["doc_id"].to_list()


def test_documents_with_more_of_the_words_come_first(shop: Path) -> None:
    assert ids(shop, "nurse surgeon")[0] == "d3"


def test_the_scores_are_those_of_bm25(shop: Path) -> None:
    run = engine(f"sqlite:///{shop}", table="docs").rank({"q": "surgeons"})
    connection = sqlite3.connect(shop)
    expected = connection.execute("SELECT doc_id, -bm25(docs) FROM docs('surgeons')").fetchall()
    assert dict(run.select("doc_id", "score").rows()) == pytest.approx(dict(expected))
    assert (run["score"] > 0).all()


def test_results_carry_the_text(shop: Path) -> None:
    shown = engine(f"sqlite:///{shop}", table="docs").search({"q": "mother"})
    assert shown.frame.select("doc_id", "rank", "text").rows() == [("d1", 1, DOCS[0][2])]


def test_a_query_of_ones_own_is_asked(shop: Path, tmp_path: Path) -> None:
    sql = "SELECT doc_id, bm25(docs, 0, 50, 0.01) AS score, title, text FROM docs(:words) ORDER BY 2 LIMIT 9"
    assert ids(shop, "nurse", table=None, sql=sql)[0] == "d1"
    (tmp_path / "best.sql").write_text(sql)
    ranker = engine(f"sqlite:///{shop}", sql=f"@{tmp_path}/best.sql")
    assert ranker.search({"q": "mother"}).frame.select("title", "text").rows() == [("Nurses", DOCS[0][2])]
    like = "SELECT doc_id FROM docs WHERE text LIKE '%' || :query || '%' ORDER BY doc_id LIMIT :depth"
    assert ids(shop, "nurse and a", table=None, sql=like) == ["d1", "d3"]


def test_a_relative_path_is_taken_from_here(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.parent)
    assert ids("shop.db", "mother") == ["d1"]


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    path = database(tmp_path / "a b?c#d%41é.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id, title, text)")
    assert ids(quote(str(path)), "mother") == ["d1"]


def test_equal_scores_come_in_the_order_of_the_tie_rule(tmp_path: Path) -> None:
    rows = [(name, "same words") for name in ("a", "c", "b", "é", "Z")]
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)"
    run = engine(f"sqlite:///{database(tmp_path / 'ties.db', create, rows)}", table="docs").rank(
        {"q": "words"}
    )
    assert run["doc_id"].to_list() == ["é", "c", "b", "a", "Z"]
    assert run["score"].n_unique() == 1


ATTACKS = [
    "\" OR 1=1 --", "'; DROP TABLE docs; --", "NEAR(nurse surgeon)", "nurse NEAR surgeon", "nur*", "^nurse",
    "title : nurse", "{title text} : nurse", "-text : nurse", "nurse AND NOT surgeon", "NOT", "AND", "OR",
    "\"", "\"\"", "(", "nurse)", "+ +", "nurse\0surgeon", "\0", "%", "nurse\ufffe", "\u202enurse", "*",
    "{}",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS, ids=ascii)
def test_operators_in_a_query_are_just_words(shop: Path, text: str) -> None:
    before = shop.read_bytes()
    found = set(ids(shop, text)) if text.strip() else set()
    if "nurse" in text:
        assert found >= {"d1", "d3"}
    assert shop.read_bytes() == before


def test_a_star_is_no_prefix_search(shop: Path) -> None:
    assert ids(shop, "moth*") == []


def test_not_excludes_nothing(shop: Path) -> None:
    assert set(ids(shop, "nurse NOT surgeon")) == {"d1", "d2", "d3"}


@given(text=st.text())
def test_any_text_can_be_asked(shop: Path, text: str) -> None:
    ids(shop, text)


def test_the_word_of_another_script_stays_whole() -> None:
    assert plain_words("हिन्दी, ไทย") == ["हिन्दी", "ไทย"]


def test_names_with_quotes_are_only_names(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    connection = sqlite3.connect(path)
    connection.execute("""CREATE VIRTUAL TABLE "a""b; --" USING fts5("my id" UNINDEXED, "the text")""")
    connection.execute("""INSERT INTO "a""b; --" VALUES ('x', 'nurse')""")
    connection.commit()
    ranker = engine(f"sqlite:///{path}", table='a"b; --', id="my id", text="the text")
    assert ranker.search({"q": "nurse"}).frame.select("doc_id", "text").rows() == [("x", "nurse")]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"table": "dogs"}, r"shop\.db: sql= cannot be answered: no such table: dogs"),
        ({"table": "docs; DROP TABLE docs"}, "no such table"),
        ({"id": "colour"}, "no such column: colour|result 1 has no id"),
        ({"table": None}, "give table=, the table to search, or sql="),
        ({"sql": "SELECT 1"}, "give table=, the table to search, or sql="),
        ({"table": None, "sql": "SELEKT 1"}, "cannot be answered: near .SELEKT.: syntax error"),
        (
            {"table": None, "sql": "DELETE FROM docs"},
            "cannot be answered: attempt to write a readonly database",
        ),
        ({"table": None, "sql": "SELECT 1 AS x"}, "a result has no id; it has x"),
    ],
    ids=str,
)
def test_a_query_that_cannot_be_answered_says_why(shop: Path, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        ids(shop, "nurse", **given)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.db: no such file"):
        ids(tmp_path / "nothing.db", "x")
    assert not (tmp_path / "nothing.db").exists()


def test_another_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is not a database, but text " * 100)
    with pytest.raises(InputError, match=r"x\.db: (sql= )?cannot be"):
        ids(tmp_path / "x.db", "x")


@pytest.mark.parametrize(
    ("url", "given", "why"),
    [
        ("sqlite://shop.db", {"table": "docs"}, "three slashes: sqlite:///shop.db"),
        ("sqlite:///", {"table": "docs"}, "names no file"),
        ("sqlite:///shop.db?table=docs", {"table": "docs"}, "setting 'table' is given twice"),
        (
            "sqlite:///shop.db",
            {"tabel": "docs"},
            "has no setting 'tabel'; it has: table.*; did you mean table",
        ),
        ("sqlite:///shop.db", {"timeout": "soon"}, "timeout is 'soon'; it must be a number"),
        ("sqlite:///shop.db", {"workers": "2.5"}, "workers is '2.5'; it must be a whole number"),
        ("mysql://host/db", {}, "not the URL of an engine; it begins with one of sqlite, postgresql"),
        ("shop.db", {}, "not the URL of an engine"),
    ],
)
def test_a_url_that_cannot_be_used_says_why(url: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        engine(url, **given)


def test_a_search_that_takes_too_long_is_cut(tmp_path: Path) -> None:
    rows = [(f"d{at}", "a " * 200) for at in range(20_000)]
    path = database(tmp_path / "big.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)", rows)
    with pytest.raises(
        InputError, match=r"query 'q' failed: no answer within 0\.01 seconds \(asked 2 times\)"
    ):
        ids(path, "a", timeout=0.01, retries=1, backoff=0.01)


def test_the_demo_collection_is_ranked_usefully(demo_shop: str) -> None:
    _, queries, qrels = er.load(demo.folder())
    run = engine(demo_shop, table="docs").rank(queries, depth=100)
    values = er.measure(run, [er.nDCG @ 10], qrels=qrels)
    bm25 = er.measure(str(demo.folder() / "bm25.run"), [er.nDCG @ 10], qrels=qrels)
    ours, theirs = (found.frame()["value"][0] for found in (values, bm25))
    assert ours > 0.8 * theirs


def test_the_texts_that_were_shown_are_enough_for_an_audit(demo_shop: str) -> None:
    docs, queries, _ = er.load(demo.folder())
    answers = engine(demo_shop, table="docs").search(queries, depth=10)
    run, shown = answers.run_and_docs()
    lexicon = er.lexicon("rekabsaz2020")
    with_all = er.measure(answers.run, [er.ARaB @ 10], tally=er.tally(docs, lexicon))
    with_shown = er.measure(run, [er.ARaB @ 10], tally=er.tally(shown, lexicon))
    assert with_all.frame()["value"].to_list() == with_shown.frame()["value"].to_list()


def test_a_thousand_queries_are_answered(demo_shop: str) -> None:
    _, queries, _ = er.load(demo.folder())
    texts = (queries["text"].to_list() * 1000)[:1000]
    many = read_queries(pl.DataFrame({"query_id": [str(at) for at in range(1000)], "text": texts}))
    assert engine(demo_shop, table="docs").rank(many, depth=100)["query_id"].n_unique() == 1000


def test_the_same_database_gives_the_same_run(shop: Path) -> None:
    queries = {str(at): "nurse surgeon hospital" for at in range(50)}
    first = engine(f"sqlite:///{shop}", table="docs", workers=8).rank(queries)
    assert first.equals(engine(f"sqlite:///{shop}", table="docs", workers=1).rank(queries))
    assert first["query_id"].unique(maintain_order=True).to_list() == list(queries)


def test_provenance_says_what_was_searched(shop: Path) -> None:
    about = engine(f"sqlite:///{shop}", table="docs").describe()
    assert (about["name"], about["table"], about["limits"]["retries"]) == ("sqlite", "docs", 3)
