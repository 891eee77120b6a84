"""Neural rankers: word-interaction models, cross- and bi-encoders, a fast head, language models."""

from evenrank.rankers.neural.reranking import make_reranker, rerank

__all__ = ["make_reranker", "rerank"]
