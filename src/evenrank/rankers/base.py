"""What every ranker is: queries in, a run out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import polars as pl

Progress = Callable[[int, int | None], None]
"""Called with (done, in all) as the work goes on; what is not known in all is None."""


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
