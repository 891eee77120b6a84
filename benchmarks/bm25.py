"""Search and index build against bm25s with its numba backend, and the time to open an index.

The peer does what its documentation shows: `bm25s.tokenize` with its English stop words and PyStemmer, then
`BM25.index`; for search, `tokenize` of the queries and `retrieve` with as many threads as there are cores. It
keeps its index in memory and stores no text; ours is written to disk with forward index and text.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import recombined, shared
from benchmarks.timing import REPEATS, Row, seconds
from evenrank import demo
from evenrank.data.docs import thread_count

_PEER = "bm25s (numba backend, PyStemmer)"
_LARGE = 1_000_000
_QUERIES = 500  # of those on the large collection
_DEPTHS = (10, 100, 1000)


def rows() -> Iterator[Row]:
    folder = shared()
    source = demo.folder() if folder is None else folder / "data" / "squad"
    docs, queries, _ = er.load(source, **({} if folder is None else {"split": "test"}))
    yield from _collection("squad" if folder else "demo", docs.frame(), queries, REPEATS)
    texts = recombined(_LARGE)
    large = pl.DataFrame({"doc_id": [f"p{i}" for i in range(len(texts))], "text": texts})
    del texts
    yield from _collection("1 M passages", large, queries.head(_QUERIES), 2)


def _collection(name: str, frame: pl.DataFrame, queries: pl.DataFrame, repeats: int) -> Iterator[Row]:
    texts, ids = frame["text"].to_list(), np.array(frame["doc_id"].to_list())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"

        def build() -> Any:
            return er.index(frame, path, overwrite=True)

        er.index(frame.head(1000), path)  # compiles
        yield _in_turns(
            f"index build, {name}", lambda: _peer_index(texts), build, repeats, documents=len(frame)
        )
        index, peer = build(), _peer_index(texts)
        for depth in _DEPTHS:
            yield _in_turns(
                f"BM25 search, {name}, {depth} documents per query",
                lambda depth=depth: _peer_search(peer, queries, ids, depth),  # type: ignore[misc]
                lambda depth=depth: er.search(index, queries, depth=depth),  # type: ignore[misc]
                REPEATS,
                queries=len(queries),
            )
        times = [1000 * seconds(lambda: er.Index.open(path)) for _ in range(REPEATS)]
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        opened = round(statistics.median(times), 1)
        yield Row(f"opening an index, {name}", "—", 50, opened, " ms", {"megabytes": size >> 20})


def _in_turns(
    what: str, peer: Callable[[], Any], ours: Callable[[], Any], repeats: int, **details: Any
) -> Row:
    """The ratio of the medians of timings in turns, after one call of each search (both compile)."""
    if "search" in what:
        peer(), ours()
    times = [(seconds(peer), seconds(ours)) for _ in range(repeats)]
    theirs, own = (statistics.median(column) for column in zip(*times, strict=True))
    spread = [round(their / our, 1) for their, our in times]
    details |= {"peer_seconds": round(theirs, 4), "seconds": round(own, 4), "ratios": spread}
    return Row(what, _PEER, 1.2 if "search" in what else 3, round(theirs / own, 1), "×", details)


def _peer_index(texts: list[str]) -> Any:
    import bm25s
    import Stemmer

    made = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numba")
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("porter"), show_progress=False)
    made.index(tokens, show_progress=False)
    return made


def _peer_search(made: Any, queries: pl.DataFrame, ids: np.ndarray, depth: int) -> Any:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("porter")
    asked = bm25s.tokenize(queries["text"].to_list(), stopwords="en", stemmer=stemmer, show_progress=False)
    return made.retrieve(
        asked, corpus=ids, k=depth, n_threads=thread_count(), backend_selection="numba", show_progress=False
    )
