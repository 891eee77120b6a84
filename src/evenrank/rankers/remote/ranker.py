"""A search engine as a ranker: many queries at once, its results as shown, a run and a collection."""

from __future__ import annotations

import inspect
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import polars as pl

from evenrank.data.docs import Docs, open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import BODY, DOC_ID, RUN_SCHEMA, TITLE, listing, show
from evenrank.errors import InputError, check_whole, is_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.remote.requests import EngineDown, Limits, QueryFailed, Requests
from evenrank.rankers.remote.secrets import SHORTEST, Secrets

SCHEMA = pl.Schema(
    {
        "query_id": pl.String,
        "doc_id": pl.String,
        "rank": pl.Int64,
        "score": pl.Float64,
        "title": pl.String,
        "text": pl.String,
    }
)
MAX_FAILURES = 10
"""So many queries failing in a row mean that the engine is down, also where failures are skipped."""


Send = Callable[[Callable[[], Any]], Any]
"""Sends a request, again where that may help, and returns what it returns."""


class Hit(NamedTuple):
    """One result, as the engine gave it."""

    doc_id: object
    score: object = None
    title: object = None
    text: object = None


def to_hit(item: object) -> Hit:
    """Return a result out of an id, a tuple (id, score, text) or a dict with the usual names."""
    if isinstance(item, Hit):
        return item
    if isinstance(item, Mapping):
        id_names, titles = DOC_ID, (TITLE,)
        names = {str(name).lower(): name for name in item}
        found = [
            next((item[names[each]] for each in usual if each in names), None)
            for usual in (id_names, ("score", "_score"), titles, BODY)
        ]
        if found[0] is None:
            raise InputError(f"a result has no id; it has {listing(map(str, item))}")
        return Hit(*found)
    if isinstance(item, tuple):
        doc_id, score, text = (*item, None, None)[:3]
        return Hit(doc_id, score, None, text)
    return Hit(item)


class Engine(Protocol):
    """What is particular to one kind of engine. Used from several threads at once."""

    name: str

    def prepare(self) -> None:
        """Check, before the first query, what can be wrong with all of them."""

    def search(self, text: str, depth: int, send: Send) -> list[Hit]:
        """Return the results of one query, best first; each request goes through `send`."""

    def describe(self) -> dict[str, Any]:
        """Return the settings, without secrets."""

    def close(self) -> None:
        """Close what is open."""


class FunctionEngine:
    """A function `f(query)` or `f(query, depth)` that returns results, best first."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = ()  # type: ignore[assignment]
        places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._takes_depth = len(places) > 1 or any(p.kind == p.VAR_POSITIONAL for p in parameters)

    def prepare(self) -> None:
        """Nothing to check."""

    def search(self, text: str, depth: int, send: Send) -> list[Hit]:
        results = send(lambda: self.function(text, depth) if self._takes_depth else self.function(text))
        if isinstance(results, str | bytes | Mapping) or not hasattr(results, "__iter__"):
            raise InputError(
                f"{self.name} returned {show(results)} for {show(text)}; expected a list of results: ids, "
                "(id, score, text) or dicts with id, score and text"
            )
        return [to_hit(item) for item in results]

    def describe(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


def listed(query_id: str, hits: Sequence[Hit], depth: int) -> tuple[pl.DataFrame, int]:
    """Return the best `depth` different documents of a query, and how many repeated ones were dropped."""
    rows: dict[str, Hit] = {}
    repeated = 0
    for place, hit in enumerate(hits, 1):
        doc_id = _doc_id(hit.doc_id, place)
        if doc_id in rows:
            repeated += 1
        elif len(rows) < depth:
            rows[doc_id] = hit
    columns = {
        "query_id": [query_id] * len(rows),
        "doc_id": list(rows),
        "rank": range(1, len(rows) + 1),
        "score": [_number(hit.score) for hit in rows.values()],
        "title": [_text(hit.title) for hit in rows.values()],
        "text": [_text(hit.text) for hit in rows.values()],
    }
    return pl.DataFrame(columns, schema=SCHEMA), repeated


def _doc_id(value: object, place: int) -> str:
    if is_whole(value):
        return str(value)
    if isinstance(value, bytes):  # what a database holds need not be text; different bytes, different ids
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str) and value:
        return encodable(value)
    result = "none" if value is None or value == "" else show(value)
    raise QueryFailed(f"result {place} has no id that is text or a whole number, but {result}; check id=")


def _number(value: object) -> float | None:
    """Return a finite score, also one that came as text; else None."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str | None:
    """Return a text, or several as one: engines return the fields of a document as lists too."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return encodable(" ".join(part for part in value if isinstance(part, str))) or None
    return encodable(str(value)) if isinstance(value, str | int | float) else None


def encodable(text: str) -> str:
    """Return the text without half surrogate pairs, which JSON can carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def run_scores(doc_ids: Sequence[str], scores: Sequence[float | None]) -> list[float]:
    """Return scores by which any tool restores the engine's order.

    The engine's own, where they fall along its list; among equal ones that the rule for ties (greater
    doc_id first) would turn around, the lower is made smaller by the least step there is. Where a score is
    missing or rises, minus the rank.
    """
    usable: list[float] = []
    for place, (doc_id, score) in enumerate(zip(doc_ids, scores, strict=True)):
        if score is None or (place and score > (scores[place - 1] or 0.0)):
            return [-float(rank) for rank in range(1, len(doc_ids) + 1)]
        if place and (
            score > usable[-1] or (score == usable[-1] and doc_id.encode() >= doc_ids[place - 1].encode())
        ):
            score = math.nextafter(usable[-1], -math.inf)
        usable.append(score)
    return usable


@dataclass(frozen=True)
class SearchResults:
    """What an engine returned for a set of queries.

    Parameters
    ----------
    frame
        ``query_id``, ``doc_id``, ``rank`` (from 1, in the engine's order), ``score`` (the engine's own;
        null where it gives none), ``title`` and ``text`` (null where the engine gives none).
    failed
        What went wrong, by query; empty unless ``on_error=skip``.
    empty
        The queries without results.
    repeated
        Results dropped because the same list already held the document.
    """

    frame: pl.DataFrame
    failed: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    repeated: int = 0

    @property
    def run(self) -> pl.DataFrame:
        """The run table: the engine's order, with scores that restore it in any tool."""
        if self.frame.is_empty():
            return pl.DataFrame(schema=RUN_SCHEMA)
        return read_run(self._scored(self.frame))

    def run_and_docs(self) -> tuple[pl.DataFrame, Docs]:
        """Return the run, and the collection of the texts that the engine showed: enough to audit it.

        A document that was shown with different texts (snippets cut to the query) is one document per
        text: ``id``, ``id::2``, … in the order in which they appear. :meth:`map_qrels` and
        :meth:`map_labels` carry judgments and labels over to these ids.
        """
        if self.frame["text"].is_null().all() and self.frame["title"].is_null().all():
            # Without words no bias is found: a zero that would mean nothing.
            raise InputError("no result has a text; the setting text= says which field holds it")
        texts = self._by_text()
        collection = texts.unique("doc_id", keep="first", maintain_order=True)
        docs = open_docs(collection.select("doc_id", "title", "text"), name="shown")
        return read_run(self._scored(texts)), docs

    def map_qrels(self, qrels: Any) -> pl.DataFrame:
        """Return the judgments of the queries that did not fail, for the ids of :meth:`run_and_docs`.

        A judgment of ``id`` goes to the text of it that its query was shown.
        """
        given = read_qrels(qrels)
        answered = {*self.frame["query_id"].unique(), *self.empty}
        shown = self._by_text().select("query_id", doc_id="original", variant="doc_id")
        return (
            given.filter(pl.col("query_id").is_in(answered))
            .join(shown, on=["query_id", "doc_id"], how="left", maintain_order="left")
            .with_columns(doc_id=pl.coalesce("variant", "doc_id"))
            .select(*given.columns)
        )

    def map_labels(self, labels: Any) -> Any:
        """Return labels of documents (a frame or a dict), for the ids of :meth:`run_and_docs`."""
        other = self._by_text().select("original", "doc_id").unique(maintain_order=True)
        other = other.filter(pl.col("original") != pl.col("doc_id"))
        if isinstance(labels, Mapping):
            return {**labels, **{new: labels[old] for old, new in other.iter_rows() if old in labels}}
        name = next((each for each in labels.columns if each.lower() in DOC_ID), None)
        if name is None or other.is_empty():
            return labels
        labels = labels.with_columns(pl.col(name).cast(pl.String))
        more = labels.join(other.rename({"original": name, "doc_id": "_new"}), on=name, maintain_order="left")
        return pl.concat([labels, more.with_columns(pl.col("_new").alias(name)).select(labels.columns)])

    def _by_text(self) -> pl.DataFrame:
        """Return the results, each text of a document under an id of its own, beside the `original` one."""
        texts = self.frame.select(
            "query_id", "doc_id", "rank", "score", pl.col("title", "text").fill_null(""), original="doc_id"
        )
        texts = texts.with_row_index("first").with_columns(
            pl.col("first").min().over("doc_id", "title", "text")
        )
        texts = texts.with_columns(variant=pl.col("first").rank("dense").over("doc_id"))
        other = pl.concat_str("doc_id", pl.lit("::"), "variant")
        return texts.with_columns(doc_id=pl.when(pl.col("variant") > 1).then(other).otherwise("doc_id"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know, in sentences: what failed, and what was dropped."""
        rows = []
        if self.empty and self.frame.is_empty():
            rows.append("no query had a result; check the settings of the engine")
        if self.failed:
            first, why = next(iter(self.failed.items()))
            rows.append(f"{_count(len(self.failed), 'query')} failed and left out, first {first}: {why}")
        if self.repeated:
            rows.append(f"{_count(self.repeated, 'result')} dropped: the document stood above already")
        without = self.frame["text"].null_count()
        if 0 < without < len(self.frame):
            rows.append(f"{_count(without, 'result')} without text")
        return tuple(rows)

    @staticmethod
    def _scored(frame: pl.DataFrame) -> pl.DataFrame:
        lists = frame.partition_by("query_id", maintain_order=True)
        scores = [run_scores(part["doc_id"].to_list(), part["score"].to_list()) for part in lists]
        column = pl.Series("score", [score for part in scores for score in part], dtype=pl.Float64)
        return pl.concat(lists).with_columns(column).select(*RUN_SCHEMA)


def _count(number: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


class RemoteRanker:
    """A search engine behind the interface of all rankers.

    :meth:`rank` gives a run. :meth:`search` gives everything: the texts that were shown, the queries that
    failed or found nothing, and from these a run and a collection for an audit. The ranker may be used from
    several threads; close it, or use it in a `with` block, to close its connections.
    """

    def __init__(self, engine: Engine, limits: Limits, secrets: Secrets | None = None) -> None:
        self.engine = engine
        self.limits = limits
        self.name = engine.name
        self._secrets = secrets or Secrets()
        self._last = threading.local()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on this thread's last search; other threads have their own."""
        result: tuple[str, ...] = getattr(self._last, "notes", ())
        return result

    def rank(self, queries: Any, *, depth: int = 1000, progress: Progress | None = None) -> pl.DataFrame:
        """Return the run of these queries; one without results is not in it, as in TREC runs."""
        return self.search(queries, depth=depth, progress=progress).run

    def search(self, queries: Any, *, depth: int = 10, progress: Progress | None = None) -> SearchResults:
        """Send the queries to the engine, and keep everything it returns.

        Parameters
        ----------
        queries
            Anything :func:`evenrank.data.read.read_queries` takes. A query without any text is not sent:
            it has no results.
        depth
            Results per query.
        progress
            Called with the number of queries done, and of all.
        """
        check_whole("depth", depth)
        self._last.notes = ()
        table = read_queries(queries)
        requests = Requests(self.limits)
        try:
            with self._secrets.hide_in_errors():
                requests.send(self.engine.prepare)
        except QueryFailed as error:
            raise EngineDown(f"{self.name}: {error}") from error
        frames: list[pl.DataFrame] = []
        failed: dict[str, str] = {}
        empty: list[str] = []
        repeated = in_a_row = 0
        threads = ThreadPoolExecutor(self.limits.workers, thread_name_prefix=self.name)
        waiting = iter(table.rows())
        work: deque[tuple[str, Future[tuple[pl.DataFrame, int]]]] = deque()

        def submit(count: int) -> None:
            for query_id, text in islice(waiting, count):
                work.append((query_id, threads.submit(self._one, requests, query_id, text, depth)))

        try:
            submit(4 * self.limits.workers)  # no worker idles, and a failure stops the work soon
            for done in range(1, len(table) + 1):
                query_id, future = work.popleft()
                submit(1)
                try:
                    frame, dropped = future.result()
                    frames.append(frame)
                    repeated += dropped
                    in_a_row = 0
                    if frame.is_empty():
                        empty.append(query_id)
                except QueryFailed as error:
                    failed[query_id] = str(error)
                    in_a_row += 1
                    if self.limits.on_error == "stop" or in_a_row >= MAX_FAILURES:
                        raise self._failure(query_id, error, in_a_row) from error
                if progress:
                    progress(done, len(table))
        finally:
            requests.stop()
            threads.shutdown(wait=False, cancel_futures=True)
        if failed and len(failed) == sum(bool(text.strip()) for text in table["text"]):
            query_id, why = next(iter(failed.items()))
            raise EngineDown(f"{self.name}: every query failed; query {show(query_id)}: {why}")
        whole = pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)
        results = SearchResults(whole, failed, tuple(empty), repeated)
        self._last.notes = results.notes
        return results

    def _one(self, requests: Requests, query_id: str, text: str, depth: int) -> tuple[pl.DataFrame, int]:
        if not text.strip():
            return listed(query_id, [], depth)
        with self._secrets.hide_in_errors():
            hits = self.engine.search(text, depth, requests.send)
        # An engine may echo what it was asked with.
        return listed(query_id, [Hit(*self._secrets.clean(hit, shortest=SHORTEST)) for hit in hits], depth)

    def _failure(self, query_id: str, error: QueryFailed, in_a_row: int) -> EngineDown:
        if self.limits.on_error == "skip":
            return EngineDown(f"{self.name}: {in_a_row} queries in a row failed; the last one: {error}")
        remedy = "on_error=skip leaves such queries out"
        return EngineDown(f"{self.name}: query {show(query_id)} failed: {error}; {remedy}")

    def describe(self) -> dict[str, Any]:
        """Return the engine and all settings that its results depend on, without secrets."""
        about = {"name": self.name, **self.engine.describe(), "limits": asdict(self.limits)}
        cleaned: dict[str, Any] = self._secrets.clean(about)
        return cleaned

    def close(self) -> None:
        """Close the connections."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
