"""Ranking by the words that query and document share: BM25, query likelihood, tf-idf.

Term at a time, within windows of documents: the sums of a window stay in the processor's cache while the
postings of all terms that fall into it are added up. Documents whose sum reaches the `depth` best scores so
far are candidates; a histogram of their scores says how high these are. In the end the candidates are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from evenrank.data.docs import map_in_order, thread_count
from evenrank.errors import InputError, check_number
from evenrank.rankers.base import Progress, check_depth
from evenrank.rankers.index import Index
from evenrank.stats.rounding import CLOSE, level_ties, round_significant
from evenrank.text.hashing import inlined

_CELLS = 1 << 22  # results of one thread at a time
_QUERIES = 64  # of one thread at a time
_SPARE = 256  # candidates, at least, before the histogram is asked
_FIRST, _WINDOW = 1 << 10, 1 << 14
"""Documents of the first window, and at most; each is twice as large as the one before."""
_LEVELS = 1 << 11  # of scores, in the histogram
_LEAST = 1e-300  # of a sum that is not zero
_TABLE = 32  # term frequencies whose logarithm is looked up
_MATCH, _NOTHING = 1e-200, 1e-190
"""What a match adds at least, so that its document counts as found, and the score that stands for no gain at
all; both vanish in any sum."""
_LEAST_MU = 1e-9
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
        check_number("k1", self.k1)
        check_number("b", self.b, most=1)


@dataclass(frozen=True)
class Dirichlet:
    """Query likelihood with a Dirichlet prior (Zhai & Lafferty 2001), as Lucene computes it.

    score = Σ max(0, ln(1 + tf/(µ·P(term))) + ln(µ/(length + µ))), over the query's terms that the document
    has; P = (occurrences of the term + 1) / (tokens of the collection + 1). A larger ``mu`` trusts the
    document less.
    """

    mu: float = 1000

    def __post_init__(self) -> None:
        check_number("mu", self.mu, least=_LEAST_MU)


@dataclass(frozen=True)
class TfIdf:
    """The cosine, from 0 to 1, of tf-idf vectors: (1 + ln tf)·idf of the document, weight·idf of the query.

    idf = ln(1 + N/df): a term that all documents have still counts a little.
    """


Model = BM25 | Dirichlet | TfIdf


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
        scores = np.zeros(len(pairs))
        known = np.flatnonzero((query >= 0) & (document >= 0))
        values = np.zeros(len(known))
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
        """Return the terms of each text that the index has, weighted by how often the text has them."""
        found = index.analyzer.analyze(texts.to_arrow(compat_level=pl.CompatLevel.oldest()))
        terms = index.term_numbers(found.vocabulary)[found.numbers]
        rows = np.repeat(np.arange(len(texts)), np.diff(found.bounds))
        pairs, counts = np.unique((rows << 32 | terms)[terms >= 0], return_counts=True)
        offsets = np.searchsorted(pairs >> 32, np.arange(len(texts) + 1))
        return cls(offsets, pairs & 0xFFFFFFFF, counts.astype(np.float64))


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
    step = max(1, min(_QUERIES, _CELLS // depth, -(-total // (2 * thread_count()))))

    def work(first: int) -> tuple[np.ndarray, np.ndarray]:
        last = min(first + step, total)
        documents, scores = np.empty(step * depth, np.uint32), np.empty(step * depth)
        size = _search(prepared, postings, depth, first, last, counts, documents, scores)
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
            "doc_id": index.id_series(documents),
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
    tables: np.ndarray  # float64[·, 32]: the part of a gain that depends on the term frequency alone
    norms: np.ndarray  # float64 of each document


def _prepared(index: Index, bags: QueryTerms, model: Model) -> _Prepared:
    """The model as numbers: its code, a weight and a parameter for each query term, a norm per document."""
    terms, total, parameters = bags.terms, index.documents, np.zeros(len(bags.terms))
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
    tf = np.arange(1.0, _TABLE)
    tables = np.zeros((len(terms), _TABLE))
    if code == _DIRICHLET:
        tables[:, 1:] = np.log(1 + tf / parameters[:, None])
    else:
        tables[:, 1:] = tf if code == _BM25 else 1 + np.log(tf)
    return _Prepared(code, bags.offsets, terms, weights, parameters, tables, norms)


def _norms(index: Index, model: Model) -> Any:
    """What a model needs to know of each document: K of BM25, the logarithm of Dirichlet, 1 / length."""
    arrays = index.arrays
    if isinstance(model, BM25):
        mean = index.tokens / index.documents or 1.0
        return model.k1 * (1 - model.b + model.b * (index.lengths / mean))
    if isinstance(model, Dirichlet):
        return np.log(model.mu / (index.lengths + model.mu))
    idf = np.log1p(index.documents / index.document_frequency)
    return _tfidf_norms(arrays["forward-offsets"], arrays["forward-terms"], arrays["forward-counts"], idf)


@njit(nogil=True, cache=True)
def _tfidf_norms(offsets: Any, terms: Any, counts: Any, idf: Any) -> Any:
    """Return 1 / the length of each document's vector of (1 + ln tf)·idf; 0 for an empty one."""
    norms = np.zeros(len(offsets) - 1)
    for row in range(len(norms)):
        square = 0.0
        for i in range(offsets[row], offsets[row + 1]):
            square += ((1.0 + np.log(float(counts[i]))) * idf[terms[i]]) ** 2
        if square > 0.0:
            norms[row] = 1.0 / np.sqrt(square)
    return norms


@njit(nogil=True, cache=True)
def _tf_part(model: Any, parameter: Any, tf: Any) -> Any:
    """Return the part of a gain that depends on the term frequency alone."""
    if model == _BM25:
        return tf
    return np.log(1.0 + tf / parameter) if model == _DIRICHLET else 1.0 + np.log(tf)


@inlined
def _gain(model: Any, weight: Any, part: Any, norm: Any) -> Any:
    """Return what a posting adds to the score of its document."""
    if model == _BM25:
        gain = part / (part + norm)
    elif model == _DIRICHLET:
        gain = part + norm
    else:
        gain = part * norm
    return max(weight * gain, _MATCH)


@inlined
def _add(
    prepared: Any,
    postings: Any,
    term: Any,
    at: Any,
    window: Any,
    sums: Any,
    least: Any,
    documents: Any,
    kept: Any,
) -> Any:
    """Add a term's postings in a window of documents, from place `at` on, to the sums.

    A document whose sum reaches `least` becomes a candidate. Return the place behind the last posting, and
    how many candidates there are.
    """
    model, weight, parameter = prepared.model, prepared.weights[term], prepared.parameters[term]
    last = postings.offsets[prepared.terms[term] + 1]
    first, width = np.uint64(window[0]), np.uint64(window[1] - window[0])
    table = prepared.tables[term]
    while at < last:
        document = np.uint64(postings.documents[at])
        place = document - first
        if place >= width:
            break
        tf = np.uint64(postings.counts[at])
        part = table[tf] if tf < _TABLE else _tf_part(model, parameter, float(tf))
        before = sums[place]
        after = before + _gain(model, weight, part, prepared.norms[document])
        sums[place] = after
        if before < least <= after:
            documents[kept] = document
            kept += 1
        at += 1
    return at, kept


@njit(nogil=True, cache=True)
def _threshold(scores: Any, depth: Any) -> Any:
    """Return a score that the `depth` best, and few others, reach: a level of a histogram."""
    highest = scores.max()
    if highest <= _NOTHING:
        return _LEAST
    levels, scale = np.zeros(_LEVELS, np.int64), (_LEVELS - 1) / highest
    for score in scores:
        levels[int(score * scale)] += 1
    level = _LEVELS - 1
    above = levels[level]
    while above < depth:
        level -= 1
        above += levels[level]
    return max(_LEAST, level / scale * (1.0 - 2.0 * CLOSE))


@njit(nogil=True, cache=True)
def _drop(scores: Any, documents: Any, kept: Any, least: Any) -> Any:
    """Drop the candidates below a score; return how many stay."""
    stay = 0
    for i in range(kept):
        if scores[i] >= least:
            scores[stay], documents[stay] = scores[i], documents[i]
            stay += 1
    return stay


@njit(nogil=True, cache=True)
def _candidates(
    prepared: Any, postings: Any, query: Any, depth: Any, sums: Any, documents: Any, scores: Any
) -> Any:
    """Fill in documents among which the best of a query are; return how many there are."""
    total, begin, end = len(postings.ranks), prepared.offsets[query], prepared.offsets[query + 1]
    places, lasts = (
        postings.offsets[prepared.terms[begin:end]],
        postings.offsets[prepared.terms[begin:end] + 1],
    )
    width, kept, least = _FIRST, 0, _LEAST
    while True:
        first: Any = total  # the next document that has a term
        for i in range(end - begin):
            if places[i] < lasts[i]:
                first = min(first, np.int64(postings.documents[places[i]]))
        if first == total:
            break
        window, before = (first, min(first + width, total)), kept
        for i in range(end - begin):
            places[i], kept = _add(
                prepared, postings, begin + i, places[i], window, sums, least, documents, kept
            )
        for i in range(before, kept):
            scores[i] = sums[documents[i] - np.uint64(first)]
        sums[:width] = 0.0
        if kept > 2 * depth + _SPARE:
            least = max(least, _threshold(scores[:kept], depth))
            kept = _drop(scores, documents, kept, least)
        width = min(2 * width, _WINDOW)
    if kept > depth:
        kept = _drop(scores, documents, kept, _threshold(scores[:kept], depth))
    return kept


@njit(nogil=True, cache=True)
def _sort(ranks: Any, documents: Any, scores: Any, depth: Any) -> Any:
    """Bring the best documents to the front, and return how many there are.

    Scores that are equal to nine digits are set to the largest of them; the greater id comes first.
    """
    order = np.argsort(-scores)
    unsorted, values = documents.copy(), scores.copy()
    first, size = 0, min(depth, len(scores))
    while first < size:
        highest, last = values[order[first]], first + 1
        while last < len(order) and _is_tie(highest, values[order[last]]):
            last += 1
        if last > first + 1:
            tied = order[first:last].copy()
            order[first:last] = tied[np.argsort(ranks[unsorted[tied]])[::-1]]
        for i in range(first, min(last, size)):
            documents[i] = unsorted[order[i]]
            scores[i] = highest if highest > _NOTHING else 0.0
        first = last
    return size


_round = njit(nogil=True, cache=True)(round_significant)


@njit(nogil=True, cache=True)
def _is_tie(score: Any, other: Any) -> Any:
    """Are two scores equal in their first nine significant digits?"""
    if score == other or score <= _NOTHING:
        return True
    return abs(score - other) <= CLOSE * abs(score) and _round(score) == _round(other)


@njit(nogil=True, cache=True)
def _search(
    prepared: Any, postings: Any, depth: Any, first: Any, last: Any, counts: Any, documents: Any, scores: Any
) -> Any:
    """Fill in the best documents of the queries first:last, one query behind the other."""
    room = len(postings.ranks)
    sums, chosen, values = np.zeros(_WINDOW), np.empty(room, np.uint32), np.empty(room)
    total = 0
    for query in range(first, last):
        kept = _candidates(prepared, postings, query, depth, sums, chosen, values)
        size = _sort(postings.ranks, chosen[:kept], values[:kept], depth)
        documents[total : total + size], scores[total : total + size] = chosen[:size], values[:size]
        counts[query] = size
        total += size
    return total


@njit(nogil=True, cache=True)
def _score_pairs(prepared: Any, postings: Any, queries: Any, documents: Any, scores: Any) -> None:
    """Fill in the score of each pair of a query and a document."""
    for pair in range(len(queries)):
        total = 0.0
        for term in range(prepared.offsets[queries[pair]], prepared.offsets[queries[pair] + 1]):
            first, last = postings.offsets[prepared.terms[term]], postings.offsets[prepared.terms[term] + 1]
            place = first + np.searchsorted(postings.documents[first:last], documents[pair])
            if place < last and postings.documents[place] == documents[pair]:
                part = _tf_part(prepared.model, prepared.parameters[term], float(postings.counts[place]))
                total += _gain(prepared.model, prepared.weights[term], part, prepared.norms[documents[pair]])
        scores[pair] = total if total > _NOTHING else 0.0
