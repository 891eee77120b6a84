"""`er.search`: one call from queries to a run, whatever is searched."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.rankers.base import Progress, Ranker
from evenrank.rankers.catalogue import is_engine, make, needs_index
from evenrank.rankers.index import Index


def search(
    where: Index | str | os.PathLike[str] | None,
    queries: Any,
    *,
    ranker: str = "bm25",
    depth: int = 1000,
    progress: Progress | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Rank documents for each query.

    Parameters
    ----------
    where
        An index, the path of one, or the address of a live engine (``sqlite:///…``, ``postgresql://…``,
        ``elasticsearch://…``, ``opensearch://…``, ``http://…``). None for ``perfect`` and ``random``.
    queries
        Anything :func:`evenrank.data.tables.queries` takes.
    ranker
        One of :func:`evenrank.rankers.names`; a live engine ranks by itself.
    depth
        Documents per query at most.
    progress
        Called with (queries done, queries in all).
    settings
        The ranker's parameters, such as ``k1=0.6``.

    Returns
    -------
    A run table. Queries for which nothing is found are not in it.
    """
    asked = tables.queries(queries)
    return ranker_for(where, ranker, **settings).rank(asked, depth=depth, progress=progress)


def ranker_for(where: Index | str | os.PathLike[str] | None, name: str = "bm25", **settings: Any) -> Ranker:
    """The ranker of this name on an index, or the live engine at this address."""
    if is_engine(where):
        return make(str(where), **settings)
    if where is None:
        if needs_index(name):
            raise InputError(f"{name} searches an index; make one with: evenrank index DOCS -o IDX")
        return make(name, **settings)
    return make(name, index=Index.open(where) if not isinstance(where, Index) else where, **settings)
