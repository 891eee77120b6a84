"""Neural rankers beside BM25: how good they are, and how they lean: `make evidence-neural`.

    python -m benchmarks.neural_evidence            all units that have not been run, then the tables
    python -m benchmarks.neural_evidence squad      those of one collection, or of one system: squad/pacrr
    python -m benchmarks.neural_evidence --tables   the tables again, from what has been run

A unit is one training, or one ranker, on one collection with one seed; none takes more than an hour. Each
leaves a run and its values in the cache, and is not run again. Models, runs and values are in the folder
``evidence/neural`` of the cache; docs/evidence/neural-rankers.json and the tables in docs/neural-rankers.md
are made of what is there, and say what is not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from evenrank.data import tables
from evenrank.text.cache import root

DEPTH = 100
READ_TOGETHER = 50
"""Candidates that a cross-encoder or a language model re-ranks; the others follow."""
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


def units() -> Iterator[Unit]:
    """Everything, the most telling first."""
    yield from (Unit("squad", name) for name in ("bm25", "bi-encoder", "hybrid"))
    yield from (Unit("squad", "head", seed) for seed in range(5))
    for seed in range(3):
        for kind in INTERACTION:
            for vectors in ("glove", "random"):
                for stage in ("with", "alone"):
                    yield Unit("squad", f"{kind}, {vectors}, {stage}", seed)
        if seed == 0:
            yield from (Unit("genderbias-qa", name) for name in GENDERBIAS)
            yield Unit("squad", "cross-encoder", 0)
            yield Unit("wiki", "bm25")
            yield Unit("wiki", "pacrr, glove, with", 0)
            yield Unit("wiki", "drmm, glove, with", 0)
    yield from (Unit("squad", "cross-encoder", seed) for seed in (1, 2))
    yield Unit("squad", "fine-tuned bi-encoder", 0)
    yield Unit("squad", "language model")
    for kind in INTERACTION:
        for vectors in ("glove", "random"):
            for stage in ("with", "alone"):
                if (kind, vectors, stage) not in {("pacrr", "glove", "with"), ("drmm", "glove", "with")}:
                    yield Unit("wiki", f"{kind}, {vectors}, {stage}", 0)
    yield from (Unit("wiki", name) for name in ("bi-encoder", "hybrid"))
    yield Unit("wiki", "head", 0)
    yield Unit("wiki", "cross-encoder", 0)
    yield Unit("wiki", "fine-tuned bi-encoder", 0)


GENDERBIAS = (
    "bm25",
    "qld",
    "bi-encoder",
    "hybrid",
    "head",
    *(f"{kind}, {vectors}, alone" for kind in INTERACTION for vectors in ("glove", "random")),
    "cross-encoder",
    "language model",
)


def home() -> Path:
    """Where models, runs and values are kept."""
    return root() / "evidence" / "neural"


def data() -> Path:
    found = shared()
    if found is None:
        raise SystemExit("make evidence-neural needs the test data; set EVENRANK_TEST_DATA")
    return found / "data"


# Running


def run_unit(unit: Unit) -> dict[str, Any]:
    """Train what is to be trained, rank, measure; what was done before is not done again."""
    path = home() / "units" / f"{unit.name.replace('/', '--')}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    started = time.process_time()
    if unit.collection == "genderbias-qa":
        content = mirrored(unit.system)
    else:
        run, facts = ranked(unit)
        tables.write_run(run, _run_path(unit), name=unit.system.replace(" ", "-"))
        content = {**facts, "measures": measured(unit.collection, run)}
    content["CPU seconds in all"] = round(time.process_time() - started, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return content


def _run_path(unit: Unit) -> Path:
    path = home() / "runs" / f"{unit.name.replace('/', '--').replace(', ', '-').replace(' ', '-')}.run.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@lru_cache(maxsize=1)
def collection(name: str) -> Any:
    """Training and test part of a collection, its index and first-stage run of the test queries."""
    folder = data() / name
    train, test = er.load(folder, split="train"), er.load(folder, split="test")
    from evenrank.rankers.neural.saved import text_hashes
    from evenrank.training.trainer import own_index

    # Some questions were asked twice, and stand in both parts: the test is on the others.
    seen = np.isin(text_hashes(test.queries["text"]), text_hashes(train.queries["text"]))
    test = test._replace(queries=test.queries.filter(pl.Series(~seen)))
    index = own_index(test.docs)
    first = er.search(index, test.queries, depth=DEPTH)
    return train, test, index, first


@lru_cache(maxsize=1)
def ready(name: str) -> Any:
    """Training data, the same for every system and seed."""
    from evenrank.training.trainer import prepared

    train, _, index, _ = collection(name)
    return prepared(train.docs, train.queries, train.qrels, index=index, depth=DEPTH, seed=0)


def trained(unit: Unit) -> tuple[Path, dict[str, Any]]:
    """The model of a unit, trained if need be."""
    from evenrank.training.trainer import train_prepared

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
    elif kind == "fine-tuned bi-encoder":
        kind = "bi-encoder"
        settings["max_length"] = 64 if unit.collection == "squad" else 160
    found = train_prepared(
        kind, ready(unit.collection), path, seed=unit.seed or 0, say=_say(unit), **settings
    )
    content = {"training CPU seconds": round(found.seconds, 1), "dev": found.metrics}
    facts.write_text(json.dumps(content))
    return path, content


def _say(unit: Unit) -> Callable[[str], None]:
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
        model, settings = "hybrid", {"weight": _weight(unit.collection)}
        facts["weight, chosen on dev queries"] = settings["weight"]
    elif kind == "language model":
        model, depth = "llm", 10
        queries = _drawn(queries, 200)
        first = first.filter(pl.col("query_id").is_in(queries["query_id"].to_list()))
    else:
        model, facts = trained(unit)
        if kind == "cross-encoder":
            depth, settings = READ_TOGETHER, {"hybrid": True}
            if unit.collection == "wiki":
                queries = _drawn(queries, 1000)
                first = first.filter(pl.col("query_id").is_in(queries["query_id"].to_list()))
    started = time.process_time()
    found = er.rerank(model, first, index.docs, queries, depth=depth, keep_rest=True, **settings)
    facts["ranking CPU seconds"] = round(time.process_time() - started, 1)
    return found, facts


def _drawn(queries: pl.DataFrame, count: int) -> pl.DataFrame:
    """So many queries, fixed by a seed before any training."""
    rows = np.sort(np.random.default_rng(14).permutation(len(queries))[:count])
    return queries[rows]


def _weight(name: str) -> float:
    """The weight of BM25 beside the untrained cosine, on dev queries."""
    from evenrank.training.hybrids import untrained

    found = ready(name).examples
    chosen = untrained(found, found.dev_rows(50))
    if chosen is None:
        raise SystemExit("the hybrid needs the extras neural and offline")
    return float(chosen["weight"])


# Measuring


@lru_cache(maxsize=1)
def _tally(name: str) -> Any:
    return er.tally(collection(name)[1].docs)


def measures() -> list[str]:
    """What is measured, besides effectiveness, as the issue of each paper has it."""
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


def mirrored(system: str) -> dict[str, Any]:
    """Which gender a ranker puts first among the four passages of a question, two about women, two about men.

    They are ranked as they are, and with all genders swapped. Half the sum of the two ARaB@4 is what the
    ranker prefers, half the difference what the texts bring.
    """
    from evenrank.stats.intervals import mean_interval

    loaded = er.load(data() / "genderbias-qa")
    values: dict[str, dict[str, float]] = {}
    for side, docs in (("as they are", loaded.docs), ("swapped", er.swap(loaded.docs))):
        texts = tables.docs(docs.frame())
        run = _own_passages(system, texts, loaded)
        values[side] = er.measure(run, [er.ARaB @ 4], tally=er.tally(texts), confidence=None)[
            er.ARaB @ 4
        ].per_query()
    queries = sorted(values["as they are"].keys() & values["swapped"].keys())
    plain, mirror = (np.array([values[side][query] for query in queries]) for side in values)
    found: dict[str, Any] = {"queries": len(queries)}
    for name, numbers in (
        ("raw", plain),
        ("raw, swapped", mirror),
        ("preference", (plain + mirror) / 2),
        ("content", (plain - mirror) / 2),
    ):
        interval = mean_interval(numbers)
        found[name] = {"value": interval.value, "low": interval.low, "high": interval.high}
    return found


def _own_passages(system: str, docs: Any, loaded: Any) -> pl.DataFrame:
    """The four passages of each question in the order of a ranker."""
    from evenrank.training.trainer import own_index

    index = own_index(docs)
    kind = system.partition(",")[0]
    lexical = kind if kind in ("bm25", "qld") else "bm25"
    ranked = er.search(index, loaded.queries, ranker=lexical, depth=index.documents)
    own = loaded.qrels.select("query_id", "doc_id")
    first = own.join(ranked, on=["query_id", "doc_id"], how="left").with_columns(
        pl.col("score").fill_null(0.0)
    )
    first = tables.run(first.select("query_id", "doc_id", "score"))
    if kind in ("bm25", "qld"):
        return first
    model: Any = {"bi-encoder": "bi-encoder", "hybrid": "hybrid", "language model": "llm"}.get(kind)
    settings: dict[str, Any] = {"weight": _weight("squad")} if kind == "hybrid" else {}
    if model is None:
        model = trained(Unit("squad", system, 0))[0]
    return er.rerank(model, first, docs, loaded.queries, depth=4, **settings)


def main(arguments: list[str]) -> int:
    import torch

    torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
    chosen = [each for each in arguments if not each.startswith("-")]
    if "--tables" not in arguments:
        for unit in units():
            if chosen and not any(unit.name.startswith(each) for each in chosen):
                continue
            try:
                content = run_unit(unit)
            except Exception as error:  # the others are worth having
                print(f"{unit.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            rr = content.get("measures", {}).get("RR@10", {}).get("value")
            shown = "" if rr is None else f" RR@10 {rr:.4f}"
            print(f"{unit.name}:{shown} ({content['CPU seconds in all']} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
