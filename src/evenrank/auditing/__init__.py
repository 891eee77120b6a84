"""One audit: runs × measures × tests, and everything behind the numbers.

============= =======================================================================
running.py    `audit`: inputs in, an `Audit` out; which measures the inputs allow
comparing.py  each run against the baseline: paired tests, effect sizes, Holm's correction; curves;
              whether enough female and male queries are there to be compared
passages.py   the queries and passages that contribute most, gendered words marked; so too any list
verdict.py    the findings in plain words
certainty.py  is a lean small enough, and which lean could have been found; `plan`
black_box.py  `compare_variants`: engines audited without documents, by variants of queries
gate.py       bounds that must not be exceeded, for continuous integration
selection.py  how often documents of each group reach the top ranks; impact ratios
profiles.py   what an audit for others states, and what is missing
rules.py      the profiles, clause by clause: which text asks for what
datasheet.py  what an audit rests on, in words: data, methods, limits, what is left
bundle.py     an audit as one archive that others can check; signatures
result.py     `Audit`: the result, and what it can be turned into
============= =======================================================================
"""

from evenrank.auditing.result import Audit
from evenrank.auditing.running import audit

__all__ = ["Audit", "audit"]
