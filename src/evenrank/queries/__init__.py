"""Queries and the gender they ask for: pooling for annotation, majority vote."""

from evenrank.queries.pooling import CLASSES, Votes, pool, vote

__all__ = ["CLASSES", "Votes", "pool", "vote"]
