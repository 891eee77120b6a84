"""The 41,634 passages that wiki's small.txt names, and 1,000 test queries."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.neural_units import WIKI_TEST, drawn
from evenrank.data import tables
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.saved import text_hashes

NAME = "wiki, small.txt"
BACKEND: Backend = "onnx-int8"
"""What encodes here: weights of 8 bits take half the time; the mean cosine with the others is .994."""
DEPTH = 20
"""Candidates of BM25 that MiniLM re-ranks: their passages are encoded, and their mirror images."""


@lru_cache(maxsize=1)
def small_wiki(data: Path) -> Any:
    """Docs, queries (fixed by a seed, none of them asked in training too) and qrels."""
    folder = data / "data" / "wiki"
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    queries = drawn(test.queries.filter(pl.Series(~seen)), WIKI_TEST)
    named = pl.Series((folder / "small.txt").read_text().split())
    docs = test.docs.frame().filter(pl.col("doc_id").is_in(named.implode()))
    qrels = pl.DataFrame(test.qrels).filter(pl.col("query_id").is_in(queries["query_id"].implode()))
    return test._replace(docs=tables.docs(docs), queries=queries, qrels=qrels)


@lru_cache(maxsize=1)
def candidates(data: Path) -> pl.DataFrame:
    """What BM25 finds first."""
    return first_stage(*small_wiki(data)[:2])


def first_stage(docs: Any, queries: Any) -> pl.DataFrame:
    """The first documents of BM25, to be re-ranked."""
    with tempfile.TemporaryDirectory() as folder:
        return er.search(er.index(docs, Path(folder) / "index"), queries, depth=DEPTH)


def loaded(data: Path, name: str) -> Any:
    """A collection by its name, with its test queries."""
    if name == NAME:
        return small_wiki(data)
    return er.load(data / "data" / name, **({"split": "test"} if name == "squad" else {}))


def backend(name: str) -> Backend:
    """What encodes the texts of a collection."""
    return BACKEND if name == NAME else "torch"
