"""PostgreSQL's full-text search as a ranker, on a real server that the tests start."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from evenrank import demo
from evenrank.errors import InputError
from evenrank.rankers.remote import RemoteRanker, engine

psycopg = pytest.importorskip("psycopg", reason="needs the package psycopg: pip install 'evenrank[postgres]'")

pytestmark = pytest.mark.slow

PASSWORD = "s3cr:et/" + secrets.token_hex(8)
ENCODED = PASSWORD.replace(":", "%3A").replace("/", "%2F")
DOCS = [
    ("d1", "Nurses", "She is a nurse and a mother."),
    ("d2", "Surgeons", "He is a surgeon at the hospital."),
    ("d3", "Care", "A nurse and a surgeon work together near the hospital."),
]


def _binaries() -> Path:
    found = [Path(which).parent for which in [shutil.which("initdb")] if which]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("needs the server programs of PostgreSQL (Debian: postgresql)")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server with the demo collection and a small table; the part of its URL before the database's name."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="evenrank-postgres-"))
    owner: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        known = {each.pw_name for each in pwd.getpwall()}
        name = next((each for each in ("postgres", "nobody") if each in known), None)
        if name is None:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
        owner = {"user": name}
        shutil.chown(folder, name)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = subprocess.run(
        [binaries / "initdb", "-D", folder / "data", "-U", "auditor", "-A", "scram-sha-256",
         f"--pwfile={secret}", "--encoding=UTF8", "--no-locale", "--no-sync"],
        capture_output=True, text=True, cwd=folder, **owner,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [binaries / "postgres", "-D", folder / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1",
         "-c", "unix_socket_directories=", "-c", "fsync=off"],
        stdout=log, stderr=log, cwd=folder, **owner,
    )  # fmt: skip
    try:
        _fill(port)
        yield f"postgresql://auditor:{ENCODED}@127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _connect(port: int) -> Any:
    end = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(
                host="127.0.0.1",
                port=port,
                user="auditor",
                password=PASSWORD,
                dbname="postgres",
                autocommit=True,
            )
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _fill(port: int) -> None:
    with _connect(port) as connection:
        connection.execute("CREATE TABLE docs (doc_id text PRIMARY KEY, title text, text text)")
        connection.execute("CREATE INDEX ON docs USING gin (to_tsvector('english', text))")
        connection.execute("CREATE TABLE numbered (id int, body text, query text, score int, tsv tsvector)")
        connection.execute('CREATE SCHEMA "my shop"')
        connection.execute('CREATE TABLE "my shop"."odd ""name" ("the id" text, "the; text" text)')
        connection.execute('INSERT INTO "my shop"."odd ""name" VALUES (%s, %s)', ("x", "a nurse"))
        connection.execute("CREATE TABLE demo (doc_id text, text text)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO docs VALUES (%s, %s, %s)", DOCS)
            rows = er.load(demo.folder()).docs.frame().select("doc_id", "text").rows()
            cursor.executemany("INSERT INTO demo VALUES (%s, %s)", rows)
            statement = "INSERT INTO numbered VALUES (%s, %s, 'q', 0, to_tsvector('english', %s))"
            cursor.executemany(statement, [(at, text, text) for at, (_, _, text) in enumerate(DOCS, 1)])
        connection.execute("""
            CREATE FUNCTION slowly(wanted text) RETURNS text LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(30); RETURN wanted; END $$
        """)
        connection.execute("CREATE VIEW sleepy AS SELECT doc_id, slowly(text) AS text FROM docs")


def ids(url: str, asked: str, /, **settings: Any) -> list[str]:
    with engine(url, **({"table": "docs"} | settings)) as ranker:
        return ranker.rank({"q": asked})["doc_id"].to_list()


@pytest.fixture
def docs(server: str) -> str:
    return f"{server}/postgres"


def test_words_are_stemmed_and_any_of_them_is_enough(docs: str) -> None:
    assert set(ids(docs, "the nurses of mothers")) == {"d1", "d3"}
    assert ids(docs, "nursing hospitals surgeons")[0] in {"d2", "d3"}


def test_results_carry_the_text(docs: str) -> None:
    shown = engine(docs, table="docs").search({"q": "mother"})
    assert shown.frame.select("doc_id", "rank", "text").rows() == [("d1", 1, DOCS[0][2])]


def test_the_scores_are_those_of_the_server(docs: str) -> None:
    run = engine(docs, table="docs").rank({"q": "nurse"})
    with psycopg.connect(docs) as connection:
        expected = connection.execute(
            "SELECT doc_id, ts_rank(to_tsvector('english', text), 'nurs') FROM docs WHERE text ~ 'nurse'"
        ).fetchall()
    assert dict(run.select("doc_id", "score").rows()) == pytest.approx(dict(expected))


def test_a_query_of_ones_own_is_asked(docs: str) -> None:
    sql = (
        "SELECT id, ts_rank_cd(tsv, q) AS score, body AS text FROM numbered, "
        "plainto_tsquery('english', %(query)s) AS q WHERE tsv @@ q ORDER BY score DESC LIMIT %(depth)s"
    )
    assert ids(docs, "nurse hospital", table=None, sql=sql) == ["3"]
    assert engine(docs, sql=sql).search({"q": "mother"}).frame["text"].to_list() == [DOCS[0][2]]


def test_names_with_quotes_are_only_names(docs: str) -> None:
    settings = {"table": 'my shop.odd "name', "id": "the id", "text": "the; text"}
    assert ids(docs, "nurse", **settings) == ["x"]


@pytest.mark.parametrize(
    "text",
    [
        "' OR 1=1 --", "'; DROP TABLE docs; --", "nurse & !surgeon", "nurse <-> surgeon", "nurse:*",
        "nurse:A", "\\", "\\'", "nurse\\' | surgeon", "''", "nurse\0x", "\0", "%s %(query)s %%", "http://a.b/c?d=1&e='2",
        "!", "|", "a'b\\c", "user@example.com nurse", "{config}", "$1", "the of and",
    ],
    ids=ascii,
)  # fmt: skip
def test_operators_in_a_query_are_just_words(docs: str, text: str) -> None:
    found = set(ids(docs, text))
    if "nurse" in text:
        assert found >= {"d1", "d3"}
    assert len(ids(docs, "nurse surgeon")) == 3


def test_nothing_can_be_written(docs: str) -> None:
    with pytest.raises(InputError, match=r"read-only transaction"):
        ids(docs, "nurse", table=None, sql="DELETE FROM docs RETURNING doc_id, text")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"table": "dogs"}, "cannot be answered: relation .dogs. does not exist"),
        ({"table": "docs; DROP TABLE docs"}, "does not exist"),
        ({"id": "x"}, "column .x. does not exist"),
        ({"table": None}, "give table=, the table to search, or sql="),
        ({"table": None, "sql": "SELEKT"}, "cannot be answered: syntax error"),
        ({"table": None, "sql": "SELECT %(x)s"}, "cannot be answered: query parameter missing: x"),
    ],
    ids=str,
)
def test_a_query_that_cannot_be_answered_says_why(docs: str, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        ids(docs, "x", **settings)


def test_a_search_that_takes_too_long_is_cut_by_the_server(server: str) -> None:
    with pytest.raises(InputError, match=r"no answer within 0\.2 seconds \(asked 2 times\)"):
        ids(f"{server}/postgres", "x", table="sleepy", timeout=0.2, retries=1, backoff=0.01)


def test_a_server_that_stands_still_is_given_up(docs: str) -> None:
    with engine(docs, table="docs", timeout=0.3, retries=0) as ranker:
        ranker.rank({"q": "nurse"})
        with ranker.engine.connection() as connection:  # type: ignore[attr-defined]
            process = connection.info.backend_pid
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(InputError, match="query 'q' failed"):  # it would wait for ever
                ranker.rank({"q": "nurse"})
        finally:
            os.kill(process, signal.SIGCONT)


def test_a_lost_connection_is_made_again(server: str, docs: str) -> None:
    with engine(docs, table="docs", backoff=0.01) as ranker:
        ranker.rank({"q": "nurse"})
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evenrank'"
            )
        assert set(ranker.rank({"q": "nurse"})["doc_id"]) == {"d1", "d3"}


@pytest.mark.parametrize(
    "broken",
    [
        lambda server: server.replace(ENCODED, "wrong" + ENCODED) + "/postgres",
        lambda server: server + "/nowhere",
        lambda server: server + "/postgres?sslmode=perhaps",
        lambda server: server + "/postgres?colour=red",
        lambda server: server.replace("127.0.0.1:", "127.0.0.1:x") + "/postgres",
        lambda server: server.rpartition(":")[0] + ":1/postgres",
    ],
)
def test_no_error_shows_the_password(server: str, broken: Any) -> None:
    with pytest.raises(InputError) as error:
        ids(broken(server), "x", retries=0)
    chain, problem = [], error.value
    while problem is not None:
        chain.append(f"{problem} {problem!r}")
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)  # type: ignore[assignment]
    for secret in (PASSWORD, ENCODED, PASSWORD[-16:]):
        assert secret not in "\n".join(chain)


def test_provenance_holds_no_password(docs: str) -> None:
    ranker = engine(docs, table="docs")
    ranker.rank({"q": "nurse"})
    told = ranker.describe()
    assert PASSWORD[-16:] not in str(told)
    assert (told["name"], told["dbname"], told["table"]) == ("postgresql", "postgres", "docs")


def test_the_password_may_come_from_the_environment(docs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert ids(docs.replace(f":{ENCODED}", ""), "mother") == ["d1"]


def test_what_is_no_setting_of_ours_is_passed_on(docs: str) -> None:
    with engine(f"{docs}?options=-c%20work_mem%3D7MB&sslmode=disable", table="docs") as ranker:
        ranker.rank({"q": "nurse"})
        with ranker.engine.connection() as connection:  # type: ignore[attr-defined]
            assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)


def test_threads_do_not_disturb_each_other(docs: str) -> None:
    queries = {str(at): ["nurse", "surgeon", "mother"][at % 3] for at in range(60)}
    together = engine(docs, table="docs", workers=8).rank(queries)
    assert together.equals(engine(docs, table="docs", workers=1).rank(queries))


def test_the_demo_collection_is_ranked_usefully(server: str) -> None:
    _, queries, qrels = er.load(demo.folder())
    ranker: RemoteRanker = engine(f"{server}/postgres", table="demo")
    found = er.measure(ranker.rank(queries, depth=100), [er.nDCG @ 10], qrels=qrels)
    bm25 = er.measure(str(demo.folder() / "bm25.run"), [er.nDCG @ 10], qrels=qrels)
    assert found.frame()["value"][0] > 0.7 * bm25.frame()["value"][0]
