"""What the collection offers: the bias a run would show if it only passed on what is there.

RaB and ARaB say nothing about where a bias comes from: a collection about soldiers leans to one side whatever
the ranker does. The same difference over the whole collection is what a random ranking gets on average,
and over a query's judged-relevant documents what a perfect one gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.arithmetic import dot
from evenrank.measures.lists import Floats, Ints, magnitude_of
from evenrank.measures.lookup import find_rows
from evenrank.measures.rank_bias import RankBias


@dataclass(frozen=True, eq=False)
class Offered:
    """Mean magnitude differences over the collection and over each query's relevant documents."""

    tally: pl.DataFrame
    groups: tuple[str, ...]
    qrels: pl.DataFrame | None = None

    def compare(self, measure: RankBias, query_ids: pl.Series, values: Floats) -> dict[str, dict[str, Any]]:
        """Both backgrounds of a measure, and how far the values of the given queries are from them.

        The difference from the relevant documents is over the queries that have any, counted in `queries`.
        """
        found: dict[str, dict[str, Any]] = {}
        of, against = measure.pair(self.groups)
        if self.tally.height and len(values):
            collection = self.mean(measure["magnitude"], of) - self.mean(measure["magnitude"], against)
            found["collection"] = {"value": collection, "difference": float(values.mean()) - collection}
        if self.qrels is not None:
            relevant = self.relevant(measure["magnitude"], of) - self.relevant(measure["magnitude"], against)
            row = find_rows(query_ids, self._judged[0])
            if (row >= 0).any():
                theirs, ours = float(relevant[row[row >= 0]].mean()), float(values[row >= 0].mean())
                found["qrels"] = {
                    "value": theirs,
                    "difference": ours - theirs,
                    "queries": int((row >= 0).sum()),
                }
        return found

    def mean(self, magnitude: str, group: str) -> float:
        """Mean magnitude of a group over all documents."""
        if magnitude in ("tf-words", "length"):
            return float(magnitude_of(magnitude, group, self._column).mean())
        often = self._histogram(group)  # a few hundred logarithms instead of one for each document
        each = magnitude_of(magnitude, group, lambda _: np.arange(len(often)))
        return float(dot(often, each)) / self.tally.height

    def relevant(self, magnitude: str, group: str) -> Floats:
        """Mean magnitude of a group over each query's relevant documents that the tally holds."""
        queries, rows, owner = self._judged
        each = magnitude_of(magnitude, group, lambda name: self._column(name)[rows])
        return np.bincount(owner, each, len(queries)) / np.bincount(owner, minlength=len(queries))

    def _column(self, name: str) -> NDArray[Any]:
        return self.tally[name].to_numpy()

    def _histogram(self, group: str) -> Ints:
        if group not in self._histograms:
            self._histograms[group] = np.bincount(self._column(group))
        return self._histograms[group]

    @cached_property
    def _histograms(self) -> dict[str, Ints]:
        return {}

    @cached_property
    def _judged(self) -> tuple[pl.Series, Ints, Ints]:
        """Queries with relevant documents; those documents' rows in the tally; and whose each one is."""
        assert self.qrels is not None
        relevant = self.qrels.filter(pl.col("relevance") > 0)
        rows = find_rows(relevant["doc_id"], self.tally["doc_id"])
        held = rows >= 0
        queries = relevant["query_id"].filter(pl.Series(held))
        distinct = queries.unique(maintain_order=True)
        return distinct, rows[held], find_rows(queries, distinct)
