"""Neural rankers trained on a collection; the models are kept in ``evidence/neural`` of the cache."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from evenrank.data.files import cache_dir

DEPTH = 100
TRANSFORMERS = ("bi-encoder", "hybrid", "head", "cross-encoder", "fine-tuned bi-encoder")
WIKI_TEST, WIKI_TRAINING, WIKI_DEPTH = 1000, 2000, 10
"""On wiki, for these: test queries, training queries, and candidates of each training query."""
INTERACTION = ("drmm", "pacrr", "knrm", "matchpyramid", "convknrm")


class Unit(NamedTuple):
    """One system on one collection with one seed."""

    collection: str
    system: str
    seed: int | None = None

    @property
    def name(self) -> str:
        return f"{self.collection}/{self.system}" + ("" if self.seed is None else f"/{self.seed}")


def home() -> Path:
    """Where models are kept."""
    return cache_dir() / "evidence" / "neural"


def data() -> Path:
    found = shared()
    if found is None:
        raise SystemExit("this needs the test data; set EVENRANK_TEST_DATA")
    return found / "data"


@lru_cache(maxsize=1)
def collection(name: str) -> Any:
    """Training and test part of a collection, its index and first-stage run of the test queries."""
    folder = data() / name
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    from evenrank.rankers.indexing import cached_index
    from evenrank.rankers.neural.saved import text_hashes

    # Some questions were asked twice, and stand in both parts: the test is on the others.
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    test = test._replace(queries=test.queries.filter(pl.Series(~seen)))
    index = cached_index(test.docs)
    first = er.search(index, test.queries, depth=DEPTH)
    return train, test, index, first


@lru_cache(maxsize=1)
def ready(name: str, *, few: bool = False) -> Any:
    """Training data, the same for every system and seed; `few` for what has to encode passages of wiki."""
    from evenrank.training.dataset import make_examples

    train, _, index, _ = collection(name)
    queries, depth = (drawn(train.queries, WIKI_TRAINING), WIKI_DEPTH) if few else (train.queries, DEPTH)
    return make_examples(train.docs, queries, train.qrels, index=index, depth=depth, seed=0)


def is_few(unit: Unit) -> bool:
    """Whether a unit has fewer queries than there are: passages of wiki are long, and encoded slowly."""
    return unit.collection == "wiki" and unit.system.partition(",")[0] in TRANSFORMERS


def trained(unit: Unit) -> tuple[Path, dict[str, Any]]:
    """The model of a unit, trained if need be."""
    from evenrank.training.trainer import train_on

    if unit.system.startswith("cross-encoder"):  # the same model, alone and with the first stage
        unit = unit._replace(system="cross-encoder")
    path = home() / "models" / unit.name.replace("/", "--").replace(", ", "-").replace(" ", "-")
    facts = path.with_suffix(".json")
    if facts.exists():
        return path, dict(json.loads(facts.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {}
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
    started = time.process_time()
    found = train_on(learned, kind, path, seed=unit.seed or 0, log=say(unit), **settings)
    seconds = round(time.process_time() - started, 1)
    content = {"training CPU seconds": seconds, "dev": found.metrics}
    facts.write_text(json.dumps(content))
    return path, content


def say(unit: Unit) -> Callable[[str], None]:
    """Tells of the training of a unit."""
    return lambda text: print(f"{unit.name}: {text}", file=sys.stderr, flush=True)


def drawn(queries: pl.DataFrame, count: int) -> pl.DataFrame:
    """So many queries, fixed by a seed before any training."""
    rows = np.sort(np.random.default_rng(14).permutation(len(queries))[:count])
    return queries[rows]
