"""Query variants: two real engines, BM25 on Wikipedia passages, and how the pattern lexicon writes."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from evenrank.auditing.black_box import VariantAudit
from evenrank.queries.rewriting import learned, shipped


def variants(data: Path) -> dict[str, Any]:
    """Real engines, our own rankers on the 280 triples, and the share of variants that patterns write."""
    triples = data / "data" / "query-variants" / "triples.tsv"
    found = {"two engines": _rows(er.compare_variants(data / "data" / "search-engines" / "results.tsv"))}
    wiki = data / "data" / "wiki" / "docs.tsv.gz"
    if wiki.exists():
        from evenrank.data import tables
        from evenrank.training.trainer import own_index

        index = own_index(tables.docs(wiki))  # kept in the cache
        found["wiki"] = {
            name: _rows(er.compare_variants(index, triples=triples, ranker=name)) for name in ("bm25", "qld")
        }
    return {**found, "patterns": patterns(triples)}


def _rows(found: VariantAudit) -> dict[str, Any]:
    return {
        "rows": [{**asdict(row), "verdict": row.verdict} for row in found.rows],
        "left out": {engine: dict(reasons) for engine, reasons in found.left_out.items()},
        "cautions": list(found.cautions),
    }


def patterns(path: Path) -> dict[str, Any]:
    """The share of published variants that are written verbatim: built on any four topics, tested on the rest.

    The lists of roles and of words that come first are general, but were written by someone who had seen
    queries of all topics; what is learned is learned from the four.
    """
    triples = pl.read_csv(path, separator="\t", infer_schema=False)
    topics = sorted(triples["topic"].unique())
    shares = {}
    for four in combinations(topics, len(topics) // 2):
        rest = triples.filter(~pl.col("topic").is_in(four))
        shares[", ".join(four)] = _verbatim(learned(triples.filter(pl.col("topic").is_in(four))), rest)
    values = np.array(list(shares.values()))
    return {
        "shipped, all triples": _verbatim(shipped(), triples),
        "built on topics 0 to 3": shares["0, 1, 2, 3"],
        "built on topics 4 to 7": shares["4, 5, 6, 7"],
        "over all splits": {
            "splits": len(values),
            "lowest": float(values.min()),
            "median": float(np.median(values)),
            "highest": float(values.max()),
            "at least 60 %": int((values >= 0.6).sum()),
        },
        "by split": shares,
    }


def _verbatim(written: Any, triples: pl.DataFrame) -> float:
    rows = triples.select("neutral", "female", "male").rows()
    pairs = [(written.write(neutral), (female, male)) for neutral, female, male in rows]
    return sum((a == c) + (b == d) for (a, b), (c, d) in pairs) / (2 * len(pairs))
