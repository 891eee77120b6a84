"""The kernel of lexical search: all documents that have a query's terms, scored exactly, the best kept.

Term at a time within windows of documents: the sums of a window stay in the cache while the postings of all
terms that fall into it are added up, always in the same order, so that equal documents get equal scores. Once
`depth` documents are known, the terms that together cannot lift a document among them are looked up only for
documents that have one of the others (MaxScore of Turtle & Flood 1995, by windows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from evenrank.arithmetic import log_of
from evenrank.text.codepoints import compiled

BM25, DIRICHLET, TFIDF = range(3)

WINDOW = 1 << 12
FOUND, NOTHING = 1e-200, 1e-190
"""What a match adds at least, so that its document counts as found, and the score that stands for no gain at
all; both vanish in any sum."""

TABLE = 32  # counts whose logarithm is looked up
_SEARCHES = 24  # postings that are read in the time one is searched for
_log = compiled(log_of)
_ROUNDING = 1 + 1e-12  # bounds must not be below what they bound, whatever is rounded


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
    norms: np.ndarray  # float64 of each document; for BM25, the row of its length in `worth`, uint32
    worth: np.ndarray  # float64[lengths, 32]: by length, what so many occurrences are worth; first, K
    bounds: np.ndarray  # what each term adds at most; those of a query must fall


class Scratch(NamedTuple):
    """Working memory of one thread."""

    sums: np.ndarray  # float64[window]
    touched: np.ndarray  # int64[window + 1]
    scores: np.ndarray  # float64: candidates …
    bits: np.ndarray  # uint64: … the same memory …
    documents: np.ndarray  # int64: … and their documents
    other_bits: np.ndarray  # uint64: room to sort them
    other_documents: np.ndarray
    counts: np.ndarray
    places: np.ndarray  # int64[terms]: where each term's postings are being read
    table: np.ndarray  # float64[terms, 32]
    rest: np.ndarray  # float64[terms + 1]: what a term and those behind it add at most


def scratch(*, documents: int, depth: int, terms: int) -> Scratch:
    """Working memory for queries of at most so many terms."""
    window = min(WINDOW, documents)
    room = 2 * depth + 512 + window + 1  # of what is kept between two selections, and a window
    scores = np.zeros(room, np.float64)
    return Scratch(
        sums=np.zeros(window, np.float64),
        touched=np.empty(window + 1, np.int64),
        scores=scores,
        bits=scores.view(np.uint64),
        documents=np.zeros(room, np.int64),
        other_bits=np.empty(room, np.uint64),
        other_documents=np.empty(room, np.int64),
        counts=np.empty(SCRATCH, np.int64),
        places=np.empty(terms, np.int64),
        table=np.empty((terms, TABLE), np.float64),
        rest=np.empty(terms + 1, np.float64),
    )


@compiled
def _beyond(model: Any, parameter: Any, count: Any) -> Any:
    """The part of a score that depends on the count alone, computed."""
    return _log(1.0 + count / parameter) if model == DIRICHLET else 1.0 + _log(float(count))


@compiled
def _tabulate(model: Any, parameter: Any, table: Any, row: Any) -> None:
    """The part of a score that depends on the count alone, for counts that are met again and again."""
    for count in range(1, TABLE):
        table[row, count] = _beyond(model, parameter, count)


@compiled
def _gain(asked: Any, term: Any, table: Any, row: Any, count: Any, document: Any) -> Any:
    """What a term adds to the score of a document that has it `count` times."""
    weight = asked.weights[term]
    if asked.model == BM25:
        length = np.int64(asked.norms[document])
        part = asked.worth[length, count] if count < TABLE else count / (count + asked.worth[length, 0])
        return max(weight * part, FOUND)
    part = table[row, count] if count < TABLE else _beyond(asked.model, asked.parameters[term], count)
    if asked.model == DIRICHLET:
        return max(weight * (part + asked.norms[document]), FOUND)
    return max(weight * part * asked.norms[document], FOUND)


@compiled
def _accumulate(asked: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, scratch: Any) -> None:
    """Add a term's postings up to document `limit` to the sums."""
    documents, counts, sums = postings.documents, postings.counts, scratch.sums
    at, end = scratch.places[row], postings.offsets[asked.terms[term] + 1]
    while at < end:
        document = np.int64(documents[at])
        if np.uint64(document - base) >= np.uint64(limit - base):  # behind, or before in a damaged file
            break
        count = np.int64(counts[at])
        sums[document - base] += _gain(asked, term, scratch.table, row, count, document)
        at += 1
    scratch.places[row] = at


@compiled
def _accumulate_few(
    asked: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, scratch: Any, touched: Any
) -> Any:
    """The same, and note the documents, so that the others need not be looked at; how many are noted."""
    documents, counts, sums = postings.documents, postings.counts, scratch.sums
    at, end = scratch.places[row], postings.offsets[asked.terms[term] + 1]
    while at < end:
        document = np.int64(documents[at])
        if np.uint64(document - base) >= np.uint64(limit - base):  # behind, or before in a damaged file
            break
        count, before = np.int64(counts[at]), sums[document - base]
        gain = _gain(asked, term, scratch.table, row, count, document)
        sums[document - base] = before + gain
        scratch.touched[touched] = document - base
        touched += np.int64(before == 0.0)  # no branch to be foretold wrongly
        at += 1
    scratch.places[row] = at
    return touched


@compiled
def _seek(documents: Any, at: Any, end: Any, target: Any) -> Any:
    """The first of the places at:end whose document is not before the target."""
    if at >= end or np.int64(documents[at]) >= target:
        return at
    step = np.int64(1)
    while at + step < end and np.int64(documents[at + step]) < target:
        at += step
        step *= 2
    low, high = at + 1, min(at + step, end)
    while low < high:
        middle = (low + high) // 2
        if np.int64(documents[middle]) < target:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _complete(
    asked: Any, postings: Any, term: Any, row: Any, base: Any, limit: Any, scratch: Any, first: Any, last: Any
) -> None:
    """Add a term to the candidates first:last, which lie in base:limit."""
    documents, counts, sums = postings.documents, postings.counts, scratch.sums
    end = postings.offsets[asked.terms[term] + 1]
    low = _seek(documents, scratch.places[row], end, base)
    high = _seek(documents, low, end, limit)
    scratch.places[row] = high
    if high - low > _SEARCHES * (last - first):
        for i in range(first, last):
            document = scratch.documents[i]
            at = _seek(documents, low, high, document)
            if at < high and np.int64(documents[at]) == document:
                gain = _gain(asked, term, scratch.table, row, np.int64(counts[at]), document)
                scratch.scores[i] += gain
        return
    for i in range(first, last):
        sums[scratch.documents[i] - base] = scratch.scores[i]
    for at in range(low, high):
        document = np.int64(documents[at])
        if base <= document < limit and sums[document - base] > 0.0:
            count = np.int64(counts[at])
            sums[document - base] += _gain(asked, term, scratch.table, row, count, document)
    for i in range(first, last):
        scratch.scores[i] = sums[scratch.documents[i] - base]
        sums[scratch.documents[i] - base] = 0.0


@compiled
def _prune(scratch: Any, first: Any, last: Any, least: Any) -> Any:
    """Keep those of the candidates first:last that have at least this score; where they end."""
    kept = first
    for i in range(first, last):
        score, document = scratch.scores[i], scratch.documents[i]
        scratch.scores[kept], scratch.documents[kept] = score, document
        kept += np.int64(score >= least)
    return kept


@compiled
def _window(
    asked: Any, postings: Any, begin: Any, size: Any, essential: Any, base: Any, limit: Any,
    scratch: Any, threshold: Any, kept: Any,
) -> Any:  # fmt: skip
    """Candidates of a window that have one of the first `essential` terms; how many there are then."""
    found, first = np.int64(0), kept
    for i in range(essential):
        found = _accumulate_few(asked, postings, begin + i, i, base, limit, scratch, found)
    for i in range(found):
        place = scratch.touched[i]
        score = max(scratch.sums[place], NOTHING)
        scratch.sums[place] = 0.0
        scratch.scores[kept], scratch.documents[kept] = score, base + place
        kept += np.int64(score + scratch.rest[essential] >= threshold)
    for i in range(essential, size):
        if kept == first:
            break
        _complete(asked, postings, begin + i, i, base, limit, scratch, first, kept)
        kept = _prune(scratch, first, kept, threshold - scratch.rest[i + 1])
    return kept


@compiled
def _take(scratch: Any, first: Any, last: Any, base: Any, threshold: Any, kept: Any) -> Any:
    """Make candidates of the sums first:last that are good enough; how many there are then."""
    for place in range(first, last):
        score = scratch.sums[place]
        if score > 0.0 and score >= threshold:
            scratch.scores[kept], scratch.documents[kept] = max(score, NOTHING), base + place
            kept += 1
    return kept


@compiled
def _rank(asked: Any, postings: Any, query: Any, depth: Any, scratch: Any) -> Any:
    """The best documents of a query, into scratch.scores and scratch.documents; how many there are."""
    sums, touched, places = scratch.sums, scratch.touched, scratch.places
    scores, documents = scratch.scores, scratch.documents
    total, begin = len(postings.ranks), asked.offsets[query]
    size = asked.offsets[query + 1] - begin
    most = np.int64(0)
    for i in range(size):
        term = asked.terms[begin + i]
        places[i] = postings.offsets[term]
        most += postings.offsets[term + 1] - places[i]
        if asked.model != BM25:
            _tabulate(asked.model, asked.parameters[begin + i], scratch.table, i)
    rest = scratch.rest
    rest[size] = 0.0
    for i in range(size - 1, -1, -1):
        rest[i] = (rest[i + 1] + asked.bounds[begin + i]) * _ROUNDING
    few = 4 * most < total
    essential = size
    room = depth + depth // 4 + 256  # a threshold that is often renewed lets more be left out
    kept, threshold = np.int64(0), 0.0
    base: Any = np.int64(0)
    while base < total:
        limit: Any = min(base + len(sums), total)
        while essential > 0 and rest[essential - 1] < threshold:
            essential -= 1
        if essential == 0:
            break  # no document can be better than those found
        if essential < size:
            kept = _window(asked, postings, begin, size, essential, base, limit, scratch, threshold, kept)
            if kept > room:
                threshold = select(postings.ranks, scores, documents, kept, depth)
                kept = np.int64(depth)
            base = limit
            continue
        found = np.int64(0)
        for i in range(size):
            if few:
                found = _accumulate_few(asked, postings, begin + i, i, base, limit, scratch, found)
            else:
                _accumulate(asked, postings, begin + i, i, base, limit, scratch)
        if few:
            for i in range(found):
                place = touched[i]
                score = max(sums[place], NOTHING)
                sums[place] = 0.0
                scores[kept], documents[kept] = score, base + place
                kept += np.int64(score >= threshold)
        else:
            width = limit - base
            for four in range(0, width - 3, 4):
                best = max(max(sums[four], sums[four + 1]), max(sums[four + 2], sums[four + 3]))
                if best > 0.0 and best >= threshold:
                    kept = _take(scratch, four, four + 4, base, threshold, kept)
            kept = _take(scratch, width - width % 4, width, base, threshold, kept)
            for place in range(width):
                sums[place] = 0.0
        if kept > room:
            threshold = select(postings.ranks, scores, documents, kept, depth)
            kept = np.int64(depth)
        base = limit
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
    asked: Any, postings: Any, scratch: Any, depth: Any, first: Any, last: Any,
    found: Any, documents: Any, scores: Any,
) -> None:  # fmt: skip
    """The best documents of the queries first:last, one query behind the other; found[query] of each."""
    at = np.int64(0)
    for query in range(first, last):
        kept = _rank(asked, postings, query, depth, scratch)
        found[query] = kept
        for i in range(kept):
            documents[at + i] = scratch.documents[i]
            scores[at + i] = scratch.scores[i] if scratch.scores[i] > NOTHING else 0.0
        at += kept


@njit(nogil=True, cache=True)
def norms_of_documents(offsets: Any, terms: Any, counts: Any, idf: Any) -> Any:
    """1 / the Euclidean length of each document's vector of (1 + ln tf)·idf; 0 for an empty one."""
    norms = np.zeros(len(offsets) - 1, np.float64)
    for row in range(len(norms)):
        total = 0.0
        for i in range(offsets[row], offsets[row + 1]):
            value = (1.0 + _log(float(counts[i]))) * idf[terms[i]]
            total += value * value
        if total > 0.0:
            norms[row] = 1.0 / np.sqrt(total)
    return norms


# The best of many scored documents: selection without sorting all, then the order of runs.
#
# Better is the higher score and, of equal scores, the greater id as text: the rule of trec_eval. `ranks` has
# the place of each document among the ids; it is looked at only where scores are equal.

_SMALL = 24
_DIGITS, _VALUES = 11, 1 << 11
SCRATCH = 3 * _VALUES
"""Places that :func:`sort` needs for counting."""


@compiled
def _swap(scores: Any, documents: Any, i: Any, j: Any) -> None:
    scores[i], scores[j] = scores[j], scores[i]
    documents[i], documents[j] = documents[j], documents[i]


@compiled
def _better(ranks: Any, score: Any, document: Any, other_score: Any, other: Any) -> Any:
    if score != other_score:
        return score > other_score
    return ranks[document] > ranks[other]


@compiled
def _split(ranks: Any, scores: Any, documents: Any, first: Any, last: Any) -> Any:
    """Hoare's partition of first:last (the end included) around a median of three; where the parts meet."""
    middle = (first + last) // 2
    if _better(ranks, scores[middle], documents[middle], scores[first], documents[first]):
        _swap(scores, documents, first, middle)
    if _better(ranks, scores[last], documents[last], scores[first], documents[first]):
        _swap(scores, documents, first, last)
    if _better(ranks, scores[last], documents[last], scores[middle], documents[middle]):
        _swap(scores, documents, middle, last)
    score, document = scores[middle], documents[middle]
    i, j = first - 1, last + 1
    while True:
        i += 1
        while _better(ranks, scores[i], documents[i], score, document):
            i += 1
        j -= 1
        while _better(ranks, score, document, scores[j], documents[j]):
            j -= 1
        if i >= j:
            return j
        _swap(scores, documents, i, j)


@compiled
def select(ranks: Any, scores: Any, documents: Any, count: Any, k: Any) -> Any:
    """Bring the k best of the first `count` to the front, the last of them to place k − 1; its score."""
    first, last = np.int64(0), np.int64(count - 1)
    while first < last:
        meet = _split(ranks, scores, documents, first, last)
        if k - 1 <= meet:
            last = meet
        else:
            first = meet + 1
    return scores[k - 1]


@compiled
def _quicksort(ranks: Any, scores: Any, documents: Any, begin: Any, end: Any, stack: Any) -> None:
    """Sort begin:end (the end not included)."""
    stack[0], stack[1] = begin, end - 1
    depth = 1
    while depth:
        depth -= 1
        first, last = stack[2 * depth], stack[2 * depth + 1]
        while last - first > _SMALL:
            meet = _split(ranks, scores, documents, first, last)
            if meet - first < last - meet:  # the larger part waits: the stack stays small
                stack[2 * depth], stack[2 * depth + 1] = meet + 1, last
                last = meet
            else:
                stack[2 * depth], stack[2 * depth + 1] = first, meet
                first = meet + 1
            depth += 1
        for i in range(first + 1, last + 1):
            score, document, j = scores[i], documents[i], i - 1
            while j >= first and _better(ranks, score, document, scores[j], documents[j]):
                scores[j + 1], documents[j + 1] = scores[j], documents[j]
                j -= 1
            scores[j + 1], documents[j + 1] = score, document


@compiled
def sort(
    ranks: Any, scores: Any, bits: Any, documents: Any, count: Any,
    other_bits: Any, other_documents: Any, counts: Any,
) -> None:  # fmt: skip
    """Sort the first `count`, the best first. Scores must not be negative; `bits` are the same, as uint64.

    By radix on the upper half of the scores' bits, which grow with the scores; then what is equal in these
    is sorted by comparison.
    """
    if count <= 3 * _SMALL:
        _quicksort(ranks, scores, documents, 0, count, counts)
        return
    for i in range(len(counts)):
        counts[i] = 0
    for i in range(count):
        high = ~(bits[i] >> np.uint64(31))
        counts[high & np.uint64(_VALUES - 1)] += 1
        counts[_VALUES + np.int64((high >> np.uint64(_DIGITS)) & np.uint64(_VALUES - 1))] += 1
        counts[2 * _VALUES + np.int64((high >> np.uint64(2 * _DIGITS)) & np.uint64(_VALUES - 1))] += 1
    for digit in range(3):
        total: Any = 0
        for at in range(digit * _VALUES, (digit + 1) * _VALUES):
            counts[at], total = total, total + counts[at]
    for digit in range(2):
        from_bits, from_documents = (bits, documents) if digit == 0 else (other_bits, other_documents)
        to_bits, to_documents = (other_bits, other_documents) if digit == 0 else (bits, documents)
        for i in range(count):
            high = ~(from_bits[i] >> np.uint64(31)) >> np.uint64(digit * _DIGITS)
            value = digit * _VALUES + np.int64(high & np.uint64(_VALUES - 1))
            place = counts[value]
            counts[value] = place + 1
            to_bits[place], to_documents[place] = from_bits[i], from_documents[i]
    for i in range(count):
        high = ~(bits[i] >> np.uint64(31)) >> np.uint64(2 * _DIGITS)
        value = 2 * _VALUES + np.int64(high & np.uint64(_VALUES - 1))
        place = counts[value]
        counts[value] = place + 1
        other_bits[place], other_documents[place] = bits[i], documents[i]
    for i in range(count):
        bits[i], documents[i] = other_bits[i], other_documents[i]
    first: Any = np.int64(0)
    while first < count:
        last = first + 1
        while last < count and bits[last] >> np.uint64(31) == bits[first] >> np.uint64(31):
            last += 1
        if last - first > 1:
            _quicksort(ranks, scores, documents, first, last, counts)
        first = last
