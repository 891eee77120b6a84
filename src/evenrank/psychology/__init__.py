"""Psychological characteristics of judged or retrieved text, and how they differ with the query's gender.

================ =======================================================================
comparing.py     `scores`: percent and count of every category in every document, or a ready table of them;
                 one characteristic, female against male queries: difference, tests, effect
judgments.py     `audit_judgments`: what the judged documents say
rankings.py      `audit_rankings`: what rankers return, and how one differs from another
================ =======================================================================
"""

from evenrank.psychology.comparing import Characteristic, scores
from evenrank.psychology.judgments import JudgmentsAudit, audit_judgments
from evenrank.psychology.rankings import RankingsAudit, audit_rankings

__all__ = [
    "Characteristic",
    "JudgmentsAudit",
    "RankingsAudit",
    "audit_judgments",
    "audit_rankings",
    "scores",
]
