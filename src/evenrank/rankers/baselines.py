"""Two rankers that know the answers: the perfect list and the random one, between which all others lie."""

from __future__ import annotations

from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.data.columns import show
from evenrank.errors import InputError
from evenrank.rankers.base import Progress


class Judged:
    """A ranker that ranks what was judged."""

    def __init__(self, name: str, run: pl.DataFrame, settings: dict[str, Any]) -> None:
        self.name = name
        self._run = run
        self._settings = settings

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The lists of those of the queries that have judgements, in the order of the queries."""
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise InputError(f"depth is {show(depth)}; it must be a whole number from 1 on")
        kept = self._run.filter(pl.col("rank") <= depth)
        return queries.select("query_id").join(kept, on="query_id", maintain_order="left_right")

    def describe(self) -> dict[str, Any]:
        """Name and settings."""
        return {"name": self.name, "settings": self._settings}


def perfect(index: Any = None, *, qrels: Any) -> Judged:
    """All and only the relevant documents, the highest grade first: no ranker does better."""
    return Judged("perfect", tables.perfect(qrels), {})


def random(index: Any = None, *, qrels: Any, seed: int = 0) -> Judged:
    """The judged documents in random order: what a ranker that knows nothing does with them."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {show(seed)}; it must be a whole number from 0 on")
    return Judged("random", tables.random_run(qrels, seed=seed), {"seed": seed})
