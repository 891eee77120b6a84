"""What balancing gives: the queries that stay, the data set they make, and what has changed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from evenrank.data import tables
from evenrank.data.files import reading, writing
from evenrank.errors import InputError
from evenrank.measures.associating import Association


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
        frame = x if isinstance(x, pl.DataFrame) else _read_triples(x)
        if "query_id" not in frame.columns:
            raise InputError(f"triples need a column query_id; found: {', '.join(frame.columns[:6])}")
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
            content["triples.jsonl"] = self.triples(triples).write_ndjson()
        if not content:
            content["query_ids.txt"] = "".join(f"{each}\n" for each in self._query_ids())
        if genders:
            content["kept.tsv"] = self.kept.write_csv(separator="\t")
        content["report.json"] = json.dumps(self.report(), indent=2, allow_nan=False) + "\n"
        for name, text in content.items():
            with writing(to / name) as file:
                file.write(text.encode())
        return [to / name for name in content]

    def _query_ids(self) -> list[str]:
        """The queries that stay, in the order of the scores: a query stays if one of its pairs does."""
        kept = self.scores.filter(pl.col("query_id").is_in(self.kept["query_id"].unique().to_list()))
        return [*kept["query_id"].unique(maintain_order=True).to_list(), *self.neither]


def _read_triples(path: Any) -> pl.DataFrame:
    with reading(path):
        try:
            return pl.read_ndjson(path)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"not readable as JSONL: {str(error).splitlines()[0]}", path=path) from None


def _short(found: Association) -> dict[str, Any]:
    left_out = ("provenance", "pairs")
    return {key: value for key, value in found.to_dict().items() if key not in left_out}


def _tsv(frame: pl.DataFrame) -> str:
    return "".join("\t".join(" ".join(str(cell).split()) for cell in row) + "\n" for row in frame.iter_rows())
