"""Texts as sequences of word numbers, for the models that compare words with words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.text.tokens import tokens

PADDING = 0
_ASCII_WORD = re.compile(r"(')?([a-z0-9]+)(?=(')?)")

Ints = npt.NDArray[np.int64]


def words(text: str) -> list[str]:
    """What :func:`evenrank.text.tokens.tokens` finds, quickly where a text is plain ASCII."""
    if not text.isascii():
        return tokens(text)
    return [
        word
        for before, word, behind in _ASCII_WORD.findall(text.lower())
        if len(word) > 1 or not (before or behind)
    ]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that a model knows, numbered from 1; 0 is padding.

    Attributes
    ----------
    words
        The words, in order of their numbers.
    idf
        ln(1 + N/df) of each word in the collection that the model was trained on. A word that is not known
        has the largest, ``unknown_idf``.
    """

    words: tuple[str, ...]
    idf: npt.NDArray[np.float32]
    unknown_idf: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {word: place for place, word in enumerate(self.words, 1)})

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, documents: Iterable[str], queries: Iterable[str], *, least: int = 2) -> Vocabulary:
        """The words that stand in at least this many of the documents, and all words of the queries."""
        frequency: Counter[str] = Counter()
        total = 0
        for text in documents:
            frequency.update(set(words(text)))
            total += 1
        if not total:
            raise InputError("there is no document to learn words from")
        asked = {word for text in queries for word in words(text)}
        kept = sorted({word for word, count in frequency.items() if count >= least} | asked)
        counts = np.array([max(frequency[word], 1) for word in kept])
        idf = np.log1p(total / counts).astype(np.float32)
        return cls(tuple(kept), idf, float(np.log1p(total)))

    def numbers(self, text: str, most: int, unknown: dict[str, int]) -> list[int]:
        """The numbers of a text's first words.

        Words that are not known get numbers above those of the vocabulary, kept in `unknown`, so that the
        same word is the same number in a query and in a document.
        """
        known: dict[str, int] = self._numbers  # type: ignore[attr-defined]
        found = []
        for word in words(text)[:most]:
            number = known.get(word)
            if number is None:
                number = unknown.setdefault(word, len(self.words) + 1 + len(unknown))
            found.append(number)
        return found


def padded(sequences: Sequence[Sequence[int]], width: int) -> npt.NDArray[np.int64]:
    """Sequences as the rows of a matrix, filled up with padding."""
    made = np.full((len(sequences), width), PADDING, np.int64)
    for row, sequence in enumerate(sequences):
        made[row, : len(sequence)] = sequence[:width]
    return made
