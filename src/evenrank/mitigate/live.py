"""The former place of `rerank`; it stays for one release. Use `evenrank.mitigate.constrain`."""

from evenrank.mitigate.constrain import Reranked, rerank

__all__ = ["Reranked", "rerank"]
