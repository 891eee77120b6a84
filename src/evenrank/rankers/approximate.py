"""Approximate search among stored vectors: a graph of near neighbours (HNSW), by the library faiss.

Malkov & Yashunin (TPAMI 2020). The graph is built by one thread, so that the same vectors give the same
graph, and is kept beside the vectors. It only proposes documents: their scores are exact.
"""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.rankers.index.vectors import Stored
from evenrank.rankers.nearest import Nearest, check_depth, rescored

_LINKS, _BUILD, _SEARCH = 32, 200, 128
_ROWS = 1 << 14
_GRAPH = f"hnsw-{_LINKS}-{_BUILD}.faiss"


def require() -> Any:
    """faiss, or an error that says how to install it."""
    try:
        return import_module("faiss")
    except ImportError:
        raise InputError(
            "approximate search needs faiss, which is not installed: pip install 'evenrank[ann]'"
        ) from None


def nearby(made: Stored, queries: npt.NDArray[np.float64], *, depth: int, ranks: npt.NDArray[Any]) -> Nearest:
    """Nearly all of the nearest documents; see :func:`evenrank.rankers.nearest.nearest`."""
    check_depth(depth)
    graph = _graph(made)
    graph.hnsw.efSearch = max(_SEARCH, 2 * depth)
    _, found = graph.search(queries.astype(np.float32), min(depth, len(made.vectors)))
    return rescored(made.vectors, queries, found.astype(np.int64), ranks=ranks)


def _graph(made: Stored) -> Any:
    """The graph beside the vectors, or one built now."""
    faiss = require()
    path = made.folder / _GRAPH
    size, dimension = made.vectors.shape
    if path.is_file():
        try:
            graph = faiss.read_index(str(path))
            if (graph.ntotal, graph.d) == (size, dimension):
                return graph
        except RuntimeError:  # cut short: build it again
            pass
    graph = faiss.IndexHNSWFlat(dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _BUILD
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        for first in range(0, size, _ROWS):
            graph.add(np.ascontiguousarray(made.vectors[first : first + _ROWS], np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        faiss.write_index(graph, str(temporary))
        temporary.replace(path)
    except (OSError, RuntimeError):  # a folder that cannot be written to: the graph serves this search
        temporary.unlink(missing_ok=True)
    return graph
