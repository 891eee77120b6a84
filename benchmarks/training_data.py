"""What rankers learn from and are tested on, in the evidence on less bias by training."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.neural_units import WIKI_TEST, data, drawn
from evenrank.rankers.neural.saved import text_hashes

LAMBDAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class Shape(NamedTuple):
    """Training queries (None for all), candidates for negatives, negatives, candidates of the training,
    documents re-ranked; test queries, drawn before any training (None for all); and whether each seed draws
    its own negatives.
    """

    queries: int | None
    pool: int
    negatives: int
    depth: int
    ranked: int
    tested: int | None = None
    own_negatives: bool = True


SHAPES = {
    ("squad", "head"): Shape(None, 1000, 20, 50, 100),
    ("squad", "knrm"): Shape(None, 1000, 20, 50, 100),
    ("squad", "cross-encoder"): Shape(None, 1000, 20, 50, 20, tested=1000),
    ("wiki", "knrm"): Shape(1500, 1000, 20, 50, 50, tested=WIKI_TEST),
    # What is read has to be encoded: fewer queries, and the same negatives for all seeds.
    ("wiki", "head"): Shape(1000, 1000, 20, 20, 50, tested=WIKI_TEST, own_negatives=False),
    ("wiki", "cross-encoder"): Shape(1000, 1000, 20, 20, 20, tested=WIKI_TEST),
}


def shape_of(name: str, ranker: str) -> Shape:
    """Of a ranker on a collection; what is made of a cross-encoder is shaped as that."""
    return SHAPES[name, ranker.partition(",")[0]]


class Collection(NamedTuple):
    """Queries, judgments, first-stage runs and counts of one collection."""

    index: Any
    tally: Any
    train: Any
    pool: pl.DataFrame
    test: pl.DataFrame
    qrels: pl.DataFrame
    first: pl.DataFrame


def tested(name: str, shape: Shape) -> tuple[Any, pl.DataFrame, pl.DataFrame]:
    """The training part, and the test queries that are not asked there too, with their judgments."""
    folder = data() / name
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    queries = test.queries.filter(pl.Series(~seen))
    if shape.tested is not None:
        queries = drawn(queries, shape.tested)
    if shape.queries is not None:
        train = train._replace(queries=drawn(train.queries, shape.queries))
    return train, queries, test.qrels.filter(pl.col("query_id").is_in(queries["query_id"].to_list()))


@lru_cache(maxsize=1)
def collection(name: str, shape: Shape) -> Collection:
    """A collection, indexed and searched."""
    from evenrank.rankers.index.building import own_index

    train, queries, judged = tested(name, shape)
    index = own_index(train.docs)
    pool = er.search(index, train.queries, depth=shape.pool)
    first = er.search(index, queries, depth=shape.ranked)
    return Collection(index, er.tally(train.docs), train, pool, queries, judged, first)


@lru_cache(maxsize=1)
def _together(name: str, shape: Shape, seed: int) -> tuple[Any, dict[float, Any]]:
    """Training data with the negatives of all λ, and which of its pairs are those of each λ."""
    from evenrank.training.preparing import prepared

    found = collection(name, shape)
    given = {"n": shape.negatives, "depth": shape.pool, "seed": seed}
    taken = {
        each: er.negatives(found.pool, found.train.qrels, found.tally, bias_lambda=each, **given).pairs()
        for each in LAMBDAS
    }
    made = prepared(
        found.index.docs,
        found.train.queries,
        found.train.qrels,
        run=found.pool,
        depth=shape.depth,
        negatives=pl.concat(taken.values()).unique(maintain_order=True),
        seed=0,
    )
    pairs = made.examples.pairs
    rows = pl.DataFrame(
        {
            "query_id": pl.Series(pairs.query_ids).gather(pairs.query),
            "doc_id": pl.Series(pairs.doc_ids).gather(pairs.document),
        }
    )
    masks = {
        each: rows.join(
            named.with_columns(named=True), on=["query_id", "doc_id"], how="left", maintain_order="left"
        )["named"]
        .fill_null(False)
        .to_numpy()
        & made.examples.against
        for each, named in taken.items()
    }
    return made, masks


def ready(name: str, shape: Shape, bias_lambda: float, seed: int) -> Any:
    """Training data with negatives of this λ; the dev queries are the same for all."""
    made, masks = _together(name, shape, seed if shape.own_negatives else 0)
    return made._replace(examples=replace(made.examples, against=masks[bias_lambda]))


_DEV: dict[tuple[str, Shape], tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]] = {}


def dev(name: str, shape: Shape, examples: Any = None) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The dev queries, their judgments and their candidates; the same whatever the seed of the negatives."""
    if (name, shape) not in _DEV:
        found = collection(name, shape)
        made = _together(name, shape, 0)[0].examples if examples is None else examples
        ids = [each for each, held in zip(made.pairs.query_ids, made.dev, strict=True) if held]
        queries = found.train.queries.filter(pl.col("query_id").is_in(ids))
        judged = found.train.qrels.filter(pl.col("query_id").is_in(ids))
        near = pl.col("query_id").is_in(ids) & (pl.col("rank") <= shape.ranked)
        _DEV[name, shape] = (queries, judged, found.pool.filter(near))
    return _DEV[name, shape]
