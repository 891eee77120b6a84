"""One unit of the evidence on neural rankers: the data, what is trained, what is ranked, what is measured.

Models and runs are in the folder ``evidence/neural`` of the cache, values in ``benchmarks/units``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks import kept_units
from benchmarks.corpus import shared
from evenrank.text.cache import root

DEPTH = 100
READ_DEPTH = 50
"""Candidates that a cross-encoder re-ranks, and on wiki all that encodes passages."""
TRANSFORMERS = ("bi-encoder", "hybrid", "head", "cross-encoder", "fine-tuned bi-encoder")
WIKI_TEST, WIKI_TRAINING, WIKI_DEPTH = 1000, 2000, 10
"""On wiki, for these: test queries, training queries, and candidates of each training query."""
INTERACTION = ("drmm", "pacrr", "knrm", "matchpyramid", "convknrm")
_CUTOFFS = (5, 10, 20, 30)


class Unit(NamedTuple):
    """One system on one collection with one seed."""

    collection: str
    system: str
    seed: int | None = None

    @property
    def name(self) -> str:
        return f"{self.collection}/{self.system}" + ("" if self.seed is None else f"/{self.seed}")


def home() -> Path:
    """Where models and runs are kept."""
    return root() / "evidence" / "neural"


def data() -> Path:
    found = shared()
    if found is None:
        raise SystemExit("make evidence-neural needs the test data; set EVENRANK_TEST_DATA")
    return found / "data"


def known(unit: Unit) -> dict[str, Any] | None:
    """What a unit has left; None where it has not been run."""
    return kept_units.kept("neural", unit.name)


def run_path(unit: Unit) -> Path:
    path = home() / "runs" / f"{unit.name.replace('/', '--').replace(', ', '-').replace(' ', '-')}.run.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@lru_cache(maxsize=1)
def collection(name: str) -> Any:
    """Training and test part of a collection, its index and first-stage run of the test queries."""
    folder = data() / name
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    from evenrank.rankers.index.building import own_index
    from evenrank.rankers.neural.saved import text_hashes

    # Some questions were asked twice, and stand in both parts: the test is on the others.
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    test = test._replace(queries=test.queries.filter(pl.Series(~seen)))
    index = own_index(test.docs)
    first = er.search(index, test.queries, depth=DEPTH)
    return train, test, index, first


@lru_cache(maxsize=1)
def ready(name: str, *, few: bool = False) -> Any:
    """Training data, the same for every system and seed; `few` for what has to encode passages of wiki."""
    from evenrank.training.preparing import prepared

    train, _, index, _ = collection(name)
    queries, depth = (drawn(train.queries, WIKI_TRAINING), WIKI_DEPTH) if few else (train.queries, DEPTH)
    return prepared(train.docs, queries, train.qrels, index=index, depth=depth, seed=0)


def is_few(unit: Unit) -> bool:
    """Whether a unit has fewer queries than there are: passages of wiki are long, and encoded slowly."""
    return unit.collection == "wiki" and unit.system.partition(",")[0] in TRANSFORMERS


def trained(unit: Unit) -> tuple[Path, dict[str, Any]]:
    """The model of a unit, trained if need be."""
    from evenrank.training.trainer import train_prepared

    if unit.system.startswith("cross-encoder"):  # the same model, alone and with the first stage
        unit = unit._replace(system="cross-encoder")
    path = home() / "models" / unit.name.replace("/", "--").replace(", ", "-").replace(" ", "-")
    facts = path.with_suffix(".json")
    if facts.exists():
        return path, dict(json.loads(facts.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"hybrid": False}
    kind, _, rest = unit.system.partition(", ")
    if kind in INTERACTION:
        vectors, stage = rest.split(", ")
        settings["vectors"] = data() / "vectors" / "glove-100d.bin.gz" if vectors == "glove" else None
        settings["with_first_stage"] = stage == "with"
        settings["document_words"] = 64 if unit.collection == "squad" else 120
    elif kind == "cross-encoder":
        settings["max_length"] = 64 if unit.collection == "squad" else 160
        settings |= {"most_queries": 3000, "checks": 2}  # a third of squad's queries: 20 CPU-minutes
    elif kind == "fine-tuned bi-encoder":
        kind = "bi-encoder"
        settings["max_length"] = 64 if unit.collection == "squad" else 160
        settings |= {"most_queries": 3000, "checks": 2}
    learned = ready(unit.collection, few=is_few(unit))
    found = train_prepared(kind, learned, path, seed=unit.seed or 0, say=say(unit), **settings)
    seconds = None if found.seconds is None else round(found.seconds, 1)  # not known if it was interrupted
    content = {"training CPU seconds": seconds, "dev": found.metrics}
    facts.write_text(json.dumps(content))
    return path, content


def say(unit: Unit) -> Callable[[str], None]:
    """Tells of the training of a unit."""
    return lambda text: print(f"{unit.name}: {text}", file=sys.stderr, flush=True)


def ranked(unit: Unit) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The run of a unit, and what to tell of it."""
    _, test, index, first = collection(unit.collection)
    kind = unit.system.partition(",")[0]
    facts: dict[str, Any] = {}
    if kind == "bm25":
        return first, facts
    queries, depth, settings = test.queries, DEPTH, {}
    if kind == "bi-encoder":
        model: Any = "bi-encoder"
    elif kind == "hybrid":
        model, settings = "hybrid", {"weight": untrained_weight(unit.collection)}
        facts["weight, chosen on training queries"] = settings["weight"]
    elif kind == "language model":
        model, depth = "llm", 10
        queries = drawn(queries, 200)
    else:
        model, facts = trained(unit)
        if kind == "cross-encoder":
            depth = READ_DEPTH
            model = _ScoredOnce(unit, model, hybrid=unit.system.endswith(", with"))
    if is_few(unit):
        queries, depth = drawn(queries, WIKI_TEST), READ_DEPTH
    first = first.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    facts["re-ranked"] = depth
    started = time.process_time()
    found = er.rerank(model, first, index.docs, queries, depth=depth, keep_rest=True, **settings)
    facts["ranking CPU seconds"] = round(time.process_time() - started, 1)
    return found, facts


class _ScoredOnce:
    """A cross-encoder whose scores are kept: alone and with the first stage, the pairs are read once."""

    name = "cross-encoder"

    def __init__(self, unit: Unit, folder: Path, *, hybrid: bool) -> None:
        from evenrank.rankers.neural.saved import open_ranker

        self._opened = open_ranker(folder)
        self._weight = (self._opened.hybrid_weight or 0.0) if hybrid else 0.0
        self._path = home() / "scores" / f"{unit.collection}--{unit.seed}--{READ_DEPTH}.npy"

    def score(self, pairs: Any, *, progress: Any = None) -> Any:
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            np.save(self._path, self._opened.reranker.score(pairs))
        return np.load(self._path) + self._weight * pairs.first


def drawn(queries: pl.DataFrame, count: int) -> pl.DataFrame:
    """So many queries, fixed by a seed before any training."""
    rows = np.sort(np.random.default_rng(14).permutation(len(queries))[:count])
    return queries[rows]


def untrained_weight(name: str) -> float:
    """The weight of BM25 beside the untrained cosine, on all training queries: none was used for training."""
    from evenrank.training.card import untrained

    found = ready(name, few=name == "wiki").examples
    found = replace(found, dev=np.ones_like(found.dev))
    chosen = untrained(found, found.dev_rows(50))
    if chosen is None:
        raise SystemExit("the hybrid needs the extras neural and offline")
    return float(chosen["weight"])


# Measuring


@lru_cache(maxsize=1)
def _tally(name: str) -> Any:
    return er.tally(collection(name)[1].docs)


def measures() -> list[str]:
    """What is measured: effectiveness, then what the papers measure."""
    found = ["RR@10", "nDCG@10", "R@100"]
    for kind in ("RaB", "ARaB"):
        for magnitude in ("tf", "boolean"):
            found += [f"{kind}(magnitude='{magnitude}')@{k}" for k in _CUTOFFS]
    return [*found, "NFaiRR@10", "GSR"]


def measured(name: str, run: pl.DataFrame) -> dict[str, Any]:
    """Value, interval and, but for GSR, the values of the queries."""
    _, test, _, first = collection(name)
    asked = test.qrels.filter(pl.col("query_id").is_in(run["query_id"].unique().to_list()))
    queries = test.queries.filter(pl.col("query_id").is_in(run["query_id"].unique().to_list()))
    found = er.measure(
        run,
        measures(),
        tally=_tally(name),
        docs=test.docs,
        queries=queries,
        qrels=asked,
        background=first.filter(pl.col("query_id").is_in(queries["query_id"].to_list())),
    )
    content: dict[str, Any] = {}
    for wanted, each in zip(measures(), found, strict=True):
        content[wanted] = {"value": each.value, "low": each.low, "high": each.high, "queries": each.queries}
        if wanted != "GSR":
            content[wanted]["per query"] = each.per_query()
    return content
