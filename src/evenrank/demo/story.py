"""The whole story on the demo collection: index, rank, mitigate, audit, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from evenrank import demo
from evenrank.auditing.result import Audit
from evenrank.data.read import read_qrels
from evenrank.data.runs import read_run, write_run
from evenrank.mitigate.mirror import Mirror
from evenrank.mitigate.tradeoff import TradeOff

RANKERS = ("bm25", "bm25+rm3")
LIMIT = 0.1
DEPTH = 50  # as deep as the run that comes with the collection
CONSTRAINED, AWARE = "bm25-constrained", "bm25+rm3-aware"


@dataclass(frozen=True, eq=False)
class Story:
    """What happened, and where it lies.

    Attributes
    ----------
    audit
        All runs: those of the rankers, and the two that were mitigated.
    within, learned
        Bias against usefulness: of re-ranking within a limit, and of feedback that minds bias.
    mirrored
        How far gender alone moves passages in the lists of ``bm25+rm3``.
    report
        The page to read.
    """

    audit: Audit
    within: TradeOff
    learned: TradeOff
    mirrored: Mirror
    report: Path


def tell(folder: Path, *, say: Callable[[str], None] = lambda _: None) -> Story:
    """Do everything, and leave it in a folder; `say` is told what is done at the moment."""
    demo.copy_to(folder)
    docs, queries, qrels = er.load(folder)
    genders = folder / "genders.tsv"
    say("index the collection")
    index = er.index(docs, folder / "index", overwrite=True)
    say(f"rank with {' and '.join(RANKERS)}; dense is ready made")
    runs: dict[str, Any] = {name: er.search(index, queries, ranker=name, depth=DEPTH) for name in RANKERS}
    runs["dense"] = read_run(folder / "dense.run")
    say("count female and male words")
    tally = er.tally(docs)
    tally.write(folder / "tally.parquet")
    say(f"re-rank bm25 within |ARaB@10| ≤ {LIMIT}")
    runs[CONSTRAINED] = er.constrain(runs["bm25"], tally, limit=f"abs(ARaB@10)<={LIMIT}")
    say("see what less bias costs")
    within = er.sweep(runs["bm25"], tally, qrels=qrels)
    learned = er.sweep(
        tally=tally,
        qrels=qrels,
        method="feedback",
        index=index,
        queries=queries,
        strengths=[0.2, 0.4, 0.6, 0.8, 1],
    )
    runs[AWARE] = learned.chosen.run.filter(pl.col("rank") <= DEPTH)
    say("swap women and men in the texts, and rank again")
    mirrored = er.mirror(docs, queries, rankers=["bm25+rm3"], pairs=True)
    say(f"audit {len(runs)} runs")
    result = er.audit(
        runs, docs=docs, tally=tally, queries=queries, qrels=qrels, genders=genders, baseline="bm25"
    )
    say("write the report")
    _write_runs(folder / "runs", runs)
    result.to_json(folder / "audit.json")
    report = result.report(
        folder / "report.html",
        tradeoff=[within, learned],
        rank_shift=mirrored.rank_shift(),
        association=er.association(_closeness(index, queries, qrels), genders=genders),
        representation={name: er.represent(runs[name], "full", tally=tally) for name in ("bm25", "dense")},
        title="Search bias audit of the demo collection",
    )
    return Story(result, within, learned, mirrored, report)


def _write_runs(folder: Path, runs: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    for name, run in runs.items():
        write_run(run, folder / f"{name}.run", name=name)


def _closeness(index: er.Index, queries: pl.DataFrame, qrels: Any) -> pl.DataFrame:
    """BM25 scores of queries with their relevant passages."""
    everything = er.search(index, queries, ranker="bm25", depth=index.documents)
    relevant = read_qrels(qrels).filter(pl.col("relevance") > 0)
    return everything.join(relevant, on=["query_id", "doc_id"]).select("query_id", "score")
