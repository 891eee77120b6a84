"""What gender alone does in the lists of every ranker: mirror images beside variants that people wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from evenrank import stats
from evenrank.data.read import read_qrels

RANKERS = (
    "bm25",
    "qld",
    "tfidf",
    "bm25+rm3",
    "qld+rm3",
    "w2v_add",
    "w2v_add(debias=hard)",
    "w2v_add(debias=strong)",
    "w2v_si",
    "w2v_si(debias=hard)",
    "w2v_si(debias=strong)",
    "dense",
)


def variants(folder: Path) -> pl.DataFrame:
    """The female and male variants of Grep-BiasIR: those of a query with the same relevance are one text."""
    docs = pl.read_ndjson(folder / "docs.jsonl").select("query_id", "doc_id", "gender")
    judged = docs.join(read_qrels(folder / "qrels.txt"), on=["query_id", "doc_id"])
    keys = ["query_id", "relevance"]
    female, male = (
        judged.filter(pl.col("gender") == code).select(*keys, pl.col("doc_id").alias(name))
        for code, name in (("F", "female"), ("M", "male"))
    )
    return female.join(male, on=keys, maintain_order="left")


def counterfactual(data: Path) -> dict[str, Any]:
    """Both audits of all rankers on Grep-BiasIR; the neural one takes minutes."""
    folder = data / "data" / "grepbiasir"
    pairs = variants(folder)
    gendered = [*pairs["female"], *pairs["male"]]
    given: dict[str, Any] = {
        "rankers": RANKERS,
        "pairs": True,
        "candidates": read_qrels(folder / "qrels.txt").filter(pl.col("doc_id").is_in(gendered)),
        "vectors": str(data / "data" / "vectors" / "glove-100d.bin.gz"),
        "depth": 2000,
        "at": None,
    }
    files = folder / "docs.jsonl", folder / "queries.tsv"
    mirrored = er.mirror(*files, **given)
    written = er.mirror(*files, variants=pairs.select("female", "male"), **given)
    return {
        "mirror images": mirror_test(mirrored),
        "written by people": mirror_test(written),
        "by expected stereotype": {
            ranker: _by_stereotype(mirrored.values, folder, ranker) for ranker in RANKERS
        },
        "agreement": {ranker: _agreement(mirrored.values, written.values, ranker) for ranker in RANKERS},
    }


def mirror_test(found: Any) -> dict[str, Any]:
    """A mirror test as JSON knows it."""
    return {"rankers": nested(found), "left_out": dict(found.left_out)}


def nested(found: Any) -> list[dict[str, Any]]:
    """The rows of a mirror test; a mean with its interval is one entry."""
    rows = []
    for row in found.summary.iter_rows(named=True):
        means = [name for name in row if f"{name}_low" in row]
        ends = {f"{name}{end}" for name in means for end in ("_low", "_high")}
        plain = {name: value for name, value in row.items() if name not in ends}
        rows.append(
            plain
            | {
                name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in means
            }
        )
    return rows


def _by_stereotype(pairs: pl.DataFrame, folder: Path, ranker: str) -> dict[str, Any]:
    """Score shifts of the queries that people expect to be about men, less those about women."""
    expected = pl.read_ndjson(folder / "docs.jsonl").select("query_id", "stereotype").unique("query_id")
    shifts = pairs.filter(pl.col("ranker") == ranker).group_by("query_id").agg(pl.col("score_shift").mean())
    joined = shifts.join(expected, on="query_id").drop_nulls()
    toward = pl.col("stereotype").str.to_lowercase()  # one is spelled "Towards female"
    sides = {
        gender: joined.filter(toward == f"towards {gender}")["score_shift"] for gender in ("male", "female")
    }
    found = stats.welch(sides["male"].to_numpy(), sides["female"].to_numpy())
    return {
        "queries": {gender: len(side) for gender, side in sides.items()},
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p,
    }


def _agreement(mirrored: pl.DataFrame, written: pl.DataFrame, ranker: str) -> dict[str, Any]:
    """Do both see the same in the same query? Spearman's correlation of the mean score shifts."""
    from scipy.stats import spearmanr

    sides = [
        frame.filter(pl.col("ranker") == ranker).group_by("query_id").agg(pl.col("score_shift").mean())
        for frame in (mirrored, written)
    ]
    both = sides[0].join(sides[1], on="query_id").drop_nulls()
    first, second = both["score_shift"], both["score_shift_right"]
    if first.n_unique() < 2 or second.n_unique() < 2:
        return {"queries": len(both), "spearman": None, "p": None}
    found = spearmanr(first, second)
    return {"queries": len(both), "spearman": float(found.statistic), "p": float(found.pvalue)}
