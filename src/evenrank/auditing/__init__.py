"""One audit: runs × measures × tests, and everything behind the numbers.

============= =======================================================================
running.py    `audit`: inputs in, an `Audit` out
choosing.py   which measures the inputs allow
comparing.py  each run against the baseline: paired tests, effect sizes, Holm's correction
curves.py     bias by cut-off
passages.py   the queries and passages that contribute most, gendered words marked
reading.py    what each measure means, and which way is better
verdict.py    the findings in plain words
gate.py       conditions that must not hold, for continuous integration
grids.py      runs × measures as text, CSV and LaTeX
result.py     `Audit`: the result, and what it can be turned into
============= =======================================================================
"""

from evenrank.auditing.result import Audit
from evenrank.auditing.running import audit

__all__ = ["Audit", "audit"]
