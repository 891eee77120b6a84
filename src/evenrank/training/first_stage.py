"""What finds the candidates that a ranker learns to order: a run, or BM25."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.rankers.base import Say
from evenrank.training.examples import Scores


def first_stage(
    docs: Any, asked: pl.DataFrame, judged: pl.DataFrame, run: Any, index: Any, depth: int, say: Say
) -> tuple[Any, Scores | None, dict[str, Any]]:
    """The run, where to ask for the scores of other pairs, and its provenance."""
    if run is not None:
        name = Path(run).name if isinstance(run, (str, os.PathLike)) else "run"
        return tables.run(run), None, {"run": name}
    from evenrank.rankers.catalogue import make
    from evenrank.rankers.index.building import own_index

    searched = own_index(docs, say) if index is None else index
    bm25 = make("bm25", index=searched)
    relevant = judged.filter(pl.col("relevance") > 0).select("query_id")
    used = asked.join(relevant, on="query_id", how="semi", maintain_order="left")
    if used.is_empty():
        raise InputError("no query has a relevant document; do the ids of queries and qrels agree?")

    def scores(pairs: pl.DataFrame) -> pl.DataFrame:
        """BM25 scores of any pairs; 0 where query and document share no term, as BM25 has it."""
        found = []
        ids = pairs["query_id"].unique(maintain_order=True)
        wanted = asked.join(ids.to_frame(), on="query_id", how="semi", maintain_order="left")
        for start in range(0, len(wanted), 8):
            deep = bm25.rank(wanted.slice(start, 8), depth=searched.documents)
            found.append(
                deep.join(pairs, on=["query_id", "doc_id"], how="semi").select("query_id", "doc_id", "score")
            )
        known = pl.concat(found)
        return pairs.join(known, on=["query_id", "doc_id"], how="left").with_columns(
            pl.col("score").fill_null(0.0)
        )

    described = {key: bm25.describe()[key] for key in ("name", "settings")}
    found = bm25.rank(used, depth=depth)
    if found.is_empty():
        raise InputError(
            "nothing is found for any query; do index and queries belong together?", path=searched.path
        )
    return found, scores, described
