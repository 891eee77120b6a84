"""Are generated queries like real ones? Four numbers, each beside that of real queries.

Closeness is the aim, not the highest value: questions made of a document's own words find it always, and no
one asks that way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.read import read_qrels, read_queries
from evenrank.errors import InputError
from evenrank.queries.generation.generating import read_generated
from evenrank.rankers.analysis import split
from evenrank.rankers.index import Index

DEPTH = 10
"""How far down a query's own document is looked for."""


@dataclass(frozen=True)
class Manner:
    """What a set of queries is like.

    Attributes
    ----------
    queries
        How many there are.
    round_trip
        Mean of 1/rank of the query's own document among the first ten of BM25, 0 where it is not there: 1 if
        every query finds its document first.
    overlap
        Mean share of a query's words that its document has.
    length
        Mean number of words.
    distance
        Jensen–Shannon distance of its words to those of the real queries, from 0 (the same shares) to 1 (none
        in common). It falls with the number of queries: for the real ones it is that of one half to the
        other, a floor for as many. See `Closeness.compared`.
    """

    queries: int
    round_trip: float
    overlap: float
    length: float
    distance: float | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "round_trip": self.round_trip,
            "overlap": self.overlap,
            "length": self.length,
            "distance": self.distance,
        }


@dataclass(frozen=True)
class Closeness:
    """Generated queries beside real ones; `real` is None where none were given.

    Attributes
    ----------
    compared
        How many queries, generated and real, each distance is computed on; None without real ones.
    outside
        How many real queries are left out, because none of their documents is in the collection.
    """

    generated: Manner
    real: Manner | None
    compared: int | None = None
    outside: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "generated": self.generated.to_dict(),
            "real": None if self.real is None else self.real.to_dict(),
            "compared": self.compared,
            "outside": self.outside,
        }


def closeness(
    generated: Any, index: Index, *, queries: Any = None, qrels: Any = None, seed: int = 0
) -> Closeness:
    """How generated queries compare with real ones of the same collection.

    Parameters
    ----------
    generated
        Queries of :func:`evenrank.generate`, or the path of their file.
    index
        An index of the collection.
    queries, qrels
        Real queries, and which documents they ask for.
    seed
        Splits the real queries in halves, and draws as many generated ones as real ones of the first half,
        for the distance to the second.
    """
    built = read_generated(generated)
    own = built.queries.select("query_id", "doc_id", "text")
    refuse_other_index(own["doc_id"], index)
    if queries is None or qrels is None:
        return Closeness(_manner(own, index, None), None)
    every = real_pairs(queries, qrels)
    real = every.filter(pl.Series(index.numbers(every["doc_id"].to_list()) >= 0))
    outside = every["query_id"].n_unique() - real["query_id"].n_unique()
    if real["query_id"].n_unique() < 2:
        raise InputError("no two real queries have a document in the index; do they belong together?")
    texts = real.unique("query_id", maintain_order=True)["text"].to_list()
    order = np.random.default_rng(seed).permutation(len(texts))
    first, second = ([texts[row] for row in half] for half in np.array_split(order, 2))
    drawn = own["text"].to_list()
    count = min(len(first), len(drawn))
    rows = np.random.default_rng([seed, 1]).permutation(len(drawn))[:count]
    distances = (distance([drawn[row] for row in rows], second), distance(first[:count], second))
    manners = _manner(own, index, distances[0]), _manner(real, index, distances[1])
    return Closeness(*manners, count, outside)


def refuse_other_index(doc_ids: pl.Series, index: Index) -> None:
    """Refuse an index that lacks documents of generated queries: it is of another collection."""
    named = doc_ids.unique(maintain_order=True).to_list()
    lacking = [named[row] for row in np.flatnonzero(index.numbers(named) < 0)]
    if lacking:
        raise InputError(
            f"the index lacks {len(lacking):,} of the {len(named):,} documents that queries are made of, "
            f"such as {lacking[0]!r}; give an index of the same collection",
            path=index.path,
        )


def relevant_pairs(queries: Any, qrels: Any) -> pl.DataFrame:
    """Queries with each of their relevant documents: ``query_id, doc_id, text``."""
    requested = read_queries(queries)
    judged = read_qrels(qrels).filter(pl.col("relevance") > 0)
    return judged.join(requested, on="query_id", maintain_order="left").select("query_id", "doc_id", "text")


def real_pairs(queries: Any, qrels: Any) -> pl.DataFrame:
    """The same of real queries; fewer than two of them are an error."""
    real = relevant_pairs(queries, qrels)
    if real["query_id"].n_unique() < 2:
        raise InputError("there are not two real queries with a relevant document; do the ids agree?")
    return real


def _manner(pairs: pl.DataFrame, index: Index, away: float | None) -> Manner:
    once = pairs.unique("query_id", maintain_order=True)
    held = index.docs.texts(pairs["doc_id"].unique().to_list())
    overlaps = [overlap(split(text), set(split(held[doc_id]))) for _, doc_id, text in pairs.iter_rows()]
    ranks = own_ranks(pairs, index, DEPTH)
    return Manner(
        queries=len(once),
        round_trip=float(np.mean([1 / rank if rank else 0.0 for rank in ranks.values()])),
        overlap=float(np.mean(overlaps)),
        length=float(np.mean([len(text.split()) for text in once["text"].to_list()])),
        distance=away,
    )


def overlap(words: Sequence[str], document: set[str]) -> float:
    """The share of the words that the document has; 0 of no words."""
    return sum(word in document for word in words) / len(words) if words else 0.0


def own_ranks(pairs: pl.DataFrame, index: Index, depth: int) -> dict[str, int]:
    """For each query the best rank of a document of its own among the first so many of BM25; 0 if none."""
    from evenrank.rankers.registry import search

    requested = pairs.unique("query_id", maintain_order=True).select("query_id", "text")
    result = search(index, requested, depth=depth)
    good = result.join(pairs.select("query_id", "doc_id"), on=["query_id", "doc_id"])
    best = dict(good.group_by("query_id").agg(pl.col("rank").min()).iter_rows())
    return {query: int(best.get(query, 0)) for query in requested["query_id"].to_list()}


def distance(these: Iterable[str], those: Iterable[str]) -> float:
    """Jensen–Shannon distance between the words of two sets of texts: √JSD, logarithms to base 2.

    >>> distance(["a b"], ["a b"]), distance(["a"], ["b"])
    (0.0, 1.0)
    """
    counts = [Counter(word for text in texts for word in split(text)) for texts in (these, those)]
    if not all(counts):
        raise InputError("there are no words to compare")
    words = sorted(counts[0].keys() | counts[1].keys())
    p, q = (np.array([each[word] for word in words], float) / each.total() for each in counts)
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)) / 2
    return float(np.sqrt(max(0.0, min(1.0, divergence))))


def _relative(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> float:
    some = p > 0
    return float((p[some] * np.log2(p[some] / q[some])).sum())
