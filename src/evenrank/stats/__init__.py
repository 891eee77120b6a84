"""Intervals, paired and unpaired comparisons, equivalence, and the correction for many tests.

The unit is the query: values come one per query, and every interval and test speaks about the
queries one might have drawn instead. A comparison never is a bare p-value: it carries the
difference, its interval and an effect size. What cannot be known is ``None``, never NaN.

The order of the values never changes a result. Comparing b with a gives the same p as a with b, and
everything signed changes its sign.
"""

from evenrank.stats.equivalence import (
    Equivalence,
    detectable,
    equivalence,
    queries_for,
    queries_for_equivalence,
)
from evenrank.stats.intervals import Interval, bootstrap, mean_interval
from evenrank.stats.tests import Comparison, holm, paired, permutation, rank_sum, welch

__all__ = [
    "Comparison",
    "Equivalence",
    "Interval",
    "bootstrap",
    "detectable",
    "equivalence",
    "holm",
    "mean_interval",
    "paired",
    "permutation",
    "queries_for",
    "queries_for_equivalence",
    "rank_sum",
    "welch",
]
