"""The static classifier: a linear model on hashed n-grams, names, word lists and word vectors.

Nothing but numpy and numba at prediction time, and fast enough for millions of queries. A linear head on
the mean vector of a query's words is one weight per word and class, so the vectors themselves are not
needed any more once it is trained.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.model_files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries import feature_kernel, feature_passes
from evenrank.queries.augmentation import lexicon_samples, swapped
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.crossvalidation import label_codes, stratified_folds
from evenrank.queries.features import PARTS, SCALES, WordTable, build_table, packed_bytes, switches
from evenrank.queries.linear import Fit, fit_softmax, softmax, temperature
from evenrank.vectors import Vectors
from evenrank.vectors import load as load_vectors

Source = Vectors | str | os.PathLike[str]

_FILE = "static.npz"
_MOST_REASONS = 5
_WORD_TIMES = 3  # neutral queries that each gendered word is put into


@dataclass(frozen=True)
class StaticSettings:
    """What the static classifier learns from; the defaults were chosen on an inner split.

    Attributes
    ----------
    parts
        Groups of features: words, pairs (of words), letters (n-grams of 2 to 5), contexts (patterns of
        kinds of words, as *who is GIVEN SURNAME*), names, lexicon, terms, genderedness.
    strength
        Of the evidence against the pull of all weights to zero.
    swaps
        Weight of counterfactual queries; 0 leaves them out.
    word_samples
        Weight of each word of the published lists as a query of its own and within neutral ones; 0 leaves
        them out. Few annotated queries hold such a word, so without them *shoes for men* is neutral.
    vector_scale
        Of the vectors, times the root of their dimension.
    """

    parts: tuple[str, ...] = tuple(PARTS)
    strength: float = 1.0
    swaps: float = 0.0
    word_samples: float = 1.0
    vector_scale: float = 0.3

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise InputError(f"unknown features {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")


class _Knowledge(NamedTuple):
    """The table of words, and the vectors of each with the row of the table they belong to."""

    table: WordTable
    sources: tuple[Vectors, ...]
    places: tuple[npt.NDArray[np.int64], ...]


class StaticClassifier:
    """Which gender a query is about, by a linear model that needs no torch; see :class:`Classifier`.

    Parameters
    ----------
    settings
        What to learn from.
    vectors
        Word vectors, or files of them: the more sources, the more the classifier knows about words that
        no training query has. The first one's order says how common a word is. Needed to train only.
    """

    name: ClassVar[str] = "static"
    labels: ClassVar[tuple[str, ...]] = LABELS

    def __init__(self, settings: StaticSettings | None = None, *, vectors: Sequence[Source] = ()) -> None:
        self.settings = settings or StaticSettings()
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.facts: dict[str, Any] = {}
        self._vectors: tuple[Source, ...] | None = tuple(vectors)
        self._table: WordTable | None = None

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Learn from labelled queries. ``seed`` chooses the queries that the temperature is set on."""
        if self._vectors is None:
            raise InputError("a saved model is not trained further; make a new StaticClassifier")
        texts, truth = [clean(text) for text in texts], label_codes(labels)
        if not texts or len(texts) != len(truth):
            raise InputError(
                f"{len(texts)} texts and {len(truth)} labels; there must be one for each, and some"
            )
        known = _knowledge(self.settings.parts, self._vectors)
        self._table = known.table
        counts = np.bincount(truth, minlength=len(LABELS))
        self._prior = (counts + 1) / (counts.sum() + len(LABELS))
        self._temperature = 1.0
        if counts.min() >= 5:
            part = stratified_folds(truth, 5, seed)
            inside, held = np.flatnonzero(part != 0), np.flatnonzero(part == 0)
            self._learn(known, [texts[i] for i in inside], truth[inside])
            if progress:
                progress(1, 2)
            self._temperature = temperature(self._scores([texts[i] for i in held]), truth[held])
        self._learn(known, texts, truth)
        if progress:
            progress(2, 2)
        self.trained_on = np.unique(query_hashes(texts))
        self.facts = {
            "queries": len(texts),
            "classes": {label: int(n) for label, n in zip(LABELS, counts, strict=True)},
            "vectors": [dict(source.provenance) for source in known.sources],
        }
        return self

    def _learn(self, known: _Knowledge, texts: Sequence[str], truth: npt.NDArray[np.int64]) -> None:
        from scipy.sparse import csr_matrix

        texts, truth, weight = self._augmented(texts, truth)
        data, offsets = packed_bytes(texts)
        on, room = switches(self.settings.parts), 12 * len(data) + 400 * len(texts)
        index, value, bounds = feature_passes.collect(  # type: ignore[call-arg, unused-ignore]
            data, offsets, *self._lookup(), on, np.array(SCALES), room
        )
        used, columns = np.unique(index, return_inverse=True)
        sparse = csr_matrix((value, columns, bounds), shape=(len(texts), len(used)))
        dense = self._means(known, data, offsets)
        fit = fit_softmax(sparse, dense, truth, weight, strength=self.settings.strength)
        size = feature_kernel.BUCKETS + feature_kernel.DENSE
        self._weights = np.zeros((size, len(LABELS)), np.float32)
        self._weights[used] = fit.sparse.astype(np.float16)
        self._word_weights = self._folded(known, fit)
        self._bias = fit.bias

    def _augmented(
        self, texts: Sequence[str], truth: npt.NDArray[np.int64]
    ) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The queries, and what is made of them or added, with the weight of each."""
        given = list(texts), [LABELS[code] for code in truth]
        parts = [(given, 1.0)]
        if self.settings.swaps:
            parts.append((swapped(*given), self.settings.swaps))
        if self.settings.word_samples:
            samples = lexicon_samples(*given, times=_WORD_TIMES)
            parts.append((samples, self.settings.word_samples))
        every = [text for (found, _), _ in parts for text in found]
        labels = [label for (_, found), _ in parts for label in found]
        weight = np.concatenate([np.full(len(found), by) for (found, _), by in parts])
        return every, label_codes(labels), weight

    def _means(self, known: _Knowledge, data: Any, offsets: Any) -> npt.NDArray[np.float64]:
        """The mean vector of each query's words, the sources side by side; a word without one is 0."""
        from scipy.sparse import csr_matrix

        rows, bounds = feature_passes.rows_of(data, offsets, known.table.keys, known.table.slots)
        with_vector = (rows >= 0) & (known.table.bits[rows] & feature_kernel.VECTOR > 0)
        counts = np.add.reduceat(np.append(with_vector, False), bounds[:-1]) * (np.diff(bounds) > 0)
        blocks = [np.zeros((len(offsets) - 1, 0))]
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(bounds))
        for source, places in zip(known.sources, known.places, strict=True):
            place = np.where(with_vector, places[rows], -1)
            has = np.flatnonzero(place >= 0)
            size = (len(offsets) - 1, len(has))
            adds = csr_matrix((np.ones(len(has)), (query[has], np.arange(len(has)))), shape=size)
            found = adds @ np.asarray(source.matrix[place[has]], np.float64)
            blocks.append(self._scale(source) * found / np.maximum(counts, 1)[:, None])
        return np.hstack(blocks)

    def _scale(self, source: Vectors) -> float:
        return self.settings.vector_scale * float(np.sqrt(source.dimension))

    def _folded(self, known: _Knowledge, fit: Fit) -> npt.NDArray[np.float32]:
        """A linear head on a mean of vectors: the same as a mean of one weight per word and class."""
        found = np.zeros((len(known.table.keys), len(LABELS)))
        at = 0
        for source, places in zip(known.sources, known.places, strict=True):
            head = fit.dense[at : at + source.dimension] * self._scale(source)
            at += source.dimension
            has = np.flatnonzero(places >= 0)
            found[has] += np.asarray(source.matrix @ head)[places[has]]
        return found.astype(np.float16).astype(np.float32)

    def _lookup(self) -> tuple[Any, ...]:
        if self._table is None:
            raise InputError("this classifier has not learned anything yet; call fit")
        return self._table.keys, self._table.slots, self._table.facts

    def _scores(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        found = np.tile(self._bias, (len(texts), 1))
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        feature_passes.score(*packed_bytes(texts), *self._lookup(), *settings, found)  # type: ignore[call-arg, unused-ignore]
        return found

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: female, male, neutral. The shares in training, where a text is empty."""
        self._lookup()
        cleaned = [clean(text) for text in texts]
        found = softmax(self._scores(cleaned) / self._temperature)
        found[[not text for text in cleaned]] = self._prior
        return found

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, the class each speaks for most, and by how much (in log odds)."""
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        reasons = []
        for text in map(clean, texts):
            data = packed_bytes([text])[0]
            given, starts, ends = feature_passes.attribute(data, *self._lookup(), *settings)  # type: ignore[call-arg, unused-ignore]
            given = (given - given.mean(1, keepdims=True)) / self._temperature
            found = [
                (
                    bytes(data[a:b]).decode(errors="replace"),
                    LABELS[int(row.argmax())],
                    round(float(row.max()), 3),
                )
                for row, a, b in zip(given, starts, ends, strict=True)
            ]
            strongest = sorted((reason for reason in found if reason[2] > 0), key=lambda reason: -reason[2])
            reasons.append(strongest[:_MOST_REASONS] if text else [])
        return reasons

    def describe(self) -> dict[str, Any]:
        """Settings and provenance."""
        return {"kind": self.name, "settings": asdict(self.settings), **self.facts}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model folder: a JSON header and one ``.npz`` of plain arrays."""
        self._lookup()
        assert self._table is not None
        used = np.flatnonzero(self._weights.any(1))
        arrays = {
            **self._table.arrays(),
            "index": used.astype(np.uint32),
            "weights": self._weights[used].astype(np.float16),
            "word_weights": self._word_weights.astype(np.float16),
            "bias": self._bias,
            "prior": self._prior,
            "temperature": np.array([self._temperature]),
            "trained_on": self.trained_on,
        }
        facts = {"settings": asdict(self.settings), "facts": self.facts}
        write_model(path, self.name, facts, {_FILE: packed(arrays)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        saved = read_model(path, cls.name)
        arrays = saved.arrays(_FILE)
        try:
            settings = dict(saved.facts["settings"])
            model = cls(replace(StaticSettings(**settings), parts=tuple(settings["parts"])))
            model.facts = dict(saved.facts["facts"])
            model.trained_on = arrays["trained_on"]
            model._table = WordTable(*(arrays[name] for name in WordTable.__dataclass_fields__))
            size = feature_kernel.BUCKETS + feature_kernel.DENSE
            model._weights = np.zeros((size, len(LABELS)), np.float32)
            model._weights[arrays["index"]] = arrays["weights"]
            model._word_weights = arrays["word_weights"].astype(np.float32)
            model._bias, model._prior = arrays["bias"], arrays["prior"]
            model._temperature = float(arrays["temperature"][0])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise InputError(
                f"not a static model of this version: {error}; train again", path=path
            ) from error
        model._vectors = None
        return model


@lru_cache(maxsize=2)
def _knowledge(parts: tuple[str, ...], vectors: tuple[Source, ...]) -> _Knowledge:
    sources = tuple(load_vectors(source) for source in vectors)
    ranked = list(dict.fromkeys(word for source in sources for word in source.words))
    table, words = build_table(ranked, parts=parts)
    places = tuple(np.array([_place(source, word) for word in words], np.int64) for source in sources)
    return _Knowledge(table, sources, places)


def _place(source: Vectors, word: str) -> int:
    found = source.exact_place(word)
    return -1 if found is None else found
