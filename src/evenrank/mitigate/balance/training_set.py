"""A balanced training set: which queries leave, which are added, and the folder that a trainer reads."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash

from evenrank.data.files import make_folder, writing
from evenrank.data.read import path_of, read_genders, read_qrels, read_queries
from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.queries.generated import refuse_holding, refuse_other_index, refuse_tabs, relevant_pairs
from evenrank.rankers.index import Index
from evenrank.rankers.registry import search
from evenrank.show.grid import Recorded

DEPTH = 100
"""Negatives of triples are drawn from this many documents of BM25."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrainingSet(Recorded):
    """Changes that balance queries and judgments.

    Attributes
    ----------
    removed
        ``query_id, doc_id`` of the judgments that leave; without a ``doc_id``, the whole query leaves.
    added
        ``query_id, doc_id, text`` of the queries that are added, each with the one document it was made of.
    left_out
        Why queries were not used, and how many.
    """

    removed: pl.DataFrame
    added: pl.DataFrame
    left_out: dict[str, int]
    provenance: dict[str, Any]

    def queries(self, x: Any) -> pl.DataFrame:
        """These queries without those that leave, then the added ones; an id that is in both is an error."""
        kept = self._without_removed(read_queries(x), x)
        return pl.concat([kept, self.added.select("query_id", "text")])

    def qrels(self, x: Any) -> pl.DataFrame:
        """These judgments without those that leave, then those of the added queries."""
        keys = ["query_id", "doc_id"]
        kept = self._without_removed(read_qrels(x), x).join(
            self.removed, on=keys, how="anti", maintain_order="left"
        )
        return pl.concat([kept, self.added.select(*keys, relevance=pl.lit(1, pl.Int64))])

    def _without_removed(self, given: pl.DataFrame, x: Any) -> pl.DataFrame:
        known = self.added.join(given, on="query_id", how="semi", maintain_order="left")["query_id"]
        if len(known):
            problem = f"query_id {show(known[0])} is to be added, but is there already"
            remedy = "start from a set without generated queries, or give those other ids"
            raise InputError(f"{problem}; {remedy}", path=path_of(x))
        whole = self.removed.filter(pl.col("doc_id").is_null())
        return given.join(whole, on="query_id", how="anti", maintain_order="left")

    def genders(self) -> pl.DataFrame:
        """The rows that reveal the genders of queries."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        return [f"{reason}: {count:,}" for reason, count in self.left_out.items() if count]

    def write(
        self,
        folder: str | os.PathLike[str],
        queries: Any,
        qrels: Any,
        *,
        index: Index | None = None,
        genders: bool = False,
        seed: int = 0,
    ) -> list[Path]:
        """Write ``queries.tsv``, ``qrels.txt`` and ``report.json`` to a new folder.

        With an index also ``triples.jsonl``: of each query and relevant document, with a negative drawn (with
        `seed`) from the first 100 of BM25. What reveals genders is written only on request
        (``genders.tsv``): a trainer should not see it.
        """
        to = refuse_filled(folder)
        kept, judged = self.queries(queries), self.qrels(qrels)
        refuse_tabs(kept["query_id"])
        for name in ("query_id", "doc_id"):
            refuse_holding(judged[name], r"\s", "a blank, which judgments (qrels.txt) cannot hold")
        content = {
            "queries.tsv": "".join(f"{q}\t{' '.join(text.split())}\n" for q, text in kept.iter_rows()),
            "qrels.txt": "".join(f"{q} 0 {d} {relevance}\n" for q, d, relevance in judged.iter_rows()),
        }
        report = self.to_dict()
        if index is not None:
            refuse_other_index(self.added["doc_id"], index)
            content["triples.jsonl"], report["pairs without a triple"] = _triples(kept, judged, index, seed)
        if genders:
            content["genders.tsv"] = self.genders().write_csv(separator="\t")
        content["report.json"] = json.dumps(report, indent=2, allow_nan=False) + "\n"
        make_folder(to)
        for name, text in content.items():
            with writing(to / name) as file:
                file.write(text.encode())
        return [to / name for name in content]


def refuse_filled(folder: str | os.PathLike[str]) -> Path:
    """Refuse a folder that holds files: an earlier set could be mixed with the new one, an input replaced."""
    to = Path(folder)
    if to.is_dir() and any(to.iterdir()):
        raise InputError("the folder holds files already; name a new one", path=to)
    return to


def predicted_or_given(generated: pl.DataFrame, genders: Any) -> tuple[pl.DataFrame, str]:
    """Genders of generated queries, and where they come from."""
    if genders is not None:
        given = read_genders(genders)
        if not given["query_id"].is_in(generated["query_id"].implode()).any():
            raise InputError(
                "none of these labels is of a generated query; check the ids", path=path_of(genders)
            )
        return given, "given"
    from evenrank.queries.classify import predicted_genders

    return predicted_genders(generated.select("query_id", "text"), keep_seen=True)


def _triples(queries: pl.DataFrame, qrels: pl.DataFrame, index: Index, seed: int) -> tuple[str, int]:
    """A JSON line for each relevant pair, and how many have none.

    A pair has no triple if its document is not in the index, or BM25 finds no other. The random numbers of a
    query are its own.
    """
    pairs = relevant_pairs(queries, qrels)
    requested = pairs.select("query_id", "text").unique("query_id", maintain_order=True)
    run = search(index, requested, depth=DEPTH)
    others = run.join(pairs, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    lists = dict(others.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    random: dict[str, np.random.Generator] = {}
    drawn: list[tuple[str, str, str, str]] = []
    for query_id, doc_id, text in pairs.iter_rows():
        if doc_ids := lists.get(query_id):
            if query_id not in random:
                own = xxhash.xxh3_64_intdigest(query_id.encode("utf-8", "surrogatepass"))
                random[query_id] = np.random.default_rng([seed, own])
            drawn.append((query_id, doc_id, text, doc_ids[int(random[query_id].integers(len(doc_ids)))]))
    texts = index.docs.texts({each for _, doc_id, _, other in drawn for each in (doc_id, other)})
    rows = [
        {"query_id": query_id, "query": text, "positive": texts[doc_id], "negative": texts[other]}
        for query_id, doc_id, text, other in drawn
        if doc_id in texts
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    return "".join(lines), len(pairs) - len(rows)
