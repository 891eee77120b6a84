"""How good is a classifier on queries it has not seen? Stratified, seeded, repeated cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, Classifier, Probabilities
from evenrank.stats import Interval, mean_interval

BINS = 10
"""Of equal width, for the calibration error."""


@dataclass(frozen=True)
class CrossValidation:
    """What held-out queries say about a classifier; means over the seeds.

    Attributes
    ----------
    accuracy
        Share of queries with the right label. Its interval is a bootstrap over queries, each with its
        mean over the seeds: what another sample of queries would do to it.
    f1
        Of each class.
    confusion
        Of each true class, how many queries got which label, summed over the seeds.
    ece
        Expected calibration error: the mean distance between how sure the classifier is and how often
        it is right, in ten bins of confidence. 0 is perfect.
    by_seed, by_fold
        Accuracy of each seed, and of each fold (seed by seed).
    """

    accuracy: Interval
    f1: dict[str, float]
    confusion: dict[str, dict[str, int]]
    ece: float
    by_seed: tuple[float, ...]
    by_fold: tuple[float, ...]
    queries: int
    folds: int
    seeds: tuple[int, ...]
    probabilities: tuple[Probabilities, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the probabilities, as plain values."""
        facts = {key: value for key, value in asdict(self).items() if key != "probabilities"}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in facts.items()}


def crossvalidate(
    make: Callable[[], Classifier],
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    folds: int = 5,
    seeds: Sequence[int] = (0, 1, 2),
    progress: Callable[[int, int | None], None] | None = None,
) -> CrossValidation:
    """Train on all folds but one, label that one, in turns; once for each seed.

    Parameters
    ----------
    make
        A fresh, unfitted classifier. It sees the seed too, in ``fit``.
    texts, labels
        The queries, and ``female``, ``male`` or ``neutral`` for each.
    folds
        Each class is dealt out evenly to them, so that they have the same shares.
    seeds
        One division into folds for each.
    """
    truth = label_codes(labels)
    if len(texts) != len(truth):
        raise InputError(f"{len(texts)} texts and {len(truth)} labels; there must be one for each")
    found, by_fold = [], []
    for round_, seed in enumerate(seeds):
        part = stratified_folds(truth, folds, seed)
        probabilities = np.empty((len(texts), len(LABELS)))
        for fold in range(folds):
            outside = np.flatnonzero(part == fold)
            inside = np.flatnonzero(part != fold).tolist()
            model = make().fit([texts[i] for i in inside], [labels[i] for i in inside], seed=seed)
            probabilities[outside] = model.predict_proba([texts[i] for i in outside.tolist()])
            by_fold.append(float((probabilities[outside].argmax(1) == truth[outside]).mean()))
            if progress:
                progress(round_ * folds + fold + 1, len(seeds) * folds)
        found.append(probabilities)
    return _summary(truth, found, by_fold, folds, tuple(seeds))


def stratified_folds(codes: npt.NDArray[np.int64], folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each query: every class shuffled, then dealt out in turns."""
    smallest = min(np.bincount(codes, minlength=1)[np.unique(codes)], default=0)
    if folds < 2 or smallest < folds:
        raise InputError(
            f"{folds} folds need at least {max(folds, 2)} queries of each class; use fewer folds"
        )
    random = np.random.default_rng(seed)
    part = np.empty(len(codes), np.int64)
    dealt = 0
    for code in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == code))
        part[members] = (dealt + np.arange(len(members))) % folds
        dealt += len(members)
    return part


def label_codes(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """Positions in :data:`LABELS`; any other label is refused."""
    places = {label: place for place, label in enumerate(LABELS)}
    for label in labels:
        if label not in places:
            raise InputError(f"label {label!r}; a classifier knows {', '.join(LABELS)}")
    return np.array([places[label] for label in labels], np.int64)


def calibration_error(probabilities: Probabilities, truth: npt.NDArray[np.int64]) -> float:
    """Expected calibration error (Guo et al. 2017): |accuracy − confidence|, averaged over ten bins."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - sure, minlength=BINS)
    return float(np.abs(gaps).sum() / max(1, len(truth)))


def f1_scores(confusion: npt.NDArray[Any]) -> dict[str, float]:
    """F1 of each class from counts, true classes in rows; 0 where a class was never right."""
    right = np.diag(confusion)
    total = confusion.sum(0) + confusion.sum(1)
    return {label: float(2 * right[i] / total[i]) if total[i] else 0.0 for i, label in enumerate(LABELS)}


def confusion_matrix(truth: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many queries of each class (rows) got each label (columns)."""
    size = len(LABELS)
    return np.bincount(truth * size + chosen, minlength=size * size).reshape(size, size)


def _summary(
    truth: npt.NDArray[np.int64],
    found: list[Probabilities],
    by_fold: list[float],
    folds: int,
    seeds: tuple[int, ...],
) -> CrossValidation:
    right = np.array([probabilities.argmax(1) == truth for probabilities in found], float)
    matrices = [confusion_matrix(truth, probabilities.argmax(1)) for probabilities in found]
    scores = [f1_scores(matrix) for matrix in matrices]
    total = np.sum(matrices, axis=0)
    return CrossValidation(
        accuracy=mean_interval(right.mean(0)),
        f1={label: float(np.mean([score[label] for score in scores])) for label in LABELS},
        confusion={
            label: {other: int(total[i, j]) for j, other in enumerate(LABELS)}
            for i, label in enumerate(LABELS)
        },
        ece=float(np.mean([calibration_error(probabilities, truth) for probabilities in found])),
        by_seed=tuple(float(row.mean()) for row in right),
        by_fold=tuple(by_fold),
        queries=len(truth),
        folds=folds,
        seeds=seeds,
        probabilities=tuple(found),
    )
