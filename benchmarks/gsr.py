"""GSR against a straightforward Python implementation: 1,000 queries × 100 documents."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import polars as pl
import Stemmer

import evenrank as er
from benchmarks.corpus import passages
from benchmarks.timing import Row, against
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run
from evenrank.vectors import genderedness
from evenrank.vectors.texts import GENDERED_STOP_WORDS, stop_words

_QUERIES, _DEPTH = 1_000, 100
_WORD = re.compile(r"\b[^\W\d_]{2,}\b")
_STOPPED = stop_words() - GENDERED_STOP_WORDS


def rows() -> Iterator[Row]:
    texts = passages(3_000_000)
    docs = {f"d{i}": text for i, text in enumerate(texts)}
    queries = {f"q{i}": " ".join(text.split()[2:10]) for i, text in enumerate(texts[:_QUERIES])}
    ids = list(docs)
    ranked = {q: [ids[(i * 37 + j * 11) % len(ids)] for j in range(_DEPTH)] for i, q in enumerate(queries)}
    run = read_run({q: {d: float(-j) for j, d in enumerate(listed)} for q, listed in ranked.items()})
    frame = pl.DataFrame({"doc_id": ids, "text": list(docs.values())})
    asked = read_queries(queries)
    ours = er.GSR @ _DEPTH

    def measured() -> float | None:
        return er.measure(run, ours, docs=frame, queries=asked, confidence=None)[ours].value

    values = _table()
    assert math.isclose(straightforward(ranked, docs, queries, values), measured() or math.nan, rel_tol=1e-6)
    yield against(
        f"GSR over {_QUERIES:,} queries × {_DEPTH} documents",
        "straightforward Python (Counter per pair, dict look-ups, sets of stems)",
        50,
        lambda: straightforward(ranked, docs, queries, values),
        measured,
        documents=len(docs),
        characters=sum(map(len, texts)),
    )


@cache
def _table() -> dict[str, float]:
    table = genderedness()
    return dict(zip(table.words, table.values.astype(float).tolist(), strict=True))


def straightforward(
    ranked: dict[str, list[str]], docs: dict[str, str], queries: dict[str, str], g: dict[str, float]
) -> float:
    """GSR as one would write it down: pair by pair, with a cache of stems."""
    stemmer = Stemmer.Stemmer("english")
    stems: dict[str, str] = {}

    def stem(word: str) -> str:
        found = stems.get(word)
        if found is None:
            found = stems[word] = stemmer.stemWord(word)
        return found

    def mean(text: str, without: set[str]) -> float | None:
        total, count = 0.0, 0
        for word, times in Counter(_WORD.findall(text.lower())).items():
            if word not in _STOPPED and word in g and stem(word) not in without:
                total += times * g[word]
                count += times
        return total / count if count else None

    xs, ys = [], []
    for query, listed in ranked.items():
        x = mean(queries[query], set())
        own = {stem(word) for word in _WORD.findall(queries[query].lower())}
        total = weights = 0.0
        for rank, doc in enumerate(listed, start=1):
            value = mean(docs[doc], own)
            if value is not None:
                total += value / math.log2(rank + 1)
                weights += 1 / math.log2(rank + 1)
        if x is not None and weights:
            xs.append(x)
            ys.append(total / weights)
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - mx) ** 2 for x in xs)
