"""What every ranker is: queries in, a run out; and the two that know the answers.

The perfect list and the random one: all other rankers lie between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data import tables
from evenrank.errors import check_whole

Progress = Callable[[int, int | None], None]
"""Called with (done, in all) as the work goes on; what is not known in all is None."""
Say = Callable[[str], None]
"""Called with a line about what is being done, for whoever waits."""


DIGITS = 9
"""Significant digits by which scores are ranked."""
CLOSE = 10.0 ** (1 - DIGITS)
"""Scores that are farther apart than this share of one of them are not equal to `DIGITS` digits."""


def round_significant(x: Any) -> Any:
    """Return numbers rounded to nine significant digits; numba compiles it for a single number.

    The last digits of a score depend on the processor. Ranked by what is before them, documents have the
    same order everywhere.
    """
    size = np.minimum(np.maximum(np.abs(x), 1e-100), 1e100)
    scale = 10.0 ** (DIGITS - 1.0 - np.floor(np.log10(size)))
    return np.rint(x * scale) / scale


def level_ties(scores: npt.NDArray[Any], lists: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Give scores of one list that are equal to nine significant digits the same value, the largest of them.

    Then the scores say the order by which we rank, also where a run is read back from a file.
    """
    order = np.lexsort((scores, lists))
    ordered, owner = scores[order], lists[order]
    apart = np.diff(ordered)
    same_list = owner[1:] == owner[:-1]
    if not (same_list & (apart > 0) & (apart <= CLOSE * np.abs(ordered[1:]))).any():
        return scores
    rounded = round_significant(ordered)
    first = np.concatenate([[True], ~same_list | (rounded[1:] != rounded[:-1])])
    levelled = np.empty(len(scores), np.float64)
    levelled[order] = np.maximum.reduceat(ordered, np.flatnonzero(first))[np.cumsum(first) - 1]
    return levelled


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
    return Judged("perfect", tables.perfect(qrels), {})


def random(index: Any = None, *, qrels: Any, seed: int = 0) -> Judged:
    """The judged documents in random order: what a ranker that knows nothing does with them."""
    check_whole("seed", seed, least=0)
    return Judged("random", tables.random_run(qrels, seed=seed), {"seed": seed})
