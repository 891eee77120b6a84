"""The published baseline: a support vector machine with a polynomial kernel on mean word vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.model_files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import label_codes, reasons, softmax, stratified_folds, temperature
from evenrank.queries.samples import in_order
from evenrank.queries.words import Source, WordKnowledge, opened

Floats = npt.NDArray[np.float64]

_FILE = "svm.npz"
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
            found = SVC(kernel="poly", degree=self.degree, C=self.strength, gamma=self._gamma)
            found.fit(means, truth == label)
            self._coefficients[found.support_, label] = found.dual_coef_[0]
            self._bias[label] = found.intercept_[0]
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
        found = softmax(self._scores(self._means(cleaned)) / self._temperature)
        found[[not text for text in cleaned]] = self._prior
        return found

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
        write_model(path, self.name, self.describe(), {_FILE: packed(arrays | self._knowledge.arrays())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        saved = read_model(path, cls.name)
        arrays = saved.arrays(_FILE)
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
