"""What an engine answered: lists of results as it showed them, and the run and collection made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl

from evenrank.data import tables
from evenrank.data.columns import show
from evenrank.errors import InputError
from evenrank.rankers.live.calls import QueryFailed

SCHEMA = pl.Schema(
    {
        "query_id": pl.String,
        "doc_id": pl.String,
        "rank": pl.Int64,
        "score": pl.Float64,
        "title": pl.String,
        "text": pl.String,
    }
)


class Hit(NamedTuple):
    """One result, as the engine gave it."""

    doc_id: object
    score: object = None
    title: object = None
    text: object = None


class Listed(NamedTuple):
    """The results of one query in the columns of a table, and how many were dropped as repeated."""

    frame: pl.DataFrame
    repeated: int


def listed(query_id: str, hits: Sequence[Hit], depth: int) -> Listed:
    """The best `depth` different documents among the results of a query, in the engine's order."""
    rows: dict[str, Hit] = {}
    repeated = 0
    for place, hit in enumerate(hits, 1):
        doc_id = _doc_id(hit.doc_id, place)
        if doc_id in rows:
            repeated += 1
        elif len(rows) < depth:
            rows[doc_id] = hit
    kept = list(rows.values())
    columns = {
        "query_id": [query_id] * len(rows),
        "doc_id": list(rows),
        "rank": range(1, len(rows) + 1),
        "score": [_number(hit.score) for hit in kept],
        "title": [_text(hit.title) for hit in kept],
        "text": [_text(hit.text) for hit in kept],
    }
    return Listed(pl.DataFrame(columns, schema=SCHEMA), repeated)


def _doc_id(value: object, place: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, bytes):  # what a database holds need not be text; different bytes, different ids
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str) and value:
        return encodable(value)
    found = "none" if value is None or value == "" else show(value)
    raise QueryFailed(f"result {place} has no id that is text or a whole number, but {found}; check id=")


def _number(value: object) -> float | None:
    """A finite score; also one that came as text, as some engines write them."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None
    return None


def _text(value: object) -> str | None:
    """A text, or several as one: engines return the fields of a document as lists too."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence):
        return encodable(" ".join(part for part in value if isinstance(part, str))) or None
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def encodable(text: str) -> str:
    """The text without half surrogate pairs, which JSON can carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def run_scores(doc_ids: Sequence[str], scores: Sequence[float | None]) -> list[float]:
    """Scores by which any tool restores the engine's order.

    The engine's own, where they fall along its list; among equal ones that the rule for ties (greater
    doc_id first) would turn around, the lower is made smaller by the least step there is. Where a score is
    missing or rises, minus the rank.
    """
    usable: list[float] = []
    for place, (doc_id, score) in enumerate(zip(doc_ids, scores, strict=True)):
        if score is None or (place and score > (scores[place - 1] or 0.0)):
            return [-float(rank) for rank in range(1, len(doc_ids) + 1)]
        if place and (
            score > usable[-1] or (score == usable[-1] and doc_id.encode() >= doc_ids[place - 1].encode())
        ):
            score = math.nextafter(usable[-1], -math.inf)
        usable.append(score)
    return usable


@dataclass(frozen=True)
class Answers:
    """What an engine answered to a set of queries.

    Parameters
    ----------
    frame
        ``query_id``, ``doc_id``, ``rank`` (from 1, in the engine's order), ``score`` (the engine's own;
        null where it gives none), ``title`` and ``text`` (null where the engine gives none).
    failed
        What went wrong, by query; empty unless ``on_error=skip``.
    empty
        The queries that were answered with no result.
    repeated
        Results dropped because the same list already held the document.
    """

    frame: pl.DataFrame
    failed: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    repeated: int = 0

    @property
    def run(self) -> pl.DataFrame:
        """The run table: the engine's order, with scores that restore it in any tool."""
        if self.frame.is_empty():
            return pl.DataFrame(schema=tables.RUN_SCHEMA)
        return tables.run(self._scored(self.frame))

    def shown(self) -> tuple[pl.DataFrame, tables.Docs]:
        """The run, and the collection of the texts that the engine showed: enough to audit it.

        A document that was shown with different texts (snippets cut to the query) is one document per
        text: ``id``, ``id::2``, … in the order in which they appear. :meth:`judged` takes judgments along;
        else measure effectiveness on :attr:`run`.
        """
        if self.frame["text"].is_null().all() and self.frame["title"].is_null().all():
            # Without words no bias is found: a zero that would mean nothing.
            raise InputError("no result has a text; the setting text= says which field holds it")
        texts = self._variants()
        collection = texts.unique("doc_id", keep="first", maintain_order=True)
        docs = tables.docs(collection.select("doc_id", "title", "text"), name="shown")
        return tables.run(self._scored(texts)), docs

    def judged(self, qrels: Any) -> pl.DataFrame:
        """Judgments of the queries that were asked and did not fail, for the documents of :meth:`shown`.

        A judgment of ``id`` goes to the text of it that its query was shown.
        """
        given = tables.qrels(qrels)
        asked = {*self.frame["query_id"].unique(), *self.empty}
        shown = self._variants().select("query_id", doc_id="original", variant="doc_id")
        return (
            given.filter(pl.col("query_id").is_in(asked))
            .join(shown, on=["query_id", "doc_id"], how="left", maintain_order="left")
            .with_columns(doc_id=pl.coalesce("variant", "doc_id"))
            .select(*given.columns)
        )

    def _variants(self) -> pl.DataFrame:
        """The results, each text of a document under an id of its own, beside the `original` one."""
        texts = self.frame.select(
            "query_id", "doc_id", "rank", "score", pl.col("title", "text").fill_null(""), original="doc_id"
        )
        texts = texts.with_row_index("first").with_columns(
            pl.col("first").min().over("doc_id", "title", "text")
        )
        texts = texts.with_columns(variant=pl.col("first").rank("dense").over("doc_id"))
        other = pl.concat_str("doc_id", pl.lit("::"), "variant")
        return texts.with_columns(doc_id=pl.when(pl.col("variant") > 1).then(other).otherwise("doc_id"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know, in sentences: what failed, and what was dropped."""
        found = []
        if self.failed:
            first, why = next(iter(self.failed.items()))
            found.append(f"{_count(len(self.failed), 'query')} failed and left out, first {first}: {why}")
        if self.repeated:
            found.append(f"{_count(self.repeated, 'result')} dropped: the document stood above already")
        without = self.frame["text"].null_count()
        if 0 < without < len(self.frame):
            found.append(f"{_count(without, 'result')} without text")
        return tuple(found)

    @staticmethod
    def _scored(frame: pl.DataFrame) -> pl.DataFrame:
        lists = frame.partition_by("query_id", maintain_order=True)
        scores = [run_scores(part["doc_id"].to_list(), part["score"].to_list()) for part in lists]
        column = pl.Series("score", [score for part in scores for score in part], dtype=pl.Float64)
        return pl.concat(lists).with_columns(column).select(*tables.RUN_SCHEMA)


def _count(number: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"
