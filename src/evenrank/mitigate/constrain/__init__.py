"""Constrained re-ranking: :func:`constrain` a run, or :func:`rerank` one list as it comes."""

from evenrank.mitigate.constrain.reranking import Constrained, Reranked, constrain, rerank

__all__ = ["Constrained", "Reranked", "constrain", "rerank"]
