"""Queries without a model: a question word before the most specific phrases of a sentence.

They find their document nearly always, because they are made of its words, and they read badly. They let a
pipeline run where there is no language model; ids that begin with ``ext-`` tell them from written ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xxhash

from evenrank.rankers.base import Progress
from evenrank.vectors.texts import stop_words

WORDS = 12
"""Words of a query at most, the question word among them."""
_PHRASE = 4

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+(?:['’.,-]\w+)*")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_ASKED = (
    (_YEAR, "when"),
    (re.compile(r"\d"), "how many"),
    (re.compile(r"\b(?:he|she|who|born|he's|she's)\b", re.IGNORECASE), "who"),
    (re.compile(r"\b(?:because|so that|therefore|due to)\b", re.IGNORECASE), "why"),
)


class ExtractiveWriter:
    """Templates over the phrases of a document; nothing is drawn but which sentence comes first."""

    prefix = "ext"
    label = "extractive"

    def describe(self) -> dict[str, Any]:
        return {"writer": "extractive", "words": WORDS}

    def write(
        self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int, progress: Progress | None
    ) -> list[list[str]]:
        """So many queries for each document, of one sentence each; fewer where it has fewer sentences."""
        rows = []
        for row, (doc_id, text) in enumerate(zip(doc_ids, texts, strict=True), 1):
            own = xxhash.xxh3_64_intdigest(doc_id.encode("utf-8", "surrogatepass"))
            sentences = [each for each in _SENTENCE.split(text) if _phrases(each)]
            order = np.random.default_rng([seed, own]).permutation(len(sentences))[:n]
            rows.append([asked(sentences[place]) for place in order])
            if progress:
                progress(row, len(texts))
        return rows


def asked(sentence: str) -> str:
    """A question of the phrases of one sentence.

    >>> asked("Marie Curie discovered polonium in 1898 in Paris.")
    'when marie curie discovered polonium paris'
    """
    what = next((word for pattern, word in _ASKED if pattern.search(sentence)), "what is")
    phrases = _phrases(sentence)
    best = sorted(range(len(phrases)), key=lambda place: (-_specific(phrases[place]), place))
    room = WORDS - len(what.split())
    kept: list[int] = []
    for place in best:
        if what == "when" and _YEAR.fullmatch(" ".join(phrases[place])):
            continue  # the answer
        if len(phrases[place]) <= room:
            kept.append(place)
            room -= len(phrases[place])
    return " ".join([what, *(word.lower() for place in sorted(kept) for word in phrases[place])])


def _phrases(sentence: str) -> list[list[str]]:
    """Runs of words that are no stop words, of four at most; nothing of a sentence of stop words."""
    common = stop_words()
    rows: list[list[str]] = [[]]
    end = 0
    for match in _WORD.finditer(sentence):
        apart = sentence[end : match.start()].strip() != ""
        if match[0].lower() in common or (match[0].isdigit() and not _YEAR.fullmatch(match[0])):
            rows.append([])
        elif _YEAR.fullmatch(match[0]):
            rows += [[match[0]], []]
        elif apart or len(rows[-1]) == _PHRASE:
            rows.append([match[0]])
        else:
            rows[-1].append(match[0])
        end = match.end()
    return [phrase for phrase in rows if phrase]


def _specific(phrase: Sequence[str]) -> float:
    """How specific a phrase is taken to be: long words, and words that begin with a capital letter."""
    return sum(len(word) + 4 * word[0].isupper() for word in phrase)
