"""SQLite's full-text search, FTS5: `sqlite:///file.db?table=docs&id=doc_id&text=text`."""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from evenrank.data.schema import BODY, DOC_ID, TITLE, listing
from evenrank.errors import InputError
from evenrank.rankers.live.calls import Busy, Pool, QueryFailed
from evenrank.rankers.live.ranker import Hit, encodable

_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock: well under a millisecond."""


@dataclass(frozen=True)
class SQLiteSettings:
    """Which table is searched, and how.

    Parameters
    ----------
    table
        The FTS5 table; may be left out where there is only one.
    id, title, text
        Columns with the id, the title and the text. Found by their usual names if not given; ``rowid`` is
        an id too.
    weight
        Weight of a column in BM25 (``weight.title=2``); 1 for those not named.
    match
        ``any``: a document needs one of the words (as rankers do it); ``all``: every one of them.
    """

    table: str | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    weight: dict[str, float] = field(default_factory=dict)
    match: Literal["any", "all"] = "any"


class _Columns(NamedTuple):
    table: str
    id: str
    title: str | None
    text: str | None
    searched: tuple[str, ...] | None
    """The columns to search, where that is not all of them."""
    bm25: str


class SQLite:
    """An FTS5 table, opened for reading only; ranked by SQLite's own bm25()."""

    name = "sqlite"

    def __init__(self, path: str, settings: SQLiteSettings, *, timeout: float) -> None:
        self.path = path
        self.settings = settings
        self._timeout = timeout
        self._pool = Pool(self._connect)
        self._columns: _Columns | None = None

    def _connect(self) -> sqlite3.Connection:
        if not Path(self.path).is_file():
            raise InputError("no such file", path=self.path)
        address = f"file:{quote(str(Path(self.path).absolute()))}?mode=ro"
        try:
            connection = sqlite3.connect(address, uri=True, timeout=self._timeout, check_same_thread=False)
            # The schema of a stranger's file may call functions; nothing here needs that.
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error as error:
            raise InputError(f"cannot be opened: {error}", path=self.path) from error
        return connection

    def prepare(self) -> None:
        if self._columns is None:
            with self._pool.connection() as connection:
                try:
                    self._columns = _columns(connection, self.settings)
                except sqlite3.Error as error:
                    raise InputError(f"cannot be read as SQLite: {error}", path=self.path) from error
                except InputError as error:
                    raise InputError(error.message, path=self.path) from None

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        self.prepare()
        columns = self._columns
        assert columns is not None
        expression = match_expression(text, columns.searched, self.settings.match)
        if expression is None:
            return []
        shown = [_quoted(name) if name and texts else "NULL" for name in (columns.title, columns.text)]
        doc_id = "rowid" if columns.id == "rowid" else _quoted(columns.id)
        table = _quoted(columns.table)
        statement = (
            f"SELECT {doc_id}, -rank, {', '.join(shown)} FROM {table} "
            f"WHERE {table} MATCH ? AND rank MATCH ? ORDER BY rank, {doc_id} DESC LIMIT ?"
        )
        with self._pool.connection() as connection:
            end = time.monotonic() + self._timeout
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            connection.text_factory = bytes  # SQLite does not check that text is UTF-8
            try:
                result = connection.execute(statement, (expression, columns.bm25, depth)).fetchall()
            except sqlite3.OperationalError as error:
                raise self._trouble(error) from error
            except sqlite3.DatabaseError as error:
                raise InputError(f"cannot be read: {error}", path=self.path) from error
        return [Hit(*row) for row in result]

    def _trouble(self, error: sqlite3.OperationalError) -> Exception:
        if error.sqlite_errorname == "SQLITE_INTERRUPT":
            return Busy(f"no answer within {self._timeout:g} seconds")
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Busy(str(error))
        if "no such table" in str(error):  # the table that an external-content table reads from
            return InputError(f"the table cannot show its documents: {error}", path=self.path)
        return QueryFailed(str(error))

    def describe(self) -> dict[str, Any]:
        result = self._columns
        picked = {} if result is None else {"table": result.table, "id": result.id, "text": result.text}
        return {
            "database": self.path,
            **asdict(self.settings),
            **picked,
            "version": sqlite3.sqlite_version,
        }

    def close(self) -> None:
        self._pool.close()


def match_expression(text: str, columns: Sequence[str] | None, match: Literal["any", "all"]) -> str | None:
    """A query as an FTS5 expression of quoted words, in which nothing can be an operator.

    None where it holds no word.
    """
    terms = list(dict.fromkeys(words(encodable(text))))
    if not terms:
        return None
    joined = (" OR " if match == "any" else " AND ").join(f'"{term}"' for term in terms)
    if columns is None:
        return joined
    return f"{{{' '.join(_quoted(name) for name in columns)}}} : ({joined})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _columns(connection: sqlite3.Connection, settings: SQLiteSettings) -> _Columns:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    full_text = {name: sql for name, sql in rows if re.search(r"\busing\s+fts5\b", sql or "", re.IGNORECASE)}
    table = settings.table
    if table is None and len(full_text) == 1:
        table = next(iter(full_text))
    if table is None or table not in full_text:
        there = f"full-text tables (FTS5) here: {listing(full_text)}"
        if table is None:
            raise InputError(f"table= says which table to search; {there}")
        others = {name for name, _ in rows}
        problem = f"table {table} is not a full-text table" if table in others else f"no table {table}"
        raise InputError(f"{problem}; {there}")
    definition = _arguments(full_text[table])
    names: list[str] = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
    contentless = re.search(
        r"^content\s*=\s*(''|\"\")?$", "\n".join(definition), re.MULTILINE | re.IGNORECASE
    )
    if contentless and settings.id != "rowid":
        raise InputError(
            f"table {table} is contentless: it holds no ids and no texts; id=rowid takes row numbers as ids"
        )
    doc_id = _pick("id", settings.id, DOC_ID, [*names, "rowid"], required=True)
    title = None if contentless else _pick("title", settings.title, (TITLE,), names)
    text = None if contentless else _pick("text", settings.text, BODY, names)
    if strange := [name for name in settings.weight if name not in names]:
        raise InputError(f"weight.{strange[0]}: table {table} has the columns {listing(names)}")
    unindexed = {
        name for name in names for part in definition if re.fullmatch(_column(name), part, re.IGNORECASE)
    }
    searched = None if doc_id in {"rowid", *unindexed} else tuple(each for each in names if each != doc_id)
    weights = ", ".join(repr(float(settings.weight.get(name, 1.0))) for name in names)
    return _Columns(table, str(doc_id), title, text, searched, f"bm25({weights})")


def _column(name: str) -> str:
    """The definition of a column that is stored, but not searched."""
    return rf"[\"'`\[]?{re.escape(name)}[\"'`\]]?\s+unindexed"


def _arguments(sql: str) -> list[str]:
    """What stands between the brackets of CREATE VIRTUAL TABLE … USING fts5(…)."""
    opened = re.search(r"\busing\s+fts5\s*\(", sql, re.IGNORECASE)
    inside = sql[opened.end() : sql.rindex(")")] if opened else ""
    return [part.strip() for part in re.findall(r"""(?:'[^']*'|"[^"]*"|[^,'"])+""", inside)]


def _pick(
    setting: str, given: str | None, usual: Sequence[str], there: Sequence[str], *, required: bool = False
) -> str | None:
    if given is not None:
        if given in there:
            return given
        raise InputError(f"{setting}={given}: no such column; there are {listing(there)}")
    for name in usual:
        if name in there:
            return name
    if required:
        raise InputError(f"{setting}= says which column is the {setting}; there are {listing(there)}")
    return None


def words(text: str) -> list[str]:
    """Letters, marks and digits that stand together; quotes, operators and control characters part them.

    Marks belong to the words: without them Hindi or Thai words would fall to pieces.
    """
    return "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in text).split()
