"""A live engine as a ranker: many queries at once, one table back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import polars as pl

from evenrank.data import tables
from evenrank.data.columns import show
from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.live.answers import SCHEMA, Answers, Hit, Listed, listed
from evenrank.rankers.live.calls import Calls, EngineDown, Limits, QueryFailed
from evenrank.rankers.live.secrets import SHORTEST, Secrets

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
        self.notes: tuple[str, ...] = ()
        """What a reader of the last run should know."""

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
            Anything :func:`evenrank.data.tables.queries` takes. A query without any text is not sent:
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
        asked = tables.queries(queries)
        calls = Calls(self.limits)
        try:
            calls.call(self._prepare)
        except QueryFailed as error:
            raise EngineDown(f"{self.name}: {error}") from error
        found: dict[str, Listed] = {}
        failed: dict[str, str] = {}
        in_a_row = 0
        with closing(self._asked(calls, asked, depth, texts)) as work:
            for done, (query_id, future) in enumerate(work, 1):
                try:
                    found[query_id] = future.result()
                    in_a_row = 0
                except QueryFailed as error:
                    failed[query_id] = str(error)
                    in_a_row += 1
                    if self.limits.on_error == "stop" or in_a_row >= _HOPELESS:
                        raise self._failure(query_id, error, in_a_row) from error
                if progress:
                    progress(done, len(asked))
        if failed and len(failed) == sum(bool(text.strip()) for text in asked["text"]):
            query_id, why = next(iter(failed.items()))
            raise EngineDown(f"{self.name}: every query failed; query {show(query_id)}: {why}")
        return self._answers(asked, found, failed)

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
        found: list[Hit] = []
        while len(found) < depth:
            page = calls.call(partial(self._shown, partial(engine.page, text, len(found))))
            found += page
            if len(page) < engine.page_size:
                break
        return found

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

    def _answers(self, asked: pl.DataFrame, found: dict[str, Listed], failed: dict[str, str]) -> Answers:
        order = asked["query_id"].to_list()
        lists = [found[query_id] for query_id in order if query_id in found]
        frame = pl.concat([one.frame for one in lists]) if lists else pl.DataFrame(schema=SCHEMA)
        full = set(frame["query_id"].unique())
        answers = Answers(
            frame,
            failed={query_id: failed[query_id] for query_id in order if query_id in failed},
            empty=tuple(each for each in order if each not in full and each not in failed),
            repeated=sum(one.repeated for one in lists),
        )
        self.notes = answers.notes
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
