"""Classifiers to compare with: words and names counted, and the published support vector machine.

The first learns nothing, and all it says can be checked. The second is Bigdeli's: a polynomial kernel on mean
word vectors.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import label_codes, reasons, softmax, stratified_folds, temperature
from evenrank.queries.samples import in_order
from evenrank.queries.words import Source, WordKnowledge, clear_names, gendered_words, opened, term_groups

_WORD = re.compile(r"[^\W_]+")
_COUNTS = "lexicon.npz"
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
        result = self._table[self._outcomes(texts)]
        result[[not clean(text) for text in texts]] = self._prior
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """The words and names that were counted; the weight is 1 for a word and for a name its certainty."""
        return [sorted(_reasons(clean(text)), key=lambda reason: -reason[2]) for text in texts]

    def _outcomes(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        names = list(_SIDES)
        rows = []
        for text in texts:
            balance = [0.0, 0.0]
            for _, group, weight in _reasons(clean(text)):
                balance[LABELS.index(group)] += weight
            female, male = balance
            outcome = "none" if female == male == 0 else "both"
            if abs(female - male) > 1e-9:
                outcome = "female" if female > male else "male"
            rows.append(names.index(outcome))
        return np.array(rows, np.int64)

    def describe(self) -> dict[str, Any]:
        """What is counted."""
        return {"kind": self.name, "words": len(gendered_words()), "names": len(clear_names())}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder."""
        arrays = {"table": self._table, "prior": self._prior, "trained_on": self.trained_on}
        write_model(path, self.name, {"describe": self.describe()}, {_COUNTS: packed(arrays)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        arrays = read_model(path, cls.name).arrays(_COUNTS)
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


Floats = npt.NDArray[np.float64]

_SUPPORT = "svm.npz"
_ARRAYS = ("support", "coefficients", "bias", "gamma", "temperature", "prior", "trained_on", "words", "rows")


class SvmClassifier:
    """Mean word vector, polynomial kernel, each class against the others (Bigdeli, thesis, §3.1.1.2).

    scikit-learn fits it (``pip install 'evenrank[train]'``); numpy labels with it. The word vectors are
    saved with the model, because a kernel, unlike a linear head, cannot be folded into one number per word.

    Parameters
    ----------
    vectors
        Word vectors, or files of them; needed to train.
    degree, strength
        Of the polynomial, and of the evidence against the margin (scikit-learn's ``C``).
    """

    name: ClassVar[str] = "svm"
    labels: ClassVar[tuple[str, ...]] = LABELS
    abstains_below = 0.0

    def __init__(self, *, vectors: Sequence[Source] = (), degree: int = 3, strength: float = 1.0) -> None:
        self.degree, self.strength = degree, strength
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.facts: dict[str, Any] = {}
        self._vectors = tuple(vectors)
        self._knowledge: WordKnowledge | None = None

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Learn from labelled queries. ``seed`` chooses the queries that the temperature is set on."""
        if len(texts) == len(labels):
            texts, labels = in_order(texts, labels)
        truth = label_codes(labels)
        counts = np.bincount(truth, minlength=len(LABELS))
        if len(texts) != len(truth) or not counts.all():
            raise InputError(f"{len(texts)} texts and {len(truth)} labels; give one each, and every class")
        vectors = tuple(opened(source) for source in self._vectors)
        if not vectors:
            raise InputError("an svm sees word vectors only; give some with --vectors FILE")
        self._knowledge = WordKnowledge.gathered(names=False, vectors=vectors)
        means = self._means(texts)
        self._gamma = 1 / max(means.shape[1] * float(means.var()), 1e-12)  # as scikit-learn's "scale"
        self._temperature = 1.0
        if counts.min() >= 5:
            held = stratified_folds(truth, 5, seed) == 0
            self._learn(means[~held], truth[~held])
            self._temperature = temperature(self._scores(means[held]), truth[held])
        self._learn(means, truth)
        self._prior = (counts + 1) / (counts.sum() + len(LABELS))
        self.trained_on = np.unique(query_hashes(texts))
        classes = {label: int(n) for label, n in zip(LABELS, counts, strict=True)}
        provenance = [dict(source.provenance) for source in vectors]
        self.facts = {"queries": len(texts), "classes": classes, "vectors": provenance}
        if progress:
            progress(1, 1)
        return self

    def _learn(self, means: Floats, truth: npt.NDArray[np.int64]) -> None:
        try:
            from sklearn.svm import SVC
        except ImportError:
            raise InputError("an svm is trained by scikit-learn: pip install 'evenrank[train]'") from None
        self._coefficients, self._bias = np.zeros((len(means), len(LABELS))), np.zeros(len(LABELS))
        for label in range(len(LABELS)):
            result = SVC(kernel="poly", degree=self.degree, C=self.strength, gamma=self._gamma)
            result.fit(means, truth == label)
            self._coefficients[result.support_, label] = result.dual_coef_[0]
            self._bias[label] = result.intercept_[0]
        used = self._coefficients.any(1)
        self._support, self._coefficients = means[used], self._coefficients[used]

    def _means(self, texts: Sequence[str]) -> Floats:
        if self._knowledge is None:
            raise InputError("this classifier has not learned anything yet; call fit")
        means = [self._knowledge.mean(text) for text in texts]
        return np.array(means, np.float64).reshape(len(texts), self._knowledge.width)

    def _scores(self, means: Floats) -> Floats:
        kernel = (self._gamma * means @ self._support.T) ** self.degree
        return np.asarray(kernel @ self._coefficients + self._bias)

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: female, male, neutral. The shares in training, where a text is empty."""
        cleaned = [clean(text) for text in texts]
        result = softmax(self._scores(self._means(cleaned)) / self._temperature)
        result[[not text for text in cleaned]] = self._prior
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, and how much probability goes with each."""
        return reasons(self.predict_proba, texts)

    def describe(self) -> dict[str, Any]:
        """Settings and provenance."""
        return {
            "kind": self.name,
            "settings": {"degree": self.degree, "strength": self.strength},
            **self.facts,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model folder: a JSON header and one ``.npz`` of plain arrays."""
        self._means([])
        assert self._knowledge is not None
        numbers = (self._support, self._coefficients, self._bias, [self._gamma], [self._temperature])
        arrays = dict(zip(_ARRAYS, (*map(np.asarray, numbers), self._prior, self.trained_on), strict=False))
        write_model(path, self.name, self.describe(), {_SUPPORT: packed(arrays | self._knowledge.arrays())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        saved = read_model(path, cls.name)
        arrays = saved.arrays(_SUPPORT)
        if missing := set(_ARRAYS) - set(arrays):
            raise InputError(f"not an svm model: no {', '.join(sorted(missing))}; train again", path=path)
        facts = dict(saved.facts)
        facts.pop("kind", None)
        model = cls(**facts.pop("settings"))
        model.facts, model._knowledge = facts, WordKnowledge.from_arrays(arrays)
        model._support, model._coefficients, model._bias = (arrays[name] for name in _ARRAYS[:3])
        model._gamma, model._temperature = (float(arrays[name][0]) for name in ("gamma", "temperature"))
        model._prior, model.trained_on = arrays["prior"], arrays["trained_on"]
        return model
