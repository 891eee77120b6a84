"""Texts with the words of each group marked: passages that contribute most to a bias, and whole lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from evenrank.measures.inputs import Inputs
from evenrank.measures.results import Measurement

if TYPE_CHECKING:
    from evenrank.text.matcher import Counts, Matcher

QUERIES, PASSAGES = 5, 3  # queries for each side of a run, and passages for each of them
EXCERPT = 420  # bytes of a passage that are shown
_BEFORE = 60  # bytes shown before the first marked word of a long passage


class Segment(NamedTuple):
    """A piece of text, and the group whose word it is; None for plain text."""

    text: str
    group: str | None


@dataclass(frozen=True)
class Passage:
    """A ranked document and what it adds to its query's value."""

    doc_id: str
    rank: int
    contribution: float
    segments: tuple[Segment, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "doc_id": self.doc_id,
            "rank": self.rank,
            "contribution": self.contribution,
            "text": [segment._asdict() for segment in self.segments],
        }


@dataclass(frozen=True)
class LeaningQuery:
    """A query whose list leans far to one side, and the passages that make it so."""

    run: str
    query_id: str
    value: float
    segments: tuple[Segment, ...]
    passages: tuple[Passage, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "query_id": self.query_id,
            "value": self.value,
            "text": [segment._asdict() for segment in self.segments],
            "passages": [passage.to_dict() for passage in self.passages],
        }


def leaning_queries(found: Sequence[Measurement], inputs: Inputs) -> tuple[LeaningQuery, ...]:
    """The queries that lean farthest to either side, run by run, each with its heaviest passages.

    Without documents there are no passages, without queries no texts of them.

    Parameters
    ----------
    found
        One measure that leans and is a sum over documents, measured for each run.
    """
    docs, queries, matcher = inputs.docs, inputs.queries, inputs.matcher
    chosen = {m.run: rows for m in found if (rows := _extremes(m))}
    ranked = {m.run: _contributions(m, chosen[m.run], inputs) for m in found if m.run in chosen}
    heaviest = {
        run: frame.filter(pl.col("contribution") != 0)
        .sort(pl.col("contribution").abs(), "rank", descending=[True, False], maintain_order=True)
        .group_by("query_id", maintain_order=True)
        .head(PASSAGES)
        for run, frame in ranked.items()
    }
    texts: dict[str, str] = {}
    if docs is not None:
        wanted = dict.fromkeys(doc for frame in heaviest.values() for doc in frame["doc_id"].to_list())
        texts = docs.texts(list(wanted))
    marked = dict(zip(texts, segments(list(texts.values()), matcher, EXCERPT), strict=True))
    requested = {} if queries is None else dict(queries.iter_rows())
    ids = list(dict.fromkeys(query for rows in chosen.values() for query, _ in rows))
    shown = dict(zip(ids, segments([requested.get(query, query) for query in ids], matcher), strict=True))
    return tuple(
        LeaningQuery(
            run,
            query,
            value,
            shown[query],
            tuple(
                Passage(doc, rank, contribution, marked[doc])
                for doc, rank, contribution in heaviest[run]
                .filter(pl.col("query_id") == query)
                .select("doc_id", "rank", "contribution")
                .iter_rows()
                if doc in marked
            ),
        )
        for run, rows in chosen.items()
        for query, value in rows
    )


def _extremes(m: Measurement) -> list[tuple[str, float]]:
    """The queries farthest to the positive side, then those farthest to the negative."""
    order = np.argsort(m.values, kind="stable")
    up = [i for i in order[::-1][:QUERIES].tolist() if m.values[i] > 0]
    down = [i for i in order[:QUERIES].tolist() if m.values[i] < 0]
    return [(m.query_ids[i], float(m.values[i])) for i in [*up, *down]]


def _contributions(m: Measurement, chosen: list[tuple[str, float]], inputs: Inputs) -> pl.DataFrame:
    """What each ranked document of the chosen queries adds to its query's value."""
    measure: Any = m.measure
    run = inputs.runs[m.run].filter(pl.col("query_id").is_in([query for query, _ in chosen]))
    lists = inputs.lists(run, [measure], m.run)
    return pl.DataFrame(
        {
            "query_id": lists.query_ids.gather(np.repeat(np.arange(len(lists.lengths)), lists.lengths)),
            "doc_id": lists.doc_ids,
            "rank": lists.positions,
            "contribution": measure.contributions(lists),
        }
    )


def segments(
    texts: Sequence[str], matcher: Matcher | None, longest: int | None = None
) -> list[tuple[Segment, ...]]:
    """Each text in pieces, the words of the groups apart; a long one cut around its first such word."""
    hits: dict[int, list[tuple[int, int, str]]] = {}
    if matcher is not None and len(texts):
        result = matcher.find(texts).unique(["row", "start"], keep="first", maintain_order=True)
        for row, start, end, group in result.select("row", "start", "end", "group").iter_rows():
            hits.setdefault(row, []).append((start, end, group))
    return [_pieces(text.encode(), hits.get(row, []), longest) for row, text in enumerate(texts)]


def _pieces(data: bytes, hits: list[tuple[int, int, str]], longest: int | None) -> tuple[Segment, ...]:
    first, last = 0, len(data)
    if longest is not None and len(data) > longest:
        first = max(0, min(hits[0][0] - _BEFORE if hits else 0, len(data) - longest))
        first = 0 if first == 0 else data.find(b" ", first, hits[0][0] if hits else None) + 1 or first
        last = min(len(data), first + longest)
        last = len(data) if last == len(data) else max(data.rfind(b" ", first, last), first + 1)
        while first < len(data) and data[first] & 0xC0 == 0x80:  # not within a letter
            first += 1
        while last < len(data) and data[last] & 0xC0 == 0x80:
            last += 1
    rows: list[Segment] = [Segment("… ", None)] if first else []
    place = first
    for start, end, group in hits:
        if start < place or end > last:
            continue
        rows.append(Segment(data[place:start].decode(), None))
        rows.append(Segment(data[start:end].decode(), group))
        place = end
    rows.append(Segment(data[place:last].decode() + (" …" if last < len(data) else ""), None))
    return tuple(segment for segment in rows if segment.text)


class Span(NamedTuple):
    """A word of a group: the field it stands in, and from where to where, in characters (code points)."""

    field: str
    start: int
    end: int
    group: str
    word: str


@dataclass(frozen=True)
class Text:
    """A result as it is counted: title and text with a blank between them, as in a collection."""

    title: str
    body: str

    @property
    def whole(self) -> str:
        return " ".join(filter(None, (self.title, self.body)))


@dataclass(frozen=True, eq=False)
class Coloured:
    """Texts, the numbers of each group's words in them, and where these are."""

    groups: tuple[str, ...]
    counts: Counts
    spans: list[list[Span]]

    def columns(self) -> dict[str, Any]:
        """The same as the columns of a tally."""
        return {
            "tokens": self.counts.tokens,
            **{group: self.counts.counts[:, i] for i, group in enumerate(self.groups)},
            **{f"{group}_logwords": self.counts.logwords[:, i] for i, group in enumerate(self.groups)},
        }


def colour(matcher: Matcher, texts: Sequence[Text]) -> Coloured:
    """Count and find the words of each group."""
    whole = [text.whole for text in texts]
    spans: list[list[Span]] = [[] for _ in texts]
    result = matcher.find(whole)
    places = [_Places(text, joined) for text, joined in zip(texts, whole, strict=True)]
    for row, group, word, start, end in result.iter_rows():
        spans[row] += places[row].spans(start, end, group, word)
    return Coloured(matcher.groups, matcher.count(whole), spans)


class _Places:
    """From bytes of the joined text to characters of its fields."""

    def __init__(self, text: Text, whole: str) -> None:
        self._before: Any = None
        if not whole.isascii():
            data = np.frombuffer(whole.encode(), np.uint8)
            self._before = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
        head = len(text.title)
        body = head + 1 if text.title and text.body else head
        fields = [("title", 0, head), ("text", body, len(whole))]
        self._fields = [field for field in fields if field[1] < field[2]]

    def spans(self, start: int, end: int, group: str, word: str) -> list[Span]:
        """A hit as spans: one, or two where a phrase begins in the title and ends in the text."""
        first, last = start, end
        if self._before is not None:
            first, last = int(self._before[start]), int(self._before[end])
        if len(self._fields) == 1:
            return [Span(self._fields[0][0], first, last, group, word)]
        return [
            Span(field, max(first, low) - low, min(last, high) - low, group, word)
            for field, low, high in self._fields
            if first < high and last > low
        ]
