"""Ranking by the words that query and document share: BM25, query likelihood, tf-idf.

Term at a time, within windows of documents: the sums of a window stay in the processor's cache while the
postings of all terms of a query that fall into it are added up, always in the same order, so that equal
documents get equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from evenrank.data.docs import map_in_order, thread_count
from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.rankers.analysis import words
from evenrank.rankers.base import Progress, check_depth
from evenrank.rankers.index import Index, damaged
from evenrank.rankers.topk import select, sort
from evenrank.stats.rounding import CLOSE, level_ties, round_significant
from evenrank.text.hashing import compiled, inlined

WINDOW = 1 << 13  # documents
_QUERIES = 64  # per piece of work
_CELLS = 1 << 22  # results held per piece
_FIRST = 256  # documents of the first window; the next are larger
_LEVELS = 1 << 11  # of scores, in a histogram
_TABLE = 32  # term frequencies whose logarithm is looked up
_SPARE = 256  # candidates, at least, between two selections
_FOUND, _NOTHING = 1e-200, 1e-190
"""What a match adds at least, so that its document counts as found, and the score that stands for no gain at
all; both vanish in any sum."""
_LEAST = 1e-300  # of a sum that is not zero
_BM25, _DIRICHLET, _TFIDF = range(3)


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
        terms = QueryTerms.of_texts(queries["text"], self.index)
        result = retrieve(self.index, terms, model=self.model, depth=depth, progress=progress)
        return run_table(self.index, queries["query_id"], *result)

    def scores(self, queries: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
        """The scores of pairs ``query_id, doc_id``, as a third column, without ranking the collection.

        They are those of :meth:`rank`; 0 where query and document share no term, or the index has no such
        document, or `queries` no such query.
        """
        prepared = _prepared(self.index, QueryTerms.of_texts(queries["text"], self.index), self.model)
        places = queries.select("query_id", query=pl.int_range(pl.len(), dtype=pl.Int64))
        rows = pairs.select("query_id").join(places, on="query_id", how="left", maintain_order="left")
        query = rows["query"].fill_null(-1).to_numpy()
        document = self.index.numbers(pairs["doc_id"].to_list())
        known = np.flatnonzero((query >= 0) & (document >= 0))
        scores, values = np.zeros(len(pairs)), np.zeros(len(known))
        _score_pairs(prepared, _postings(self.index), query[known], document[known], values)
        scores[known] = values
        return pairs.select("query_id", "doc_id").with_columns(score=pl.Series(scores, dtype=pl.Float64))

    def describe(self) -> dict[str, Any]:
        """Name, settings and index."""
        return {"name": self.name, "settings": asdict(self.model), "index": self.index.describe()}


def bm25(index: Any, *, k1: float = 0.9, b: float = 0.4) -> Lexical:
    """BM25; see :class:`BM25`."""
    return Lexical("bm25", Index.open(index), BM25(k1, b))


def qld(index: Any, *, mu: float = 1000.0) -> Lexical:
    """Query likelihood with a Dirichlet prior; see :class:`Dirichlet`."""
    return Lexical("qld", Index.open(index), Dirichlet(mu))


def tfidf(index: Any) -> Lexical:
    """The cosine of tf-idf vectors; see :class:`TfIdf`."""
    return Lexical("tfidf", Index.open(index), TfIdf())


class QueryTerms(NamedTuple):
    """Queries as weighted bags of term numbers, many in three arrays.

    The terms of query i are terms[offsets[i]:offsets[i + 1]], sorted, each once, with their weights.
    """

    offsets: np.ndarray  # int64[queries + 1]
    terms: np.ndarray  # int64
    weights: np.ndarray  # float64

    @classmethod
    def of(cls, queries: Sequence[Mapping[int, float]], vocabulary: int) -> QueryTerms:
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
    def of_texts(cls, texts: pl.Series, index: Index) -> QueryTerms:
        """The terms of each text that the index has, weighted by how often the text has them."""
        cut = words(texts.to_arrow(compat_level=pl.CompatLevel.oldest()))
        analysed = index.analyzer.normalized(cut.distinct.to_pylist())
        kept = [place for place, term in enumerate(analysed) if term is not None]
        numbers = np.full(len(analysed), -1, np.int64)
        numbers[kept] = index.term_numbers([analysed[place] for place in kept])  # type: ignore[misc]
        terms = numbers[cut.numbers]
        rows = np.repeat(np.arange(len(texts)), np.diff(cut.bounds))
        pairs, counts = np.unique((rows * index.terms + terms)[terms >= 0], return_counts=True)
        rows, terms = np.divmod(pairs, max(1, index.terms))
        return cls(np.searchsorted(rows, np.arange(len(texts) + 1)), terms, counts.astype(np.float64))


def retrieve(
    index: Index,
    queries: Sequence[Mapping[int, float]] | QueryTerms,
    *,
    model: Model,
    depth: int,
    progress: Progress | None = None,
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
    counts, documents, scores
        How many documents each query has; their numbers (uint32), one query behind the other, the best
        first, of equal scores the greater id as text; their scores, float64.
    """
    check_depth(depth)
    bags = queries if isinstance(queries, QueryTerms) else QueryTerms.of(queries, index.terms)
    prepared, postings = _prepared(index, bags, model), _postings(index)
    depth = min(depth, index.documents)
    total = len(bags.offsets) - 1
    counts = np.zeros(total, np.int64)
    widest = int(np.diff(bags.offsets).max(initial=0))
    step = max(1, min(_QUERIES, _CELLS // depth, -(-total // (2 * thread_count()))))

    def work(first: int) -> tuple[np.ndarray, np.ndarray]:
        last = min(first + step, total)
        documents, scores = np.empty(step * depth, np.uint32), np.empty(step * depth)
        scratch = _Scratch.of(index.documents, depth, widest)
        size = _rank_all(prepared, postings, scratch, depth, first, last, counts, documents, scores)
        return documents[:size].copy(), scores[:size].copy()

    pieces = [(np.empty(0, np.uint32), np.empty(0))]
    firsts = range(0, total, step)
    for first, piece in zip(firsts, map_in_order(work, firsts), strict=True):
        pieces.append(piece)
        if progress:
            progress(min(first + step, total), total)
    documents, scores = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return counts, documents, scores


def run_table(
    index: Index, query_ids: pl.Series, counts: np.ndarray, documents: np.ndarray, scores: np.ndarray
) -> pl.DataFrame:
    """A run out of what :func:`retrieve` found; `counts` has the number of documents of each query."""
    counts = np.asarray(counts, np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    ranks = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    apart = np.abs(np.diff(scores))
    close = np.flatnonzero((apart > 0) & (apart <= CLOSE * np.abs(scores[1:])))
    if (round_significant(scores[close]) == round_significant(scores[close + 1])).any():
        scores = level_ties(scores, rows)
    return pl.DataFrame(
        {
            "query_id": query_ids.gather(rows).alias("query_id"),
            "doc_id": pl.Series("doc_id", index.id_array(documents)),
            "score": scores,
            "rank": ranks,
        }
    )


class _Postings(NamedTuple):
    """The inverted index."""

    offsets: np.ndarray
    documents: np.ndarray
    counts: np.ndarray
    ranks: np.ndarray  # the place of each document among the ids, as text


def _postings(index: Index) -> _Postings:
    names = ("posting-offsets", "posting-documents", "posting-counts", "id-rank")
    return _Postings(*(index.arrays[name] for name in names))


class _Prepared(NamedTuple):
    """Queries, prepared for a model."""

    model: int
    offsets: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    parameters: np.ndarray  # µ·P(term) of Dirichlet
    norms: np.ndarray  # float64 of each document


def _prepared(index: Index, bags: QueryTerms, model: Model) -> _Prepared:
    """The model as numbers: its code, a weight and a parameter for each query term, a norm per document."""
    terms, total, parameters = bags.terms, index.documents, np.zeros(len(bags.terms))
    _check_bounds(index, terms)
    df = index.document_frequency[terms].astype(np.float64)
    norms = index.derived(model, lambda: _norms(index, model))
    if isinstance(model, BM25):
        code, weights = _BM25, bags.weights * np.log1p((total - df + 0.5) / (df + 0.5))
    elif isinstance(model, Dirichlet):
        code, weights = _DIRICHLET, bags.weights
        parameters = model.mu * (index.collection_frequency[terms] + 1) / (index.tokens + 1)
    else:
        idf = np.log1p(total / df)
        rows = np.repeat(np.arange(len(bags.offsets) - 1), np.diff(bags.offsets))
        size = np.sqrt(np.bincount(rows, (bags.weights * idf) ** 2, minlength=len(bags.offsets) - 1))
        code, weights = _TFIDF, bags.weights * idf * idf / size[rows]
    return _Prepared(code, bags.offsets, terms, weights, parameters, norms)


def _norms(index: Index, model: Model) -> Any:
    """What a model needs to know of each document: K of BM25, the logarithm of Dirichlet, 1 / length."""
    arrays = index.arrays
    if isinstance(model, BM25):
        mean = index.tokens / index.documents or 1.0
        return model.k1 * (1 - model.b + model.b * (index.lengths / mean))
    if isinstance(model, Dirichlet):
        return np.log(model.mu / (index.lengths + model.mu))
    if isinstance(model, TfIdf):
        idf = np.log1p(index.documents / index.document_frequency)
        return _tfidf_norms(arrays["forward-offsets"], arrays["forward-terms"], arrays["forward-counts"], idf)
    raise InputError(f"{show(model)} is not a model; give BM25(), Dirichlet() or TfIdf()")


def _check_bounds(index: Index, terms: np.ndarray) -> None:
    """The kernel follows these offsets blindly, so a damaged one must not get there."""
    offsets = index.arrays["posting-offsets"]
    first, last = offsets[terms], offsets[terms + 1]
    good = (first >= 0) & (first <= last) & (last <= len(index.arrays["posting-documents"]))
    if not good.all():
        raise damaged(index.path / "posting-offsets")


class _Scratch(NamedTuple):
    """Working memory for a piece of work."""

    sums: np.ndarray  # float64[window]
    scores: np.ndarray  # float64: candidates …
    documents: np.ndarray  # uint32: … and their documents
    places: np.ndarray  # int64[terms]: where each term's postings are being read
    table: np.ndarray  # float64[terms, 32]
    levels: np.ndarray  # int64: how many candidates have a score of each level
    stack: np.ndarray  # to sort with

    @classmethod
    def of(cls, documents: int, depth: int, terms: int) -> _Scratch:
        window = min(WINDOW, documents)
        room = 2 * depth + _SPARE + window + 1
        return cls(
            np.zeros(window),
            np.zeros(room),
            np.zeros(room, np.uint32),
            np.empty(terms, np.int64),
            np.empty((terms, _TABLE)),
            np.empty(_LEVELS, np.int64),
            np.empty(128, np.int64),
        )


@inlined
def _tf_part(model: Any, parameter: Any, tf: Any) -> Any:
    """The part of a gain that depends on the term frequency alone."""
    if model == _BM25:
        return tf
    return np.log(1.0 + tf / parameter) if model == _DIRICHLET else 1.0 + np.log(tf)


@inlined
def _gain(model: Any, weight: Any, part: Any, norm: Any) -> Any:
    """What a posting adds to the score of its document."""
    if model == _BM25:
        gain = part / (part + norm)
    elif model == _DIRICHLET:
        gain = part + norm
    else:
        gain = part * norm
    return max(weight * gain, _FOUND)


@inlined
def _add(
    model: Any, prepared: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, least: Any,
    scratch: Any, kept: Any,
) -> Any:  # fmt: skip
    """Add a term's postings up to document `limit` to the sums.

    A document whose sum reaches `least` becomes a candidate; how many there are then.
    """
    sums, weight = scratch.sums, prepared.weights[term]
    at, last = scratch.places[row], postings.offsets[prepared.terms[term] + 1]
    start, width = np.uint64(base), np.uint64(limit - base)
    while at < last:
        document = np.uint64(postings.documents[at])
        place = document - start
        if place >= width:  # behind, or before in a damaged file
            break
        tf = np.uint64(postings.counts[at])
        if model == _BM25:
            part = float(tf)
        elif tf < _TABLE:
            part = scratch.table[row, tf]
        else:
            part = _tf_part(model, prepared.parameters[term], float(tf))
        before = sums[place]
        after = before + _gain(model, weight, part, prepared.norms[document])
        sums[place] = after
        if before < least <= after:
            scratch.documents[kept] = document
            kept += 1
        at += 1
    scratch.places[row] = at
    return kept


@inlined
def _add_any(
    prepared: Any,
    postings: Any,
    term: Any,
    row: Any,
    base: Any,
    limit: Any,
    least: Any,
    scratch: Any,
    kept: Any,
) -> Any:
    """`_add`, compiled for each model by itself."""
    if prepared.model == _BM25:
        return _add(_BM25, prepared, postings, term, row, base, limit, least, scratch, kept)
    if prepared.model == _DIRICHLET:
        return _add(_DIRICHLET, prepared, postings, term, row, base, limit, least, scratch, kept)
    return _add(_TFIDF, prepared, postings, term, row, base, limit, least, scratch, kept)


@inlined
def _drop(scores: Any, documents: Any, kept: Any, least: Any) -> Any:
    """Drop the candidates below this; how many stay."""
    stay = 0
    for i in range(kept):
        score, document = scores[i], documents[i]
        scores[stay], documents[stay] = score, document
        stay += 1 if score >= least else 0
    return stay


@inlined
def _rank(prepared: Any, postings: Any, query: Any, depth: Any, scratch: Any) -> Any:
    """The best documents of a query, into scratch.scores and scratch.documents; how many there are.

    A histogram of the candidates' scores says how high the `depth` best of them are at least.
    """
    scores, documents, sums, levels = scratch.scores, scratch.documents, scratch.sums, scratch.levels
    total, begin = len(postings.ranks), prepared.offsets[query]
    size = prepared.offsets[query + 1] - begin
    for i in range(size):
        scratch.places[i] = postings.offsets[prepared.terms[begin + i]]
        if prepared.model != _BM25:
            for tf in range(1, _TABLE):
                scratch.table[i, tf] = _tf_part(prepared.model, prepared.parameters[begin + i], float(tf))
    levels[:] = 0
    kept, above, level, scale, least = 0, 0, 0, 0.0, _LEAST
    width = min(_FIRST, len(sums))
    while True:
        base: Any = total
        for i in range(size):
            if scratch.places[i] < postings.offsets[prepared.terms[begin + i] + 1]:
                base = min(base, np.int64(postings.documents[scratch.places[i]]))
        if base == total:
            break
        limit = min(base + width, total)
        before = kept
        for i in range(size):
            kept = _add_any(prepared, postings, begin + i, i, base, limit, least, scratch, kept)
        for i in range(before, kept):
            scores[i] = max(sums[documents[i] - np.uint64(base)], _NOTHING)
        sums[:width] = 0.0
        width = min(2 * width, len(sums))
        if scale == 0.0:
            highest = 0.0
            for i in range(kept):
                highest = max(highest, scores[i])
            scale = 0.5 * _LEVELS / highest if highest > _NOTHING else 0.0
        for i in range(before, kept):
            at = np.int64(min(scores[i] * scale, _LEVELS - 1.0))
            levels[at] += 1
            above += 1 if at >= level else 0
        while above - levels[level] >= depth:
            above -= levels[level]
            level += 1
            least = max(least, level / scale * (1.0 - 2.0 * CLOSE))
        if kept > 2 * depth + _SPARE:
            kept = _drop(scores, documents, kept, least)
            if kept > 2 * depth:  # many are about equal
                last = select(postings.ranks, scores, documents, kept, depth)
                least = last * (1.0 - CLOSE) if last > _NOTHING else _LEAST
                kept = depth
    kept = _drop(scores, documents, kept, least)
    if kept > depth:
        select(postings.ranks, scores, documents, kept, depth)
        kept = depth
    sort(postings.ranks, scores, documents, kept, scratch.stack)
    return kept


@compiled
def _rank_all(
    prepared: Any, postings: Any, scratch: Any, depth: Any, first: Any, last: Any,
    counts: Any, documents: Any, scores: Any,
) -> Any:  # fmt: skip
    """The best documents of the queries first:last, one query behind the other; how many there are."""
    total = 0
    for query in range(first, last):
        counts[query] = _rank(prepared, postings, query, depth, scratch)
        for i in range(counts[query]):
            documents[total] = scratch.documents[i]
            scores[total] = scratch.scores[i] if scratch.scores[i] > _NOTHING else 0.0
            total += 1
    return total


@compiled
def _score_pairs(prepared: Any, postings: Any, queries: Any, documents: Any, scores: Any) -> None:
    """The score of each pair of a query and a document: the document is looked up in the query's postings."""
    for pair in range(len(queries)):
        document, total = documents[pair], 0.0
        for term in range(prepared.offsets[queries[pair]], prepared.offsets[queries[pair] + 1]):
            low, last = postings.offsets[prepared.terms[term]], postings.offsets[prepared.terms[term] + 1]
            high = last
            while low < high:
                middle = (low + high) >> 1
                if postings.documents[middle] < document:
                    low = middle + 1
                else:
                    high = middle
            if low < last and postings.documents[low] == document:
                part = _tf_part(prepared.model, prepared.parameters[term], float(postings.counts[low]))
                total += _gain(prepared.model, prepared.weights[term], part, prepared.norms[document])
        scores[pair] = total if total > _NOTHING else 0.0


@njit(nogil=True, cache=True)
def _tfidf_norms(offsets: Any, terms: Any, counts: Any, idf: Any) -> Any:
    """1 / the Euclidean length of each document's vector of (1 + ln tf)·idf; 0 for an empty one."""
    norms = np.zeros(len(offsets) - 1, np.float64)
    for row in range(len(norms)):
        total = 0.0
        for i in range(offsets[row], offsets[row + 1]):
            value = (1.0 + np.log(float(counts[i]))) * idf[terms[i]]
            total += value * value
        if total > 0.0:
            norms[row] = 1.0 / np.sqrt(total)
    return norms
