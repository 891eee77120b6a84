"""Ranked lists as GSR sees them: who asked, which document, at what rank, and how gendered it is.

The collection is read once for all runs and baselines together, each document that is needed is tokenised
once, and what is kept of it are the words found in it, never its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.errors import InputError
from evenrank.measures.gsr.slope import Floats, Ints
from evenrank.measures.lookup import find_rows

if TYPE_CHECKING:
    from evenrank.vectors.texts import Found, GenderedTexts

POOL = 8192  # documents that random lists are drawn from: a random sample, where the collection has more
DRAWS = 20  # random lists of a query, at most


class Entries(NamedTuple):
    """The documents of ranked lists, those of one query together: whose, which, and at what rank."""

    query_rows: Ints
    doc_ids: pl.Series
    ranks: Ints

    def top(self, depths: Ints) -> Entries:
        """Those within the depth of their query."""
        return self.kept(self.ranks <= depths[self.query_rows])

    def kept(self, mask: np.ndarray) -> Entries:
        if mask.all():
            return self
        return Entries(self.query_rows[mask], self.doc_ids.filter(pl.Series(mask)), self.ranks[mask])


class Valued(NamedTuple):
    """Ranked documents with g_q(d), NaN for one without a value; `doc_rows` is −1 for a lacking one."""

    query_rows: Ints
    doc_rows: Ints
    ranks: Ints
    values: Floats

    def top(self, depths: Ints) -> Valued:
        return self.kept(self.ranks <= depths[self.query_rows])

    def kept(self, mask: np.ndarray) -> Valued:
        if mask.all():
            return self
        return Valued(self.query_rows[mask], self.doc_rows[mask], self.ranks[mask], self.values[mask])


def run_entries(run: pl.DataFrame, query_ids: pl.Series) -> Entries:
    """The entries of a normalised run whose queries are among these."""
    first = np.flatnonzero(run["rank"].to_numpy() == 1)
    rows = find_rows(run["query_id"].gather(first), query_ids)
    entries = Entries(
        np.repeat(rows, np.diff(first, append=run.height)), run["doc_id"], run["rank"].to_numpy()
    )
    return entries.kept(entries.query_rows >= 0)


def perfect_entries(qrels: pl.DataFrame, query_ids: pl.Series) -> Entries:
    """All and only the relevant documents; those of equal grade share a rank."""
    relevant = (
        qrels.filter(pl.col("relevance") > 0)
        .with_columns(rank=pl.col("relevance").rank("min", descending=True).over("query_id").cast(pl.Int64))
        .sort("query_id", "rank", "doc_id", maintain_order=True)
    )
    rows = find_rows(relevant["query_id"], query_ids)
    entries = Entries(rows, relevant["doc_id"], relevant["rank"].to_numpy())
    return entries.kept(rows >= 0)


def relevant_counts(qrels: pl.DataFrame, query_ids: pl.Series) -> Ints:
    """K_q: how many documents are judged relevant for each query."""
    rows = find_rows(qrels.filter(pl.col("relevance") > 0)["query_id"], query_ids)
    return np.bincount(rows[rows >= 0], minlength=len(query_ids)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class GenderedCollection:
    """The words of the documents that are needed, and a sample of all documents to draw from."""

    texts: GenderedTexts
    doc_ids: pl.Series
    found: Found
    pool: Ints  # rows

    @classmethod
    def read(
        cls, texts: GenderedTexts, docs: Any, wanted: Iterable[pl.Series], *, pool: int = POOL, seed: int = 0
    ) -> GenderedCollection:
        """One pass over the documents.

        The pool are the documents whose ids have the smallest hashes: a random sample that does not
        depend on the order of the collection.
        """
        from evenrank.vectors.texts import Found, hashes

        needed = {doc_id for ids in wanted for doc_id in ids.unique().to_list()}
        ids: list[str] = []
        pieces: list[Found] = []
        draws: list[np.ndarray] = []
        bound = np.uint64(2**64 - 1)
        for batch in docs.batches():
            names = batch.column("doc_id").to_pylist()
            draw = hashes(batch.column("doc_id"), seed)
            wish = np.fromiter((name in needed for name in names), bool, len(names))
            rows = np.flatnonzero(wish | ((draw <= bound) & bool(pool)))
            if not len(rows):
                continue
            pieces.append(texts.find(batch.column("text").take(pa.array(rows))))
            ids += [names[row] for row in rows.tolist()]
            draws.append(draw[rows])
            if pool:
                smallest = np.concatenate(draws)
                if len(smallest) > pool:
                    bound = np.partition(smallest, pool - 1)[pool - 1]
        series = pl.Series("doc_id", ids, dtype=pl.String)
        if series.n_unique() < len(series):
            raise InputError(
                f"the document {series.filter(series.is_duplicated())[0]} occurs twice in the docs"
            )
        order = np.argsort(np.concatenate([*draws, np.zeros(0, np.uint64)]), kind="stable")
        return cls(texts, series, Found.joined(pieces), order[:pool].astype(np.int64))

    def valued(self, entries: Entries, queries: Sequence[str]) -> Valued:
        """g_q(d) of each entry; NaN for documents that the collection lacks."""
        rows = find_rows(entries.doc_ids, self.doc_ids)
        return self.valued_rows(entries.query_rows, rows, entries.ranks, queries)

    def valued_rows(self, query_rows: Ints, doc_rows: Ints, ranks: Ints, queries: Sequence[str]) -> Valued:
        values = np.full(len(doc_rows), np.nan)
        held = doc_rows >= 0
        values[held] = self.texts.of_pairs(queries, self.found, query_rows[held], doc_rows[held])
        return Valued(query_rows, doc_rows, ranks, values)

    def random(self, depths: Ints, queries: Sequence[str], seed: int) -> Valued:
        """For each query random lists as deep as asked, with documents drawn from the pool.

        Short lists are drawn several times, up to `DRAWS`, and count together: a single document per
        query would leave the yardstick to chance.
        """
        rng = np.random.default_rng(seed)
        deep, size = depths[depths > 0], len(self.pool)
        draws = int(np.clip(100 // max(1, int(deep.mean())), 1, DRAWS)) if len(deep) else 1
        sizes = np.minimum(depths * draws, size)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # Each query walks over the shuffled pool from a start and with a stride of its own; a stride
        # that has no divisor in common with the size never comes to the same document twice.
        strides = np.flatnonzero(np.gcd(np.arange(size + 1), size) == 1)
        shuffled = rng.permutation(self.pool)
        start = rng.integers(0, max(1, size), len(sizes))
        stride = rng.choice(strides, len(sizes)) if size else start
        rows = shuffled[(start[owner] + stride[owner] * place) % max(1, size)]
        return self.valued_rows(owner, rows, place % depths[owner] + 1, queries)
