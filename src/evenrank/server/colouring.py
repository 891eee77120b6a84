"""Where the words of each group stand in a text: what a reader sees coloured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenrank.text.matcher import Counts, Matcher


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
    found = matcher.find(whole)
    places = [_Places(text, joined) for text, joined in zip(texts, whole, strict=True)]
    for row, group, word, start, end in found.iter_rows():
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
