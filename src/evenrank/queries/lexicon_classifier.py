"""The lexicon classifier: gendered words and given names, counted. Nothing is learned, all can be checked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.model_files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import label_codes
from evenrank.queries.words import clear_names, gendered_words, term_groups

_WORD = re.compile(r"[^\W_]+")
_FILE = "lexicon.npz"
_SIDES = {"none": 2, "female": 0, "male": 1, "both": 2}
_CERTAIN = 0.8
"""Probability of the label before anything has been counted on labelled queries."""


class LexiconClassifier:
    """A query with more female words and names is female, with more male ones male, else neutral.

    The label follows the counts alone. ``fit`` learns one thing: how often each outcome (no word, more
    female, more male, as many of both) goes with each class, which gives honest probabilities.
    """

    name: ClassVar[str] = "lexicon"
    labels: ClassVar[tuple[str, ...]] = LABELS
    abstains_below = 0.0

    def __init__(self) -> None:
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._table = np.full((len(_SIDES), len(LABELS)), (1 - _CERTAIN) / 2)
        self._table[np.arange(len(_SIDES)), list(_SIDES.values())] = _CERTAIN
        self._prior = np.full(len(LABELS), 1 / len(LABELS))

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Count how often the words are right; the labels stay as they are, ``seed`` plays no part."""
        truth = label_codes(labels)
        if not len(truth) or len(truth) != len(texts):
            raise InputError(
                f"{len(texts)} texts and {len(truth)} labels; there must be one for each, and some"
            )
        counts = np.full((len(_SIDES), len(LABELS)), 1.0)
        np.add.at(counts, (self._outcomes(texts), truth), 1)
        self._table = counts / counts.sum(1, keepdims=True)
        self._prior = (np.bincount(truth, minlength=len(LABELS)) + 1) / (len(truth) + len(LABELS))
        self.trained_on = np.unique(query_hashes(texts))
        if progress:
            progress(1, 1)
        return self

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: how often queries with such words are female, male, neutral."""
        found = self._table[self._outcomes(texts)]
        found[[not clean(text) for text in texts]] = self._prior
        return found

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """The words and names that were counted; the weight is 1 for a word and for a name its certainty."""
        return [sorted(_reasons(clean(text)), key=lambda reason: -reason[2]) for text in texts]

    def _outcomes(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        names = list(_SIDES)
        found = []
        for text in texts:
            balance = [0.0, 0.0]
            for _, group, weight in _reasons(clean(text)):
                balance[LABELS.index(group)] += weight
            female, male = balance
            outcome = "none" if female == male == 0 else "both"
            if abs(female - male) > 1e-9:
                outcome = "female" if female > male else "male"
            found.append(names.index(outcome))
        return np.array(found, np.int64)

    def describe(self) -> dict[str, Any]:
        """What is counted."""
        return {"kind": self.name, "words": len(gendered_words()), "names": len(clear_names())}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder."""
        arrays = {"table": self._table, "prior": self._prior, "trained_on": self.trained_on}
        write_model(path, self.name, {"describe": self.describe()}, {_FILE: packed(arrays)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        arrays = read_model(path, cls.name).arrays(_FILE)
        model = cls()
        try:
            model._table, model._prior = arrays["table"], arrays["prior"]
            model.trained_on = arrays["trained_on"]
        except KeyError as error:
            raise InputError(f"not a lexicon model: {error} is missing; train again", path=path) from error
        return model

    @classmethod
    def shipped(cls) -> Self:
        """The classifier as it is without any training."""
        return cls()


def _reasons(text: str) -> list[Reason]:
    words, names = gendered_words(), clear_names()
    tokens = _WORD.findall(text)
    terms = term_groups(tokens)
    found: list[Reason] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        group = words.get(token) or terms.get(token)
        if any(token == word for word, _, _ in found):
            continue
        if group:
            found.append((token, group, 1.0))
        elif token in names and before not in names:  # after a given name it is a surname: jennifer lawrence
            lean = names[token]
            found.append((token, "female" if lean > 0 else "male", round(math.tanh(abs(lean)), 3)))
    return found
