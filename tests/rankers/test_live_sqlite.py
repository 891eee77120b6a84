"""SQLite's full-text search as a ranker, on real files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo
from evenrank.data.read import read_queries
from evenrank.errors import InputError
from evenrank.rankers.live import engine
from evenrank.rankers.live.sqlite import match_expression

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


def ids(url: str, asked: str, /, **given: object) -> list[str]:
    with engine(url, **given) as ranker:
        return ranker.rank({"q": asked})["doc_id"].to_list()


def test_documents_with_more_of_the_words_come_first(shop: Path) -> None:
    assert ids(f"sqlite:///{shop}", "nurse surgeon")[0] == "d3"


def test_the_scores_are_those_of_bm25(shop: Path) -> None:
    run = engine(f"sqlite:///{shop}").rank({"q": "surgeons"})
    connection = sqlite3.connect(shop)
    told = connection.execute("SELECT doc_id, -bm25(docs) FROM docs('surgeons') ORDER BY rank").fetchall()
    assert dict(run.select("doc_id", "score").rows()) == pytest.approx(dict(told))
    assert (run["score"] > 0).all()


def test_results_carry_title_and_text(shop: Path) -> None:
    shown = engine(f"sqlite:///{shop}").results({"q": "mother"})
    assert shown.select("doc_id", "rank", "title", "text").rows() == [("d1", 1, "Nurses", DOCS[0][2])]


def test_a_relative_path_is_taken_from_here(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.parent)
    assert ids("sqlite:///shop.db?table=docs", "mother") == ["d1"]


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    path = database(tmp_path / "a b?c#d%41é.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id, title, text)")
    assert ids(f"sqlite:///{quote(str(path))}", "mother") == ["d1"]


def test_a_word_may_weigh_more_in_the_title(shop: Path) -> None:
    with_weight = {"weight.title": 50, "weight.text": 0.01}
    assert ids(f"sqlite:///{shop}", "nurse", **with_weight)[0] == "d1"
    assert ids(f"sqlite:///{shop}?weight.title=50&weight.text=0.01", "nurse")[0] == "d1"


def test_all_words_are_needed_if_that_is_asked_for(shop: Path) -> None:
    assert set(ids(f"sqlite:///{shop}", "nurse hospital")) == {"d1", "d2", "d3"}
    assert ids(f"sqlite:///{shop}?match=all", "nurse hospital") == ["d3"]


def test_equal_scores_come_in_the_order_of_the_tie_rule(tmp_path: Path) -> None:
    rows = [(name, "same words") for name in ("a", "c", "b", "é", "Z")]
    path = database(
        tmp_path / "ties.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)", rows
    )
    run = engine(f"sqlite:///{path}").rank({"q": "words"})
    assert run["doc_id"].to_list() == ["é", "c", "b", "a", "Z"]
    assert run["score"].n_unique() == 1


ATTACKS = [
    "\" OR 1=1 --", "'; DROP TABLE docs; --", "NEAR(nurse surgeon)", "nurse NEAR surgeon", "nur*", "^nurse",
    "title : nurse", "{title text} : nurse", "-text : nurse", "nurse AND NOT surgeon", "NOT", "AND", "OR",
    "\"", "\"\"", "(", "nurse)", "+ +", "nurse\0surgeon", "\0", "%", "nurse\ufffe", "\u202enurse", "*",
    "{}",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS, ids=ascii)
@pytest.mark.parametrize("match", ["any", "all"])
def test_operators_in_a_query_are_just_words(shop: Path, text: str, match: str) -> None:
    before = shop.read_bytes()
    found = set(ids(f"sqlite:///{shop}", text, match=match)) if text.strip() else set()
    if "nurse" in text and match == "any":
        assert found >= {"d1", "d3"}
    assert shop.read_bytes() == before


def test_a_star_is_no_prefix_search(shop: Path) -> None:
    assert ids(f"sqlite:///{shop}", "moth*") == []


def test_not_excludes_nothing(shop: Path) -> None:
    assert set(ids(f"sqlite:///{shop}", "nurse NOT surgeon")) == {"d1", "d2", "d3"}


@given(text=st.text(), match=st.sampled_from(["any", "all"]))
def test_any_text_can_be_asked(shop: Path, text: str, match: str) -> None:
    expression = match_expression(text, ["title", 'te"xt'], match)  # type: ignore[arg-type]
    assert expression is None or "\0" not in expression
    ids(f"sqlite:///{shop}", text, match=match)


def test_the_word_of_another_script_stays_whole() -> None:
    assert match_expression("हिन्दी, ไทย", None, "any") == '"हिन्दी" OR "ไทย"'


def test_an_id_that_is_indexed_is_not_searched(tmp_path: Path) -> None:
    path = database(tmp_path / "ids.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id, title, text)")
    assert ids(f"sqlite:///{path}", "d1") == []


def test_names_with_quotes_are_only_names(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    connection = sqlite3.connect(path)
    connection.execute("""CREATE VIRTUAL TABLE "a""b; --" USING fts5("my id" UNINDEXED, "the text")""")
    connection.execute("""INSERT INTO "a""b; --" VALUES ('x', 'nurse')""")
    connection.commit()
    shown = engine(f"sqlite:///{path}", table='a"b; --', id="my id", text="the text").results({"q": "nurse"})
    assert shown.select("doc_id", "text").rows() == [("x", "nurse")]


def test_a_missing_table_lists_those_there_are(shop: Path) -> None:
    with pytest.raises(InputError, match=r"no table dogs; full-text tables \(FTS5\) here: docs"):
        ids(f"sqlite:///{shop}?table=dogs", "x")


def test_an_injected_table_name_is_a_missing_table(shop: Path) -> None:
    with pytest.raises(InputError, match="no table docs;"):
        ids(f"sqlite:///{shop}", "x", table="docs; DROP TABLE docs")


def test_an_ordinary_table_is_told_apart(tmp_path: Path) -> None:
    path = database(tmp_path / "plain.db", "CREATE TABLE docs (doc_id, title, text)")
    with pytest.raises(InputError, match=r"table docs is not a full-text table; .* here: none"):
        ids(f"sqlite:///{path}?table=docs", "x")


def test_several_tables_need_a_choice(shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.execute("CREATE VIRTUAL TABLE more USING fts5(doc_id, text)")
    connection.commit()
    with pytest.raises(InputError, match=r"table= says which table to search; .* docs, more"):
        ids(f"sqlite:///{shop}", "x")


@pytest.mark.parametrize("setting", ["id", "title", "text", "weight.colour"])
def test_a_missing_column_lists_those_there_are(shop: Path, setting: str) -> None:
    value = 1 if "weight" in setting else "colour"
    with pytest.raises(InputError, match="doc_id, title, text") as error:
        ids(f"sqlite:///{shop}", "x", **{setting: value})
    assert setting in str(error.value)


def test_a_contentless_table_has_row_numbers_for_ids(tmp_path: Path) -> None:
    path = tmp_path / "contentless.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIRTUAL TABLE docs USING fts5(title, text, content='')")
    connection.execute("INSERT INTO docs(rowid, title, text) VALUES (7, 'a', 'nurse')")
    connection.commit()
    with pytest.raises(InputError, match="contentless: it holds no ids and no texts; id=rowid"):
        ids(f"sqlite:///{path}", "nurse")
    assert ids(f"sqlite:///{path}?id=rowid", "nurse") == ["7"]


def test_external_content_is_read_from_its_table(tmp_path: Path) -> None:
    path = tmp_path / "external.db"
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE pages (id INTEGER PRIMARY KEY, doc_id TEXT, text TEXT);
        INSERT INTO pages VALUES (1, 'x', 'a nurse');
        CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, content='pages', content_rowid='id');
        INSERT INTO docs(docs) VALUES ('rebuild');
    """)
    url = f"sqlite:///{path}"
    assert engine(url).results({"q": "nurse"}).select("doc_id", "text").rows() == [("x", "a nurse")]
    connection.execute("DROP TABLE pages")
    connection.commit()
    with pytest.raises(InputError, match="pages"):
        ids(url, "nurse")


def test_a_table_without_columns_in_its_index_can_be_searched(tmp_path: Path) -> None:
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, title, text, detail=none)"
    path = database(tmp_path / "none.db", create)
    assert ids(f"sqlite:///{path}", "mother") == ["d1"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.db: no such file"):
        ids(f"sqlite:///{tmp_path}/nothing.db", "x")
    assert not (tmp_path / "nothing.db").exists()


def test_another_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is not a database, but text " * 100)
    with pytest.raises(InputError, match=r"x\.db: cannot be (read|opened)"):
        ids(f"sqlite:///{tmp_path}/x.db", "x")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqlite://shop.db", "three slashes: sqlite:///shop.db"),
        ("sqlite:///", "names no file"),
        ("sqlite:///shop.db?tabel=docs", "unknown setting tabel; did you mean table"),
        ("sqlite:///shop.db?table=a&table=b", "setting table is given twice"),
        ("sqlite:///shop.db?timeout=soon", "timeout is 'soon'; it must be a number"),
        ("sqlite:///shop.db?workers=2.5", "workers is '2.5'; it must be a whole number"),
        ("sqlite:///shop.db?match=some", "match is 'some'; it must be any or all"),
        ("mysql://host/db", "not the URL of an engine; it begins with one of sqlite, postgresql"),
        ("shop.db", "not the URL of an engine"),
    ],
)
def test_a_url_that_cannot_be_used_says_why(url: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        engine(url)


def test_a_search_that_takes_too_long_is_cut(tmp_path: Path) -> None:
    rows = [(f"d{at}", "a " * 200) for at in range(20_000)]
    path = database(tmp_path / "big.db", "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text)", rows)
    with pytest.raises(
        InputError, match=r"query 'q' failed: no answer within 0\.01 seconds \(asked 2 times\)"
    ):
        ids(f"sqlite:///{path}?timeout=0.01&retries=1&backoff=0.01", "a")


def test_nothing_can_be_written(shop: Path) -> None:
    with engine(f"sqlite:///{shop}") as ranker:
        ranker.rank({"q": "nurse"})
        with ranker.engine._pool.connection() as connection, pytest.raises(sqlite3.OperationalError):  # type: ignore[attr-defined]
            connection.execute("DELETE FROM docs")


def test_the_demo_collection_is_ranked_usefully(tmp_path: Path) -> None:
    docs, queries, qrels = er.load(demo.folder())
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize='porter')"
    path = database(tmp_path / "demo.db", create, docs.frame().select("doc_id", "text").rows())
    ranker = engine(f"sqlite:///{path}")
    values = er.measure(ranker.rank(queries, depth=100), [er.nDCG @ 10], qrels=qrels)
    bm25 = er.measure(str(demo.folder() / "bm25.run"), [er.nDCG @ 10], qrels=qrels)
    ours, theirs = (found.frame()["value"][0] for found in (values, bm25))
    assert ours > 0.8 * theirs


def test_the_texts_that_were_shown_are_enough_for_an_audit(tmp_path: Path) -> None:
    docs, queries, _ = er.load(demo.folder())
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize='porter')"
    path = database(tmp_path / "demo.db", create, docs.frame().select("doc_id", "text").rows())
    answers = engine(f"sqlite:///{path}").ask(queries, depth=10)
    run, shown = answers.shown()
    lexicon = er.lexicon("rekabsaz2020")
    with_all = er.measure(answers.run, [er.ARaB @ 10], tally=er.tally(docs, lexicon))
    with_shown = er.measure(run, [er.ARaB @ 10], tally=er.tally(shown, lexicon))
    assert with_all.frame()["value"].to_list() == with_shown.frame()["value"].to_list()


def test_a_thousand_queries_are_answered(tmp_path: Path) -> None:
    docs, queries, _ = er.load(demo.folder())
    create = "CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize='porter')"
    path = database(tmp_path / "demo.db", create, docs.frame().select("doc_id", "text").rows())
    texts = (queries["text"].to_list() * 1000)[:1000]
    many = read_queries(pl.DataFrame({"query_id": [str(at) for at in range(1000)], "text": texts}))
    run = engine(f"sqlite:///{path}").rank(many, depth=100)
    assert run["query_id"].n_unique() == 1000


def test_the_same_database_gives_the_same_run(shop: Path) -> None:
    queries = {str(at): "nurse surgeon hospital" for at in range(50)}
    first = engine(f"sqlite:///{shop}?workers=8").rank(queries)
    assert first.equals(engine(f"sqlite:///{shop}?workers=1").rank(queries))
    assert first["query_id"].unique(maintain_order=True).to_list() == list(queries)


def test_provenance_says_what_was_searched(shop: Path) -> None:
    ranker = engine(f"sqlite:///{shop}")
    ranker.rank({"q": "nurse"})
    told = ranker.describe()
    assert told["name"] == "sqlite"
    assert (told["table"], told["id"], told["text"]) == ("docs", "doc_id", "text")
    assert told["limits"]["retries"] == 3
