"""The training data of a ranker: what a first stage finds, a run or BM25, with judgments and texts."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from evenrank.data.docs import open_docs
from evenrank.data.read import fingerprint, path_of, read_qrels, read_queries
from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.mitigate.negatives import negative_pairs
from evenrank.rankers.base import Say
from evenrank.training.examples import Examples, Scores, examples

if TYPE_CHECKING:
    from evenrank.rankers.index import Index


class Prepared(NamedTuple):
    """Training data, and where it comes from; of negatives that were named, which."""

    examples: Examples
    first_stage: dict[str, Any]
    collection: dict[str, Any]
    negatives: dict[str, Any] | None = None


def prepared(
    docs: Any,
    queries: Any,
    qrels: Any,
    *,
    run: Any = None,
    index: Index | None = None,
    negatives: Any = None,
    depth: int = 100,
    dev_share: float = 0.1,
    dev_most: int = 300,
    seed: int = 0,
    say: Say = lambda text: None,
) -> Prepared:
    """The training data of :func:`train_ranker`, to train several rankers on the same."""
    collection, requested, judged = open_docs(docs), read_queries(queries), read_qrels(qrels)
    if index is not None and index.provenance["input"]["fingerprint"] != collection.fingerprint():
        say("the index is of another file or table than is given: it finds and scores by its own texts")
    deep = depth if negatives is None else max(depth, 1000)  # the scores of what is named are asked for
    named = None if negatives is None else negative_pairs(negatives)
    first, scores, stage = _first_stage(collection, requested, judged, run, index, deep, say)
    result = examples(
        first,
        collection,
        requested,
        judged,
        depth=depth,
        dev_share=dev_share,
        dev_most=dev_most,
        seed=seed,
        scores=scores,
        negatives=named,
        negatives_path=path_of(negatives),
    )
    for each in result.told_left_out():
        say(f"left out: {each}")
    of_named = None if named is None else _named(named, path_of(negatives))
    return Prepared(result, stage, collection.describe(), of_named)


def _named(pairs: pl.DataFrame, path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """What to know of named negatives later: how many there are, from which file, and their fingerprint."""
    result = {"queries": pairs["query_id"].n_unique(), "pairs": len(pairs)}
    file = {} if path is None else {"file": Path(path).name}
    return {**result, **file, "fingerprint": fingerprint([pairs.select("query_id", "doc_id")])}


def _first_stage(
    docs: Any, requested: pl.DataFrame, judged: pl.DataFrame, run: Any, index: Any, depth: int, say: Say
) -> tuple[Any, Scores | None, dict[str, Any]]:
    """The run, where to ask for the scores of other pairs, and its provenance."""
    if run is not None:
        name = Path(run).name if isinstance(run, (str, os.PathLike)) else "run"
        return read_run(run), None, {"run": name}
    from evenrank.rankers.indexing import cached_index
    from evenrank.rankers.lexical import bm25 as make_bm25

    searched = cached_index(docs, say) if index is None else index
    bm25 = make_bm25(searched)
    relevant = judged.filter(pl.col("relevance") > 0).select("query_id")
    used = requested.join(relevant, on="query_id", how="semi", maintain_order="left")
    if used.is_empty():
        raise InputError("no query has a relevant document; do the ids of queries and qrels agree?")

    described = {key: bm25.describe()[key] for key in ("name", "settings")}
    result = bm25.rank(used, depth=depth)
    if result.is_empty():
        raise InputError(
            "nothing is found for any query; do index and queries belong together?", path=searched.path
        )
    return result, partial(bm25.scores, requested), described
