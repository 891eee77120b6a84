"""What is known about a word before any query is read: its vector, who bears it as a name, its gender."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.queries.word_lists import census_names, gendered_words
from evenrank.vectors import Vectors, load

Floats = npt.NDArray[np.float32]
Source = Vectors | str | os.PathLike[str]

WORD = re.compile(r"[^\W\d_]+")
"""A run of letters: `lincoln's` is `lincoln` and `s`, which keeps the name whole."""
_NAME_FACTS = 5
_LENGTH = 3.0  # of a word vector as a feature: each of its numbers is then about as large as a name fact


class WordKnowledge:
    """Numbers for words, to be added to what a text encoder makes of them.

    An encoder of word pieces breaks rare names up and has to learn from few queries that Judith is a
    woman. The census knows it, and word vectors know that Hemingway writes.

    Parameters
    ----------
    words
        One for each row; words not among them are all zeros.
    rows
        Their numbers.
    """

    def __init__(self, words: Sequence[str], rows: npt.NDArray[Any]) -> None:
        self.words = list(words)
        self.rows = np.vstack([rows, np.zeros((1, rows.shape[1]), rows.dtype)])
        self._places = dict(zip(self.words, range(len(self.words)), strict=True))

    @classmethod
    def gathered(cls, *, names: bool = True, vectors: Sequence[Vectors] = ()) -> WordKnowledge | None:
        """From the census and the published gendered words, from word vectors, or both; None from neither."""
        return _gathered(names, tuple(vectors))

    @property
    def width(self) -> int:
        """How many numbers there are for a word."""
        return int(self.rows.shape[1])

    def at(self, text: str, starts: Sequence[int]) -> Floats:
        """For characters of a text the numbers of the words that they are in; zeros outside of words."""
        place_at = np.full(len(text) + 1, len(self.words), np.int64)
        for word in WORD.finditer(text):
            place_at[word.start() : word.end()] = self._places.get(word.group(), len(self.words))
        return self.rows[place_at[np.minimum(starts, len(text))]].astype(np.float32)

    def mean(self, text: str) -> Floats:
        """The mean of the numbers of the words that are known; zeros if none is."""
        places = [self._places[word] for word in WORD.findall(text) if word in self._places]
        return self.rows[places or [-1]].astype(np.float32).mean(0)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What :meth:`from_arrays` takes."""
        text = "\n".join(self.words).encode()
        return {"words": np.frombuffer(text, np.uint8), "rows": self.rows[:-1]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> WordKnowledge:
        """The same knowledge again."""
        return cls(arrays["words"].tobytes().decode().split("\n"), arrays["rows"])


def opened(source: Source) -> Vectors:
    """Word vectors, or those of a file."""
    return source if isinstance(source, Vectors) else _from_file(os.fspath(source))


@lru_cache(maxsize=2)  # cross-validation asks for the same again and again
def _from_file(path: str) -> Vectors:
    return load(path)


@lru_cache(maxsize=2)
def _gathered(names: bool, sources: tuple[Vectors, ...]) -> WordKnowledge | None:
    facts = _name_facts() if names else {}
    known = list(dict.fromkeys([*facts, *(word for source in sources for word in source.words)]))
    if not known:
        return None
    at = _NAME_FACTS if names else 0
    rows = np.zeros((len(known), at + sum(source.dimension for source in sources)), np.float16)
    if names:
        rows[: len(facts), :at] = list(facts.values())
    for source in sources:
        found = [(row, source.exact_place(word)) for row, word in enumerate(known)]
        here = np.array([(row, place) for row, place in found if place is not None], np.int64).reshape(-1, 2)
        rows[here[:, 0], at : at + source.dimension] = _LENGTH * source.matrix[here[:, 1]]
        at += source.dimension
    return WordKnowledge(known, rows)


def _name_facts() -> dict[str, tuple[float, ...]]:
    """Female or male as a given name, how frequent, how frequent as a surname; female or male by meaning."""
    genders, names = gendered_words(), census_names()
    found: dict[str, tuple[float, ...]] = {}
    for word in dict.fromkeys([*names, *genders]):
        name, gender = names.get(word), genders.get(word)
        parts = (0.0, 0.0, 0.0) if name is None else (
            name.lean / 6,
            math.log1p(1000 * (name.female + name.male)) / 6,
            math.log1p(1000 * name.surname) / 6,
        )  # fmt: skip
        found[word] = (*parts, float(gender == "female"), float(gender == "male"))
    return found
