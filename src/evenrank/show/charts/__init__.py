"""Charts: one function each, from a frame to an Altair chart.

================== =====================================================================
values.py          values with intervals, runs as dots; bias by cut-off; the words that make it up
change.py          change from the baseline, query by query; ranks moved when gender is swapped
tradeoff.py        bias against utility, with the Pareto front; sweeps over feedback
query_gender.py    by the gender of the query: characteristics, closeness to its documents, gender of its
                   results with the perfect engine's line; what neutral queries resemble
representation.py  histogram of representation bias, and target against shown
stages.py          what each stage of a ranking adds; preference and content
theme.py           colours and type
================== =====================================================================
"""

from evenrank.show.charts.change import rank_shift, shift_data, waterfall, waterfall_data
from evenrank.show.charts.query_gender import association_histogram, process_bars, sampled, stereotype_scatter
from evenrank.show.charts.representation import representation_histogram, target_grid
from evenrank.show.charts.tradeoff import pareto, tradeoff_scatter
from evenrank.show.charts.values import bias_by_cutoff, intervals, word_bars

__all__ = [
    "association_histogram",
    "bias_by_cutoff",
    "intervals",
    "pareto",
    "process_bars",
    "rank_shift",
    "representation_histogram",
    "sampled",
    "shift_data",
    "stereotype_scatter",
    "target_grid",
    "tradeoff_scatter",
    "waterfall",
    "waterfall_data",
    "word_bars",
]
