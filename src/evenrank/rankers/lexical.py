"""Ranking by the words that query and document share: BM25, query likelihood, tf-idf."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.parallel import map_in_order, thread_count
from evenrank.rankers import scoring
from evenrank.rankers.base import Progress, check_depth
from evenrank.rankers.index import Index, as_index
from evenrank.rankers.index.storage import damaged
from evenrank.rankers.index.tokenizing import words
from evenrank.stats.rounding import CLOSE, level_ties

_ROWS = 64  # queries per piece of work
_CELLS = 1 << 22  # results held per piece
_NO_TABLE = np.zeros((1, 1))
_TINY = 1e-150
_NONE, _NO_CODES = np.zeros(0), np.zeros(0, np.uint16)


@dataclass(frozen=True)
class BM25:
    """Okapi BM25 as Lucene computes it (Robertson & Zaragoza 2009; without its constant factor k1 + 1).

    score = Σ ln(1 + (N − df + ½)/(df + ½)) · tf / (tf + k1·(1 − b + b·length/mean length)), over the query's
    terms; each term adds between 0 and its idf. ``k1``: how much repetition counts; ``b``: how much long
    documents pay. The defaults are Anserini's; Rekabsaz & Schedl (2020) have 0.6 and 0.8.
    """

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        _check("k1", self.k1, self.k1 >= 0, "a number from 0 on")
        _check("b", self.b, 0 <= self.b <= 1, "a number from 0 to 1")


@dataclass(frozen=True)
class Dirichlet:
    """Query likelihood with a Dirichlet prior (Zhai & Lafferty 2001), as Lucene computes it.

    score = Σ max(0, ln(1 + tf/(µ·P(term))) + ln(µ/(length + µ))), over the query's terms that the document
    has; P = (occurrences of the term + 1) / (tokens of the collection + 1). A larger ``mu`` trusts the
    document less.
    """

    mu: float = 1000

    def __post_init__(self) -> None:
        _check("mu", self.mu, self.mu > 0, "a number above 0")


@dataclass(frozen=True)
class TfIdf:
    """The cosine, from 0 to 1, of tf-idf vectors: (1 + ln tf)·idf of the document, weight·idf of the query.

    idf = ln(1 + N/df): a term that all documents have still counts a little.
    """


Model = BM25 | Dirichlet | TfIdf


def _check(name: str, value: Any, good: bool, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not good:
        raise InputError(f"{name} is {show(value)}; it must be {what}")


def retrieve(
    index: Index, queries: Sequence[Mapping[int, float]] | Bags, *, model: Model, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The `depth` best documents of each query, exactly.

    Parameters
    ----------
    index
        What is searched.
    queries
        Weighted bags: term number → weight above 0. Scores are linear in the weights (but for tf-idf, a
        cosine).
    model
        :class:`BM25`, :class:`Dirichlet` or :class:`TfIdf`.
    depth
        Maximum number of documents per query. Only documents that have a term of the query are found.

    Returns
    -------
    offsets, documents, scores
        The documents of query i are documents[offsets[i]:offsets[i + 1]], numbers of type uint32, the best
        first; of equal scores the greater id as text. Scores are float64.
    """
    check_depth(depth)
    bags = queries if isinstance(queries, Bags) else Bags.of(queries, index.terms)
    pieces = list(_pieces(index, bags, model, depth, None))
    if not pieces:
        return np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float64)
    counts, documents, scores = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return np.cumsum([0, *counts], dtype=np.int64), documents, scores


def _pieces(index: Index, bags: Bags, model: Model, depth: int, progress: Progress | None) -> Any:
    """Results by stretches of queries, computed in threads: (found per query, documents, scores)."""
    requested, codes = _coded(index, _prepared(index, bags, model))
    arrays = index.arrays
    postings = scoring.Postings(
        arrays["posting-offsets"], arrays["posting-documents"], arrays["posting-counts"],
        codes, arrays["id-rank"],
    )  # fmt: skip
    depth = min(depth, index.documents)
    queries = len(bags.offsets) - 1
    step = max(1, min(_ROWS, _CELLS // depth, -(-queries // (2 * thread_count()))))
    values = np.zeros(queries, np.int64)
    widest = int(np.diff(bags.offsets).max(initial=0))
    own = threading.local()

    def work(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        last = min(first + step, queries)
        if not hasattr(own, "scratch"):
            own.scratch = scoring.scratch(documents=index.documents, depth=depth, terms=widest)
            own.documents = np.empty(step * depth, np.uint32)
            own.scores = np.empty(step * depth, np.float64)
        scoring.retrieve_rows(
            requested, postings, own.scratch, depth, first, last, values, own.documents, own.scores
        )
        size = int(values[first:last].sum())
        return values[first:last], own.documents[:size].copy(), own.scores[:size].copy()

    firsts = range(0, queries, step)
    for first, piece in zip(firsts, map_in_order(work, firsts, threads=thread_count()), strict=True):
        if progress:
            progress(min(first + step, queries), queries)
        yield piece


def _prepared(index: Index, bags: Bags, model: Model) -> scoring.Asked:
    """The model as numbers: its code, a weight and a parameter for each query term, a norm per document."""
    terms, total = bags.terms, index.documents
    _check_bounds(index, terms)
    df = index.document_frequency[terms].astype(np.float64)
    none = np.zeros(len(terms))
    if isinstance(model, BM25):
        idf = np.log1p((total - df + 0.5) / (df + 0.5))
        rows, worth = index.derived(("worth", model), lambda: _bm25_worth(index, model))
        most = index.collection_frequency[terms] - df + 1  # no document has a term more often
        weights = bags.weights * idf
        bounds = weights * most / (most + worth[:, 0].min(initial=np.inf))
        order = np.lexsort((terms, -bounds, _rows(bags)))  # what adds most first: sums are rounded alike
        return scoring.Asked(
            scoring.BM25, bags.offsets, terms[order], weights[order], none, rows, worth, _NONE
        )
    if isinstance(model, Dirichlet):
        share = (index.collection_frequency[terms] + 1) / (index.tokens + 1)
        norms = index.derived(("norms", model), lambda: _dirichlet_norms(index, model))
        return scoring.Asked(
            scoring.DIRICHLET,
            bags.offsets,
            terms,
            bags.weights,
            model.mu * share,
            norms,
            _NO_TABLE,
            _NONE,
        )
    if isinstance(model, TfIdf):
        idf = np.log1p(total / df)
        weights = bags.weights * idf
        sizes = np.sqrt(np.bincount(_rows(bags), weights**2, minlength=len(bags.offsets) - 1))
        norms = index.derived(("norms", model), lambda: _tfidf_norms(index))
        weights = weights * idf / sizes[_rows(bags)]
        return scoring.Asked(scoring.TFIDF, bags.offsets, terms, weights, none, norms, _NO_TABLE, _NONE)
    raise InputError(f"{show(model)} is not a model; give BM25(), Dirichlet() or TfIdf()")


def _coded(index: Index, requested: scoring.Asked) -> tuple[scoring.Asked, np.ndarray]:
    """Codes of all postings and what they are worth, where so many are read that it pays to make them."""
    if requested.model != scoring.BM25:
        return requested, _NO_CODES
    read = int(index.document_frequency[requested.terms].sum(dtype=np.int64))
    least = requested.weights.min(initial=1) * requested.worth[:, 1].min(initial=1)
    # What adds less than `FOUND` would not be found by codes.
    if least < _TINY or 2 * read < len(index.arrays["posting-documents"]):
        return requested, _NO_CODES
    codes, rows, counts = index.derived("codes", lambda: _codes(index, requested.norms, len(requested.worth)))
    beyond = counts / (counts + requested.worth[rows, 0])
    return requested._replace(parts=np.append(requested.worth, beyond)), codes


def _codes(index: Index, rows: np.ndarray, lengths: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of all postings; rows of lengths, and counts, of the codes behind the table. None if too many."""
    none = np.zeros(0, np.int64)
    if lengths * scoring.TABLE > scoring.MOST_CODES:
        return _NO_CODES, none, none
    documents, counts = index.arrays["posting-documents"], index.arrays["posting-counts"]
    codes = scoring.encode(documents, counts, rows)
    high = np.flatnonzero(counts >= scoring.TABLE)
    pairs = rows[np.minimum(documents[high], len(rows) - 1)].astype(np.int64) << 32 | counts[high]
    known, places = np.unique(pairs, return_inverse=True)
    if lengths * scoring.TABLE + len(known) > scoring.MOST_CODES:
        return _NO_CODES, none, none
    codes[high] = lengths * scoring.TABLE + places
    return codes, known >> 32, known & 0xFFFFFFFF


def _check_bounds(index: Index, terms: np.ndarray) -> None:
    """The kernel follows these offsets blindly, so a damaged one must not get there."""
    offsets = index.arrays["posting-offsets"]
    first, last = offsets[terms], offsets[terms + 1]
    good = (first >= 0) & (first <= last) & (last <= len(index.arrays["posting-documents"]))
    if not good.all():
        raise damaged(index.path / "posting-offsets")


def _rows(bags: Bags) -> np.ndarray:
    return np.repeat(np.arange(len(bags.offsets) - 1), np.diff(bags.offsets))


def _bm25_worth(index: Index, model: BM25) -> tuple[np.ndarray, np.ndarray]:
    """By length of document, what a term is worth that occurs 1, 2, … times; and each document's length."""
    lengths, rows = np.unique(index.lengths, return_inverse=True)
    mean = index.tokens / index.documents or 1.0
    penalty = model.k1 * (1 - model.b + model.b * (lengths / mean))
    counts = np.arange(scoring.TABLE)
    with np.errstate(invalid="ignore"):
        worth = counts / (counts + penalty[:, None])
    worth[:, 0] = penalty
    return rows.astype(np.uint32), worth


def _dirichlet_norms(index: Index, model: Dirichlet) -> np.ndarray:
    by_length: np.ndarray = np.log(model.mu / (np.arange(int(index.lengths.max(initial=0)) + 1) + model.mu))
    return by_length[index.lengths]


def _tfidf_norms(index: Index) -> np.ndarray:
    arrays = index.arrays
    idf = np.log1p(index.documents / index.document_frequency)
    return scoring.norms_of_documents(
        arrays["forward-offsets"], arrays["forward-terms"], arrays["forward-counts"], idf
    )


class Lexical:
    """A lexical ranker: an index and a model."""

    def __init__(self, name: str, index: Index, model: Model) -> None:
        self.name = name
        self.index = index
        self.model = model

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The run of these queries; a query none of whose terms occurs is left out."""
        bags = Bags.of_texts(queries["text"].to_arrow(compat_level=pl.CompatLevel.oldest()), self.index)
        check_depth(depth)
        pieces = list(_pieces(self.index, bags, self.model, depth, progress))
        counts, documents, scores = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return run_table(self.index, queries["query_id"], counts, documents, scores)

    def scores(self, queries: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
        """The scores of pairs ``query_id, doc_id``, as a third column, without ranking the collection.

        They are those of :meth:`rank`; 0 where query and document share no term, or the index has no such
        document, or `queries` no such query.
        """
        bags = Bags.of_texts(queries["text"].to_arrow(compat_level=pl.CompatLevel.oldest()), self.index)
        places = queries.select("query_id", query=pl.int_range(pl.len(), dtype=pl.Int64))
        rows = pairs.select("query_id").join(places, on="query_id", how="left", maintain_order="left")
        query = rows["query"].fill_null(-1).to_numpy()
        document = self.index.numbers(pairs["doc_id"].to_list())
        known = np.flatnonzero((query >= 0) & (document >= 0))
        arrays = self.index.arrays
        postings = scoring.Postings(
            arrays["posting-offsets"], arrays["posting-documents"], arrays["posting-counts"],
            _NO_CODES, arrays["id-rank"],
        )  # fmt: skip
        values = np.zeros(len(known))
        table = np.empty((1, scoring.TABLE))
        requested = _prepared(self.index, bags, self.model)
        scoring.score_pairs(requested, postings, query[known], document[known], table, values)
        scores = np.zeros(len(pairs))
        scores[known] = values
        return pairs.select("query_id", "doc_id").with_columns(score=pl.Series(scores, dtype=pl.Float64))

    def describe(self) -> dict[str, Any]:
        """Name, settings and index."""
        return {"name": self.name, "settings": asdict(self.model), "index": self.index.describe()}


def run_table(
    index: Index, query_ids: pl.Series, counts: np.ndarray, documents: np.ndarray, scores: np.ndarray
) -> pl.DataFrame:
    """A run out of what :func:`retrieve` found; `counts` has the number of documents of each query."""
    counts = np.asarray(counts, np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    ranks = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    apart = np.abs(np.diff(scores))
    if ((apart > 0) & (apart <= CLOSE * np.abs(scores[1:]))).any():
        scores = level_ties(scores, rows)
    return pl.DataFrame(
        {
            "query_id": query_ids.gather(rows).alias("query_id"),
            "doc_id": pl.Series("doc_id", index.id_array(documents)),
            "score": scores,
            "rank": ranks,
        }
    )


def bm25(index: Any, *, k1: float = 0.9, b: float = 0.4) -> Lexical:
    """BM25; see :class:`BM25`."""
    return Lexical("bm25", as_index(index), BM25(k1, b))


def qld(index: Any, *, mu: float = 1000.0) -> Lexical:
    """Query likelihood with a Dirichlet prior; see :class:`Dirichlet`."""
    return Lexical("qld", as_index(index), Dirichlet(mu))


def tfidf(index: Any) -> Lexical:
    """The cosine of tf-idf vectors; see :class:`TfIdf`."""
    return Lexical("tfidf", as_index(index), TfIdf())


class Bags(NamedTuple):
    """Queries as weighted bags of term numbers, many in three arrays.

    The terms of query i are terms[offsets[i]:offsets[i + 1]], sorted, each once, with their
    weights.
    """

    offsets: np.ndarray  # int64[queries + 1]
    terms: np.ndarray  # int64
    weights: np.ndarray  # float64

    @classmethod
    def of(cls, queries: Sequence[Mapping[int, float]], vocabulary: int) -> Bags:
        """From mappings of term numbers to weights; a weight of 0 is no term."""
        rows = [sorted((term, weight) for term, weight in bag.items() if weight) for bag in queries]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        flat = [pair for row in rows for pair in row]
        terms = np.array([term for term, _ in flat], np.int64)
        weights = np.array([weight for _, weight in flat], np.float64)
        if len(terms) and not (terms[0] >= 0 and terms.min() >= 0 and terms.max() < vocabulary):
            raise InputError(f"a query has a term number that is not from 0 to {vocabulary - 1}")
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("a query has a term whose weight is not a number from 0 on")
        return cls(offsets, terms, weights)

    @classmethod
    def of_texts(cls, texts: Any, index: Index) -> Bags:
        """The terms of each text that the index has, weighted by how often the text has them."""
        cut = words(texts)
        built = index.analyzer.normalized(cut.texts())
        known = [place for place, term in enumerate(built) if term is not None]
        places = np.full(len(built), -1, np.int64)
        places[known] = index.term_numbers([built[place] for place in known])  # type: ignore[misc]
        terms = places[cut.numbers]
        offsets = np.zeros(len(cut.bounds), np.int64)
        weights = np.empty(len(terms), np.float64)
        _fold(terms, cut.bounds, offsets, weights)
        return cls(offsets, terms[: offsets[-1]].copy(), weights[: offsets[-1]].copy())


@njit(nogil=True, cache=True)
def _fold(terms: Any, bounds: Any, offsets: Any, weights: Any) -> None:
    """Sort the terms of each text and count the repeated ones, in place; −1 is no term."""
    at = 0
    for row in range(len(bounds) - 1):
        if bounds[row + 1] - bounds[row] > 64:
            terms[bounds[row] : bounds[row + 1]].sort()
        for i in range(bounds[row], bounds[row + 1]):
            term, place = terms[i], at
            if term < 0:
                continue
            while place > offsets[row] and terms[place - 1] > term:
                place -= 1
            if place > offsets[row] and terms[place - 1] == term:
                weights[place - 1] += 1.0
                continue
            for j in range(at, place, -1):
                terms[j], weights[j] = terms[j - 1], weights[j - 1]
            terms[place], weights[place] = term, 1.0
            at += 1
        offsets[row + 1] = at
