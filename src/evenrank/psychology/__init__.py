"""Psychological characteristics of judged or retrieved text, and how they differ with the query's gender.

================ =======================================================================
comparing.py     `scores`: percent and count of every category in every document, or a ready table of them;
                 one characteristic, female against male queries: difference, tests, effect
audits.py        `audit_judgments`: what the judged documents say; `audit_rankings`: what rankers return
================ =======================================================================
"""

from evenrank.psychology.audits import JudgmentsAudit, RankingsAudit, audit_judgments, audit_rankings
from evenrank.psychology.comparing import Characteristic, scores

__all__ = [
    "Characteristic",
    "JudgmentsAudit",
    "RankingsAudit",
    "audit_judgments",
    "audit_rankings",
    "scores",
]
