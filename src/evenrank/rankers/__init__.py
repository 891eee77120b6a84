"""Rankers: queries in, a run out. :func:`make` builds one by its name."""

from evenrank.rankers.base import Ranker
from evenrank.rankers.registry import make, names

__all__ = ["Ranker", "make", "names"]
