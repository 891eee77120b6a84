"""What a static classifier learns beside labels: whom a query is like, and what an encoder makes of it.

An encoder of sentences tells more queries apart than single words do, but it is large and slow. So a
regression on what it sees labels queries that have no label, and the static classifier learns from those too
(Hinton, Vinyals and Dean 2015). The encoder is needed to train only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.queries.evaluation import softmax

_LIKENESS_STRENGTH = 0.3
_SHARPER = 2.0  # such a regression is too timid: its log odds are doubled
_MASS = 1000.0  # of each class among the queries of either kind, so that likeness is not gender
_STEPS = 40
_BATCH = 64


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
    found = learned(regression(_LIKENESS_STRENGTH), design, given.astype(np.int64), weight)
    return _SHARPER * found.coef_[0].astype(np.float64), _SHARPER * float(found.intercept_[0])


def guesses(
    labelled: Any, truth: npt.NDArray[np.int64], unlabelled: Any, classes: int
) -> npt.NDArray[np.float64]:
    """The probabilities of the classes of queries without labels, by a regression on those with labels."""
    used = np.unique(labelled.indices)
    model = learned(regression(1.0), labelled[:, used], truth)
    found = np.zeros((unlabelled.shape[0], classes))
    scores = model.decision_function(unlabelled[:, used])
    found[:, model.classes_] = softmax(scores if scores.ndim == 2 else np.column_stack([-scores, scores]))
    return found


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
