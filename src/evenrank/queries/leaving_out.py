"""Why a label? Each word is left out in turn, and what that does to the probabilities is its weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenrank.queries.classifier import LABELS, Probabilities, Reason, clean

_LEAST_EFFECT = 0.005  # on a probability; below it a word drove nothing
_MOST_REASONS = 5
_MARKS = "?!.,;:'\"()"
_MOST_WORDS = 32  # of a query; every one costs a prediction


def reasons(predict: Callable[[Sequence[str]], Probabilities], texts: Sequence[str]) -> list[list[Reason]]:
    """For each text its words, the class that would lose most without each, and how much probability."""
    split = [clean(text).split()[:_MOST_WORDS] for text in texts]
    without = [" ".join(words[:i] + words[i + 1 :]) for words in split for i in range(len(words))]
    whole = predict([" ".join(words) for words in split])
    left = predict(without)
    found: list[list[Reason]] = []
    place = 0
    for words, row in zip(split, whole, strict=True):
        drops = row - left[place : place + len(words)]
        place += len(words)
        each = [
            (word.strip(_MARKS) or word, LABELS[int(drop.argmax())], round(float(drop.max()), 3))
            for word, drop in zip(words, drops, strict=True)
        ]
        strongest = sorted((r for r in each if r[2] >= _LEAST_EFFECT), key=lambda reason: -reason[2])
        found.append(strongest[:_MOST_REASONS])
    return found
