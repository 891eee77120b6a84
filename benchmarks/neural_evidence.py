"""Neural rankers beside BM25: how good they are, and how they lean: `make evidence-neural`.

    python -m benchmarks.neural_evidence            all units that have not been run, then the tables
    python -m benchmarks.neural_evidence squad      those of one collection, or of one system: squad/pacrr;
                                                    of several, in the order in which they are named
    python -m benchmarks.neural_evidence --tables   the tables again, from what has been run

A unit is one training, or one ranker, on one collection with one seed; none takes more than an hour. Each
leaves its values in ``benchmarks/units`` and is not run again; models and runs are in the folder
``evidence/neural`` of the cache. docs/evidence/neural-rankers.json and the tables in docs/neural-rankers.md
are made of these values, and say what is missing. A row whose units were not kept stays as it was.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.kept_units import keep
from benchmarks.neural_preferences import SYSTEMS, mirrored
from benchmarks.neural_settings import EXTRAS
from benchmarks.neural_units import INTERACTION, Unit, known, measured, ranked, run_path
from benchmarks.pages import committed_source
from evenrank.data import tables


def units() -> Iterator[Unit]:
    """Everything, the most telling first."""
    yield from (Unit("extra", name) for name in ("drmm settings", "interaction settings"))
    yield from (Unit("squad", name) for name in ("bm25", "bi-encoder", "hybrid"))
    yield from (Unit("squad", "head", seed) for seed in range(5))
    for seed in range(3):
        yield from _interaction("squad", seed)
        if seed == 0:
            yield from _cross_encoders("squad", 0)
            yield Unit("wiki", "bm25")
    yield from (Unit("genderbias-qa", name) for name in SYSTEMS)
    for seed in (1, 2):
        yield from _cross_encoders("squad", seed)
    yield Unit("squad", "fine-tuned bi-encoder", 0)
    yield Unit("squad", "language model")
    yield from (Unit("wiki", name) for name in ("bi-encoder", "hybrid"))
    yield from (Unit("wiki", "head", seed) for seed in range(3))
    for seed in range(3):
        yield from _interaction("wiki", seed)
        if seed == 0:
            yield from _cross_encoders("wiki", 0)
            yield Unit("wiki", "fine-tuned bi-encoder", 0)
    yield from (Unit("extra", name) for name in ("encoding speed", "pair speed"))


def _interaction(collection: str, seed: int) -> Iterator[Unit]:
    for stage in ("with", "alone"):
        for kind in INTERACTION:
            for vectors in ("glove", "random"):
                yield Unit(collection, f"{kind}, {vectors}, {stage}", seed)


def _cross_encoders(collection: str, seed: int) -> Iterator[Unit]:
    yield Unit(collection, "cross-encoder, with", seed)
    yield Unit(collection, "cross-encoder, alone", seed)


def run_unit(unit: Unit) -> dict[str, Any]:
    """Train what is to be trained, rank, measure; what was done before is not done again."""
    if (there := known(unit)) is not None:
        return there
    source, started = committed_source(), time.process_time()
    if unit.collection == "genderbias-qa":
        content: dict[str, Any] = mirrored(unit.system)
    elif unit.collection == "extra":
        content = EXTRAS[unit.system]()
    else:
        run, facts = ranked(unit)
        tables.write_run(run, run_path(unit), name=unit.system.replace(" ", "-"))
        content = {**facts, "measures": measured(unit.collection, run)}
    content["src"] = source
    content["CPU seconds in all"] = round(time.process_time() - started, 1)
    keep("neural", unit.name, content)
    return content


def main(arguments: list[str]) -> int:
    chosen = [each for each in arguments if not each.startswith("-")]
    if "--tables" not in arguments:
        import torch

        torch.set_num_threads(int(os.environ.get("EVENRANK_THREADS", "1")))
        for start in chosen or [""]:
            for unit in units():
                if unit.name.startswith(start):
                    _run(unit)
    from benchmarks.neural_tables import write_tables

    write_tables(list(units()))
    return 0


def _run(unit: Unit) -> None:
    try:
        content = run_unit(unit)
    except Exception as error:  # the others are worth having
        print(f"{unit.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return
    rr = content.get("measures", {}).get("RR@10", {}).get("value")
    shown = "" if rr is None else f" RR@10 {rr:.4f}"
    print(f"{unit.name}:{shown} ({content['CPU seconds in all']} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
