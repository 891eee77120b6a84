"""Counting a collection: blocks are parsed and matched in worker threads, results come in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from evenrank.data.blocks import Block
from evenrank.data.duplicates import DuplicateCheck
from evenrank.data.tables import Docs
from evenrank.text.matcher import Matcher, cores

Progress = Callable[[int, int | None], None]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def count_documents(
    docs: Docs, matcher: Matcher, *, progress: Progress | None = None, skip: int = 0
) -> Iterator[pa.RecordBatch]:
    """One row per document, in the order of the collection: doc_id, tokens, counts, logwords.

    The first `skip` blocks are passed over: the cache has them.
    """

    def work(numbered: tuple[int, Block]) -> tuple[pa.RecordBatch | None, int]:
        number, block = numbered
        return None if number < skip else count_batch(block.read(), matcher), block.size

    done = 0
    for batch, size in in_order(work, enumerate(docs.blocks()), threads=cores()):
        done += size
        if progress:
            progress(done, docs.size)
        if batch is not None:
            yield batch


def unique(rows: Iterable[pa.RecordBatch], docs: Docs) -> Iterator[pa.RecordBatch]:
    """The same rows; a document id that occurs twice is an error, raised behind the last of them."""
    duplicates = DuplicateCheck()
    for batch in rows:
        duplicates.add(batch.column(0))
        yield batch
    duplicates.finish(docs)


def count_batch(batch: pa.RecordBatch, matcher: Matcher) -> pa.RecordBatch:
    """The rows of the tally for one batch of documents."""
    found = matcher.count(batch.column("text"))
    columns = [batch.column("doc_id"), pa.array(found.tokens)]
    columns += [pa.array(np.ascontiguousarray(found.counts[:, g])) for g in range(len(matcher.groups))]
    columns += [pa.array(np.ascontiguousarray(found.logwords[:, g])) for g in range(len(matcher.groups))]
    names = ["doc_id", "tokens", *matcher.groups, *(f"{group}_logwords" for group in matcher.groups)]
    return pa.RecordBatch.from_arrays(columns, names)


def in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int
) -> Iterator[_Result]:
    """Map in worker threads, a bounded number of items ahead, yielding results in the order given."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
