"""GSR: do lists speak the gendered language that their queries suggest?

===========  ==========================================================================
measure.py   the measure `GSR`, and how it sees the inputs
slope.py     its arithmetic, on plain arrays
study.py     the lists and documents that all runs of one call share, and lines through their
             queries
results.py   `Reinforcement`: GSR of one run, its attribution, one run against another;
             the most gendered queries
===========  ==========================================================================
"""
