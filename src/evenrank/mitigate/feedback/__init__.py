"""Bias-aware feedback, swept by :func:`feedback`, and what it does to queries: :func:`gendered_terms`."""

from evenrank.mitigate.feedback.effects import gendered_terms
from evenrank.mitigate.feedback.sweeping import FeedbackSweep, feedback

__all__ = ["FeedbackSweep", "feedback", "gendered_terms"]
