"""The two classifiers: a linear model that comes with the package, and a rule that counts words."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.data.files import read_model
from evenrank.errors import InputError
from evenrank.queries.features import Features, clean
from evenrank.queries.words import clear_names, data, gendered_words, term_groups

LABELS = ("female", "male", "neutral")
"""The classes, in the order of the columns of every matrix of probabilities."""
SHARE_OF_OWN = 0.97
"""Where a query says whom it is about, the probability that it is this gender, if it is about anybody."""

Probabilities = npt.NDArray[np.float64]
Reason = tuple[str, str, float]
"""A word, the class it speaks for, and how much (in the model's own units, larger is more)."""

_NEUTRAL = LABELS.index("neutral")
_FILE = "static.npz"
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 32  # of a query to be explained; every one costs a prediction
_MOST_REASONS = 5
_LEAST_EFFECT = 0.005  # on a probability; below it a word drove nothing
_MARKS = "?!.,;:'\"()"


class Classifier(Protocol):
    """Tells whether the person or thing a query is about is female, male or of no gender."""

    name: ClassVar[str]

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per class; all equal where no class is more likely."""
        ...

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text the words that drove its label, the strongest first."""
        ...

    def is_training_query(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which of the texts the classifier was trained on: its labels are no evidence there."""
        ...


def load_classifier(model: str | os.PathLike[str] | Classifier = "static") -> Classifier:
    """Load ``static`` or ``lexicon``, or the folder of a trained model."""
    if not isinstance(model, (str, os.PathLike)):
        return model
    name = os.fspath(model)
    if name in ("static", "lexicon"):
        return _shipped(name)
    if not Path(name).exists() and os.sep not in name:
        raise InputError(f"unknown model {name!r}; choose static, lexicon or the folder of a saved model")
    return StaticClassifier.load(name)


@lru_cache(maxsize=2)
def _shipped(name: str) -> Classifier:
    return StaticClassifier.load(data() / name) if name == "static" else LexiconClassifier()


def query_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint32]:
    """32 bits for each cleaned text: enough to recognise a training query, not to recover it."""
    return np.array([xxhash.xxh32_intdigest(clean(text).encode()) for text in texts], np.uint32)


class StaticClassifier:
    """A linear model on the features of :mod:`evenrank.queries.features`; NumPy is all it needs to label.

    Three scores of a query decide. The first says whether it is about a woman or a man at all. The second
    says which, where neither a gendered word nor a name does (*who is obama*). The third says how much the
    query is like the annotated ones, which were pooled because their results lean: half of them are gendered,
    of a query log far fewer are. The first score gains `likeness` · tanh(third), but for queries that hold a
    word of rekabsaz2020: the annotated ones hold none.

    With a gendered word or a name, the gender is that of the word, so that a query and its mirror image have
    mirrored labels. A query that holds a word of rekabsaz2020 is never neutral: no class is more likely than
    the others where the model would say that it is about nobody, or where it holds words of both genders.

    Attributes
    ----------
    features
        What makes numbers of queries.
    weights, bias
        One column for each score.
    likeness
        Weight of the third score.
    temperature
        What the first score is divided by, so that probabilities are calibrated.
    shares
        Of the classes among the training queries; the probabilities of a query without a word.
    trained_on
        Hashes of the training queries, sorted.
    facts
        Settings and provenance as plain JSON values.
    """

    name: ClassVar[str] = "static"

    def __init__(
        self,
        features: Features,
        weights: npt.NDArray[np.float32],
        bias: npt.NDArray[np.float64],
        *,
        likeness: float,
        temperature: float,
        shares: npt.NDArray[np.float64],
        trained_on: npt.NDArray[np.uint32],
        facts: Mapping[str, Any],
    ) -> None:
        self.features, self.weights, self.bias = features, weights, bias
        self.likeness, self.temperature = likeness, temperature
        self.shares, self.trained_on, self.facts = shares, trained_on, dict(facts)

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: female, male, neutral. The shares in training, where a text has no word."""
        cleaned = [clean(text) for text in texts]
        readings = [self.features.read(text) for text in cleaned]
        gendered, male, like = (self.features.matrix(readings) @ self.weights + self.bias).T
        share = {"male": SHARE_OF_OWN, "female": 1 - SHARE_OF_OWN}
        own = np.array([share.get(reading.gender or "", math.nan) for reading in readings])
        male_share = np.where(np.isnan(own), _sigmoid(male), own)
        is_explicit = np.array([reading.is_explicit for reading in readings])
        gendered = gendered + np.where(is_explicit, 0, self.likeness * np.tanh(like))
        is_group = np.array([reading.names_a_group for reading in readings])
        about = np.where(is_group, SHARE_OF_OWN, _sigmoid(gendered / self.temperature))
        result = np.column_stack([about * (1 - male_share), about * male_share, 1 - about])
        neutral = result.argmax(1) == _NEUTRAL
        for row, reading in enumerate(readings):
            if reading.names_both or (reading.is_explicit and neutral[row]):
                result[row] = 1 / len(LABELS)
            elif not cleaned[row]:
                result[row] = self.shares
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, the class that loses most without each, and how much probability."""
        split = [clean(text).split()[:_MOST_WORDS] for text in texts]
        without = [" ".join(words[:i] + words[i + 1 :]) for words in split for i in range(len(words))]
        whole, left = self.predict_proba([" ".join(words) for words in split]), self.predict_proba(without)
        rows: list[list[Reason]] = []
        start = 0
        for words, row in zip(split, whole, strict=True):
            drops = row - left[start : start + len(words)]
            start += len(words)
            each = [
                (word.strip(_MARKS) or word, LABELS[int(drop.argmax())], round(float(drop.max()), 3))
                for word, drop in zip(words, drops, strict=True)
            ]
            strongest = sorted((r for r in each if r[2] >= _LEAST_EFFECT), key=lambda reason: -reason[2])
            rows.append(strongest[:_MOST_REASONS])
        return rows

    def is_training_query(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.isin(query_hashes(texts), self.trained_on)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StaticClassifier:
        """Open a model folder; a changed one is refused."""
        saved = read_model(path, cls.name)
        arrays, facts = saved.arrays(_FILE), dict(saved.facts)
        try:
            text = arrays["vocabulary"].tobytes().decode()
            features = Features(text.split("\n") if text else [])
            weights = arrays["weights"].astype(np.float32) * arrays["scale"].astype(np.float32)
            shapes = (weights.shape, arrays["bias"].shape, arrays["shares"].shape)
            if shapes != ((features.columns, 3), (3,), (3,)):
                raise ValueError(f"arrays of the shapes {shapes}")
            shares = arrays["shares"]
            if (shares < 0).any() or abs(shares.sum() - 1) > 1e-6 or not facts["temperature"] > 0:
                raise ValueError("the shares of the classes or the temperature are none")
            return cls(
                features,
                weights,
                arrays["bias"],
                likeness=float(facts.pop("likeness")),
                temperature=float(facts.pop("temperature")),
                shares=shares,
                trained_on=arrays["trained_on"].astype(np.uint32),
                facts=facts,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"not a static model of this version: {error}; train again", path=path
            ) from error


class LexiconClassifier:
    """A query with more female words and names is female, with more male ones male, without any neutral.

    Nothing is learned, and all it says can be checked by hand. Words count 1, names as much as they tell;
    where both sides weigh the same, no class is more likely than the others.
    """

    name: ClassVar[str] = "lexicon"

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: 0.8 for the label, 0.1 for the others; all alike where a text has no word."""
        result = np.full((len(texts), len(LABELS)), 0.1)
        for row, text in enumerate(map(clean, texts)):
            counted = _counted_words(text)
            balance = sum(weight if group == "female" else -weight for _, group, weight in counted)
            if not text or (counted and abs(balance) < 1e-9):
                result[row] = 1 / len(LABELS)
            else:
                result[row, _NEUTRAL if not counted else int(balance < 0)] = 0.8
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """The words and names that were counted; the weight is 1 for a word and for a name its certainty."""
        return [sorted(_counted_words(clean(text)), key=lambda reason: -reason[2]) for text in texts]

    def is_training_query(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.zeros(len(texts), bool)


def _counted_words(text: str) -> list[Reason]:
    words, names = gendered_words(), clear_names()
    tokens = _WORD.findall(text)
    terms = term_groups(tokens)
    rows: list[Reason] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        group = words.get(token) or terms.get(token)
        if any(token == word for word, _, _ in rows):
            continue
        if group:
            rows.append((token, group, 1.0))
        elif token in names and before not in names:  # after a given name it is a surname: jennifer lawrence
            lean = names[token]
            rows.append((token, "female" if lean > 0 else "male", round(math.tanh(abs(lean)), 3)))
    return rows


def _sigmoid(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -50, 50))))
