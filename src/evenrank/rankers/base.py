"""What every ranker is: queries in, a run out; and the two that know the answers.

The perfect list and the random one: all other rankers lie between them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import polars as pl

from evenrank.data.runs import perfect_run, random_run, read_run
from evenrank.errors import check_whole

Progress = Callable[[int, int | None], None]
"""Called with (done, in all) as the work goes on; what is not known in all is None."""
Say = Callable[[str], None]
"""Called with a line about what is being done, for whoever waits."""


@runtime_checkable
class Ranker(Protocol):
    """A system that can be audited: it answers each query with a ranked list of documents.

    Attributes
    ----------
    name
        What the ranker is called in runs and tables.
    """

    name: str

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """A run table: for each query its `depth` best documents; fewer where fewer were found."""
        ...

    def describe(self) -> dict[str, Any]:
        """The provenance of its runs: name, settings, and what was searched."""
        ...


def as_ranker(ranker: Any, name: str | None = None) -> Ranker:
    """Any object with ``rank(queries, depth)`` as a ranker."""
    if isinstance(ranker, Ranker) and "progress" in inspect.signature(ranker.rank).parameters:
        return ranker
    return CustomRanker(ranker, name)


class CustomRanker:
    """An object that ranks, but knows of nothing else: no progress, perhaps no name.

    It is called with ``rank(queries, depth=depth)`` and returns anything that is a run, of any length.
    """

    def __init__(self, ranker: Any, name: str | None = None) -> None:
        self._ranker = ranker
        self.name = name or str(getattr(ranker, "name", type(ranker).__name__))

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The run of these queries, checked and cut."""
        check_depth(depth)
        return read_run(self._ranker.rank(queries, depth=depth), depth=depth)

    def describe(self) -> dict[str, Any]:
        """What it says of itself, or its name."""
        own: dict[str, Any] = self._ranker.describe() if hasattr(self._ranker, "describe") else {}
        return {"name": self.name, **own}


def check_depth(depth: int) -> None:
    """Refuse a depth that is no whole number above 0."""
    check_whole("depth", depth)


class Judged:
    """A ranker that ranks what was judged."""

    def __init__(self, name: str, run: pl.DataFrame, settings: dict[str, Any]) -> None:
        self.name = name
        self._run = run
        self._settings = settings

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The lists of those of the queries that have judgments, in the order of the queries."""
        check_depth(depth)
        kept = self._run.filter(pl.col("rank") <= depth)
        return queries.select("query_id").join(kept, on="query_id", maintain_order="left_right")

    def describe(self) -> dict[str, Any]:
        """Name and settings."""
        return {"name": self.name, "settings": self._settings}


def perfect(index: Any = None, *, qrels: Any) -> Judged:
    """All and only the relevant documents, the highest grade first: no ranker does better."""
    return Judged("perfect", perfect_run(qrels), {})


def random(index: Any = None, *, qrels: Any, seed: int = 0) -> Judged:
    """The judged documents in random order: what a ranker that knows nothing does with them."""
    check_whole("seed", seed, least=0)
    return Judged("random", random_run(qrels, seed=seed), {"seed": seed})
