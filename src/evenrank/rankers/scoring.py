"""The kernel of lexical search: all documents that have a query's terms, scored exactly, the best kept.

Term at a time within windows of documents: the sums of a window stay in the cache while the postings of all
terms that fall into it are added up, always in the same order, so that equal documents get equal scores. Once
`depth` documents are known, 64 sums at a time are compared with the score of the last of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from evenrank.rankers.best import SCRATCH, narrow, select, sort
from evenrank.stats.rounding import CLOSE
from evenrank.text.hashing import compiled, inlined

BM25, DIRICHLET, TFIDF = range(3)
_CODED = 3  # BM25 with codes

WINDOW = 1 << 12
FOUND, NOTHING = 1e-200, 1e-190
"""What a match adds at least, so that its document counts as found, and the score that stands for no gain at
all; both vanish in any sum."""
_LEAST = 1e-300  # of a sum that is not zero

TABLE = 32  # counts whose logarithm, or worth, is looked up
MOST_CODES = 1 << 16
_ONE = np.uint64(1)
_SPARE = 256  # candidates, at least, between two selections


class Postings(NamedTuple):
    """The inverted index."""

    offsets: np.ndarray
    documents: np.ndarray
    counts: np.ndarray
    codes: np.ndarray  # uint16: of each, length and count as a place in `parts`; or none
    ranks: np.ndarray  # the place of each document among the ids, as text


class Asked(NamedTuple):
    """Queries, prepared for a model."""

    model: int
    offsets: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    parameters: np.ndarray  # µ·P(term) of Dirichlet
    norms: np.ndarray  # float64 of each document; for BM25, the row of its length in `worth`, uint32
    worth: np.ndarray  # float64[lengths, 32]: by length, what so many occurrences are worth; first, K
    parts: np.ndarray  # float64: what a posting of each code is worth


class Scratch(NamedTuple):
    """Working memory of one thread."""

    sums: np.ndarray  # float64[window]
    scores: np.ndarray  # float64: candidates …
    bits: np.ndarray  # uint64: … the same memory …
    documents: np.ndarray  # int64: … and their documents
    other_bits: np.ndarray  # uint64: room to sort them
    other_documents: np.ndarray
    counts: np.ndarray
    places: np.ndarray  # int64[terms]: where each term's postings are being read
    table: np.ndarray  # float64[terms, 32]


def scratch(*, documents: int, depth: int, terms: int) -> Scratch:
    """Working memory for queries of at most so many terms."""
    window = -(-min(WINDOW, documents) // 64) * 64
    room = 2 * depth + _SPARE + window + 1  # of what is kept between two selections, and a window
    scores = np.zeros(room, np.float64)
    return Scratch(
        sums=np.zeros(window, np.float64),
        scores=scores,
        bits=scores.view(np.uint64),
        documents=np.zeros(room, np.int64),
        other_bits=np.empty(room, np.uint64),
        other_documents=np.empty(room, np.int64),
        counts=np.empty(SCRATCH, np.int64),
        places=np.empty(terms, np.int64),
        table=np.empty((terms, TABLE), np.float64),
    )


@inlined
def _beyond(model: Any, parameter: Any, count: Any) -> Any:
    """The part of a score that depends on the count alone, computed."""
    return np.log(1.0 + count / parameter) if model == DIRICHLET else 1.0 + np.log(float(count))


@inlined
def _tabulate(model: Any, parameter: Any, table: Any, row: Any) -> None:
    """The part of a score that depends on the count alone, for counts that are met again and again."""
    for count in range(1, TABLE):
        table[row, count] = _beyond(model, parameter, count)


@inlined
def _gain(
    way: Any, requested: Any, postings: Any, term: Any, table: Any, row: Any, at: Any, document: Any
) -> Any:
    """What a posting of a term adds to the score of its document."""
    weight = requested.weights[term]
    if way == _CODED:
        return weight * requested.parts[postings.codes[at]]
    count = np.uint64(postings.counts[at])
    if way == BM25:
        length = np.uint64(requested.norms[document])
        part = (
            requested.worth[length, count] if count < TABLE else count / (count + requested.worth[length, 0])
        )
        return max(weight * part, FOUND)
    part = table[row, count] if count < TABLE else _beyond(way, requested.parameters[term], count)
    if way == DIRICHLET:
        return max(weight * (part + requested.norms[document]), FOUND)
    return max(weight * part * requested.norms[document], FOUND)


@inlined
def _add(
    way: Any, requested: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, scratch: Any
) -> Any:
    """Add a term's postings up to document `limit` to the sums; how many there are."""
    documents, sums, table = postings.documents, scratch.sums, scratch.table
    # Unsigned: else each place would be compared with 0, as Python counts from the end below it.
    first, last = np.uint64(scratch.places[row]), np.uint64(postings.offsets[requested.terms[term] + 1])
    at, start, inside = first, np.uint64(base), np.uint64(limit - base)
    while at + _ONE < last:  # two at a time: the processor waits less for the end of the loop
        one, two = np.uint64(documents[at]), np.uint64(documents[at + _ONE])
        if (one - start) | (two - start) >= inside:
            break
        gain = _gain(way, requested, postings, term, table, row, at, one)
        more = _gain(way, requested, postings, term, table, row, at + _ONE, two)
        sums[one - start] += gain
        sums[two - start] += more
        at += _ONE + _ONE
    while at < last:
        document = np.uint64(documents[at])
        if document - start >= inside:  # behind, or before in a damaged file
            break
        sums[document - start] += _gain(way, requested, postings, term, table, row, at, document)
        at += _ONE
    scratch.places[row] = np.int64(at)
    return np.int64(at - first)


@inlined
def _accumulate(
    requested: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, scratch: Any
) -> Any:
    """`_add`, compiled for each way of scoring by itself."""
    if len(postings.codes):
        return _add(_CODED, requested, postings, term, row, base, limit, scratch)
    if requested.model == BM25:
        return _add(BM25, requested, postings, term, row, base, limit, scratch)
    if requested.model == DIRICHLET:
        return _add(DIRICHLET, requested, postings, term, row, base, limit, scratch)
    return _add(TFIDF, requested, postings, term, row, base, limit, scratch)


_EIGHT = ir.VectorType(ir.DoubleType(), 8)


def _good(builder: Any, address: Any, least: Any, number: int) -> Any:
    """Which of the eight numbers `number` × 8 behind an address are not below `least`."""
    place, none = builder.inttoptr(address, _EIGHT.as_pointer()), ir.Constant(_EIGHT, ir.Undefined)
    first = builder.insert_element(none, least, ir.Constant(ir.IntType(32), 0))
    every = builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))
    values = builder.load(builder.gep(place, [ir.Constant(ir.IntType(32), number)]), align=8)
    return builder.fcmp_ordered(">=", values, every)


@intrinsic
def _any_at_least(typing: Any, address: Any, least: Any) -> Any:
    """Is one of the 64 numbers at an address not below `least`?"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, least = args
        result = _good(builder, address, least, 0)
        for number in range(1, 8):
            result = builder.or_(result, _good(builder, address, least, number))
        return builder.icmp_unsigned(
            "!=", builder.bitcast(result, ir.IntType(8)), ir.Constant(ir.IntType(8), 0)
        )

    return types.boolean(types.int64, types.float64), generate


@intrinsic
def _at_least(typing: Any, address: Any, least: Any) -> Any:
    """Which of the eight numbers at an address are not below `least`: bit i for the i-th."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, least = args
        good = builder.bitcast(_good(builder, address, least, 0), ir.IntType(8))
        return builder.zext(good, ir.IntType(64))

    return types.int64(types.int64, types.float64), generate


@intrinsic
def _lowest_bit(typing: Any, bits: Any) -> Any:
    """The position of the lowest set bit."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def _clear(typing: Any, address: Any) -> Any:
    """Set 64 numbers at an address to zero."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _EIGHT.as_pointer())
        for i in range(8):
            builder.store(
                ir.Constant(_EIGHT, [0.0] * 8), builder.gep(place, [ir.Constant(ir.IntType(32), i)]), align=8
            )
        return context.get_dummy_value()

    return types.void(types.int64), generate


@inlined
def _gather(scratch: Any, base: Any, width: Any, least: Any, kept: Any) -> Any:
    """Make candidates of the sums that are at least this, and clear them all; how many there are then."""
    sums, scores, documents = scratch.sums, scratch.scores, scratch.documents
    for first in range(0, width, 64):
        address = sums.ctypes.data + 8 * first
        if _any_at_least(address, least):  # type: ignore[call-arg, unused-ignore]
            for eight in range(0, 64, 8):
                result = _at_least(address + 8 * eight, least)  # type: ignore[call-arg, unused-ignore]
                while result != 0:
                    place = first + eight + _lowest_bit(result)
                    scores[kept], documents[kept] = max(sums[place], NOTHING), base + place
                    kept += 1
                    result &= result - 1
        _clear(address)
    return kept


@inlined
def _rank(requested: Any, postings: Any, query: Any, depth: Any, scratch: Any) -> Any:
    """The best documents of a query, into scratch.scores and scratch.documents; how many there are."""
    scores, documents, places = scratch.scores, scratch.documents, scratch.places
    total, begin = len(postings.ranks), requested.offsets[query]
    size = requested.offsets[query + 1] - begin
    for i in range(size):
        places[i] = postings.offsets[requested.terms[begin + i]]
        if requested.model != BM25:
            _tabulate(requested.model, requested.parameters[begin + i], scratch.table, i)
    room = 2 * depth + _SPARE  # a threshold that is often renewed leaves more out
    kept, threshold = np.int64(0), _LEAST
    for base in range(0, total, len(scratch.sums)):
        limit = min(base + len(scratch.sums), total)
        added = np.int64(0)
        for i in range(size):
            added += _accumulate(requested, postings, begin + i, i, base, limit, scratch)
        if added == 0:
            continue
        kept = _gather(scratch, base, limit - base, threshold * (1.0 - CLOSE), kept)
        if kept > room:
            kept, threshold = narrow(scores, documents, kept, depth, scratch.counts)
            if 2 * kept > depth + room:  # many are about equal
                threshold = select(postings.ranks, scores, documents, kept, depth)
                kept = np.int64(depth)
    if kept > depth:
        select(postings.ranks, scores, documents, kept, depth)
        kept = np.int64(depth)
    sort(
        postings.ranks, scores, scratch.bits, documents, kept,
        scratch.other_bits, scratch.other_documents, scratch.counts,
    )  # fmt: skip
    return kept


@compiled
def retrieve_rows(
    requested: Any, postings: Any, scratch: Any, depth: Any, first: Any, last: Any,
    found: Any, documents: Any, scores: Any,
) -> None:  # fmt: skip
    """The best documents of the queries first:last, one query behind the other; found[query] of each."""
    at = np.int64(0)
    for query in range(first, last):
        kept = _rank(requested, postings, query, depth, scratch)
        found[query] = kept
        for i in range(kept):
            documents[at + i] = scratch.documents[i]
            scores[at + i] = scratch.scores[i] if scratch.scores[i] > NOTHING else 0.0
        at += kept


@inlined
def _gain_of(requested: Any, postings: Any, term: Any, table: Any, at: Any, document: Any) -> Any:
    """`_gain`, compiled for each model by itself."""
    if requested.model == BM25:
        return _gain(BM25, requested, postings, term, table, 0, at, document)
    _tabulate(requested.model, requested.parameters[term], table, 0)
    if requested.model == DIRICHLET:
        return _gain(DIRICHLET, requested, postings, term, table, 0, at, document)
    return _gain(TFIDF, requested, postings, term, table, 0, at, document)


@compiled
def score_pairs(requested: Any, postings: Any, queries: Any, documents: Any, table: Any, scores: Any) -> None:
    """The score of each pair of a query and a document, by looking the document up in the query's postings.

    Terms are added in the order in which `retrieve_rows` adds them.
    """
    for pair in range(len(queries)):
        document, total = documents[pair], 0.0
        for term in range(requested.offsets[queries[pair]], requested.offsets[queries[pair] + 1]):
            low, last = postings.offsets[requested.terms[term]], postings.offsets[requested.terms[term] + 1]
            high = last
            while low < high:
                middle = (low + high) >> 1
                if postings.documents[middle] < document:
                    low = middle + 1
                else:
                    high = middle
            if low < last and postings.documents[low] == document:
                total += _gain_of(requested, postings, term, table, low, document)
        scores[pair] = total if total > NOTHING else 0.0


@njit(nogil=True, cache=True)
def encode(documents: Any, counts: Any, rows: Any) -> Any:
    """Of each posting, its place in a table that has `TABLE` places for each length, one for each count.

    That is the first, of no count, if the count is too high for the table.
    """
    codes = np.zeros(len(documents), np.uint16)
    for at in range(len(documents)):
        if documents[at] < len(rows):  # else the file is damaged
            count = counts[at] if counts[at] < TABLE else 0
            codes[at] = TABLE * rows[documents[at]] + count
    return codes


@njit(nogil=True, cache=True)
def norms_of_documents(offsets: Any, terms: Any, counts: Any, idf: Any) -> Any:
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
