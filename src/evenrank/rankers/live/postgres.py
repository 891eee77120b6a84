"""PostgreSQL's full-text search: `postgresql://user@host/db?table=docs&id=doc_id&text=body&config=english`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evenrank.data.files import one_line
from evenrank.data.schema import BODY, DOC_ID, TITLE, listing
from evenrank.errors import InputError
from evenrank.rankers.live.calls import Busy, Pool, QueryFailed, cut_after
from evenrank.rankers.live.ranker import Hit, encodable
from evenrank.rankers.live.secrets import Secrets, hidden

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg.sql import Composable

_GRACE = 1.0
"""Seconds beyond the server's own time-out, after which a server that says nothing is given up."""

# The words of the query, treated as those of the documents are, joined by OR. Lexemes are quoted by the rules
# of tsquery, so that a quote, a backslash or an operator inside one stays part of it.
_ANY = r"""(
    SELECT string_agg('''' || replace(replace(lexeme, E'\\', E'\\\\'), '''', '''''') || '''', ' | ')::tsquery
    FROM unnest(to_tsvector({config}, %(query)s)))"""
_QUERY = {
    "any": _ANY,
    "all": "plainto_tsquery({config}, %(query)s)",
    "web": "websearch_to_tsquery({config}, %(query)s)",
}

_SEARCH = """
    SELECT {id}::text, {function}({vector}, asked.query, {normalization}), {title}, {text}
    FROM {table} AS here, (SELECT {query} AS query) AS asked
    WHERE {vector} @@ asked.query
    ORDER BY 2 DESC, {id}::text COLLATE "C" DESC
    LIMIT %(depth)s
"""

_TABLES = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    ORDER BY 1
"""

_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


@dataclass(frozen=True)
class PostgresSettings:
    """Which table is searched, and how.

    Parameters
    ----------
    table
        The table or view, with its schema if that is not in the search path.
    id, title, text
        Columns with the id, the title and the text; found by their usual names if not given.
    vector
        The column of type tsvector that is searched; without one, `text` is parsed for each query, which
        is slow unless there is an index on ``to_tsvector(config, text)``.
    config
        The text search configuration (``english``, ``german``, ``simple``).
    match
        ``any``: a document needs one of the words (as rankers do it); ``all``: every one of them; ``web``:
        quotes, ``or`` and ``-`` mean what they do in web search.
    function, normalization
        How PostgreSQL ranks: ``ts_rank`` (by frequency) or ``ts_rank_cd`` (also by nearness of the words),
        and its bit mask for document length: 0, its own default, leaves length out; 1 divides by
        1 + log of it.
    """

    table: str | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    vector: str | None = None
    config: str = "english"
    match: Literal["any", "all", "web"] = "any"
    function: Literal["ts_rank", "ts_rank_cd"] = "ts_rank"
    normalization: int = 0


class _Prepared(NamedTuple):
    ids: str
    """The statement that fetches ids and scores."""
    texts: str
    """The statement that fetches titles and texts too."""
    version: str


class Postgres:
    """A table of a PostgreSQL server, in transactions that can only read."""

    name = "postgresql"

    def __init__(self, address: str, settings: PostgresSettings, *, timeout: float, secrets: Secrets) -> None:
        self.settings = settings
        self._secrets = secrets
        self._timeout = timeout
        self._pool: Pool[Connection[Any]] = Pool(self._connect)
        self._prepared: _Prepared | None = None
        psycopg = _psycopg()
        try:
            self._parameters = psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.Error:
            # What libpq says may quote the URL, and that may hold a password.
            raise InputError(f"{hidden(address)}: cannot be understood as a PostgreSQL URL") from None
        for name in ("password", "sslpassword"):
            if given := str(self._parameters.get(name) or ""):
                self._parameters[name] = secrets.from_environment(name, given) or given
                secrets.add(str(self._parameters[name]))
        secrets.add(os.environ.get("PGPASSWORD", ""))
        if not settings.table:
            raise InputError("table= says which table to search")

    def _connect(self) -> Connection[Any]:
        psycopg = _psycopg()
        limits = {
            "connect_timeout": max(2, round(self._timeout)),  # libpq knows no shorter one
            "tcp_user_timeout": round(1000 * self._timeout),
            "application_name": "evenrank",
        }
        try:
            connection = psycopg.connect(**{**limits, **self._parameters}, autocommit=False)
        except psycopg.OperationalError as error:
            message = self._clean(error)
            if any(mark in message for mark in ("Connection refused", "timeout", "starting up", "too many")):
                raise Busy(message) from None
            raise InputError(f"{self.name}: {message}") from None
        connection.read_only = True
        milliseconds = str(max(1, round(1000 * self._timeout)))
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (milliseconds,))
        connection.commit()
        return connection

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """A connection in a transaction that is rolled back; what the server complains of is told apart."""
        psycopg = _psycopg()
        try:
            # The server ends what takes too long; the cut is for one that does not even do that.
            with (
                self._pool.connection() as connection,
                cut_after(self._timeout + _GRACE, lambda: [connection.fileno()]),
            ):
                yield connection
                connection.rollback()
        except psycopg.errors.QueryCanceled:
            raise Busy(f"no answer within {self._timeout:g} seconds") from None
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject) as error:
            raise InputError(f"{self.name}: {self._clean(error)}") from None
        except psycopg.OperationalError as error:
            raise Busy(self._clean(error)) from None
        except psycopg.Error as error:
            raise QueryFailed(self._clean(error)) from None

    def prepare(self) -> None:
        if self._prepared is None:
            with self._connection() as connection:
                self._prepared = _prepared(connection, self.settings)

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        self.prepare()
        assert self._prepared is not None
        statement = self._prepared.texts if texts else self._prepared.ids
        requested = {"query": encodable(text).replace("\0", " "), "depth": depth}
        with self._connection() as connection:
            return [Hit(*row) for row in connection.execute(statement, requested)]

    def _clean(self, error: Error) -> str:
        return self._secrets.clean(one_line(error))

    def describe(self) -> dict[str, Any]:
        known = ("host", "port", "dbname")
        where = {name: str(self._parameters[name]) for name in known if self._parameters.get(name)}
        version = {"version": self._prepared.version} if self._prepared else {}
        return {**where, **asdict(self.settings), **version}

    def close(self) -> None:
        self._pool.close()


def driver_settings() -> set[str]:
    """What libpq itself takes in a URL: sslmode, options, …"""
    return {option.keyword.decode() for option in _psycopg().pq.Conninfo.get_defaults()}


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise InputError("PostgreSQL needs the package psycopg: pip install 'evenrank[postgres]'") from None
    return psycopg


def _prepared(connection: Connection[Any], settings: PostgresSettings) -> _Prepared:
    """The statements, made of names that are there and quoted."""
    from psycopg import sql

    parts = str(settings.table).split(".")
    table = sql.Identifier(*parts)
    name = table.as_string(connection)
    result = len(parts) <= 2 and connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()
    if not result or result[0] is None:
        there = listing(row[0] for row in connection.execute(_TABLES))
        raise InputError(f"no table {settings.table}; there are {there}")
    columns: dict[str, str] = dict(connection.execute(_COLUMNS, (name,)).fetchall())
    if not connection.execute("SELECT 1 FROM pg_ts_config WHERE cfgname = %s", (settings.config,)).fetchone():
        there = listing(row[0] for row in connection.execute("SELECT cfgname FROM pg_ts_config ORDER BY 1"))
        raise InputError(f"no text search configuration {settings.config}; there are {there}")
    config = sql.SQL("{}::regconfig").format(sql.Literal(settings.config))
    text = _pick("text", settings.text, BODY, columns)
    if settings.vector is not None:
        kind = columns.get(settings.vector)
        if kind != "tsvector":
            problem = "no such column" if kind is None else f"is of type {kind}, not tsvector"
            vectors = [each for each, of in columns.items() if of == "tsvector"]
            raise InputError(f"vector={settings.vector}: {problem}; columns of that type: {listing(vectors)}")
        vector: Composable = sql.Identifier("here", settings.vector)
    elif text is not None:
        # Exactly this expression: an index on it is used only if it is written the same way.
        vector = sql.SQL("to_tsvector({}, {})").format(config, sql.Identifier("here", text))
    else:
        raise InputError(f"text= says which column is searched; there are {listing(columns)}")
    doc_id = _pick("id", settings.id, DOC_ID, columns)
    if doc_id is None:
        raise InputError(f"id= says which column is the id; there are {listing(columns)}")
    title = _pick("title", settings.title, (TITLE,), columns)
    query = sql.SQL(_QUERY[settings.match]).format(config=config)

    def statement(shown: bool) -> str:
        nothing = sql.SQL("NULL")
        return (
            sql.SQL(_SEARCH)
            .format(
                id=sql.Identifier("here", doc_id),
                function=sql.SQL(settings.function),
                vector=vector,
                normalization=sql.Literal(settings.normalization),
                title=sql.SQL("{}::text").format(sql.Identifier("here", title))
                if title and shown
                else nothing,
                text=sql.SQL("{}::text").format(sql.Identifier("here", text)) if text and shown else nothing,
                table=table,
                query=query,
            )
            .as_string(connection)
        )

    version = connection.execute("SHOW server_version").fetchone()
    return _Prepared(statement(False), statement(True), version[0] if version else "")


def _pick(setting: str, given: str | None, usual: tuple[str, ...], there: dict[str, str]) -> str | None:
    if given is not None and given not in there:
        raise InputError(f"{setting}={given}: no such column; there are {listing(there)}")
    return given or next((name for name in usual if name in there), None)
