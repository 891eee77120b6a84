"""Query variants: two real engines, BM25 on Wikipedia passages, and how the pattern lexicon writes."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.pages import fill, interval, number, table
from evenrank.auditing.black_box import VariantAudit
from evenrank.queries.variants import learned, shipped
from evenrank.show.numbers import p_value


def variants(data: Path) -> dict[str, Any]:
    """Real engines, our own rankers on the 280 triples, and the share of variants that patterns write."""
    triples = data / "data" / "query-variants" / "triples.tsv"
    found = {"two engines": _rows(er.compare_variants(data / "data" / "search-engines" / "results.tsv"))}
    wiki = data / "data" / "wiki" / "docs.tsv.gz"
    if wiki.exists():
        from evenrank.data.docs import open_docs
        from evenrank.rankers.indexing import cached_index

        index = cached_index(open_docs(wiki))  # kept in the cache
        found["wiki"] = {
            name: _rows(er.compare_variants(index, triples=triples, ranker=name)) for name in ("bm25", "qld")
        }
    found["patterns"] = patterns(triples)
    fill("query-variants.md", page(found))
    return found


def _rows(found: VariantAudit) -> dict[str, Any]:
    return {
        "rows": [{**asdict(row), "verdict": row.verdict} for row in found.rows],
        "left out": {engine: dict(reasons) for engine, reasons in found.left_out.items()},
        "warnings": list(found.warnings),
    }


def patterns(path: Path) -> dict[str, Any]:
    """The share of published variants written verbatim: built on any four topics, tested on the rest.

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


def page(found: dict[str, Any]) -> str:
    """The tables of docs/query-variants.md."""
    engines = [
        _cells(row) for row in found["two engines"]["rows"] if row["measure"] in ("VarRaB@10", "VarARaB@10")
    ]
    heads = ["engine", "measure", "toward", "value", "95% interval", "corrected p", "triples", "verdict"]
    text = "Google and DuckDuckGo, first ten results for eight triples (Ratz et al., 2024):\n\n"
    text += table(heads, engines, left=3)
    if "wiki" in found:
        rows = [
            ["all" if row["topic"] is None else row["topic"], *_cells(row)[:1], *_cells(row)[2:]]
            for name in ("bm25", "qld")
            for row in found["wiki"][name]["rows"]
            if row["measure"] == "VarARaB@10"
        ]
        text += "\nThe 280 triples on 224,453 Wikipedia passages, VarARaB@10. Topics 0 to 3 have a female "
        text += "stereotype, 4 to 7 a male one:\n\n"
        text += table(["topic", "ranker", *heads[2:]], rows, left=3)
    written = found["patterns"]
    every = written["over all splits"]
    text += "\nVariants that the lexicon of patterns writes word for word as people did:\n\n"
    rows = [
        ["as shipped, all 280 triples", f"{written['shipped, all triples']:.0%}"],
        ["learned on topics 0 to 3, tested on 4 to 7", f"{written['built on topics 0 to 3']:.0%}"],
        ["learned on topics 4 to 7, tested on 0 to 3", f"{written['built on topics 4 to 7']:.0%}"],
        [
            f"learned on any four topics, tested on the others ({every['splits']} splits)",
            f"{every['lowest']:.0%} to {every['highest']:.0%}, median {every['median']:.0%}",
        ],
    ]
    text += table(["built on", "verbatim"], rows)
    return text + (
        "\nThe lists of roles and of words that come before *female* are general English, but their author "
        "had seen queries of all topics; what is learned comes only from the four topics. "
        "Numbers: [evidence](evidence/query-variants.json).\n"
    )


def _cells(row: dict[str, Any]) -> list[str]:
    shown = [number(row["value"]), interval(row["low"], row["high"]), p_value(row["p_holm"])]
    return [row["engine"], row["measure"], row["toward"], *shown, str(row["triples"]), row["verdict"]]
