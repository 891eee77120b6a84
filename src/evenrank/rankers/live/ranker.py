"""A live engine as a ranker: many queries at once; lists as it showed them, and one table back."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import polars as pl

from evenrank.data.docs import Docs, open_docs
from evenrank.data.read import read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.data.schema import DOC_ID, RUN_SCHEMA, show
from evenrank.errors import InputError, is_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.live.calls import Calls, EngineDown, Limits, QueryFailed
from evenrank.rankers.live.secrets import SHORTEST, Secrets

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


class Hit(NamedTuple):
    """One result, as the engine gave it."""

    doc_id: object
    score: object = None
    title: object = None
    text: object = None


class Listed(NamedTuple):
    """The results of one query in the columns of a table, and how many were dropped as repeated."""

    frame: pl.DataFrame
    repeated: int


def listed(query_id: str, hits: Sequence[Hit], depth: int) -> Listed:
    """The best `depth` different documents among the results of a query, in the engine's order."""
    rows: dict[str, Hit] = {}
    repeated = 0
    for place, hit in enumerate(hits, 1):
        doc_id = _doc_id(hit.doc_id, place)
        if doc_id in rows:
            repeated += 1
        elif len(rows) < depth:
            rows[doc_id] = hit
    kept = list(rows.values())
    columns = {
        "query_id": [query_id] * len(rows),
        "doc_id": list(rows),
        "rank": range(1, len(rows) + 1),
        "score": [_number(hit.score) for hit in kept],
        "title": [_text(hit.title) for hit in kept],
        "text": [_text(hit.text) for hit in kept],
    }
    return Listed(pl.DataFrame(columns, schema=SCHEMA), repeated)


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
    """A finite score; also one that came as text, as some engines write them."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None
    return None


def _text(value: object) -> str | None:
    """A text, or several as one: engines return the fields of a document as lists too."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence):
        return encodable(" ".join(part for part in value if isinstance(part, str))) or None
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def encodable(text: str) -> str:
    """The text without half surrogate pairs, which JSON can carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def run_scores(doc_ids: Sequence[str], scores: Sequence[float | None]) -> list[float]:
    """Scores by which any tool restores the engine's order.

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
class Answers:
    """What an engine answered to a set of queries.

    Parameters
    ----------
    frame
        ``query_id``, ``doc_id``, ``rank`` (from 1, in the engine's order), ``score`` (the engine's own;
        null where it gives none), ``title`` and ``text`` (null where the engine gives none).
    failed
        What went wrong, by query; empty unless ``on_error=skip``.
    empty
        The queries that were answered with no result.
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

    def shown(self) -> tuple[pl.DataFrame, Docs]:
        """The run, and the collection of the texts that the engine showed: enough to audit it.

        A document that was shown with different texts (snippets cut to the query) is one document per
        text: ``id``, ``id::2``, … in the order in which they appear. :meth:`judged` takes judgments along;
        else measure effectiveness on :attr:`run`.
        """
        if self.frame["text"].is_null().all() and self.frame["title"].is_null().all():
            # Without words no bias is found: a zero that would mean nothing.
            raise InputError("no result has a text; the setting text= says which field holds it")
        texts = self._variants()
        collection = texts.unique("doc_id", keep="first", maintain_order=True)
        docs = open_docs(collection.select("doc_id", "title", "text"), name="shown")
        return read_run(self._scored(texts)), docs

    def judged(self, qrels: Any) -> pl.DataFrame:
        """Judgments of the queries that were asked and did not fail, for the documents of :meth:`shown`.

        A judgment of ``id`` goes to the text of it that its query was shown.
        """
        given = read_qrels(qrels)
        requested = {*self.frame["query_id"].unique(), *self.empty}
        shown = self._variants().select("query_id", doc_id="original", variant="doc_id")
        return (
            given.filter(pl.col("query_id").is_in(requested))
            .join(shown, on=["query_id", "doc_id"], how="left", maintain_order="left")
            .with_columns(doc_id=pl.coalesce("variant", "doc_id"))
            .select(*given.columns)
        )

    def labelled(self, labels: Any) -> Any:
        """Labels of documents (a frame or a dict), for the documents of :meth:`shown`: all texts of one."""
        other = self._variants().select("original", "doc_id").unique(maintain_order=True)
        other = other.filter(pl.col("original") != pl.col("doc_id"))
        if isinstance(labels, Mapping):
            known = [(new, labels[old]) for old, new in other.iter_rows() if old in labels]
            return {**labels, **dict(known)}
        name = next((each for each in labels.columns if each.lower() in DOC_ID), None)
        if name is None or other.is_empty():
            return labels
        more = labels.with_columns(pl.col(name).cast(pl.String)).join(
            other.rename({"original": name, "doc_id": "_variant"}), on=name, maintain_order="left"
        )
        more = more.with_columns(pl.col("_variant").alias(name)).select(labels.columns)
        return pl.concat([labels.with_columns(pl.col(name).cast(pl.String)), more])

    def _variants(self) -> pl.DataFrame:
        """The results, each text of a document under an id of its own, beside the `original` one."""
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


_HOPELESS = 10
"""So many queries failing in a row mean that the engine is down, also for those who skip failures."""

_AHEAD = 4
"""Queries under way per worker: none of them idles, and a failure stops the work soon."""


class Engine(Protocol):
    """What is particular to one kind of engine. Used from several threads at once."""

    name: str

    def prepare(self) -> None:
        """Find out, before the first query, what can be wrong with all of them."""

    def search(self, text: str, depth: int, *, texts: bool) -> list[Hit]:
        """The results of one query, best first; with title and text if `texts`."""

    def describe(self) -> dict[str, Any]:
        """The settings, without secrets."""

    def close(self) -> None:
        """Give back what is open."""


@runtime_checkable
class Paged(Protocol):
    """What an engine has besides, if it may answer page by page."""

    page_size: int | None

    def page(self, text: str, start: int) -> list[Hit]:
        """One page of results, behind so many."""


class LiveRanker:
    """A search engine behind the interface of all rankers.

    :meth:`rank` gives a run. :meth:`ask` gives everything: the texts that were shown, the queries that
    failed or found nothing, and from these a run and a collection for an audit. The ranker may be used from
    several threads; close it, or use it in a `with` block, to give its connections back.
    """

    def __init__(self, engine: Engine, limits: Limits, secrets: Secrets | None = None) -> None:
        self.engine = engine
        self.limits = limits
        self._secrets = secrets or Secrets()
        self.name = engine.name
        self._last = threading.local()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the last run should know; of this thread: others have their own."""
        result: tuple[str, ...] = getattr(self._last, "notes", ())
        return result

    def rank(self, queries: Any, *, depth: int = 1000, progress: Progress | None = None) -> pl.DataFrame:
        """The run of these queries; one without results is not in it, as in TREC runs."""
        return self.ask(queries, depth=depth, texts=False, progress=progress).run

    def results(self, queries: Any, *, depth: int = 10, progress: Progress | None = None) -> pl.DataFrame:
        """What is shown: ``query_id``, ``doc_id``, ``rank``, ``score``, ``title``, ``text``."""
        return self.ask(queries, depth=depth, progress=progress).frame

    def ask(
        self, queries: Any, *, depth: int = 10, texts: bool = True, progress: Progress | None = None
    ) -> Answers:
        """Ask the engine, and keep everything it says.

        Parameters
        ----------
        queries
            Anything :func:`evenrank.data.read.read_queries` takes. A query without any text is not sent:
            it has no results.
        depth
            Results per query.
        texts
            Whether titles and texts are fetched; without them an engine has less to send.
        progress
            Called with the number of queries done, and of all.
        """
        if depth < 1:
            raise InputError(f"depth is {depth}; it must be 1 or more")
        self._last.notes = ()
        requested = read_queries(queries)
        calls = Calls(self.limits)
        try:
            calls.call(self._prepare)
        except QueryFailed as error:
            raise EngineDown(f"{self.name}: {error}") from error
        result: dict[str, Listed] = {}
        failed: dict[str, str] = {}
        in_a_row = 0
        with closing(self._asked(calls, requested, depth, texts)) as work:
            for done, (query_id, future) in enumerate(work, 1):
                try:
                    result[query_id] = future.result()
                    in_a_row = 0
                except QueryFailed as error:
                    failed[query_id] = str(error)
                    in_a_row += 1
                    if self.limits.on_error == "stop" or in_a_row >= _HOPELESS:
                        raise self._failure(query_id, error, in_a_row) from error
                if progress:
                    progress(done, len(requested))
        if failed and len(failed) == sum(bool(text.strip()) for text in requested["text"]):
            query_id, why = next(iter(failed.items()))
            raise EngineDown(f"{self.name}: every query failed; query {show(query_id)}: {why}")
        return self._answers(requested, result, failed)

    def _asked(
        self, calls: Calls, queries: pl.DataFrame, depth: int, texts: bool
    ) -> Generator[tuple[str, Future[Listed]], None, None]:
        """The queries in their order, with their results to come; only a few are asked ahead."""
        ahead: deque[tuple[str, Future[Listed]]] = deque()
        with ThreadPoolExecutor(self.limits.workers, thread_name_prefix=self.name) as threads:
            try:
                for query_id, text in queries.iter_rows():
                    ahead.append((query_id, threads.submit(self._one, calls, query_id, text, depth, texts)))
                    if len(ahead) >= _AHEAD * self.limits.workers:
                        yield ahead.popleft()
                while ahead:
                    yield ahead.popleft()
            except BaseException:
                calls.stop()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _one(self, calls: Calls, query_id: str, text: str, depth: int, texts: bool) -> Listed:
        if not text.strip():
            return listed(query_id, [], depth)
        return listed(query_id, self._hits(calls, text, depth, texts), depth)

    def _hits(self, calls: Calls, text: str, depth: int, texts: bool) -> list[Hit]:
        engine = self.engine
        if not isinstance(engine, Paged) or engine.page_size is None:
            return calls.call(lambda: self._shown(partial(engine.search, text, depth, texts=texts)))
        rows: list[Hit] = []
        while len(rows) < depth:
            page = calls.call(partial(self._shown, partial(engine.page, text, len(rows))))
            rows += page
            if len(page) < engine.page_size:
                break
        return rows

    def _prepare(self) -> None:
        with self._secrets.kept():
            self.engine.prepare()

    def _shown(self, ask: Callable[[], list[Hit]]) -> list[Hit]:
        """Results without secrets: an engine may echo what it was asked with."""
        with self._secrets.kept():
            return [Hit(*self._secrets.cleaned(hit, shortest=SHORTEST)) for hit in ask()]

    def _failure(self, query_id: str, error: QueryFailed, in_a_row: int) -> EngineDown:
        if self.limits.on_error == "skip":
            return EngineDown(f"{self.name}: {in_a_row} queries in a row failed; the last one: {error}")
        remedy = "on_error=skip leaves such queries out"
        return EngineDown(f"{self.name}: query {show(query_id)} failed: {error}; {remedy}")

    def _answers(self, requested: pl.DataFrame, found: dict[str, Listed], failed: dict[str, str]) -> Answers:
        order = requested["query_id"].to_list()
        lists = [found[query_id] for query_id in order if query_id in found]
        frame = pl.concat([one.frame for one in lists]) if lists else pl.DataFrame(schema=SCHEMA)
        full = set(frame["query_id"].unique())
        answers = Answers(
            frame,
            failed={query_id: failed[query_id] for query_id in order if query_id in failed},
            empty=tuple(each for each in order if each not in full and each not in failed),
            repeated=sum(one.repeated for one in lists),
        )
        self._last.notes = answers.notes
        return answers

    def describe(self) -> dict[str, Any]:
        """The engine and all settings that its answers depend on; no passwords, tokens or header values."""
        about = {"name": self.name, **self.engine.describe(), "limits": asdict(self.limits)}
        cleaned: dict[str, Any] = self._secrets.cleaned(about)
        return cleaned

    def close(self) -> None:
        """Give connections back."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
