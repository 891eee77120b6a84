"""Do trained rankers remember documents? RR@10 apart by whether the answer was one in training too."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import polars as pl

from benchmarks.neural_units import data
from evenrank.data import tables

KINDS = ("answer seen in training", "answer not seen")


@lru_cache(maxsize=2)
def _seen(name: str) -> frozenset[str]:
    """Test queries with a relevant document that is relevant to a training query."""
    good = [
        tables.qrels(data() / name / f"qrels.{split}.txt").filter(pl.col("relevance") > 0)
        for split in ("train", "test")
    ]
    return frozenset(good[1].join(good[0], on="doc_id", how="semi")["query_id"].to_list())


def by_answer(name: str, mine: dict[str, float], theirs: dict[str, float]) -> dict[str, Any]:
    """RR@10 of the two kinds of queries, and how it differs from that of another ranker."""
    from evenrank.stats import paired

    seen = _seen(name)
    found = {}
    for kind in KINDS:
        queries = sorted(query for query in mine if (query in seen) == (kind == KINDS[0]) and query in theirs)
        test = paired([mine[query] for query in queries], [theirs[query] for query in queries])
        found[kind] = {
            "queries": len(queries),
            "value": sum(mine[query] for query in queries) / max(1, len(queries)),
            "difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.p,
        }
    return found


PLAIN, TUNED = "bi-encoder", "fine-tuned bi-encoder"


def fine_tuning(systems: dict[str, Any]) -> list[str]:
    """What fine-tuning the bi-encoder changed, also apart for what it may remember."""
    found = systems.get(TUNED, {}).get("against untuned")
    if found is None:
        return []
    said = [
        f"{kind} {each['difference']:+.3f} ({each['low']:+.3f} to {each['high']:+.3f})"
        for kind, each in found.items()
    ]
    return [f"Fine-tuning the bi-encoder changes RR@10, by queries: {'; '.join(said)}.", ""]


def memory_table(systems: dict[str, Any]) -> list[str]:
    """RR@10 of each ranker on queries whose answer it may remember, and on the others."""
    rows = {system: row["RR@10 by answer"] for system, row in systems.items()}
    shown = ["ranker"]
    for kind in KINDS:
        shown += [f"{kind}: queries", "RR@10", "against BM25", "95 %"]
    lines = ["| " + " | ".join(shown) + " |", "|---|" + "--:|" * (len(shown) - 1)]
    for system, found in rows.items():
        cells = [system]
        for kind in KINDS:
            each = found[kind]
            cells += [f"{each['queries']:,}", f"{each['value']:.3f}"]
            if system == "bm25":
                cells += ["", ""]
            else:
                cells += [f"{each['difference']:+.3f}", f"{each['low']:+.3f} to {each['high']:+.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    said = (
        "The same RR@10, split by whether a relevant document of the test query is relevant to a training "
        "query too. What is gained on the first kind alone may be memory for documents."
    )
    return [said, "", *lines, ""]
