"""The kernel of lexical search: the best documents of a query, exactly, without scoring all that match.

Documents are taken window by window, so that their sums stay in the cache. Once enough have been found, a
query's terms fall into two groups (MaxScore; Turtle & Flood 1995): those that together could still not lift
a document into the list, and the others, the essential ones. Only the postings of the essential terms are
added up; the rest are looked up for the few documents that are still in the race.

Scores are sums of whole numbers, 2**51 of which make the highest score a query could give. So they do not
depend on the order of the terms: equal documents get equal scores, at any depth and in any window.
"""

from __future__ import annotations

from math import frexp, ldexp, log
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from evenrank.rankers.selection import SCRATCH, select, sort
from evenrank.words.codepoints import compiled

BM25, DIRICHLET, TFIDF = range(3)

WINDOW = 1 << 15
FIRST_WINDOW = 1 << 12
"""The first windows are smaller: the sooner there is a list, the less has to be added up."""

_TABLE = 32  # counts whose logarithm is looked up
_BITS = 51


class Postings(NamedTuple):
    """The inverted index."""

    offsets: np.ndarray
    documents: np.ndarray
    counts: np.ndarray
    ranks: np.ndarray  # the place of each document among the ids, as text


class Asked(NamedTuple):
    """Queries, prepared for a model."""

    model: int
    offsets: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    parameters: np.ndarray  # µ·P(term) of Dirichlet
    norms: np.ndarray  # of the documents
    bounds: np.ndarray  # by term, for a weight of 1, the most that a document gains; NaN: not known yet


class Scratch(NamedTuple):
    """Working memory of one thread."""

    sums: np.ndarray  # int64[window]: twice the score, and 1 for a document that was found
    touched: np.ndarray  # int64[window + 1]: the documents that were
    scores: np.ndarray  # int64: candidates for the list …
    documents: np.ndarray  # int64: … and which they are
    other_scores: np.ndarray  # room to sort them
    other_documents: np.ndarray
    counts: np.ndarray
    places: np.ndarray  # int64[terms]: where each term's postings are being read
    order: np.ndarray  # int64[terms]: the terms, the one that can add least first
    most: np.ndarray  # int64[terms]: what they and all before can add
    table: np.ndarray  # float64[terms, 32]


def scratch(*, documents: int, depth: int, terms: int) -> Scratch:
    """Working memory for queries of at most so many terms."""
    window = min(WINDOW, documents)
    room = 2 * depth + 512 + window + 1
    return Scratch(
        sums=np.zeros(window, np.int64),
        touched=np.empty(window + 1, np.int64),
        scores=np.zeros(room, np.int64),
        documents=np.zeros(room, np.int64),
        other_scores=np.empty(room, np.int64),
        other_documents=np.empty(room, np.int64),
        counts=np.empty(SCRATCH, np.int64),
        places=np.empty(terms, np.int64),
        order=np.empty(terms, np.int64),
        most=np.empty(terms, np.int64),
        table=np.empty((terms, _TABLE), np.float64),
    )


@compiled
def _tabulate(model: Any, parameter: Any, table: Any, row: Any) -> None:
    """The part of a score that depends on the count alone."""
    for count in range(1, _TABLE):
        table[row, count] = log(1.0 + count / parameter) if model == DIRICHLET else 1.0 + log(float(count))


@compiled
def _gain(model: Any, parameter: Any, table: Any, row: Any, count: Any, norm: Any) -> Any:
    """What a term of weight 1 adds to the score of a document that has it `count` times."""
    if model == BM25:
        return count / (count + norm)
    if model == DIRICHLET:
        part = table[row, count] if count < _TABLE else log(1.0 + count / parameter)
        return max(part + norm, 0.0)
    part = table[row, count] if count < _TABLE else 1.0 + log(float(count))
    return part * norm


@compiled
def _bound(asked: Any, postings: Any, at: Any, row: Any, table: Any) -> Any:
    """The most that any document gains by a term; computed when the term is first met, and kept."""
    term = asked.terms[at]
    if np.isnan(asked.bounds[term]):
        most = 0.0
        for i in range(postings.offsets[term], postings.offsets[term + 1]):
            document = postings.documents[i]
            if document >= len(asked.norms):
                break  # a damaged file
            count = np.int64(postings.counts[i])
            gain = _gain(asked.model, asked.parameters[at], table, row, count, asked.norms[document])
            most = max(most, gain)
        asked.bounds[term] = most
    return asked.weights[at] * asked.bounds[term]


@compiled
def _prepare(asked: Any, postings: Any, begin: Any, size: Any, scratch: Any) -> Any:
    """Sort the terms by what they can add; returns the factor that makes scores whole numbers."""
    places, order, most, table = scratch.places, scratch.order, scratch.most, scratch.table
    total = 0.0
    for i in range(size):
        places[i] = postings.offsets[asked.terms[begin + i]]
        if asked.model != BM25:
            _tabulate(asked.model, asked.parameters[begin + i], table, i)
        bound = _bound(asked, postings, begin + i, i, table)
        total += bound
        j = i - 1
        while j >= 0 and asked.weights[begin + order[j]] * asked.bounds[asked.terms[begin + order[j]]] > bound:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = i
    scale = ldexp(1.0, _BITS - frexp(total)[1]) if total > 0.0 else 1.0
    below = np.int64(0)
    for i in range(size):
        at = begin + order[i]
        bound = asked.weights[at] * asked.bounds[asked.terms[at]]
        below += np.int64(bound * scale * (1.0 + 1e-9)) + 2
        most[i] = below
    return scale


@compiled
def _accumulate(
    asked: Any, postings: Any, at: Any, row: Any, weight: Any, base: Any, limit: Any, scratch: Any, touched: Any
) -> Any:
    """Add a term's postings up to document `limit` to the sums and note the documents; how many are noted."""
    documents, counts, norms, sums = postings.documents, postings.counts, asked.norms, scratch.sums
    model, parameter = asked.model, asked.parameters[at]
    place, end = scratch.places[row], postings.offsets[asked.terms[at] + 1]
    while place < end and np.int64(documents[place]) < base:  # where it was not essential until now
        place += 1
    while place < end:
        document = np.int64(documents[place])
        if np.uint64(document - base) >= np.uint64(limit - base):  # behind, or before in a damaged file
            break
        gain = _gain(model, parameter, scratch.table, row, np.int64(counts[place]), norms[document])
        before = sums[document - base]
        sums[document - base] = (before + 2 * np.int64(weight * gain)) | 1
        scratch.touched[touched] = document - base
        touched += np.int64(before == 0)  # no branch to be foretold wrongly
        place += 1
    scratch.places[row] = place
    return touched


@compiled
def _seek(documents: Any, place: Any, end: Any, wanted: Any) -> Any:
    """The first posting from a place on whose document is not before the wanted one, by strides that grow."""
    if place >= end or np.int64(documents[place]) >= wanted:
        return place
    stride = np.int64(1)
    while place + stride < end and np.int64(documents[place + stride]) < wanted:
        place += stride
        stride *= 2
    low, high = place + 1, min(place + stride, end)
    while low < high:
        middle = (low + high) // 2
        if np.int64(documents[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _look_up(
    asked: Any, postings: Any, at: Any, row: Any, weight: Any, first: Any, last: Any, scratch: Any
) -> None:
    """Add a term to the candidates first:last, which are in the order of their documents."""
    documents, end = postings.documents, postings.offsets[asked.terms[at] + 1]
    model, parameter = asked.model, asked.parameters[at]
    place = scratch.places[row]
    for i in range(first, last):
        document = scratch.documents[i]
        place = _seek(documents, place, end, document)
        if place < end and np.int64(documents[place]) == document:
            count, norm = np.int64(postings.counts[place]), asked.norms[document]
            gain = _gain(model, parameter, scratch.table, row, count, norm)
            scratch.scores[i] += np.int64(weight * gain)
    scratch.places[row] = place


@compiled
def _in_order(documents: Any, scores: Any, first: Any, last: Any) -> None:
    """Sort the few candidates first:last by document (Shell's sort)."""
    gap = np.int64(1)
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            document, score, j = documents[i], scores[i], i
            while j >= first + gap and documents[j - gap] > document:
                documents[j], scores[j] = documents[j - gap], scores[j - gap]
                j -= gap
            documents[j], scores[j] = document, score
        gap //= 3


@compiled
def _collect(few: Any, found: Any, base: Any, limit: Any, needed: Any, kept: Any, scratch: Any) -> Any:
    """Clear the sums; documents that reach what is needed become candidates. How many there are then."""
    sums, touched, scores, documents = scratch.sums, scratch.touched, scratch.scores, scratch.documents
    if few:
        for i in range(found):
            place = touched[i]
            score = sums[place] >> 1
            sums[place] = 0
            scores[kept], documents[kept] = score, base + place
            kept += np.int64(score >= needed)
    else:
        least = max(2 * needed, 1)
        for place in range(limit - base):
            if sums[place] >= least:
                scores[kept], documents[kept] = sums[place] >> 1, base + place
                kept += 1
            sums[place] = 0
    return kept


@compiled
def _rank(asked: Any, postings: Any, query: Any, depth: Any, scratch: Any) -> Any:
    """The best documents of a query, into scratch; how many, and the factor of their scores."""
    scores, documents, order, most = scratch.scores, scratch.documents, scratch.order, scratch.most
    total, begin = len(postings.ranks), asked.offsets[query]
    size = asked.offsets[query + 1] - begin
    scale = _prepare(asked, postings, begin, size, scratch)
    room = 2 * depth + 512
    kept, threshold, idle = np.int64(0), np.int64(0), np.int64(0)
    base: Any = np.int64(0)
    window: Any = min(FIRST_WINDOW, len(scratch.sums)) if total > 4 * FIRST_WINDOW else len(scratch.sums)
    while base < total:
        while idle < size and most[idle] < threshold:
            idle += 1
        if idle == size:
            break
        limit: Any = min(base + window, total)
        window = min(2 * window, len(scratch.sums))
        found = np.int64(0)
        for i in range(idle, size):
            at = begin + order[i]
            found = _accumulate(
                asked, postings, at, order[i], asked.weights[at] * scale, base, limit, scratch, found
            )
        # Looking at all sums brings the candidates in order, which looking terms up in needs.
        few = found < (512 if idle > 0 else (limit - base) // 4)
        first = kept
        rest = most[idle - 1] if idle > 0 else np.int64(0)
        kept = _collect(few, found, base, limit, threshold - rest, kept, scratch)
        if idle > 0 and kept > first:
            if few:
                _in_order(documents, scores, first, kept)
            for i in range(idle - 1, -1, -1):
                at = begin + order[i]
                _look_up(asked, postings, at, order[i], asked.weights[at] * scale, first, kept, scratch)
                rest = most[i - 1] if i > 0 else np.int64(0)
                behind = first
                for j in range(first, kept):
                    scores[behind], documents[behind] = scores[j], documents[j]
                    behind += np.int64(scores[j] + rest >= threshold)
                kept = behind
        if limit < total and (kept > room or (threshold == 0 and kept > depth)):
            threshold = select(postings.ranks, scores, documents, kept, depth)
            kept = np.int64(depth)
        base = limit
    if kept > depth:
        select(postings.ranks, scores, documents, kept, depth)
        kept = np.int64(depth)
    sort(
        postings.ranks, scores, documents, kept,
        scratch.other_scores, scratch.other_documents, scratch.counts,
    )  # fmt: skip
    return kept, scale


@compiled
def retrieve_rows(
    asked: Any, postings: Any, scratch: Any, depth: Any, first: Any, last: Any,
    found: Any, documents: Any, scores: Any,
) -> None:  # fmt: skip
    """The best documents of the queries first:last, one query behind the other; found[query] of each."""
    at = np.int64(0)
    for query in range(first, last):
        kept, scale = _rank(asked, postings, query, depth, scratch)
        found[query] = kept
        for i in range(kept):
            documents[at + i] = scratch.documents[i]
            scores[at + i] = scratch.scores[i] / scale
        at += kept


@njit(nogil=True, cache=True)
def norms_of_documents(offsets: Any, terms: Any, counts: Any, idf: Any) -> Any:
    """1 / the Euclidean length of each document's vector of (1 + ln tf)·idf; 0 for an empty one."""
    norms = np.zeros(len(offsets) - 1, np.float64)
    for row in range(len(norms)):
        total = 0.0
        for i in range(offsets[row], offsets[row + 1]):
            value = (1.0 + log(float(counts[i]))) * idf[terms[i]]
            total += value * value
        if total > 0.0:
            norms[row] = 1.0 / np.sqrt(total)
    return norms
