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
from evenrank.data.docs import open_docs
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.encodings import Encodings
from evenrank.rankers.neural.onnx_models import Backend
from evenrank.rankers.neural.saved import text_hashes

NAME = "wiki, small.txt"
BACKEND: Backend = "onnx-int8"
"""What encodes here: weights of 8 bits take half the time; `agreement` says how near they are."""
DEPTH = 20
"""Candidates of BM25 that MiniLM re-ranks, where it re-ranks."""
_SAMPLE, _SEED, _TOP = 500, 20, 10
"""Passages with which the backends are compared, drawn with this seed, and how many of them are found."""


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
    return test._replace(docs=open_docs(docs), queries=queries, qrels=qrels)


@lru_cache(maxsize=1)
def candidates(data: Path) -> pl.DataFrame:
    """What BM25 finds first."""
    return first_stage(*small_wiki(data)[:2])


def first_stage(docs: Any, queries: Any, depth: int = DEPTH) -> pl.DataFrame:
    """The first documents of BM25, to be re-ranked."""
    with tempfile.TemporaryDirectory() as folder:
        return er.search(er.index(docs, Path(folder) / "index"), queries, depth=depth)


def agreement(data: Path) -> dict[str, Any]:
    """How near weights of 8 bits are to those of 32, on a sample: vectors, and what is found first."""
    docs, queries, _ = small_wiki(data)
    texts = docs.frame().sample(_SAMPLE, seed=_SEED)["text"].to_list()
    made = {}
    for backend in (BACKEND, "onnx"):
        encodings = Encodings(Encoder(backend=backend))
        made[backend] = encodings.queries(queries["text"].to_list()), encodings.documents(texts)
    (few, few_docs), (full, full_docs) = made.values()
    first = [np.argsort(-scores, axis=1, kind="stable") for scores in (few @ few_docs.T, full @ full_docs.T)]
    shared = [
        len({*mine.tolist()} & {*theirs.tolist()}) / _TOP
        for mine, theirs in zip(first[0][:, :_TOP], first[1][:, :_TOP], strict=True)
    ]
    return {
        "backends": [BACKEND, "onnx"],
        "passages": _SAMPLE,
        "seed": _SEED,
        "queries": len(queries),
        "mean cosine of passages": float((few_docs * full_docs).sum(axis=1).mean()),
        "lowest cosine of passages": float((few_docs * full_docs).sum(axis=1).min()),
        f"share of the first {_TOP} in common": float(np.mean(shared)),
        "same first": float((first[0][:, 0] == first[1][:, 0]).mean()),
    }


def loaded(data: Path, name: str) -> Any:
    """A collection by its name, with its test queries."""
    if name == NAME:
        return small_wiki(data)
    return er.load(data / "data" / name, **({"split": "test"} if name == "squad" else {}))


def backend(name: str) -> Backend:
    """What encodes the texts of a collection."""
    return BACKEND if name == NAME else "torch"
