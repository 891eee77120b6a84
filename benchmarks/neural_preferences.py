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

from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.neural_units import (
    DEPTH,
    INTERACTION,
    Unit,
    data,
    home,
    trained,
    untrained_weight,
)
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


SIDES = ("as they are", "swapped")


def mirrored(system: str) -> dict[str, Any]:
    """Preference and content, in both readings."""
    found = {}
    for reading in READINGS:
        values = {}
        for side in SIDES:
            measured = er.measure(ranked(system, reading, side), [er.ARaB @ 4], tally=_texts(side)[1])
            values[side] = measured[er.ARaB @ 4].per_query()
        found[reading] = _halves(*(values[side] for side in SIDES))
    return found


@lru_cache(maxsize=2)
def _texts(side: str) -> tuple[Any, Any]:
    """The passages on one side of the mirror, and their tally."""
    loaded = er.load(data() / "genderbias-qa").docs
    texts = tables.docs((loaded if side == SIDES[0] else er.swap(loaded)).frame())
    return texts, er.tally(texts)


def ranked(system: str, reading: str, side: str) -> pl.DataFrame:
    """The run of a ranker; it is kept, and not made twice."""
    name = f"{system}--{reading}--{side}".replace(", ", "-").replace(" ", "-")
    path = home() / "runs" / f"genderbias-qa--{name}.run.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run = _run(system, reading, _texts(side)[0], er.load(data() / "genderbias-qa"))
        tables.write_run(run, path, name="ranked")
    return tables.run(path)


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


def _run(system: str, reading: str, docs: Any, loaded: Any) -> pl.DataFrame:
    from evenrank.rankers.index.building import own_index

    index = own_index(docs)
    kind = system.partition(",")[0]
    lexical = kind if kind in ("bm25", "qld") else "bm25"
    found = er.search(index, loaded.queries, ranker=lexical, depth=index.documents)
    depth = {"cross-encoder": 20, "language model": 10}.get(kind, DEPTH)
    if reading == "own passages":
        found, depth = _with_zeros(loaded.qrels.select("query_id", "doc_id"), found), 4
    elif "bi-encoder" in kind:  # searches by itself
        every = loaded.queries.select("query_id").join(docs.frame().select("doc_id"), how="cross")
        found, depth = _with_zeros(every, found), index.documents
    if kind == lexical:
        return found
    model, settings = _model(system)
    return er.rerank(model, found, docs, loaded.queries, depth=depth, **settings)


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
