"""The compiled loop over pairs of a query and a document."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def pair_means(  # type: ignore[no-untyped-def]
    query_bounds, query_stems, query_of, doc_of, doc_bounds, words, times, sums, stems, all_stems
):
    """Mean value of the words of each pair's document that share no stem with the pair's query.

    The stems of query q are query_stems[query_bounds[q]:query_bounds[q + 1]]; the words of document d lie
    at doc_bounds[d]:doc_bounds[d + 1]: how often each occurs, its value times that, its stem. NaN where no
    word is left. Most documents share no word with a query that did not find them: the mean over all
    words is kept, and computed anew only where some are left out.
    """
    whole = np.empty(len(doc_bounds) - 1, np.float64)
    for doc in range(len(whole)):
        total, count = 0.0, 0
        for i in range(doc_bounds[doc], doc_bounds[doc + 1]):
            total += sums[i]
            count += times[i]
        whole[doc] = total / count if count else np.nan
    means = np.empty(len(query_of), np.float64)
    marked = np.zeros(all_stems, np.uint8)
    current = -1
    for pair in range(len(query_of)):
        query = query_of[pair]
        if query != current:
            if current >= 0:
                for i in range(query_bounds[current], query_bounds[current + 1]):
                    marked[query_stems[i]] = 0
            for i in range(query_bounds[query], query_bounds[query + 1]):
                marked[query_stems[i]] = 1
            current = query
        doc = doc_of[pair]
        first, last = doc_bounds[doc], doc_bounds[doc + 1]
        shared = np.uint8(0)
        for i in range(first, last):
            shared |= marked[stems[i]]
        if not shared:
            means[pair] = whole[doc]
            continue
        total, count = 0.0, 0
        for i in range(first, last):
            if not marked[stems[i]]:
                total += sums[i]
                count += times[i]
        means[pair] = total / count if count else np.nan
    return means
