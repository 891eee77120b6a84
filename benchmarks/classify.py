"""Labelling queries with the static classifier, on one core, against scikit-learn's vectorizers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.corpus import passages
from benchmarks.timing import REPEATS, Row, against
from evenrank.queries.classify import classify
from evenrank.queries.model import load_classifier

_QUERIES = 50_000


def rows() -> Iterator[Row]:
    texts = _queries()
    model = load_classifier("static")
    model.predict_proba(texts[:10])
    yield against(
        f"gender of {_QUERIES:,} queries (static), features and scores",
        "scikit-learn: HashingVectorizer of words and letters, the product with the weights",
        2,
        _sklearn(texts),
        lambda: model.predict_proba(texts),
        characters=sum(map(len, texts)),
    )
    table = {str(number): text for number, text in enumerate(texts)}
    once = statistics.median(_work(lambda: classify(table)) for _ in range(REPEATS))
    yield Row(
        f"er.classify of {_QUERIES:,} queries (static), end to end",
        "—",
        50.0,
        round(1e6 * once / _QUERIES, 1),
        " µs a query",
        {"processor_seconds": round(once, 3), "queries_per_second_and_core": round(_QUERIES / once)},
    )


def _work(function: Callable[[], Any]) -> float:
    """Seconds that the processor worked, all threads together: one core would have taken as long."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _queries() -> list[str]:
    """Six words in a row out of passages, as long as queries are."""
    words = " ".join(passages(3_000_000)).split()
    starts = ((7 * i) % (len(words) - 6) for i in range(_QUERIES))
    return [" ".join(words[start : start + 6]) for start in starts]


def _sklearn(texts: list[str]):
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(ngram_range=(1, 2), n_features=1 << 18)
    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), n_features=1 << 18)
    weights = np.zeros((1 << 18, 3), np.float32)
    return lambda: words.transform(texts) @ weights + letters.transform(texts) @ weights
