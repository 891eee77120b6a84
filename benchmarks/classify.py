"""Labelling queries with the static classifier, on one core."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from benchmarks.corpus import passages
from benchmarks.timing import REPEATS, Row
from evenrank.queries.classify import classify

_QUERIES = 50_000


def rows() -> Iterator[Row]:
    words = " ".join(passages(3_000_000)).split()
    starts = ((7 * i) % (len(words) - 6) for i in range(_QUERIES))
    table = {str(number): " ".join(words[start : start + 6]) for number, start in enumerate(starts)}
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        classify(table)
        times.append(time.process_time() - started)
    once = statistics.median(times)
    yield Row(
        f"er.classify of {_QUERIES:,} queries (static), end to end",
        "—",
        50.0,
        round(1e6 * once / _QUERIES, 1),
        " µs a query",
        {"processor_seconds": round(once, 3), "queries_per_second_and_core": round(_QUERIES / once)},
    )
