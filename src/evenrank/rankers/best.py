"""The best of many scored documents: selection without sorting all, then the order of runs.

Better is the higher score and, of scores equal to nine significant digits, the greater id as text: the rule
of trec_eval. `ranks` has the place of each document among the ids; only ties look at it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.stats.rounding import CLOSE, round_significant
from evenrank.text.hashing import compiled

_SMALL = 24
_DIGITS, _VALUES = 11, 1 << 11
SCRATCH = 3 * _VALUES
"""Places that :func:`sort` needs for counting."""

_rounded = compiled(round_significant)


@compiled
def differ(score: Any, other: Any) -> Any:
    """Are two scores different in their first nine significant digits?"""
    if score == other:
        return False
    return abs(score - other) > CLOSE * abs(score) or _rounded(score) != _rounded(other)


@compiled
def _swap(scores: Any, documents: Any, i: Any, j: Any) -> None:
    scores[i], scores[j] = scores[j], scores[i]
    documents[i], documents[j] = documents[j], documents[i]


@compiled
def _better(ranks: Any, score: Any, document: Any, other_score: Any, other: Any) -> Any:
    if differ(score, other_score):
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
def narrow(scores: Any, documents: Any, count: Any, k: Any, counts: Any) -> Any:
    """Drop most of the first `count` that are not among the k best; how many stay, and the least score left.

    By the shares of a histogram, without a branch to be guessed wrong. All ties with the k-th stay, also
    those that are in the share below.
    """
    low = high = scores[0]
    for i in range(count):
        low, high = min(low, scores[i]), max(high, scores[i])
    if high - low <= 2 * _VALUES * CLOSE * high:
        return count, low
    scale = (_VALUES - 1) / (high - low)
    counts[:_VALUES] = 0
    for i in range(count):
        counts[np.int64((scores[i] - low) * scale)] += 1
    share, above = _VALUES - 1, counts[_VALUES - 1]
    while above < k:
        share -= 1
        above += counts[share]
    share -= 1
    kept, least = np.int64(0), high
    for i in range(count):
        score, document = scores[i], documents[i]
        good = np.int64((score - low) * scale) >= share
        scores[kept], documents[kept] = score, document
        kept += np.int64(good)
        least = min(least, score) if good else least
    return kept, least


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
    for i in range(1, count):  # scores that tie, but differ in the upper half of their bits
        j = i
        while (
            j > 0 and ranks[documents[j]] > ranks[documents[j - 1]] and not differ(scores[j], scores[j - 1])
        ):
            _swap(scores, documents, j, j - 1)
            j -= 1
