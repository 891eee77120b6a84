"""Which gender a ranker puts first on genderbias-qa: the mirror test, in two readings.

Each question has four passages that answer it, two about women and two about men. The order mixes what a
ranker prefers with what the texts bring. So all is ranked again with the genders swapped: half the sum of
the two ARaB@4 is the ranker's preference (above 0: male first), half the difference the content's share.

``search``
    The whole collection is searched, and the first four passages count, whatever question they were written
    for: this is what a user of the ranker gets. Re-rankers order what BM25 has found.
``own passages``
    Only the four passages of the question are put in order. Two are about women and two about men whatever
    the ranker does, so only their order can lean, and values are smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.neural_units import DEPTH, INTERACTION, READ_TOGETHER, Unit, data, trained, untrained_weight
from evenrank.data import tables

READINGS = ("search", "own passages")
SYSTEMS = (
    "bm25",
    "qld",
    "bi-encoder",
    "hybrid",
    "head",
    *(f"{kind}, {vectors}, alone" for kind in INTERACTION for vectors in ("glove", "random")),
    "cross-encoder",
    "fine-tuned bi-encoder",
    "language model",
)


def mirrored(system: str) -> dict[str, Any]:
    """Preference and content, in both readings."""
    loaded = er.load(data() / "genderbias-qa")
    values: dict[str, dict[str, dict[str, float]]] = {reading: {} for reading in READINGS}
    for side, docs in (("as they are", loaded.docs), ("swapped", er.swap(loaded.docs))):
        texts = tables.docs(docs.frame())
        tally = er.tally(texts)
        for reading, run in _runs(system, texts, loaded).items():
            found = er.measure(run, [er.ARaB @ 4], tally=tally, confidence=None)
            values[reading][side] = found[er.ARaB @ 4].per_query()
    return {reading: _halves(each["as they are"], each["swapped"]) for reading, each in values.items()}


def _halves(plain: dict[str, float], swapped: dict[str, float]) -> dict[str, Any]:
    """Half the sum and half the difference, over questions, with intervals."""
    from evenrank.stats import mean_interval

    queries = sorted(plain.keys() & swapped.keys())
    left, right = (np.array([each[query] for query in queries]) for each in (plain, swapped))
    found: dict[str, Any] = {"queries": len(queries)}
    for name, numbers in (
        ("raw", left),
        ("raw, swapped", right),
        ("preference", (left + right) / 2),
        ("content", (left - right) / 2),
    ):
        interval = mean_interval(numbers)
        found[name] = {"value": interval.value, "low": interval.low, "high": interval.high}
    return found


def _runs(system: str, docs: Any, loaded: Any) -> dict[str, pl.DataFrame]:
    """The run of a ranker in each reading."""
    from evenrank.training.trainer import own_index

    index = own_index(docs)
    kind = system.partition(",")[0]
    lexical = kind if kind in ("bm25", "qld") else "bm25"
    found = er.search(index, loaded.queries, ranker=lexical, depth=index.documents)
    own = _with_zeros(loaded.qrels.select("query_id", "doc_id"), found)
    if kind == lexical:
        return {"search": found, "own passages": own}
    model, settings = _model(system)
    depth = {"cross-encoder": READ_TOGETHER, "language model": 10}.get(kind, DEPTH)
    if "bi-encoder" in kind:  # searches by itself
        found = _with_zeros(
            loaded.queries.select("query_id").join(docs.frame().select("doc_id"), how="cross"), found
        )
        depth = index.documents
    made = {}
    for reading, run, deep in (("search", found, depth), ("own passages", own, 4)):
        made[reading] = er.rerank(model, run, docs, loaded.queries, depth=deep, **settings)
    return made


def _with_zeros(pairs: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """These pairs as a run; what shares no word with the question has the score 0."""
    scored = pairs.join(found.select("query_id", "doc_id", "score"), on=["query_id", "doc_id"], how="left")
    return tables.run(scored.with_columns(pl.col("score").fill_null(0.0)))


def _model(system: str) -> tuple[Any, dict[str, Any]]:
    """What `er.rerank` takes: a name, or the folder of a model that was trained on squad."""
    if system == "bi-encoder":
        return system, {}
    if system == "hybrid":
        return system, {"weight": untrained_weight("squad")}
    if system == "language model":
        return "llm", {}
    return trained(Unit("squad", system, 0))[0], {}
