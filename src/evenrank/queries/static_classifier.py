"""The static classifier: a linear model on hashed n-grams, names, word lists and word vectors.

Nothing but numpy and numba at prediction time, and fast enough for millions of queries. A linear head on
the mean vector of a query's words is one weight per word and class, so the vectors themselves are not
needed any more once it is trained.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries import feature_kernel, feature_passes
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import calibration, label_codes, softmax, stratified_folds, towards
from evenrank.queries.features import SCALES, WordTable, build_table, packed_bytes, switches
from evenrank.queries.samples import More, Samples, in_order, names_nobody
from evenrank.queries.teaching import (
    Encoder,
    StaticSettings,
    gathered,
    guesses,
    learned,
    like_given,
    regression,
)
from evenrank.vectors import Vectors
from evenrank.vectors import load as load_vectors

Source = Vectors | str | os.PathLike[str]

ABSTAINS_BELOW = 0.37
"""Where no class is as probable as this, the label is `unknown`; see docs/query-gender.md."""
_NEUTRAL = LABELS.index("neutral")
_NO_CLASS = (0.33, 0.33, 0.34)
_FILE = "static.npz"
_MOST_REASONS = 5
_LEAST_GUESS = 0.05  # a class less probable than this is not guessed
_ENCODED = 4.0  # length of what an encoder makes of a query, beside its features


class _Knowledge(NamedTuple):
    """The table of words, and the vectors of each with the row of the table they belong to."""

    table: WordTable
    sources: tuple[Vectors, ...]
    places: tuple[npt.NDArray[np.int64], ...]


class Start(NamedTuple):
    """Where a regression ended: weights of all hashed features, of the vectors' numbers, and the bias."""

    weights: npt.NDArray[np.float64]
    heads: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]


class StaticClassifier:
    """Which gender a query is about, by a linear model that needs no torch; see :class:`Classifier`.

    Parameters
    ----------
    settings
        What to learn from.
    vectors
        Word vectors, or files of them: the more sources, the more the classifier knows about words that
        no training query has. The first one's order says how common a word is. Needed to train only.
    more
        Queries of other collections to learn from as well.
    encoder
        What guesses the labels of queries that have none; MiniLM if not given. Needed to train only, and only
        where there are such queries.
    """

    name: ClassVar[str] = "static"
    labels: ClassVar[tuple[str, ...]] = LABELS

    def __init__(
        self,
        settings: StaticSettings | None = None,
        *,
        vectors: Sequence[Source] = (),
        more: More | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self.settings = settings or StaticSettings()
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.facts: dict[str, Any] = {}
        self._vectors: tuple[Source, ...] | None = tuple(vectors)
        self._more = more or More()
        self._unlabelled: list[str] = []
        self._encode = encoder or Encoder()
        self.abstains_below = ABSTAINS_BELOW
        self._bias: npt.NDArray[np.float64] = np.zeros(len(LABELS))
        self._like: npt.NDArray[np.float64] = np.zeros(2)
        self._table: WordTable | None = None

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Learn from labelled queries, in whatever order; scikit-learn does the regression.

        ``seed`` chooses the queries that probabilities are calibrated on: a fifth of those given and of those
        of other collections, left out of a first training.
        """
        if self._vectors is None:
            raise InputError("a saved model is not trained further; make a new StaticClassifier")
        if not texts or len(texts) != len(labels):
            raise InputError(
                f"{len(texts)} texts and {len(labels)} labels; there must be one for each, and some"
            )
        given, also = in_order(texts, labels), in_order(*self._more.labelled)
        told = {*given.texts, *also.texts}
        self._unlabelled = [
            text for text in self._more.unlabelled if text not in told and not names_nobody(text)
        ]
        known = _knowledge(self.settings.parts, self._vectors)
        self._table = known.table
        counts = np.bincount(label_codes(given.labels), minlength=len(LABELS))
        self._prior = (counts + 1) / (counts.sum() + len(LABELS))
        self._temperature, shift, start = 1.0, np.zeros(len(LABELS)), None
        if counts.min() >= 5:
            inside, held = _split(given, seed)
            also_inside, also_held = _split(also, seed)
            start = self._learn(known, inside, also_inside, None)
            if progress:
                progress(1, 2)
            checked = Samples(held.texts + also_held.texts, held.labels + also_held.labels)
            scores, truth = self._scores(checked.texts), label_codes(checked.labels)
            self._temperature, shift = calibration(scores, truth)
            shares = np.bincount(truth, minlength=len(LABELS)) / len(truth)
            more, shares = towards(shares, self.settings.neutral_share)
            shift = shift + self._temperature * more
            if self.settings.neutral_share is not None:
                self._prior = shares
        self._learn(known, given, also, start)
        self._bias = self._bias + shift
        if progress:
            progress(2, 2)
        others = [*also.texts, *self._more.neutral, *self._more.unlabelled]
        self.trained_on = np.unique(query_hashes([*given.texts, *others]))
        self.facts = {
            "queries": len(given.texts),
            "classes": {label: int(n) for label, n in zip(LABELS, counts, strict=True)},
            "more": self._more.describe(),
            "vectors": [dict(source.provenance) for source in known.sources],
        }
        return self

    def _learn(self, known: _Knowledge, given: Samples, also: Samples, start: Start | None) -> Start:
        """Fit the weights; begins at ``start``, the same regression on a part of the samples."""
        every, weight, real = gathered(self.settings, given, also, self._more)
        guessed, by = self._guessed(known, given, also)
        texts, labels = every.texts + guessed.texts, every.labels + guessed.labels
        design, size = self._design(known, texts), feature_kernel.BUCKETS + feature_kernel.DENSE
        used = np.unique(design.indices)
        design, codes = design[:, used], label_codes(labels)
        model = regression(self.settings.strength)
        if start is not None:  # from where the same problem with fewer samples ended
            model.set_params(warm_start=True)
            rows = np.vstack([start.weights, start.heads])[used]
            model.coef_, model.intercept_ = rows.T.astype(np.float32), start.bias.astype(np.float32)
            model.classes_ = np.arange(len(LABELS))
        model = learned(model, design, codes, np.concatenate([weight, by]))
        table = np.zeros((size + sum(source.dimension for source in known.sources), len(LABELS) + 1))
        table[np.ix_(used, model.classes_)] = model.coef_.T
        self._bias = np.full(len(LABELS), model.intercept_.min() - 1)
        self._bias[model.classes_] = model.intercept_
        self._like = np.zeros(2)
        if self.settings.likeness and len(also.texts):
            rows = np.flatnonzero(real >= 0)
            column, at = like_given(design[rows], real[rows] == 1, codes[rows])
            table[used, -1], self._like = column, np.array([self.settings.likeness, at])
        self._weights = table[:size].astype(np.float16).astype(np.float32)
        self._word_weights = self._folded(known, table[size:])
        return Start(table[:size, :-1], table[size:, :-1], self._bias)

    def _design(self, known: _Knowledge, texts: Sequence[str]) -> Any:
        """One row per text: its hashed and counted features, and its mean vectors."""
        from scipy.sparse import csr_matrix, hstack

        data, offsets = packed_bytes(texts)
        on, room = switches(self.settings.parts), 12 * len(data) + 400 * len(texts)
        index, value, bounds = feature_passes.collect(  # type: ignore[call-arg, unused-ignore]
            data, offsets, *self._lookup(), on, np.array(SCALES), room
        )
        size = feature_kernel.BUCKETS + feature_kernel.DENSE
        sparse = csr_matrix((value, index, bounds), shape=(len(texts), size))
        sparse.sum_duplicates()
        parts = [sparse, csr_matrix(self._means(known, data, offsets))]
        return hstack(parts).tocsr().astype(np.float32)  # half the bytes to read in each step

    def _guessed(
        self, known: _Knowledge, given: Samples, also: Samples
    ) -> tuple[Samples, npt.NDArray[np.float64]]:
        """Queries without labels, once for each class that an encoder thinks probable, and how probable."""
        from scipy.sparse import csr_matrix, hstack

        texts = self._unlabelled
        if not texts or not self.settings.guesses:
            return Samples([], []), np.zeros(0)

        def read(some: Sequence[str]) -> Any:
            return hstack([self._design(known, some), csr_matrix(_ENCODED * self._encode(some))]).tocsr()

        truth = label_codes(given.labels + also.labels)
        result = guesses(read(given.texts + also.texts), truth, read(texts), len(LABELS))
        rows, classes = np.nonzero(result > _LEAST_GUESS)
        labels = [LABELS[code] for code in classes]
        return Samples([texts[row] for row in rows], labels), self.settings.guesses * result[rows, classes]

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
            result = adds @ np.asarray(source.matrix[place[has]], np.float64)
            blocks.append(self._scale(source) * result / np.maximum(counts, 1)[:, None])
        return np.hstack(blocks)

    def _scale(self, source: Vectors) -> float:
        return self.settings.vector_scale * float(np.sqrt(source.dimension))

    def _folded(self, known: _Knowledge, heads: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """A linear head on a mean of vectors: the same as a mean of one weight per word and class."""
        values = np.zeros((len(known.table.keys), heads.shape[1]))
        at = 0
        for source, places in zip(known.sources, known.places, strict=True):
            head = heads[at : at + source.dimension] * self._scale(source)
            at += source.dimension
            has = np.flatnonzero(places >= 0)
            values[has] += np.asarray(source.matrix @ head)[places[has]]
        return values.astype(np.float16).astype(np.float32)

    def _lookup(self) -> tuple[Any, ...]:
        if self._table is None:
            raise InputError("this classifier has not learned anything yet; call fit")
        return self._table.keys, self._table.slots, self._table.facts

    def _scores(
        self, texts: Sequence[str], both: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.float64]:
        """Of each class; ``both``, if given, is told which queries name women and men alike."""
        result = np.tile(np.append(self._bias, self._like[1]), (len(texts), 1))
        both = np.zeros(len(texts), bool) if both is None else both
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        feature_passes.score(*packed_bytes(texts), *self._lookup(), *settings, result, both)  # type: ignore[call-arg, unused-ignore]
        result[:, _NEUTRAL] -= self._like[0] * _leaning(result[:, -1])
        return result[:, : len(LABELS)]

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: female, male, neutral. The shares in training, where a text is empty.

        Women and men named alike have no class: then each is as probable as the others.
        """
        self._lookup()
        cleaned = [clean(text) for text in texts]
        both = np.zeros(len(cleaned), bool)
        result = softmax(self._scores(cleaned, both) / self._temperature)
        result[both] = _NO_CLASS
        result[[not text for text in cleaned]] = self._prior
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, the class each speaks for most, and by how much (in log odds)."""
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        reasons = []
        for text in map(clean, texts):
            data = packed_bytes([text])[0]
            given, starts, ends = feature_passes.attribute(data, *self._lookup(), *settings)  # type: ignore[call-arg, unused-ignore]
            alike = given[:, -1].sum() + self._like[1]
            part = self._like[0] * float(_leaning(np.array([alike]))[0]) / (alike or 1.0)
            given[:, _NEUTRAL] -= part * given[:, -1]
            given = given[:, : len(LABELS)]
            given = (given - given.mean(1, keepdims=True)) / self._temperature
            rows = [
                (
                    bytes(data[a:b]).decode(errors="replace"),
                    LABELS[int(row.argmax())],
                    round(float(row.max()), 3),
                )
                for row, a, b in zip(given, starts, ends, strict=True)
            ]
            strongest = sorted((reason for reason in rows if reason[2] > 0), key=lambda reason: -reason[2])
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
            "like": self._like,
            "prior": self._prior,
            "temperature": np.array([self._temperature]),
            "trained_on": self.trained_on,
        }
        facts = {
            "settings": asdict(self.settings),
            "facts": self.facts,
            "abstains_below": self.abstains_below,
        }
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
            _require_shapes(arrays)
            model._table = WordTable(*(arrays[name] for name in WordTable.__dataclass_fields__))
            size = feature_kernel.BUCKETS + feature_kernel.DENSE
            model._weights = np.zeros((size, len(LABELS) + 1), np.float32)
            model._weights[arrays["index"]] = arrays["weights"]
            model._word_weights = arrays["word_weights"].astype(np.float32)
            model._bias, model._prior, model._like = arrays["bias"], arrays["prior"], arrays["like"]
            model._temperature = float(arrays["temperature"][0])
            model.abstains_below = float(saved.facts["abstains_below"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise InputError(
                f"not a static model of this version: {error}; train again", path=path
            ) from error
        model._vectors = None
        return model


_TYPES = {"keys": np.uint64, "kind": np.uint8, "bits": np.uint16, "index": np.uint32, "trained_on": np.uint64}


def _require_shapes(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Compiled code trusts the arrays: lengths that do not fit would be read beyond their ends.

    A checksum says that nothing was changed by accident. Whoever writes another one on purpose can still do
    no more harm than a model that is wrong.
    """
    words = len(arrays["keys"])
    shapes: dict[str, tuple[int, ...]] = {}
    shapes |= dict.fromkeys(("keys", "kind", "bits", "lean", "frequency", "gender"), (words,))
    shapes |= {"word_weights": (words, 4), "weights": (len(arrays["index"]), 4), "bias": (3,), "prior": (3,)}
    shapes |= {"temperature": (1,), "like": (2,)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape} and not {shape}")
    for name, kind in _TYPES.items():
        if arrays[name].dtype != kind:
            raise ValueError(f"{name} holds {arrays[name].dtype}, not {np.dtype(kind)}")
    prior = arrays["prior"]
    if (prior < 0).any() or abs(prior.sum() - 1) > 1e-6 or not arrays["temperature"][0] > 0:
        raise ValueError("the shares of the classes or the temperature are none")


def _split(samples: Samples, seed: int) -> tuple[Samples, Samples]:
    """Four fifths to learn from and a fifth to check on; all to learn from where a class has too few."""
    codes = label_codes(samples.labels)
    if not len(codes) or np.bincount(codes, minlength=len(LABELS)).min() < 5:
        return samples, Samples([], [])
    part = stratified_folds(codes, 5, seed)
    inside, held = np.flatnonzero(part != 0).tolist(), np.flatnonzero(part == 0).tolist()
    return samples.some(inside), samples.some(held)


def _leaning(alike: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """2 P − 1 for the log odds of P: from −1, surely of another collection, to 1, surely a given one."""
    low = np.exp(-np.abs(alike))
    return np.asarray(np.sign(alike) * (1 - low) / (1 + low))


@lru_cache(maxsize=2)
def _knowledge(parts: tuple[str, ...], vectors: tuple[Source, ...]) -> _Knowledge:
    sources = tuple(load_vectors(source) for source in vectors)
    ranked = list(dict.fromkeys(word for source in sources for word in source.words))
    table, words = build_table(ranked, parts=parts)
    places = tuple(np.array([_place(source, word) for word in words], np.int64) for source in sources)
    return _Knowledge(table, sources, places)


def _place(source: Vectors, word: str) -> int:
    result = source.exact_row(word)
    return -1 if result is None else result
