"""What the static classifier learns from: samples, whom a query is like, what an encoder makes of it.

An encoder of sentences tells more queries apart than single words do, but it is large and slow. So a
regression on what it sees labels queries that have no label, and the static classifier learns from those too
(Hinton, Vinyals and Dean 2015). The encoder is needed to train only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.queries.evaluation import softmax
from evenrank.queries.features import PARTS
from evenrank.queries.samples import More, Samples, lexicon_samples, long_samples, plain_samples, swapped

_WORD_TIMES = 3  # neutral queries that each gendered word is put into
_LIKENESS_STRENGTH = 0.3
_SHARPER = 2.0  # such a regression is too timid: its log odds are doubled
_MASS = 1000.0  # of each class among the queries of either kind, so that likeness is not gender
_STEPS = 40
_BATCH = 64


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
        annotated ones. None takes the shares of the queries that probabilities are calibrated on.
    vector_scale
        Of the vectors, times the root of their dimension.
    likeness
        By how much less neutral a query is that is like the given ones, and more neutral one that is like
        those of other collections: the score of the neutral class loses `likeness` (2 P − 1), P the
        probability that it is a given one. The given queries were pooled because their results lean, so half
        of them are gendered; of a log, few are. 0 leaves it out.
    guesses
        Weight of each query without a label, divided among the classes as an encoder of sentences guesses.
    """

    parts: tuple[str, ...] = tuple(PARTS)
    strength: float = 1.0
    swaps: float = 0.0
    word_samples: float = 0.6
    plain_samples: float = 0.2
    neutral_texts: float = 0.5
    neutral_share: float | None = None
    vector_scale: float = 0.3
    likeness: float = 1.55
    guesses: float = 0.5

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise InputError(f"unknown features {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        if self.neutral_share is not None and not 0 < self.neutral_share < 1:
            raise InputError(f"neutral_share is {self.neutral_share}; it must be between 0 and 1")


def gathered(
    settings: StaticSettings, given: Samples, also: Samples, more: More
) -> tuple[Samples, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The queries, and what is made of them or added, with the weight of each.

    Then which are given ones (1), which real ones of other collections (0), and which were made (−1).
    """
    parts = [(given, 1.0, 1), (also, 1.0, 0)]
    if settings.swaps:
        parts.append((swapped(*given), settings.swaps, -1))
    if settings.word_samples:
        parts.append((lexicon_samples(*given, times=_WORD_TIMES), settings.word_samples, -1))
    if settings.plain_samples:
        plain = plain_samples()
        neutral = [text for text, label in zip(*given, strict=True) if label == "neutral"]
        nobody = Samples(list(more.neutral), ["neutral"] * len(more.neutral))
        parts += [
            (plain, settings.plain_samples, -1),
            (long_samples(neutral, plain), 2 * settings.plain_samples, -1),
            (nobody, settings.neutral_texts, 0),
        ]
    texts = [text for result, *_ in parts for text in result.texts]
    labels = [label for result, *_ in parts for label in result.labels]
    weight = np.concatenate([np.full(len(result.texts), by) for result, by, _ in parts])
    real = np.concatenate([np.full(len(result.texts), side) for result, _, side in parts])
    return Samples(texts, labels), weight, real


def regression(strength: float) -> Any:
    """A logistic regression that has not learned anything yet, by scikit-learn."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(
            "training a static classifier needs scikit-learn, which is not installed: "
            "pip install 'evenrank[train]'"
        ) from None
    return LogisticRegression(C=strength, max_iter=_STEPS, tol=1e-3)


def learned(model: Any, design: Any, truth: npt.NDArray[np.int64], weight: Any = None) -> Any:
    """The regression after its steps; that they were enough for us, and not for it, needs no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(design, truth, sample_weight=weight)


def like_given(
    design: Any, given: npt.NDArray[np.bool_], codes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], float]:
    """By what features a query is told to be a given one rather than one of other collections; intercept.

    Each class weighs the same on both sides: otherwise a gendered query would look like a given one because
    most gendered queries are given ones.
    """
    weight = np.ones(len(codes))
    for code in np.unique(codes):
        for side in (given, ~given):
            cell = side & (codes == code)
            weight[cell] = _MASS / max(1, cell.sum())
    result = learned(regression(_LIKENESS_STRENGTH), design, given.astype(np.int64), weight)
    return _SHARPER * result.coef_[0].astype(np.float64), _SHARPER * float(result.intercept_[0])


def guesses(
    labelled: Any, truth: npt.NDArray[np.int64], unlabelled: Any, classes: int
) -> npt.NDArray[np.float64]:
    """The probabilities of the classes of queries without labels, by a regression on those with labels."""
    used = np.unique(labelled.indices)
    model = learned(regression(1.0), labelled[:, used], truth)
    values = np.zeros((unlabelled.shape[0], classes))
    scores = model.decision_function(unlabelled[:, used])
    values[:, model.classes_] = softmax(scores if scores.ndim == 2 else np.column_stack([-scores, scores]))
    return values


class Encoder:
    """Texts as vectors of length 1, by a sentence-transformer; each is encoded once.

    Parameters
    ----------
    model
        Folder or name of a sentence-transformer; all-MiniLM-L6-v2 if not given.
    """

    def __init__(self, model: str | os.PathLike[str] | None = None) -> None:
        self.model = model
        self.known: dict[str, npt.NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if new := sorted(set(texts) - self.known.keys()):
            from evenrank.vectors.encoders import find_model, open_model

            encode = open_model(find_model(self.model)).encode
            rows = encode(new, batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False)
            rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            self.known |= zip(new, rows.astype(np.float32), strict=True)
        return np.array([self.known[text] for text in texts])
