"""The static classifier: a linear model on hashed n-grams, names, word lists and word vectors.

Nothing but numpy and numba at prediction time, and fast enough for millions of queries. A linear head on
the mean vector of a query's words is one weight per word and class, so the vectors themselves are not
needed any more once it is trained.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenrank.arithmetic import exp
from evenrank.data.model_files import packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries import feature_kernel
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import calibration, label_codes, softmax, stratified_folds
from evenrank.queries.features import PARTS, SCALES, WordTable, build_table, packed_bytes, switches
from evenrank.queries.samples import (
    More,
    Samples,
    in_order,
    lexicon_samples,
    long_samples,
    plain_samples,
    swapped,
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
_STEPS = 40
_LIKENESS_STRENGTH = 0.3
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
    plain_samples
        Weight of the queries made of our own lists: jobs, hobbies, products, fields, places and works, which
        name no gender, and their counterparts for women and for men. 0 leaves them out: then *nurse* is
        female. Long texts have twice this weight.
    neutral_texts
        Weight of the texts of other collections that name nobody. Most queries of a log do not.
    neutral_share
        Of the queries that will be labelled, the share that is neutral: some 0.85 of a log, half of the
        annotated ones. Women and men are then expected equally often. None takes the shares of the queries
        that probabilities are calibrated on.
    vector_scale
        Of the vectors, times the root of their dimension.
    likeness
        By how much less neutral a query is that is like the given ones, and more neutral one that is like
        those of other collections: the score of the neutral class loses `likeness` (2 P − 1), P the
        probability that it is a given one. The given queries were pooled because their results lean, so half
        of them are gendered; of a log, few are. 0 leaves it out.
    """

    parts: tuple[str, ...] = tuple(PARTS)
    strength: float = 1.0
    swaps: float = 0.0
    word_samples: float = 0.6
    plain_samples: float = 0.2
    neutral_texts: float = 0.5
    neutral_share: float | None = None
    vector_scale: float = 0.3
    likeness: float = 1.4

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise InputError(f"unknown features {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        if self.neutral_share is not None and not 0 < self.neutral_share < 1:
            raise InputError(f"neutral_share is {self.neutral_share}; it must be between 0 and 1")


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
    """

    name: ClassVar[str] = "static"
    labels: ClassVar[tuple[str, ...]] = LABELS

    def __init__(
        self,
        settings: StaticSettings | None = None,
        *,
        vectors: Sequence[Source] = (),
        more: More | None = None,
    ) -> None:
        self.settings = settings or StaticSettings()
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.facts: dict[str, Any] = {}
        self._vectors: tuple[Source, ...] | None = tuple(vectors)
        self._more = more or More()
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
            shift = shift + self._temperature * self._towards_log(shares)
        self._learn(known, given, also, start)
        self._bias = self._bias + shift
        if progress:
            progress(2, 2)
        self.trained_on = np.unique(query_hashes([*given.texts, *also.texts, *self._more.neutral]))
        self.facts = {
            "queries": len(given.texts),
            "classes": {label: int(n) for label, n in zip(LABELS, counts, strict=True)},
            "more": self._more.describe(),
            "vectors": [dict(source.provenance) for source in known.sources],
        }
        return self

    def _towards_log(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What to add to log probabilities, where the classes have the shares asked for instead of these.

        Bayes' rule with other shares of the classes (Saerens, Latinne and Decaestecker 2002). Of the queries
        that are not neutral half are expected to be about women and half about men, whatever was learned.
        """
        asked = self.settings.neutral_share
        if asked is None:
            return np.zeros(len(LABELS))
        self._prior = np.where(np.arange(len(LABELS)) == _NEUTRAL, asked, (1 - asked) / 2)
        return np.asarray(np.log(self._prior) - np.log(shares))

    def _learn(self, known: _Knowledge, given: Samples, also: Samples, start: Start | None) -> Start:
        """Fit the weights; begins at ``start``, the same regression on a part of the samples."""
        from scipy.sparse import csr_matrix, hstack

        regression = _regression(self.settings.strength)
        every, weight, pool = self._samples(given, also)
        data, offsets = packed_bytes(every.texts)
        on, room = switches(self.settings.parts), 12 * len(data) + 400 * len(every.texts)
        index, value, bounds = feature_kernel.collect(  # type: ignore[call-arg, unused-ignore]
            data, offsets, *self._lookup(), on, np.array(SCALES), room
        )
        size = feature_kernel.BUCKETS + feature_kernel.DENSE
        sparse = csr_matrix((value, index, bounds), shape=(len(every.texts), size))
        sparse.sum_duplicates()
        used = np.unique(sparse.indices)
        parts = [sparse[:, used], csr_matrix(self._means(known, data, offsets))]
        design = hstack(parts).tocsr().astype(np.float32)  # half the bytes to read in each step
        if start is not None:  # from where the same problem with fewer samples ended
            regression.set_params(warm_start=True)
            rows = np.vstack([start.weights[used], start.heads])
            regression.coef_, regression.intercept_ = rows.T.astype(np.float32), start.bias.astype(np.float32)
            regression.classes_ = np.arange(len(LABELS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that the steps were enough for us, not for it
            regression.fit(design, label_codes(every.labels), sample_weight=weight)
        table = np.zeros((design.shape[1], len(LABELS)))
        table[:, regression.classes_] = regression.coef_.T
        heads = table[len(used) :]
        self._bias = np.full(len(LABELS), regression.intercept_.min() - 1)
        self._bias[regression.classes_] = regression.intercept_
        full = np.zeros((size, len(LABELS)))
        full[used] = table[: len(used)]
        column = np.zeros(design.shape[1])
        self._like = np.zeros(2)
        if self.settings.likeness and len(also.texts):
            column, at = _like_given(design, pool, weight)
            self._like = np.array([self.settings.likeness, at])
        four = np.zeros((size, len(LABELS) + 1))
        four[:, : len(LABELS)], four[used, -1] = full, column[: len(used)]
        self._weights = four.astype(np.float16).astype(np.float32)
        self._word_weights = self._folded(known, np.column_stack([heads, column[len(used) :]]))
        return Start(full, heads, self._bias)

    def _samples(
        self, given: Samples, also: Samples
    ) -> tuple[Samples, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The queries, and what is made of them or added, with the weight of each.

        Then which are given ones (1) and which of other collections (0). Of those that were made, gendered
        ones count as given, because such queries are, and neutral ones do not.
        """
        chosen = self.settings
        parts = [(given, 1.0), (also, 1.0)]
        if chosen.swaps:
            parts.append((swapped(*given), chosen.swaps))
        if chosen.word_samples:
            parts.append((lexicon_samples(*given, times=_WORD_TIMES), chosen.word_samples))
        if chosen.plain_samples:
            plain = plain_samples()
            neutral = [text for text, label in zip(*given, strict=True) if label == "neutral"]
            nobody = Samples(list(self._more.neutral), ["neutral"] * len(self._more.neutral))
            parts += [
                (plain, chosen.plain_samples),
                (long_samples(neutral, plain), 2 * chosen.plain_samples),
                (nobody, chosen.neutral_texts),
            ]
        texts = [text for found, _ in parts for text in found.texts]
        labels = [label for found, _ in parts for label in found.labels]
        weight = np.concatenate([np.full(len(found.texts), by) for found, by in parts])
        sides = {id(given): 1, id(also): 0}
        like = [
            np.full(len(found.texts), sides[id(found)])
            if id(found) in sides
            else np.array([label != "neutral" for label in found.labels], np.int64)
            for found, _ in parts
        ]
        return Samples(texts, labels), weight, np.concatenate(like)

    def _means(self, known: _Knowledge, data: Any, offsets: Any) -> npt.NDArray[np.float64]:
        """The mean vector of each query's words, the sources side by side; a word without one is 0."""
        from scipy.sparse import csr_matrix

        rows, bounds = feature_kernel.rows_of(data, offsets, known.table.keys, known.table.slots)
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

    def _folded(self, known: _Knowledge, heads: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """A linear head on a mean of vectors: the same as a mean of one weight per word and class."""
        found = np.zeros((len(known.table.keys), heads.shape[1]))
        at = 0
        for source, places in zip(known.sources, known.places, strict=True):
            head = heads[at : at + source.dimension] * self._scale(source)
            at += source.dimension
            has = np.flatnonzero(places >= 0)
            found[has] += np.asarray(source.matrix @ head)[places[has]]
        return found.astype(np.float16).astype(np.float32)

    def _lookup(self) -> tuple[Any, ...]:
        if self._table is None:
            raise InputError("this classifier has not learned anything yet; call fit")
        return self._table.keys, self._table.slots, self._table.facts

    def _scores(
        self, texts: Sequence[str], both: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.float64]:
        """Of each class; ``both``, if given, is told which queries name women and men alike."""
        found = np.tile(np.append(self._bias, self._like[1]), (len(texts), 1))
        both = np.zeros(len(texts), bool) if both is None else both
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        feature_kernel.score(*packed_bytes(texts), *self._lookup(), *settings, found, both)  # type: ignore[call-arg, unused-ignore]
        found[:, _NEUTRAL] -= self._like[0] * _leaning(found[:, -1])
        return found[:, : len(LABELS)]

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: female, male, neutral. The shares in training, where a text is empty.

        Women and men named alike have no class: then each is as probable as the others.
        """
        self._lookup()
        cleaned = [clean(text) for text in texts]
        both = np.zeros(len(cleaned), bool)
        found = softmax(self._scores(cleaned, both) / self._temperature)
        found[both] = _NO_CLASS
        found[[not text for text in cleaned]] = self._prior
        return found

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, the class each speaks for most, and by how much (in log odds)."""
        on = switches(self.settings.parts)
        settings = (on, np.array(SCALES), self._weights, self._word_weights)
        reasons = []
        for text in map(clean, texts):
            data = packed_bytes([text])[0]
            given, starts, ends = feature_kernel.attribute(data, *self._lookup(), *settings)  # type: ignore[call-arg, unused-ignore]
            alike = given[:, -1].sum() + self._like[1]
            part = self._like[0] * float(_leaning(np.array([alike]))[0]) / (alike or 1.0)
            given[:, _NEUTRAL] -= part * given[:, -1]
            given = given[:, : len(LABELS)]
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


def _like_given(
    design: Any, pool: npt.NDArray[np.int64], weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], float]:
    """By what features a query is told to be a given one rather than one of other collections; intercept."""
    regression = _regression(_LIKENESS_STRENGTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regression.fit(design, pool, sample_weight=weight)
    return regression.coef_[0].astype(np.float64), float(regression.intercept_[0])


def _leaning(alike: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """2 P − 1 for the log odds of P: from −1, surely of another collection, to 1, surely a given one."""
    low = exp(-np.abs(alike))
    return np.asarray(np.sign(alike) * (1 - low) / (1 + low))


def _regression(strength: float) -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(
            "training a static classifier needs scikit-learn, which is not installed: "
            "pip install 'evenrank[train]'"
        ) from None
    return LogisticRegression(C=strength, max_iter=_STEPS, tol=1e-3)


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
