"""The k best of many scored documents, exactly: selection without sorting all, then the order of runs.

Better is the higher score and, of scores equal to nine significant digits, the greater id as text: the rule
of trec_eval. `ranks` has the place of each document among the ids; only ties look at it.
"""

from __future__ import annotations

from typing import Any

from evenrank.stats.rounding import CLOSE, round_significant
from evenrank.text.hashing import compiled

_SMALL = 16

_rounded = compiled(round_significant)


@compiled
def differ(score: Any, other: Any) -> Any:
    """Are two scores different in their first nine significant digits?"""
    if score == other:
        return False
    return abs(score - other) > CLOSE * abs(score) or _rounded(score) != _rounded(other)


@compiled
def _better(ranks: Any, score: Any, document: Any, other_score: Any, other: Any) -> Any:
    if differ(score, other_score):
        return score > other_score
    return ranks[document] > ranks[other]


@compiled
def _swap(scores: Any, documents: Any, i: Any, j: Any) -> None:
    scores[i], scores[j] = scores[j], scores[i]
    documents[i], documents[j] = documents[j], documents[i]


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
    first, last = 0, count - 1
    while first < last:
        meet = _split(ranks, scores, documents, first, last)
        if k - 1 <= meet:
            last = meet
        else:
            first = meet + 1
    return scores[k - 1]


@compiled
def sort(ranks: Any, scores: Any, documents: Any, count: Any, stack: Any) -> None:
    """Sort the first `count`, the best first; equal scores get the same value, the largest of them.

    `stack` has room for 2 · log2(count) numbers.
    """
    stack[0], stack[1] = 0, count - 1
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
    first = 0
    for behind in range(1, count + 1):
        if behind == count or differ(scores[behind], scores[first]):
            highest = scores[first]
            for i in range(first, behind):
                highest = max(highest, scores[i])
            for i in range(first, behind):
                scores[i] = highest
            first = behind
