"""Full-text search in a database, SQLite or PostgreSQL: a table, or a query of one's own."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from evenrank.data.files import one_line
from evenrank.data.formats import text_of
from evenrank.errors import InputError
from evenrank.rankers.remote.ranker import Hit, Send, encodable, to_hit
from evenrank.rankers.remote.requests import QueryFailed, Unavailable
from evenrank.rankers.remote.secrets import Secrets, hidden

_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock: well under a millisecond."""


@dataclass(frozen=True)
class SQLSettings:
    """How documents are found: in a table, or by a query of one's own.

    Parameters
    ----------
    table, id, text
        A full-text table (FTS5) of SQLite or a table of PostgreSQL, and its columns with the id and the
        text. PostgreSQL is fast with an index on ``to_tsvector('english', text)``.
    sql
        In place of these: a SELECT of the columns doc_id and text, perhaps score and title, best first; or
        ``@path`` of a file with it. Filled in are ``:query``, ``:depth`` and ``:words`` for SQLite,
        ``%(query)s``, ``%(depth)s`` and ``%(words)s`` for PostgreSQL. The words are those of the query
        without operators: quoted and joined by OR for FTS5's MATCH, joined by ``or`` for
        websearch_to_tsquery.
    """

    table: str | None = None
    id: str = "doc_id"
    text: str = "text"
    sql: str | None = None


class SQLEngine:
    """What SQLite and PostgreSQL have in common: read-only connections, one for each thread at work."""

    name = "sql"
    usual_sql = ""
    """The query for a table; filled in are the quoted names of the table and its columns."""

    def __init__(self, settings: SQLSettings, *, timeout: float) -> None:
        if (settings.table is None) == (settings.sql is None):
            raise InputError("give table=, the table to search, or sql=, a query of your own")
        if settings.sql is None:
            names = {"table": settings.table, "id": settings.id, "text": settings.text}
            self.sql = self.usual_sql.format(
                **{name: self._quoted(str(value)) for name, value in names.items()}
            )
        else:
            self.sql = text_of(settings.sql[1:]) if settings.sql.startswith("@") else settings.sql
        self.settings = settings
        self.timeout = timeout
        self._idle: SimpleQueue[Any] = SimpleQueue()

    def _quoted(self, name: str) -> str:
        raise NotImplementedError

    def _connect(self) -> Any:
        raise NotImplementedError

    def _execute(self, connection: Any, parameters: dict[str, Any]) -> Any:
        return connection.execute(self.sql, parameters)

    def _error(self, error: Exception) -> Exception:
        """Return what an error of the database means for us."""
        raise NotImplementedError

    def _words(self, text: str) -> str:
        raise NotImplementedError

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection for one thread; after an error it is closed rather than used again."""
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = self._connect()
        try:
            yield connection
        except Exception as error:
            with suppress(Exception):
                connection.close()
            raise self._error(error) from None
        self._idle.put(connection)

    def prepare(self) -> None:
        with self.connection():
            pass

    def search(self, text: str, depth: int, send: Send) -> list[Hit]:
        text = encodable(text).replace("\0", " ")
        words = self._words(text)
        parameters = {"query": text, "words": words, "depth": depth}
        hits: list[Hit] = send(lambda: self._hits(parameters)) if words else []
        return hits

    def _hits(self, parameters: dict[str, Any]) -> list[Hit]:
        with self.connection() as connection:
            cursor = self._execute(connection, parameters)
            names = [column[0] for column in cursor.description or ()]
            hits = [to_hit(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
            connection.rollback()
        return hits

    def describe(self) -> dict[str, Any]:
        return asdict(self.settings)

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()


def plain_words(text: str) -> list[str]:
    """Return the words of a query, each once: letters, marks and digits that stand together."""
    plain = "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in text)
    return list(dict.fromkeys(plain.split()))


class SQLiteEngine(SQLEngine):
    """A file of SQLite, opened for reading only."""

    name = "sqlite"
    usual_sql = (
        "SELECT {id} AS doc_id, -rank AS score, {text} AS text FROM {table} "
        "WHERE {table} MATCH :words ORDER BY rank, {id} DESC LIMIT :depth"
    )

    def __init__(self, url: str, settings: SQLSettings, *, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise InputError(f"{hidden(url)}: write three slashes: sqlite:///{parts.netloc}{parts.path}")
        # As SQLAlchemy writes them: three slashes and a relative path, four and an absolute one.
        self.path = unquote(parts.path.removeprefix("/"))
        if not self.path:
            raise InputError(f"{hidden(url)}: the URL names no file; write it as sqlite:///file.db")
        super().__init__(settings, timeout=timeout)

    def _quoted(self, name: str) -> str:
        # Not in double quotes: a name that does not exist would be a text then.
        return "`" + name.replace("`", "``") + "`"

    def _connect(self) -> sqlite3.Connection:
        if not Path(self.path).is_file():
            raise InputError("no such file", path=self.path)
        address = f"file:{quote(str(Path(self.path).absolute()))}?mode=ro"
        try:
            connection = sqlite3.connect(address, uri=True, timeout=self.timeout, check_same_thread=False)
            # The schema of a stranger's file may call functions; nothing here needs that.
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error as error:
            raise InputError(f"cannot be opened: {error}", path=self.path) from None
        connection.text_factory = bytes  # SQLite does not check that text is UTF-8
        return connection

    def _execute(self, connection: sqlite3.Connection, parameters: dict[str, Any]) -> Any:
        end = time.monotonic() + self.timeout
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        return connection.execute(self.sql, parameters)

    def _error(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            return Unavailable(f"no answer within {self.timeout:g} seconds")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Unavailable(str(error))
        return InputError(f"sql= cannot be answered: {error}", path=self.path)

    def _words(self, text: str) -> str:
        return " OR ".join(f'"{word}"' for word in plain_words(text))

    def describe(self) -> dict[str, Any]:
        return {"database": self.path, **super().describe(), "version": sqlite3.sqlite_version}


class PostgresEngine(SQLEngine):
    """A PostgreSQL server, asked in transactions that can only read."""

    name = "postgresql"
    usual_sql = (
        "SELECT {id}::text AS doc_id, {text}::text AS text, "
        "ts_rank(to_tsvector('english', {text}), query) AS score "
        "FROM {table}, websearch_to_tsquery('english', %(words)s) AS query "
        "WHERE to_tsvector('english', {text}) @@ query "
        'ORDER BY score DESC, {id}::text COLLATE "C" DESC LIMIT %(depth)s'
    )

    def __init__(self, url: str, settings: SQLSettings, *, timeout: float, secrets: Secrets) -> None:
        super().__init__(settings, timeout=timeout)
        self._secrets = secrets
        try:
            import psycopg
        except ImportError:
            raise InputError("PostgreSQL needs psycopg: pip install 'evenrank[postgres]'") from None
        self._psycopg: Any = psycopg
        try:
            self._login = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # What libpq says may quote the URL, and that may hold a password.
            raise InputError(f"{hidden(url)}: cannot be understood as a PostgreSQL URL") from None
        if given := str(self._login.get("password") or ""):
            self._login["password"] = secrets.resolve("password", given) or given
            secrets.add(str(self._login["password"]))
        secrets.add(os.environ.get("PGPASSWORD", ""))

    def _quoted(self, name: str) -> str:
        return ".".join('"' + part.replace('"', '""').replace("%", "%%") + '"' for part in name.split("."))

    def _connect(self) -> Any:
        milliseconds = max(1, round(1000 * self.timeout))
        limits = {
            "connect_timeout": max(2, round(self.timeout)),  # libpq knows no shorter one
            "tcp_user_timeout": milliseconds,
            "application_name": "evenrank",
        }
        try:
            connection = self._psycopg.connect(**{**limits, **self._login}, autocommit=False)
        except self._psycopg.OperationalError as error:
            message = self._clean(error)
            if any(mark in message for mark in ("Connection refused", "timeout", "starting up", "too many")):
                raise Unavailable(message) from None
            raise InputError(f"{self.name}: {message}") from None
        connection.read_only = True
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(milliseconds),))
        connection.commit()
        return connection

    def _execute(self, connection: Any, parameters: dict[str, Any]) -> Any:
        def cut() -> None:
            with suppress(OSError), socket.socket(fileno=socket.dup(connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)

        # The server ends what takes too long; the timer is for a server that does not even do that.
        timer = threading.Timer(self.timeout + 1, cut)
        timer.daemon = True
        timer.start()
        try:
            return connection.execute(self.sql, parameters)
        finally:
            timer.cancel()

    def _error(self, error: Exception) -> Exception:
        if not isinstance(error, self._psycopg.Error):
            return error
        if isinstance(error, self._psycopg.errors.QueryCanceled):
            return Unavailable(f"no answer within {self.timeout:g} seconds")
        if isinstance(error, self._psycopg.OperationalError):
            return Unavailable(self._clean(error))
        if isinstance(error, self._psycopg.ProgrammingError):
            return InputError(f"{self.name}: sql= cannot be answered: {self._clean(error)}")
        return QueryFailed(self._clean(error))

    def _clean(self, error: Exception) -> str:
        message: str = self._secrets.clean(one_line(error))
        return message

    def _words(self, text: str) -> str:
        return " or ".join(plain_words(text))

    def describe(self) -> dict[str, Any]:
        where = {name: str(self._login[name]) for name in ("host", "port", "dbname") if self._login.get(name)}
        return {**where, **super().describe()}
