"""What balancing begins with, scores of queries with their documents, and what it gives: a data set."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.arithmetic import log1p
from evenrank.data import door, tables
from evenrank.data.columns import listing
from evenrank.data.files import one_line, writing
from evenrank.errors import InputError
from evenrank.measures.associating import Association
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import BM25


@dataclass(frozen=True, eq=False)
class Balanced:
    """Judgments in which both genders stand equally close to their documents.

    Attributes
    ----------
    kept
        ``query_id, doc_id, score, gender``, and ``pair``, which two rows share that were matched.
    scores
        The same of all female and male queries.
    neither
        Ids of the queries that are neither female nor male: they all stay.
    before, after
        The two distributions of scores, and how far apart they are: Kolmogorov–Smirnov, Wasserstein, means,
        histograms.
    """

    kept: pl.DataFrame
    scores: pl.DataFrame
    neither: list[str]
    before: Association
    after: Association
    provenance: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """The histograms before and after, ready for a chart: a row for each bin, gender and time."""
        parts = {"before": self.before, "after": self.after}
        return pl.concat(
            [part.frame().insert_column(0, pl.lit(when).alias("when")) for when, part in parts.items()]
        )

    def queries(self, x: Any) -> pl.DataFrame:
        """Of these queries those that stay."""
        given = tables.queries(x)
        return given.filter(pl.col("query_id").is_in(self._query_ids()))

    def qrels(self, x: Any) -> pl.DataFrame:
        """Of these judgments those that stay.

        A relevant document whose score was matched away goes; the judged documents that are not relevant
        stay with their query.
        """
        given = tables.qrels(x)
        staying = given.filter(pl.col("query_id").is_in(self._query_ids()))
        if self.scores["doc_id"].null_count():
            return staying
        keys = ["query_id", "doc_id"]
        gone = self.scores.select(keys).join(self.kept.select(keys), on=keys, how="anti")
        return staying.join(gone, on=keys, how="anti", maintain_order="left")

    def triples(self, x: Any) -> pl.DataFrame:
        """Of these triples (a table with ``query_id``) those of queries that stay."""
        frame = x if isinstance(x, pl.DataFrame) else _as_frame([found for found, _ in _triples(x)], x)
        if "query_id" not in frame.columns:
            raise InputError(f"triples need a column query_id; found: {listing(frame.columns, 6)}")
        return frame.filter(pl.col("query_id").cast(pl.String).is_in(self._query_ids()))

    def report(self) -> dict[str, Any]:
        """What has changed, as JSON: how many stay, and the distributions before and after."""
        counts = {
            gender: {"before": self.before.pairs[gender], "after": self.after.pairs[gender]}
            for gender in ("female", "male")
        }
        smaller = min(self.before.pairs.values())
        return {
            "kept": counts,
            "kept_of_smaller_side": self.after.pairs["female"] / smaller,
            "neither_gender": len(self.neither),
            "before": _short(self.before),
            "after": _short(self.after),
            "provenance": self.provenance,
        }

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        queries: Any = None,
        qrels: Any = None,
        triples: Any = None,
        genders: bool = False,
    ) -> list[Path]:
        """Write ``queries.tsv``, ``qrels.txt``, ``triples.jsonl`` and ``report.json`` to a folder.

        Genders and scores (``kept.tsv``) are written only if asked for: a trainer should not see them.
        Without queries and judgments, ``query_ids.txt`` says which queries stay.
        """
        to = Path(folder)
        try:
            to.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror or error}", path=folder) from error
        content: dict[str, str] = {}
        if queries is not None:
            content["queries.tsv"] = _tsv(self.queries(queries))
        if qrels is not None:
            rows = self.qrels(qrels).iter_rows()
            content["qrels.txt"] = "".join(f"{q} 0 {d} {relevance}\n" for q, d, relevance in rows)
        if triples is not None:
            content["triples.jsonl"] = self._triple_lines(triples)
        if not content:
            content["query_ids.txt"] = "".join(f"{each}\n" for each in self._query_ids())
        if genders:
            content["kept.tsv"] = self.kept.write_csv(separator="\t")
        content["report.json"] = json.dumps(self.report(), indent=2, allow_nan=False) + "\n"
        for name, text in content.items():
            with writing(to / name) as file:
                file.write(text.encode())
        return [to / name for name in content]

    def _triple_lines(self, x: Any) -> str:
        """The triples that stay, as JSONL; those of a file as they are written there."""
        if not door.is_path(x):
            return self.triples(x).write_ndjson()
        staying = set(self._query_ids())
        return "".join(f"{line}\n" for found, line in _triples(x) if str(found["query_id"]) in staying)

    def _query_ids(self) -> list[str]:
        """The queries that stay, in the order of the scores: a query stays if one of its pairs does."""
        kept = self.scores.filter(pl.col("query_id").is_in(self.kept["query_id"].unique().to_list()))
        return [*kept["query_id"].unique(maintain_order=True).to_list(), *self.neither]


def _triples(path: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The triples of a JSONL file, each with the line it stands on."""
    for number, found, line in door.objects(path):
        if not isinstance(found.get("query_id"), str | int):
            problem = f"triples need a query_id; found: {listing(found, 6)}"
            raise InputError(problem, path=path, line=number)
        yield found, line


def _as_frame(rows: list[dict[str, Any]], path: Any) -> pl.DataFrame:
    """A column for each field of any row; a field that is of two kinds has no column to stand in."""
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"its fields make no table: {one_line(error)}", path=path) from None


def _short(found: Association) -> dict[str, Any]:
    left_out = ("provenance", "pairs")
    return {key: value for key, value in found.to_dict().items() if key not in left_out}


def _tsv(frame: pl.DataFrame) -> str:
    return "".join("\t".join(" ".join(str(cell).split()) for cell in row) + "\n" for row in frame.iter_rows())


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
                idf = log1p((searched.documents - df + 0.5) / (df + 0.5))
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
