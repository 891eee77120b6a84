"""Live engines through `er.search` and `evenrank search`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from json_server import Reply, serving
from typer.testing import CliRunner

import evenrank as er
from evenrank import demo
from evenrank.cli.app import app
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.rankers.base import Ranker
from evenrank.rankers.remote import engine


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo collection in SQLite, in the folder that the tests run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    connection = sqlite3.connect("shop.db")
    connection.execute("CREATE VIRTUAL TABLE docs USING fts5(doc_id UNINDEXED, text, tokenize='porter')")
    rows = er.load(demo.folder()).docs.frame().select("doc_id", "text").rows()
    connection.executemany("INSERT INTO docs VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    demo.copy_to(tmp_path)
    return tmp_path


def search(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["search", "--queries", "queries.tsv", "-o", "out.run", *arguments])
    if isinstance(done.exception, InputError):
        return 2, str(done.exception)
    return done.exit_code, done.output


def test_an_engine_is_a_ranker(shop: Path) -> None:
    assert isinstance(engine("sqlite:///shop.db", table="docs"), Ranker)


def test_the_command_writes_the_run_of_the_function(shop: Path) -> None:
    code, told = search("--engine", "sqlite:///shop.db", "--set", "table=docs", "--depth", "20")
    assert code == 0, told
    run = er.search("sqlite:///shop.db", "queries.tsv", depth=20, table="docs")
    written = read_run("out.run")
    assert written.select("query_id", "doc_id", "rank").equals(run.select("query_id", "doc_id", "rank"))


def test_settings_reach_the_engine(shop: Path) -> None:
    sql = "SELECT doc_id FROM docs(:words) ORDER BY doc_id LIMIT 3"
    code, _ = search("--engine", "sqlite:///shop.db", "--set", f"sql={sql}", "--set", "workers=1")
    assert code == 0
    every = er.search("sqlite:///shop.db", "queries.tsv", table="docs")
    assert len(read_run("out.run")) == 3 * every["query_id"].n_unique() < len(every)


def test_failed_queries_are_told(shop: Path) -> None:
    def answer(asked: object) -> Reply:
        return Reply("bad", 400) if len(site.asked) == 2 else Reply(["a", "b", "a"])

    with serving(answer) as site:
        code, told = search(
            "--engine", f"{site.url}/?q={{query}}", "--set", "on_error=skip", "--set", "workers=1"
        )
    assert code == 0
    assert "1 query failed and left out, first q02:" in told
    assert "59 results dropped" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("--engine", "postgresql://me:hushhush@localhost:1/db", "--set", "table=x", "--qrels", "qrels.txt"),
        ("--engine", "postgresql://me:hushhush@localhost:1/db", "--set", "table=x", "--set", "retries=0"),
        ("--engine", "postgresql://me:hushhush@localhost:1/db", "--set", "tabel=x"),
        ("--engine", "http://me:hushhush@localhost:1/?q={query}", "--set", "retries=0"),
        ("--engine", "http://localhost:1/?q={query}&token=hushhush", "--set", "retries=0"),
        ("--engine", "http://localhost:1/?q={query}", "--set", "retries=0", "--set", "param.k=env:SECRET"),
        ("--engine", "http://localhost:1/?q={query}", "--set", "header.Authorization=hushhush"),
        ("--engine", "elasticsearch://me:hushhush@localhost:1/docs", "--set", "retries=0"),
        ("--engine", "ftp://me:hushhush@localhost:1/docs"),
        ("--engine", "http://me:hushhush@[::1/?q={query}"),
    ],
    ids=str,
)
def test_no_message_shows_a_secret(
    shop: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hushhush")
    code, told = search(*arguments)
    assert code == 2
    assert "hushhush" not in told


def test_a_misspelt_setting_of_postgresql_is_named() -> None:
    pytest.importorskip("psycopg", reason="needs the package psycopg: pip install 'evenrank[postgres]'")
    with pytest.raises(InputError, match=r"has no setting 'tabel'.*did you mean table"):
        engine("postgresql://localhost/db", tabel="x")
