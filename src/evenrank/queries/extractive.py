"""Queries without a model: a question word before the most specific phrases of a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evenrank.queries.generated import document_rng
from evenrank.vectors.texts import stop_words

QUESTION_WORDS = 12
"""Maximum number of words of an extracted query, with the question word."""
_PHRASE_WORDS = 4
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_TERM = re.compile(r"\w+(?:['’.,-]\w+)*")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_QUESTIONS = (
    (_YEAR, "when"),
    (re.compile(r"\d"), "how many"),
    (re.compile(r"\b(?:he|she|who|born|he's|she's)\b", re.IGNORECASE), "who"),
    (re.compile(r"\b(?:because|so that|therefore|due to)\b", re.IGNORECASE), "why"),
)


class ExtractiveWriter:
    """A writer without a model.

    Its queries nearly always find their document, because they are made of its words, and they read badly.
    They let a pipeline run where there is no language model.
    """

    prefix = "ext"

    def describe(self) -> dict[str, Any]:
        return {"writer": "extractive", "words": QUESTION_WORDS}

    def write(self, doc_ids: Sequence[str], texts: Sequence[str], n: int, *, seed: int) -> list[list[str]]:
        """Return `n` queries for each document, of one sentence each; fewer where it has fewer sentences."""
        rows = []
        for doc_id, text in zip(doc_ids, texts, strict=True):
            sentences = [each for each in _SENTENCE.split(text) if _phrases(each)]
            order = document_rng(seed, doc_id).permutation(len(sentences))[:n]
            rows.append([question(sentences[place]) for place in order])
        return rows


def question(sentence: str) -> str:
    """A question of the phrases of one sentence.

    >>> question("Marie Curie discovered polonium in 1898 in Paris.")
    'when marie curie discovered polonium paris'
    """
    what = next((word for pattern, word in _QUESTIONS if pattern.search(sentence)), "what is")
    phrases = _phrases(sentence)
    best = sorted(range(len(phrases)), key=lambda place: (-_specificity(phrases[place]), place))
    room = QUESTION_WORDS - len(what.split())
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
    for match in _TERM.finditer(sentence):
        apart = sentence[end : match.start()].strip() != ""
        if match[0].lower() in common or (match[0].isdigit() and not _YEAR.fullmatch(match[0])):
            rows.append([])
        elif _YEAR.fullmatch(match[0]):
            rows += [[match[0]], []]
        elif apart or len(rows[-1]) == _PHRASE_WORDS:
            rows.append([match[0]])
        else:
            rows[-1].append(match[0])
        end = match.end()
    return [phrase for phrase in rows if phrase]


def _specificity(phrase: Sequence[str]) -> float:
    """How specific a phrase is taken to be: long words, and words that begin with a capital letter."""
    return sum(len(word) + 4 * word[0].isupper() for word in phrase)
