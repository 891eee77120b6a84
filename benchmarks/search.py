"""Search at three depths, in turns with peers: bm25s (numba), tantivy and Lucene; on wiki and larger ones.

Tantivy and Lucene are asked for scores and addresses only, which spares them the ids. They are no dependency:
`pip install --no-deps --target build/peers tantivy` puts the one where this looks for it, lucene.py says how
the other gets there; without them there are no rows with them.
Queries with many terms are as feedback makes them: the query and the twenty heaviest terms of its five best
documents; bm25s takes the terms without their weights, which it cannot use.

`python -m benchmarks search` measures wiki. `python -m benchmarks.search 1000000` (or 10000000) measures so
many recombined passages, adds the rows to results.json, and removes what it wrote; bm25s holds its texts and
scores in memory and is left out above two million.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.bm25 import _peer_index, _peer_search
from benchmarks.corpus import recombined, shared
from benchmarks.lucene import Spent, lucene
from benchmarks.timing import REPEATS, Row, peak_memory
from evenrank.data.docs import open_docs as as_docs
from evenrank.data.docs import thread_count
from evenrank.rankers.analysis import read_stop_words
from evenrank.rankers.lexical import BM25, QueryTerms, retrieve

_DEPTHS = (10, 100, 1000)
_QUERIES = 1000
_MUST = 1.2
_PEERS = Path(__file__).parents[1] / "build" / "peers"
_LARGEST_OF_BM25S = 2_000_000
_PIECE = 500_000  # recombined passages written at a time


def rows() -> Iterator[Row]:
    folder = shared()
    if folder is None:
        return
    docs, queries, _ = er.load(folder / "data" / "wiki", split="train")
    yield from _collection("wiki", docs, queries.head(_QUERIES))


def large(size: int) -> Iterator[Row]:
    """So many recombined passages, asked the queries of wiki."""
    folder = shared()
    if folder is None:
        raise SystemExit("set EVENRANK_TEST_DATA")
    _, queries, _ = er.load(folder / "data" / "wiki", split="train")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "docs.tsv"
        with path.open("w") as file:
            for first in range(0, size, _PIECE):
                texts = recombined(min(_PIECE, size - first), seed=first)
                file.writelines(f"p{first + i}\t{text}\n" for i, text in enumerate(texts))
        yield from _collection(f"{size // 1_000_000} M recombined passages", path, queries.head(_QUERIES))


def _collection(name: str, docs: Any, queries: pl.DataFrame) -> Iterator[Row]:
    source = as_docs(docs)
    with tempfile.TemporaryDirectory() as folder:
        index = er.index(source, Path(folder) / "index")
        yield Row(
            f"peak memory of an index build, {name}",
            "–",
            4096,
            peak_memory(),
            "MB",
            {"documents": len(index)},
        )
        systems: dict[str, Callable[[int], Any]] = {
            "evenrank": lambda depth: er.search(index, queries, depth=depth)
        }
        if len(index) <= _LARGEST_OF_BM25S:
            frame = source.frame()
            made, ids = _peer_index(frame["text"].to_list()), np.array(frame["doc_id"].to_list())
            del frame
            systems["bm25s (numba)"] = lambda depth: _peer_search(made, queries, ids, depth)
        if (peer := _tantivy(source, Path(folder) / "tantivy", queries)) is not None:
            systems["tantivy"] = peer
        texts = queries["text"].to_list()
        if (other := lucene(source, Path(folder) / "lucene", texts, _PEERS, _DEPTHS)) is not None:
            systems["Lucene"] = other
        for depth in _DEPTHS:
            yield from _in_turns(f"BM25 search, {name}, depth {depth}", systems, depth, len(queries))
        if "bm25s (numba)" in systems:
            yield from _feedback(name, index, made, queries)


def _in_turns(what: str, systems: dict[str, Callable[[int], Any]], depth: int, queries: int) -> Iterator[Row]:
    """The ratio of the medians of wall-clock time; that of processor time beside it."""
    for ask in systems.values():
        ask(depth)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(REPEATS):
        for name, ask in systems.items():
            times[name].append(_both(lambda ask=ask: ask(depth)))  # type: ignore[misc]
    medians = {
        name: tuple(statistics.median(column) for column in zip(*found, strict=True))
        for name, found in times.items()
    }
    own = medians.pop("evenrank")
    for name, peer in medians.items():
        details = {
            "queries": queries,
            "peer_seconds": round(peer[0], 4),
            "seconds": round(own[0], 4),
            "ratio of processor time": round(peer[1] / own[1], 2),
            "load": round(os.getloadavg()[0], 1),
        }
        yield Row(what, name, _MUST, round(peer[0] / own[0], 2), "×", details)


def _both(function: Callable[[], Any]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    if isinstance(spent := function(), Spent):
        return spent
    return time.perf_counter() - wall, time.process_time() - processor


def _feedback(name: str, index: er.Index, made: Any, queries: pl.DataFrame) -> Iterator[Row]:
    """Queries with many terms."""
    bags = QueryTerms.of_texts(queries["text"], index)
    counts, documents, _ = retrieve(index, bags, model=BM25(), depth=5)
    offsets = np.cumsum([0, *counts])
    expanded = []
    for row in range(len(queries)):
        weights: dict[int, float] = {}
        for document in documents[offsets[row] : offsets[row + 1]].tolist():
            terms, counts = index.forward(document)
            for term, count in zip(terms.tolist(), counts.tolist(), strict=True):
                weights[term] = weights.get(term, 0.0) + count / float(index.lengths[document])
        bag = dict(sorted(weights.items(), key=lambda pair: -pair[1])[:20])
        for term in bags.terms[bags.offsets[row] : bags.offsets[row + 1]].tolist():
            bag[term] = bag.get(term, 0.0) + 1.0
        expanded.append(bag)
    words = [[index.term(term) for term in bag] for bag in expanded]
    systems = {
        "evenrank": lambda depth: retrieve(index, expanded, model=BM25(), depth=depth),
        "bm25s (numba)": lambda depth: made.retrieve(
            words, k=depth, n_threads=thread_count(), backend_selection="numba", show_progress=False
        ),
    }
    for depth in _DEPTHS:
        yield from _in_turns(
            f"BM25 search with feedback's terms, {name}, depth {depth}", systems, depth, len(words)
        )


def _tantivy(source: Any, folder: Path, queries: pl.DataFrame) -> Callable[[int], Any] | None:
    if not _PEERS.is_dir():
        return None
    sys.path.insert(0, str(_PEERS))
    import tantivy

    folder.mkdir()
    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem").build()
    index = tantivy.Index(schema, path=str(folder))
    writer = index.writer(500_000_000, thread_count())
    for batch in source.batches():
        for text in batch.column("text").to_pylist():
            writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    left_out = read_stop_words("lucene")  # which ours does not look for either
    words = (re.findall(r"[a-z0-9]+", text.lower()) for text in queries["text"].to_list())
    texts = [" ".join(word for word in each if word not in left_out) for each in words]

    def ask(depth: int) -> list[Any]:
        def one(text: str) -> Any:
            return searcher.search(index.parse_query(text, ["text"]), depth, count=False).hits

        with ThreadPoolExecutor(thread_count()) as pool:
            return list(pool.map(one, texts))

    return ask


if __name__ == "__main__":
    from benchmarks.__main__ import keep

    keep(list(large(int(sys.argv[1]))), f"python -m benchmarks.search {sys.argv[1]}")
