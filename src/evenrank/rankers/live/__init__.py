"""Search engines that are already running, as rankers: SQLite, PostgreSQL, Elasticsearch, OpenSearch, HTTP.

>>> from evenrank.rankers.live import engine
>>> ranker = engine("sqlite:///shop.db?table=docs")  # doctest: +SKIP
"""

from __future__ import annotations

from evenrank.rankers.live.engines import engine
from evenrank.rankers.live.ranker import Answers, LiveRanker

__all__ = ["Answers", "LiveRanker", "engine"]
