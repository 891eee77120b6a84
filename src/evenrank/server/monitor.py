"""A set of queries, asked again and again: is an engine still as even as it was? With the file it keeps."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl
import xxhash
from ir_measures.measures import Measure

from evenrank.data.read import read_genders, read_qrels, read_queries, read_table
from evenrank.errors import InputError
from evenrank.measures.base import is_bias, unwrap_abs
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.parse import Condition, parse_condition
from evenrank.rankers.base import Progress
from evenrank.rankers.index import Index
from evenrank.rankers.registry import ranker_for
from evenrank.rankers.remote.ranker import RemoteRanker
from evenrank.rankers.remote.requests import EngineDown, Limits
from evenrank.rankers.remote.secrets import hidden
from evenrank.text.lexicon import lexicon

MEASURES = ("ARaB@10", "RaB@10", "NFaiRR@10")
DEPTH = 10
SHORTEST = 10
"""Seconds between two observations, at least: an engine is not there for its monitor."""
_LIMITS = frozenset(field.name for field in fields(Limits))
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, eq=False)
class Watch:
    """What is asked, and what is measured of the answers.

    Parameters
    ----------
    where
        The address of an engine, or the path of an index.
    ranker, settings
        How the index is searched; for an engine only settings.
    conditions
        What must not hold: ``abs(ARaB@10)>0.1``.
    qrels
        Judgments; those of queries that are not asked are left aside.
    genders, only
        Labels of the queries, and which of them bias is measured on: neutral ones, unless told otherwise.
    labels, targets
        The group of each document, and the share that each group should have, for MB, Skew and their like.
    depth
        Results for each query. Without it 10, or as many as the measures look at; ten times the cut-off for
        measures that compare the top with the query's whole list.
    """

    where: Any
    queries: pl.DataFrame
    measures: tuple[Measure, ...]
    conditions: tuple[Condition, ...] = ()
    ranker: str = "bm25"
    settings: Any = None
    depth: int = DEPTH
    lexicon: Any = "rekabsaz2020"
    qrels: Any = None
    genders: Any = None
    only: str | None = None
    labels: Any = None
    targets: Any = None

    @classmethod
    def of(
        cls, where: Any, queries: Any, measures: Sequence[str] = (), fail_if: Sequence[str] = (), **more: Any
    ) -> Watch:
        """A watch out of texts; a mistake in them is found before the engine is asked."""
        conditions = tuple(parse_condition(one) for one in fail_if)
        wanted: list[str | Measure] = [*(measures or MEASURES), *(one.subject for one in conditions)]
        asked = read_queries(queries)
        if more.get("qrels") is not None:
            more["qrels"] = read_qrels(more["qrels"])
        if more.get("genders") is not None:
            more["genders"] = read_genders(more["genders"])
        if isinstance(more.get("labels"), str | os.PathLike):
            more["labels"] = read_table(more["labels"]).frame
        more["lexicon"] = lexicon(more.get("lexicon", cls.lexicon))
        listed = tuple(listed_measures(wanted))
        depth, targets = more.pop("depth", None), more.get("targets") is not None
        for one in listed if depth is not None else ():
            if _looked_at(one, targets=targets) > depth:
                raise InputError(f"{one} looks further than the {depth} results asked for; raise depth")
        if depth is None:
            depth = max([DEPTH, *(_retrieved(one, targets=targets) for one in listed)])
        return cls(where, asked, listed, conditions, depth=depth, **more)

    def opened(self) -> Any:
        """The ranker; an address that cannot be one, or an unknown setting, is refused here."""
        return ranker_for(self.where, self.ranker, **(self.settings or {}))

    @property
    def source(self) -> str:
        """What is asked, without passwords, and by which words it is measured, if not by the usual ones.

        Looks are compared with those of the same source.
        """
        engine = isinstance(self.where, str) and "://" in self.where
        settings = {name: value for name, value in (self.settings or {}).items() if name not in _LIMITS}
        how = ", ".join([self.ranker, *(f"{name}={value}" for name, value in settings.items())])
        parts = [hidden(self.where) if engine else f"{self.where} ({how})"]
        if engine and settings:
            written = json.dumps(settings, sort_keys=True, default=str)
            parts.append(f"settings {xxhash.xxh3_64_hexdigest(written.encode())[:8]}")
        label = self.only or ("neutral" if self.genders is not None else None)
        if label not in (None, "all"):
            parts.append(f"{label} queries")
        if self.depth != DEPTH:
            parts.append(f"{self.depth:,} results")
        words = lexicon(self.lexicon)
        if words != lexicon(Watch.lexicon):
            parts.append(f"lexicon {words.name} {words.hash[:8]}")
        return ", ".join(parts)


def observe(watch: Watch, *, progress: Progress | None = None, known: bool = True) -> Observation:
    """Ask all queries once, and measure the answers; what fails is an observation too.

    Parameters
    ----------
    known
        Whether the engine has answered before. If not, what cannot work (no such host, table or index) is
        raised as a mistake of whoever asks; an engine that is down for now is an observation all the same.
    """
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    asked = len(watch.queries)
    try:
        run, docs, qrels, labels, about = _answers(watch, progress)
        if run.is_empty():
            raise EngineDown("no query had a result")
        found = measure(
            {"engine": run},
            watch.measures,
            docs=docs,
            lexicon=watch.lexicon,
            queries=watch.queries,
            qrels=qrels,
            genders=watch.genders,
            only=watch.only,
            labels=labels,
            targets=watch.targets,
        )
    except InputError as error:
        if not known and not isinstance(error, EngineDown):
            raise
        return Observation(time, watch.source, asked, 0, problem=" ".join(str(error).split()))
    rows = found.runs["engine"]
    return Observation(
        time,
        watch.source,
        asked,
        run["query_id"].n_unique(),
        tuple(Value(str(m.measure), m.value, m.low, m.high, m.queries) for m in rows),
        provenance={"ranker": about, "measured": found.provenance},
        per_query={str(m.measure): m.per_query() for m in rows},
    )


def _looked_at(measure: Measure, *, targets: bool) -> int:
    """How many results a measure needs; one more than its cut-off if it compares with the whole list."""
    one = unwrap_abs(measure)
    cutoff = int(one.params.get("cutoff") or 0)
    below = is_bias(one) and one.needs_more_than_the_top(targets=targets)
    return cutoff + 1 if below and cutoff else cutoff


def _retrieved(measure: Measure, *, targets: bool) -> int:
    """How many results are asked for, unless somebody says."""
    cutoff = int(unwrap_abs(measure).params.get("cutoff") or 0)
    return cutoff if _looked_at(measure, targets=targets) == cutoff else 10 * cutoff


def _answers(watch: Watch, progress: Progress | None) -> tuple[pl.DataFrame, Any, Any, Any, dict[str, Any]]:
    """The run, the texts that were shown, the judgments of what was asked, labels, and what answered."""
    made = watch.opened()
    if isinstance(made, RemoteRanker):
        with made:
            answers = made.search(watch.queries, depth=watch.depth, progress=progress)
        if answers.frame.is_empty():
            raise EngineDown("no query had a result")
        run, docs = answers.run_and_docs()
        qrels = None if watch.qrels is None else answers.map_qrels(watch.qrels)
        labels = None if watch.labels is None else answers.map_labels(watch.labels)
        return run, docs, qrels, labels, made.describe()
    run = made.rank(watch.queries, depth=watch.depth, progress=progress)
    texts = Index.open(watch.where).docs.texts(run["doc_id"].unique(maintain_order=True).to_list())
    qrels = watch.qrels
    if qrels is not None:
        qrels = read_qrels(qrels).filter(pl.col("query_id").is_in(watch.queries["query_id"].implode()))
    return run, texts, qrels, watch.labels, made.describe()


def alerts(watch: Watch, seen: Observation) -> list[str]:
    """One line for each bound that is exceeded, or could not be checked."""
    if seen.problem is not None:
        return [f"not measured: {seen.problem}"]
    values = {value.measure: value.value for value in seen.values}
    found = []
    for condition in watch.conditions:
        value = values.get(str(condition.subject))
        if value is None:
            found.append(f"{condition} cannot be checked: the value is undefined")
        elif condition.holds(value):
            found.append(f"{condition}: {condition.subject} is {value:+.4f}")
    return found


def seconds(text: str) -> float:
    """A period as text in seconds: 30s, 15m, 6h, 1d, 1w.

    >>> seconds("1d")
    86400.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip())
    if found is None:
        raise InputError(f"the period {text!r} cannot be read; write it as 30m, 6h, 1d or 1w")
    period = float(found[1]) * _UNITS[found[2]]
    if not SHORTEST <= period <= 366 * _UNITS["d"]:
        raise InputError(f"the period {text!r} must lie between {SHORTEST} seconds and a year")
    return period


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
        return [seen for _, seen in self.numbered()]

    def numbered(self) -> list[tuple[int, Observation]]:
        """As `history`, each with the number under which the file knows it."""
        with self._explained():
            values: dict[int, list[Value]] = {}
            for number, *value in self._connection.execute(
                "SELECT observation, measure, value, low, high, queries FROM value ORDER BY observation"
            ):
                values.setdefault(number, []).append(Value(*value))
            return [
                (number, Observation(time, source, queries, answered, tuple(values.get(number, ())), problem))
                for number, time, source, queries, answered, problem in self._connection.execute(
                    "SELECT id, time, source, queries, answered, problem FROM observation ORDER BY time, id"
                )
            ]

    def query_values(self, measure: str) -> dict[int, dict[str, float]]:
        """The values of single queries, by the number of the observation."""
        found: dict[int, dict[str, float]] = {}
        with self._explained():
            for number, query, value in self._connection.execute(
                "SELECT observation, query_id, value FROM query_value WHERE measure = ? "
                "ORDER BY observation, query_id",
                (measure,),
            ):
                found.setdefault(number, {})[query] = value
        return found

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
        except UnicodeDecodeError as error:  # SQLite quotes a damaged name in its own message
            raise InputError("cannot be used: the file is damaged", path=self.path) from error


def _readable(text: bytes) -> str:
    """Text that may not be UTF-8, which SQLite does not check: one odd row must not hide the rest."""
    return text.decode("utf-8", "replace")
