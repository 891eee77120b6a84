"""Constrained re-ranking: :func:`constrain` a run, or :func:`rerank` one list as it comes."""

from evenrank.mitigate.constrain.limits import Reranked, rerank
from evenrank.mitigate.constrain.reranking import Constrained, constrain

__all__ = ["Constrained", "Reranked", "constrain", "rerank"]
