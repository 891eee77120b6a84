"""Generated queries beside real ones, and what balanced judgments do to rankers.

    python -m benchmarks.generation_evidence            all units that have not been run, then the tables
    python -m benchmarks.generation_evidence squad      those of one collection, or of one kind: squad/shots
    python -m benchmarks.generation_evidence --tables   the tables again, from what has been run

A unit leaves its result in the folder ``evidence/generation`` of the cache, and is not run again; generation
goes on where it was. docs/evidence/generation.json and the tables in docs/generated-queries.md and
docs/mitigation/judgments.md are made of what is there, and say what is not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from evenrank.queries.generation.filtering import filter_generated
from evenrank.queries.generation.generating import Generated, generate
from evenrank.text.cache import root

HELD_OUT = 300
"""Documents that no training query asks for, drawn by a seed before anything was generated."""
GENDERED = {"squad": 300, "wiki": 300}
"""Documents with words of one gender, drawn for balancing: half of them female, half male."""
ANSWERABLE = 0.5
RECIPE: dict[str, Any] = {"most": 320, "layers": 15, "rate": 2e-4, "batch": 8}


def home() -> Path:
    return root() / "evidence" / "generation"


@lru_cache(maxsize=2)
def collection(name: str) -> Any:
    """Training and test part, and an index."""
    from evenrank.training.trainer import own_index

    found = shared()
    if found is None:
        raise SystemExit("the evidence needs the test data; set EVENRANK_TEST_DATA")
    train, test = (er.load(found / "data" / name, split=split) for split in ("train", "test"))
    return train, test, own_index(test.docs)


@lru_cache(maxsize=2)
def held_out(name: str) -> tuple[dict[str, str], pl.DataFrame]:
    """Texts of the documents, and the judgments of test queries that ask for them."""
    train, test, index = collection(name)
    seen = train.qrels["doc_id"].unique().to_list()
    good = test.qrels.filter(pl.col("relevance") > 0, ~pl.col("doc_id").is_in(seen))
    good = good.filter(pl.col("query_id").is_in(test.queries["query_id"].to_list()))
    ids = sorted(good["doc_id"].unique().to_list())
    drawn = [ids[row] for row in np.random.default_rng(1).permutation(len(ids))[:HELD_OUT]]
    return index.docs.texts(drawn), good.filter(pl.col("doc_id").is_in(drawn))


def written(name: str, unit: str, docs: Any, n: int, model: Any, **given: Any) -> tuple[Generated, float]:
    """Generated queries of a unit, and the CPU seconds for each, where they were written in one go."""
    out = home() / f"{name}-{unit}.tsv"
    out.parent.mkdir(parents=True, exist_ok=True)
    seconds = out.with_suffix(".seconds")
    spent = float(seconds.read_text()) if seconds.exists() else 0.0
    started = time.process_time()
    try:
        found = generate(docs, n, model, output=out, say=_say, **given)
    finally:
        seconds.write_text(str(spent + time.process_time() - started))
    return found, float(seconds.read_text()) / max(1, len(found))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def beside_real(name: str, made: Generated) -> dict[str, Any]:
    """Four numbers of generated queries, and of the real ones of the same documents."""
    _, test, index = collection(name)
    _, good = held_out(name)
    asked = test.queries.join(good, on="query_id", how="semi")
    return er.closeness(made, index, queries=asked, qrels=good).to_dict()


def closeness_of(name: str, unit: str, model: Any, **given: Any) -> dict[str, Any]:
    """A query for each document, as they come and after the filters."""
    texts, _ = held_out(name)
    made, seconds = written(name, unit, texts, 1, model, **given)
    kept = filter_generated(made, collection(name)[2], answerable=ANSWERABLE)
    passed = set(kept.queries["query_id"])
    shown = [
        {"document": texts[doc_id], "query": text, "kept": query_id in passed}
        for query_id, doc_id, text in made.queries.head(20).iter_rows()
    ]
    return {
        "documents": len(texts),
        "as they come": beside_real(name, made),
        "filtered": beside_real(name, kept),
        "left out": kept.left_out,
        "CPU seconds a query": round(seconds, 3),
        "model": made.provenance.get("model", "extractive"),
        "examples": shown,
    }


def shots(name: str) -> dict[str, Any]:
    """SmolLM2, shown five real pairs."""
    return closeness_of(name, "shots", shown_writer(name))


def shown_writer(name: str) -> Any:
    from evenrank.queries.generation.generating import SHOTS, examples
    from evenrank.queries.generation.language import LanguageWriter

    train, _, _ = collection(name)
    return LanguageWriter(examples=examples(train.docs, train.queries, train.qrels, SHOTS, 0))


def tuned_writer(name: str) -> Any:
    """SmolLM2 after some hundred training pairs of the collection."""
    from evenrank.queries.generation.language import LanguageWriter
    from evenrank.queries.generation.tuning import tune_generator

    train, _, _ = collection(name)
    folder = home() / f"{name}-writer"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        started = time.process_time()
        tune_generator(train.docs, train.queries, train.qrels, folder, say=_say, **RECIPE)
        facts = {**RECIPE, "CPU seconds": round(time.process_time() - started, 1)}
        folder.with_suffix(".json").write_text(json.dumps(facts))
    return LanguageWriter(folder)


def tuned(name: str) -> dict[str, Any]:
    """The same after training on pairs of the collection."""
    found = closeness_of(name, "tuned", tuned_writer(name))
    return {**found, "training": json.loads((home() / f"{name}-writer.json").read_text())}


def extractive(name: str) -> dict[str, Any]:
    return closeness_of(name, "extractive", "extractive")


UNITS: dict[str, Callable[[], dict[str, Any]]] = {
    f"{name}/{kind.__name__}": lambda kind=kind, name=name: kind(name)  # type: ignore[misc]
    for name in ("squad", "wiki")
    for kind in (extractive, tuned, shots)
}


def main(arguments: list[str]) -> int:
    chosen = [each for each in arguments if not each.startswith("-")]
    if "--tables" not in arguments:
        import torch

        torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
        for name, run in UNITS.items():
            path = home() / "units" / f"{name.replace('/', '--')}.json"
            if path.exists() or (chosen and not any(name.startswith(each) for each in chosen)):
                continue
            started = time.process_time()
            found = run()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**found, "CPU seconds": round(time.process_time() - started, 1)}))
            print(name, path.read_text()[:300], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
