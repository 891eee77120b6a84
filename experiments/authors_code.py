"""Do our values equal those of the authors' own code, on the same runs and collections?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import evenrank as er
from experiments.common import Results, run_file

PAPER = "ours"
CONTENT = "RaB, ARaB, FaiRR, NFaiRR"
COLLECTIONS = ("time", "grepbiasir", "squad")
SYSTEMS = ("bm25", "qld", "bm25.rm3")
MAGNITUDES = {"tc": "count", "tf": "tf", "bool": "boolean"}
TOLERANCE = 5e-9
"""The released code writes values with nine decimals."""


def run(results: Results) -> None:
    results.differs(
        "whitespace tokens, as the authors' scripts split them; the values of their code are computed on "
        "Lucene's runs on these collections, not on MS MARCO."
    )
    if results.quick:
        results.leave_out("the runs of query likelihood and RM3")
    rows: list[dict[str, Any]] = []
    for collection in COLLECTIONS:
        furthest: dict[str, float] = {}
        compared: dict[str, int] = {}
        queries = 0
        for measure, ours, theirs, n in _values(results, collection):
            furthest[measure] = max(furthest.get(measure, 0.0), abs(ours - theirs))
            compared[measure] = compared.get(measure, 0) + 1
            queries = max(queries, n)
        rows += [
            {
                "collection": collection,
                "measure": measure,
                "values": compared[measure],
                "largest difference": f"{largest:.1e}",
                "n": queries,
            }
            for measure, largest in furthest.items()
        ]
        largest = max(furthest.values())
        results.fact(
            f"values on {collection} equal those of the authors' code",
            largest <= TOLERANCE,
            f"largest difference {largest:.1e} in {sum(compared.values()):,} values",
            queries,
        )
    results.table("Largest difference between our values and theirs", rows)


def _values(results: Results, collection: str) -> Iterator[tuple[str, float, float, int]]:
    """Yield each value: the measure, ours, theirs, and the number of queries."""
    oracle = json.loads(results.path("oracles", f"{collection}.json").read_text())
    docs = er.load(results.path("data", collection), split="test" if collection == "squad" else None).docs
    tally = er.tally(docs, "rekabsaz2020", tokenizer="whitespace")
    wide = er.tally(docs, results.path("data", "wordlists", "rekabsaz2021.csv"), tokenizer="whitespace")
    background = run_file(results, collection, "bm25")
    for system in SYSTEMS[:1] if results.quick else SYSTEMS:
        expected, run = oracle["runs"][system], run_file(results, collection, system)
        for name, kind in (("RaB", er.RaB), ("ARaB", er.ARaB)):
            for key, theirs in expected[name].items():
                magnitude, cutoff = key.split("@")
                measure = kind(magnitude=MAGNITUDES[magnitude]) @ int(cutoff)
                ours = er.measure(run, measure, tally=tally, confidence=None)[measure]
                yield name, ours.value, theirs["mean_male_minus_female"], ours.queries
                for group in ("female", "male"):
                    yield name, ours.parts[group], theirs[group], ours.queries
                values = ours.per_query()
                for query, value in theirs["queries"].items():
                    yield name, values[query], value, ours.queries
        for name, kind in (("FaiRR", er.FaiRR), ("NFaiRR", er.NFaiRR)):
            for key, value in expected[name].items():
                measure = kind @ int(key.removeprefix("@"))
                ours = er.measure(run, measure, tally=wide, background=background, confidence=None)[measure]
                yield name, ours.value, value, ours.queries
