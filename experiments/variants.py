"""Do neutral queries find what their male or female forms find? (Kopeinik et al. 2023; Ratz et al. 2024)"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import altair as alt
import numpy as np
import polars as pl

import evenrank as er
from evenrank.auditing.black_box import VariantAudit, VariantLean, ask_variants
from evenrank.queries.variants import learned, shipped
from evenrank.rankers.indexing import cached_index
from evenrank.show.charts.theme import named, zero_line
from evenrank.show.numbers import p_value
from experiments.common import Results

PAPER = "ours; Kopeinik et al. 2023, Ratz et al. 2024"
CONTENT = "audit by query variants"
MEASURES = {"VarRaB@10": "RaB", "VarARaB@10": "ARaB", "VarNDRaB@10": "nDRaB"}
"""Our measures, and their names in the authors' code."""
RANKERS = ("bm25", "qld", "bm25+rm3", "tfidf")
TOLERANCE = 1e-12


def run(results: Results) -> None:
    results.differs(
        "the lists of two engines that Ratz et al. published, one triple of each topic; beyond the papers, "
        "our own rankers on Wikipedia passages for all 280 triples. Triples of one topic resemble one "
        "another: intervals over all of them are too narrow, those by topic are safer."
    )
    engines = er.compare_variants(results.path("data", "search-engines", "results.tsv"))
    _authors(results, engines)
    results.table("Two engines, first ten results", _rows(engines.overall()))
    _draw(results, "engines", "Two engines, VarARaB@10", engines.overall())
    _claims(results, engines)
    path = results.path("data", "query-variants", "triples.tsv")
    results.leave_out("dense and trained rankers on the passages, which take hours to encode or train")
    rankers = RANKERS[:2] if results.quick else RANKERS
    if results.quick:
        results.leave_out(f"the rankers {', '.join(RANKERS[2:])}")
    index = cached_index(er.load(results.path("data", "wiki"), split="test").docs)
    audit = er.compare_variants(pl.concat([ask_variants(index, path, ranker=name) for name in rankers]))
    results.table("Rankers on Wikipedia passages, all triples", _rows(audit.overall()))
    title = "VarARaB@10 by topic; topics 0 to 3 have a female stereotype, 4 to 7 a male one"
    topics = [row for row in audit.topics() if row.measure == "VarARaB@10"]
    results.table(title, _rows(topics))
    _draw(results, "topics", title, topics)
    _claims(results, audit)
    _written(results, pl.read_csv(path, separator="\t", infer_schema=False))


def _authors(results: Results, engines: VariantAudit) -> None:
    """Compare every value with what the authors' own code says."""
    oracle = json.loads(results.path("oracles", "search-engines.json").read_text())
    rows = []
    for engine, expected in oracle.items():
        for measure, name in MEASURES.items():
            ours = engines.values.filter(engine=engine, measure=measure)
            each = dict(ours.select("triple_id", "value").iter_rows())
            theirs = {key: row[name]["male_minus_female"] for key, row in expected["triples"].items()}
            mean = _overall(engines, engine, measure).value
            distance = max(abs(each[key] - value) for key, value in theirs.items())
            distance = max(distance, abs(mean - expected["mean_toward_stereotype"][name]))
            rows.append(
                {
                    "engine and measure": f"{engine}, {measure}", "toward the stereotype": mean,
                    "authors' code": expected["mean_toward_stereotype"][name],
                    "largest difference": f"{distance:.0e}", "n": len(theirs),
                }
            )  # fmt: skip
            results.fact(
                f"{measure} of {engine} equals that of the authors' code, each triple and the mean",
                distance <= TOLERANCE and each.keys() == theirs.keys(),
                f"largest difference {distance:.0e}", len(theirs),
            )  # fmt: skip
    results.table("Our values and those of the authors' code", rows, digits=4)


def _overall(audit: VariantAudit, engine: str, measure: str) -> VariantLean:
    rows = (row for row in audit.overall() if row.engine == engine and row.measure == measure)
    return next(row for row in rows if row.toward == "stereotype")


def _rows(leans: Iterable[VariantLean]) -> list[dict[str, Any]]:
    return [
        {
            "engine": row.engine,
            "measure": row.measure if row.topic is None else f"topic {row.topic}",
            "toward": row.toward,
            "value": row.value,
            "95% low": row.low,
            "95% high": row.high,
            "p (Holm)": p_value(row.p_holm),
            "n": row.triples,
            "verdict": row.verdict,
        }
        for row in leans
    ]


def _draw(results: Results, name: str, title: str, leans: Iterable[VariantLean]) -> None:
    rows = [
        {"row": f"{row.engine}, {row.toward if row.topic is None else f'topic {row.topic}'}",
         **{key: getattr(row, key) for key in ("value", "low", "high", "triples")}}
        for row in leans if row.measure == "VarARaB@10"
    ]  # fmt: skip
    base = alt.Chart(pl.DataFrame(rows), width=300).encode(y=alt.Y("row:N", title=None))
    bars = base.mark_rule(color=named("run-2")).encode(x=alt.X("low:Q", title="VarARaB@10"), x2="high:Q")
    dots = base.mark_point(color=named("run-2"), filled=True).encode(x="value:Q")
    title += f", n = {rows[0]['triples']} triples each"
    results.figure(name, title, bars + dots + zero_line("x"))


def _claims(results: Results, audit: VariantAudit) -> None:
    for engine in audit.engines:
        row = _overall(audit, engine, "VarARaB@10")
        results.claim(
            f"results of neutral queries resemble those for the gender of the stereotype ({engine})",
            above=0.0, value=row.value, low=row.low, high=row.high, p=row.p_holm, n=row.triples,
        )  # fmt: skip


def _written(results: Results, triples: pl.DataFrame) -> None:
    """How many of the published variants the lexicon of patterns writes word for word.

    Its lists of roles were written by someone who had seen queries of all topics; what is learned is learned
    on four topics, and tested on the others.
    """

    def share(patterns: Any, rows: pl.DataFrame) -> float:
        asked = rows.select("neutral", "female", "male").rows()
        return float(np.mean([np.equal(patterns.write(neutral), both) for neutral, *both in asked]))

    is_in_four = [pl.col("topic").is_in(four) for four in combinations(triples["topic"].unique().sort(), 4)]
    shares = [share(learned(triples.filter(four)), triples.filter(~four)) for four in is_in_four]
    rows = [
        {"patterns": "as shipped, all triples", "median": share(shipped(), triples), "n": len(triples)},
        {
            "patterns": f"learned on four topics, tested on the others ({len(shares)} splits)",
            "lowest": min(shares), "median": float(np.median(shares)), "highest": max(shares),
            "n": len(triples) // 2,
        },
    ]  # fmt: skip
    results.table("Share of the variants that patterns write word for word as people did", rows)
