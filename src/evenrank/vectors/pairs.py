"""The loops over (query, document) pairs, compiled. Importing this module loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def pair_means(query_bounds, query_stems, query_of, doc_of, doc_bounds, words, times, values, stem_of, stems):  # type: ignore[no-untyped-def]
    """Mean value of the words of each pair's document that share no stem with the pair's query.

    The stems of query q are query_stems[query_bounds[q]:query_bounds[q + 1]]; the words of document d,
    with how often each occurs, are words[doc_bounds[d]:doc_bounds[d + 1]]. NaN where no word is left.
    """
    means = np.empty(len(query_of), np.float64)
    marked = np.zeros(stems, np.bool_)
    current = -1
    for pair in range(len(query_of)):
        query = query_of[pair]
        if query != current:
            if current >= 0:
                for i in range(query_bounds[current], query_bounds[current + 1]):
                    marked[query_stems[i]] = False
            for i in range(query_bounds[query], query_bounds[query + 1]):
                marked[query_stems[i]] = True
            current = query
        total, count = 0.0, 0
        doc = doc_of[pair]
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            word = words[i]
            if not marked[stem_of[word]]:
                total += values[word] * times[i]
                count += times[i]
        means[pair] = total / count if count else np.nan
    return means


@njit(nogil=True, cache=True)
def pair_shares(  # type: ignore[no-untyped-def]
    query_bounds, query_stems, query_of, doc_of, doc_bounds, words, times, values, stem_of, stems, scale, centre
):
    """What each word adds to Σ scale · (mean − centre) over the pairs; arguments as for `pair_means`."""
    shares = np.zeros(len(values), np.float64)
    marked = np.zeros(stems, np.bool_)
    for pair in range(len(query_of)):
        query = query_of[pair]
        for i in range(query_bounds[query], query_bounds[query + 1]):
            marked[query_stems[i]] = True
        doc, count = doc_of[pair], 0
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            if not marked[stem_of[words[i]]]:
                count += times[i]
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            word = words[i]
            if not marked[stem_of[word]]:
                shares[word] += scale[pair] * (values[word] - centre) * times[i] / count
        for i in range(query_bounds[query], query_bounds[query + 1]):
            marked[query_stems[i]] = False
    return shares
