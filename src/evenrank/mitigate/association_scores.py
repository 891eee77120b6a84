"""Scores γ: how close each query stands to its own relevant documents, made or read."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import BM25


def association_scores(
    index: Index | str | os.PathLike[str], queries: Any, qrels: Any, *, k1: float = 0.9, b: float = 0.4
) -> pl.DataFrame:
    """The BM25 score of every query with each of its relevant documents: ``query_id, doc_id, score``.

    A query that shares no term with its document scores 0. Documents that the index lacks are left out.
    """
    searched = index if isinstance(index, Index) else Index.open(index)
    model = BM25(k1=k1, b=b)
    texts = dict(tables.queries(queries).iter_rows())
    judged = tables.qrels(qrels).filter(pl.col("relevance") > 0, pl.col("query_id").is_in(list(texts)))
    judged = judged.with_columns(number=pl.Series(searched.numbers(judged["doc_id"].to_list())))
    judged = judged.filter(pl.col("number") >= 0)
    bags = {q: _bag(searched, texts[q]) for q in judged["query_id"].unique(maintain_order=True)}
    mean = searched.tokens / max(1, searched.documents)
    scores = []
    for query_id, number in judged.select("query_id", "number").iter_rows():
        terms, counts = searched.forward(number)
        norm = model.k1 * (1 - model.b + model.b * float(searched.lengths[number]) / mean)
        score = 0.0
        for term, weight in bags[query_id].items():
            place = int(np.searchsorted(terms, term))
            if place < len(terms) and terms[place] == term:
                df = float(searched.document_frequency[term])
                idf = np.log1p((searched.documents - df + 0.5) / (df + 0.5))
                tf = float(counts[place])
                score += weight * idf * tf / (tf + norm)
        scores.append(score)
    return judged.select("query_id", "doc_id", score=pl.Series(scores, dtype=pl.Float64))


def _bag(index: Index, text: str) -> Counter[int]:
    numbers = (index.number(term) for term in index.analyzer.terms(text))
    return Counter(number for number in numbers if number >= 0)


def score_table(scores: Any, male: Any, genders: Any) -> tuple[pl.DataFrame, list[str]]:
    """``query_id, doc_id, score, gender`` of female and male queries, and the ids of all others."""
    if male is not None:
        if genders is not None:
            raise InputError("two tables of scores are the female and the male queries; leave genders out")
        sides = {"female": tables.pair_scores(scores), "male": tables.pair_scores(male)}
        both = set(sides["female"]["query_id"]) & set(sides["male"]["query_id"])
        if both:
            raise InputError(f"query {min(both)} is in the scores of both genders")
        return pl.concat([side.with_columns(gender=pl.lit(g)) for g, side in sides.items()]), []
    if genders is None:
        raise InputError("one table of scores needs genders to tell female from male queries")
    labels = tables.genders(genders)
    table = tables.pair_scores(scores).join(labels, on="query_id", how="left", maintain_order="left")
    chosen = table["gender"].is_in(["female", "male"]).fill_null(False)
    rest = table.filter(~chosen)["query_id"].unique(maintain_order=True).to_list()
    return table.filter(chosen), rest
