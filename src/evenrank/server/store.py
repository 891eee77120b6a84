"""The file of a monitor: one SQLite database that holds every observation."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from evenrank.errors import InputError

APPLICATION = 0x65766E72  # "evnr": says whose file it is
VERSION = 1

_TABLES = """
CREATE TABLE observation (
    id INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    source TEXT NOT NULL,
    queries INTEGER NOT NULL,
    answered INTEGER NOT NULL,
    problem TEXT,
    provenance TEXT NOT NULL
) STRICT;
CREATE TABLE value (
    observation INTEGER NOT NULL REFERENCES observation (id) ON DELETE CASCADE,
    measure TEXT NOT NULL,
    value REAL,
    low REAL,
    high REAL,
    queries INTEGER NOT NULL,
    PRIMARY KEY (observation, measure)
) STRICT, WITHOUT ROWID;
CREATE TABLE query_value (
    observation INTEGER NOT NULL REFERENCES observation (id) ON DELETE CASCADE,
    measure TEXT NOT NULL,
    query_id TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (observation, measure, query_id)
) STRICT, WITHOUT ROWID;
"""


class Value(NamedTuple):
    """One measure of one observation; None where it is undefined or has no interval."""

    measure: str
    value: float | None
    low: float | None
    high: float | None
    queries: int


@dataclass(frozen=True)
class Observation:
    """What was seen at one time.

    Attributes
    ----------
    time
        UTC, as in 2026-01-31T12:00:00Z.
    source
        What was asked, without passwords.
    queries, answered
        How many queries were asked, and how many had results.
    problem
        Why there are no values, if there are none.
    per_query
        For each measure the value of each query.
    """

    time: str
    source: str
    queries: int
    answered: int
    values: tuple[Value, ...] = ()
    problem: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "time": self.time,
            "source": self.source,
            "queries": self.queries,
            "answered": self.answered,
            "problem": self.problem,
            "measures": [value._asdict() for value in self.values],
        }


class Store:
    """Observations on disk. Each is written in one transaction: it is there as a whole, or not at all."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise InputError("no such file; the first observation makes it", path=path)
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            self._connection.text_factory = _readable
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._prepare()

    def _prepare(self) -> None:
        """Check whose file it is, or make the tables; several processes may come at once."""

        def pragma(name: str) -> int:
            return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

        if pragma("application_id") != APPLICATION:
            # Looked at again under the lock: another process may have made the tables meanwhile.
            with self._transaction():
                if pragma("application_id") != APPLICATION:
                    if pragma("schema_version"):
                        message = "is a database of something else; name another file"
                        raise InputError(message, path=self.path)
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version = {VERSION}")
            # Lets others read while we write. If one reads right now it cannot be; the next one tries again.
            with suppress(sqlite3.OperationalError):
                self._connection.execute("PRAGMA journal_mode = WAL")
        if pragma("user_version") != VERSION:
            raise InputError(
                f"was written by another version (format {pragma('user_version')}, not {VERSION})",
                path=self.path,
            )

    def add(self, seen: Observation) -> None:
        """Keep an observation."""
        with self._explained(), self._transaction():
            cursor = self._connection.execute(
                "INSERT INTO observation (time, source, queries, answered, problem, provenance) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    seen.time,
                    seen.source,
                    seen.queries,
                    seen.answered,
                    seen.problem,
                    json.dumps(seen.provenance, ensure_ascii=False, sort_keys=True),
                ),
            )
            number = cursor.lastrowid
            self._connection.executemany(
                "INSERT INTO value VALUES (?, ?, ?, ?, ?, ?)", [(number, *value) for value in seen.values]
            )
            self._connection.executemany(
                "INSERT INTO query_value VALUES (?, ?, ?, ?)",
                [
                    (number, measure, query, value)
                    for measure, of in seen.per_query.items()
                    for query, value in of.items()
                ],
            )

    def history(self) -> Sequence[Observation]:
        """All observations, the oldest first, without the values of single queries."""
        with self._explained():
            values: dict[int, list[Value]] = {}
            for number, *value in self._connection.execute(
                "SELECT observation, measure, value, low, high, queries FROM value ORDER BY observation"
            ):
                values.setdefault(number, []).append(Value(*value))
            return [
                Observation(time, source, queries, answered, tuple(values.get(number, ())), problem)
                for number, time, source, queries, answered, problem in self._connection.execute(
                    "SELECT id, time, source, queries, answered, problem FROM observation ORDER BY time, id"
                )
            ]

    def knows(self, source: str) -> bool:
        """Whether this was observed before."""
        with self._explained():
            found = self._connection.execute("SELECT 1 FROM observation WHERE source = ? LIMIT 1", (source,))
            return found.fetchone() is not None

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(f"cannot be used: {error}", path=self.path) from error


def _readable(text: bytes) -> str:
    """Text that may not be UTF-8, which SQLite does not check: one odd row must not hide the rest."""
    return text.decode("utf-8", "replace")
