"""How sure can one be? Intervals, paired and unpaired comparisons, corrections for many tests.

The unit is the query: values come one per query, and every interval and test speaks about the
queries one might have drawn instead. A comparison never is a bare p-value: it carries the
difference, its interval and an effect size. What cannot be known is ``None``, never NaN.

The order of the values never changes a result, and neither does the side one looks from:
comparing b with a gives the same p as a with b, and everything signed turns its sign.
"""

from evenrank.stats.equivalence import (
    Equivalence,
    detectable,
    equivalence,
    power_of,
    queries_for,
    queries_for_equivalence,
)
from evenrank.stats.intervals import Interval, bootstrap, mean_interval, quantiles
from evenrank.stats.sequences import Change, change, first_alarms, paired_changes, sequence
from evenrank.stats.tests import Comparison, benjamini_hochberg, holm, paired, permutation, rank_sum, welch

__all__ = [
    "Change",
    "Comparison",
    "Equivalence",
    "Interval",
    "benjamini_hochberg",
    "bootstrap",
    "change",
    "detectable",
    "equivalence",
    "first_alarms",
    "holm",
    "mean_interval",
    "paired",
    "paired_changes",
    "permutation",
    "power_of",
    "quantiles",
    "queries_for",
    "queries_for_equivalence",
    "rank_sum",
    "sequence",
    "welch",
]
