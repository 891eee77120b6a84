"""Search engines that run elsewhere, as rankers: HTTP with JSON, Elasticsearch, SQL, any function.

>>> from evenrank.rankers.remote import engine
>>> ranker = engine("sqlite:///shop.db?table=docs")  # doctest: +SKIP
"""

from evenrank.rankers.remote.engine import engine
from evenrank.rankers.remote.ranker import RemoteRanker, SearchResults

__all__ = ["RemoteRanker", "SearchResults", "engine"]
