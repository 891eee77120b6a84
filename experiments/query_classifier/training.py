"""Train the static classifier on labelled queries, and cross-validate a classifier."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import evenrank
from evenrank.data.files import packed, write_model
from evenrank.data.read import labelled_queries
from evenrank.errors import InputError
from evenrank.queries.classify import OTHER, Progress, decide
from evenrank.queries.features import BUCKETS, Features, clean
from evenrank.queries.model import LABELS, Classifier, Probabilities, StaticClassifier, query_hashes
from evenrank.stats import Interval, mean_interval
from experiments.query_classifier.samples import Samples, in_order, long_samples, names_nobody, plain_samples

Encode = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Texts to rows of numbers of length 1, such as a sentence-transformer gives."""

_CALIBRATION_BINS = 10
_ENCODED = 4.0  # length of what an encoder makes of a query, beside its features
_CELL = 1_000.0  # weight of each class among the queries of either kind, so that likeness is not gender
_STEPS = 60


@dataclass(frozen=True)
class Settings:
    """How the static classifier learns; the defaults were chosen by cross-validation on training queries.

    Attributes
    ----------
    strength
        Of the evidence against the pull of all weights to zero.
    others
        Weight of each labelled query of another collection.
    neutral
        Weight of each text of another collection that names nobody.
    plain
        Weight of each query made of our own lists; long texts have twice this weight.
    guessed
        Weight of each query without a label, divided among the classes as an encoder guesses.
    vectors
        Weight of word vectors.
    vocabulary
        How many of the most frequent words of the vectors have weights of their own.
    likeness
        By how much a query that is like the annotated ones is more probably about somebody, and one that is
        like those of other collections less.
    threshold
        What the score of being about somebody is lowered by: higher values mean fewer female and male labels,
        and more of them right.
    temperature
        What scores are divided by to make probabilities.
    """

    strength: float = 0.3
    others: float = 1.0
    neutral: float = 0.3
    plain: float = 0.1
    guessed: float = 0.5
    vectors: float = 0.6
    vocabulary: int = 30_000
    likeness: float = 0.8
    threshold: float = -0.1
    temperature: float = 1.0


def read_labelled(path: str | os.PathLike[str]) -> tuple[Samples, int]:
    """Read ``query_id<TAB>text<TAB>label``; returns the queries and how many are left out.

    Labels may be spelled as in annotation sheets (f, women, non-gendered). Queries of other or multiple
    genders are too few to learn from: they are left out and counted. So are empty queries.
    """
    table = labelled_queries(path)
    if "text" not in table.columns:
        raise InputError("expected query_id<TAB>text<TAB>label", path=path, line=1)
    rows = table.select("text", "gender").iter_rows()
    kept = [(text, gender) for text, gender in rows if gender in LABELS and text.strip()]
    if not kept:
        raise InputError("no query is labelled female, male or neutral", path=path)
    return Samples([text for text, _ in kept], [label for _, label in kept]), len(table) - len(kept)


def train_classifier(
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    vectors: Sequence[Any] = (),
    others: Samples | None = None,
    neutral: Sequence[str] = (),
    unlabelled: Sequence[str] = (),
    encode: Encode | None = None,
    settings: Settings | None = None,
) -> StaticClassifier:
    """Train the static classifier, with scikit-learn.

    Parameters
    ----------
    texts, labels
        Labelled queries: female, male or neutral. Their order makes no difference.
    vectors
        Word vectors, or files of them; the first has the most frequent words first. They are folded into the
        weights of words, so labelling does not need them.
    others
        Labelled queries of other collections.
    neutral
        Texts of other collections, learned as neutral; those that name somebody are left out.
    unlabelled, encode
        Queries without labels, and what makes vectors of queries: a regression on these guesses the labels of
        queries that name somebody. Where nobody is named, the person an encoder thinks of is a stereotype.

    Examples
    --------
    >>> texts = ["who is mary", "how old is james", "weather today"] * 5
    >>> model = train_classifier(texts, ["female", "male", "neutral"] * 5)
    >>> model.predict_proba(["how old is mary"]).argmax()
    0
    """
    from scipy.sparse import csr_matrix, hstack, vstack

    chosen = settings or Settings()
    if not len(texts) or len(texts) != len(labels):
        raise InputError(f"{len(texts)} texts and {len(labels)} labels; there must be one for each, and some")
    given = in_order(texts, labels)
    more = in_order(*(others or Samples([], [])))
    nobody = [text for text in sorted({clean(text) for text in neutral}) if text and names_nobody(text)]
    plain = plain_samples()
    long = long_samples([t for t, label in zip(*given, strict=True) if label == "neutral"], plain)
    learned = {*given.texts, *more.texts}
    guessed = sorted({clean(text) for text in unlabelled} - learned)
    guessed = [text for text in guessed if text and not names_nobody(text)] if encode is not None else []

    features, table = _vocabulary(vectors, chosen)
    parts = [
        (given, 1.0),
        (more, chosen.others),
        (Samples(nobody, ["neutral"] * len(nobody)), chosen.neutral),
        (plain, chosen.plain),
        (long, 2 * chosen.plain),
    ]
    every = [text for samples, _ in parts for text in samples.texts] + guessed
    readings = [features.read(text) for text in every]
    hashed = features.matrix(readings)
    means = csr_matrix(hashed[:, BUCKETS : BUCKETS + len(table)] @ table)
    design = hstack([hashed, means]).tocsr().astype(np.float32)
    codes = label_codes([label for samples, _ in parts for label in samples.labels])
    weight = np.concatenate([np.full(len(samples.texts), by) for samples, by in parts])
    size, real = len(codes), len(given.texts) + len(more.texts)
    is_gendered = codes != LABELS.index("neutral")
    rows, truth = design[:size], is_gendered
    if guessed and encode is not None:
        encoded = csr_matrix(_ENCODED * encode([*every[:real], *guessed]))
        told = hstack([design[:real], encoded[:real]]).tocsr()
        column, intercept = _regression(told, is_gendered[:real], None, 1.0)
        score = hstack([design[size:], encoded[real:]]).tocsr() @ column + intercept
        share = chosen.guessed / (1 + np.exp(-score))
        rows = vstack([design, design[size:]]).tocsr()
        truth = np.concatenate([is_gendered, np.ones(len(guessed), bool), np.zeros(len(guessed), bool)])
        weight = np.concatenate([weight, share, chosen.guessed - share])
    gendered = _regression(rows, truth, weight, chosen.strength)
    is_person = is_gendered & (np.arange(size) < real)
    is_person &= np.array([not reading.is_explicit for reading in readings[:size]])
    male = _regression(design[:size][is_person], codes[is_person] == 1, None, chosen.strength)
    like = (np.zeros(design.shape[1]), 0.0)
    collections = len(given.texts) + len(more.texts) + len(nobody)
    if collections > len(given.texts):
        is_given = np.arange(collections) < len(given.texts)
        cell = 2 * is_gendered[:collections] + is_given
        by_cell = (_CELL / np.maximum(np.bincount(cell, minlength=4), 1))[cell]
        like = _regression(design[:collections], is_given, by_cell, chosen.strength)
    columns = np.column_stack([gendered[0], male[0], like[0]])
    weights = columns[: features.columns].copy()
    weights[BUCKETS : BUCKETS + len(table)] += table @ columns[features.columns :]
    counts = np.bincount(codes[: len(given.texts)], minlength=len(LABELS))
    facts = {
        "evenrank": evenrank.__version__,
        "settings": asdict(chosen),
        "classes": {label: int(n) for label, n in zip(LABELS, counts, strict=True)},
        "other labelled queries": len(more.texts),
        "neutral texts": len(nobody),
        "queries without labels": len(guessed),
    }
    return StaticClassifier(
        features,
        rounded(weights),
        np.array([gendered[1] - chosen.threshold, male[1], like[1]]),
        likeness=chosen.likeness,
        temperature=chosen.temperature,
        shares=(counts + 1) / (counts.sum() + len(LABELS)),
        trained_on=np.unique(query_hashes([*given.texts, *more.texts, *nobody, *guessed])),
        facts=facts,
    )


def _vocabulary(vectors: Sequence[Any], settings: Settings) -> tuple[Features, npt.NDArray[np.float32]]:
    """What reads queries, and the scaled vector of each word of its vocabulary."""
    from evenrank.vectors import load

    sources = [load(each) for each in vectors]
    words = [word for source in sources[:1] for word in source.words if word.isalnum()]
    words = words[: settings.vocabulary]
    tables = [np.zeros((len(words), 0), np.float32)]
    for source in sources:
        found = [(row, source.exact_row(word)) for row, word in enumerate(words)]
        known = np.array([(row, place) for row, place in found if place is not None], int).reshape(-1, 2)
        tables.append(np.zeros((len(words), source.dimension), np.float32))
        scale = settings.vectors * np.sqrt(source.dimension) / 10
        tables[-1][known[:, 0]] = scale * source.matrix[known[:, 1]]
    return Features(words), np.hstack(tables)


def _regression(
    design: Any, truth: npt.NDArray[np.bool_], weight: Any, strength: float
) -> tuple[npt.NDArray[np.float64], float]:
    """Weights and intercept of a logistic regression; of one class only, no weights."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError("training a classifier needs scikit-learn: pip install 'evenrank[train]'") from None
    weights = np.zeros(design.shape[1])
    if len(np.unique(truth)) < 2:
        return weights, 0.0
    used = np.unique(design.indices)
    model = LogisticRegression(C=strength, max_iter=_STEPS, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so many steps are enough
        model.fit(design[:, used], truth, sample_weight=weight)
    weights[used] = model.coef_[0]
    return weights, float(model.intercept_[0])


def rounded(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Weights as :func:`save` keeps them: in 255 steps for each column."""
    scale = _scale(weights)
    return (np.rint(weights / scale).astype(np.float32) * scale.astype(np.float32)).astype(np.float32)


def _scale(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.maximum(np.abs(weights).max(0), 1e-9) / 127


def save(model: StaticClassifier, path: str | os.PathLike[str]) -> None:
    """Write the model folder: a JSON header and one ``.npz`` of plain arrays."""
    scale = _scale(model.weights)
    arrays = {
        "vocabulary": np.frombuffer("\n".join(model.features.vocabulary).encode(), np.uint8),
        "weights": np.rint(model.weights / scale).astype(np.int8),
        "scale": scale,
        "bias": model.bias,
        "shares": model.shares,
        "trained_on": model.trained_on,
    }
    numbers = {"likeness": model.likeness, "temperature": model.temperature}
    write_model(path, model.name, {**model.facts, **numbers}, {"static.npz": packed(arrays)})


class CrossValidation(NamedTuple):
    """What held-out queries say about a classifier; means over the seeds.

    Attributes
    ----------
    accuracy
        Share of queries with the right label; ``other`` is never right. Its interval is a bootstrap over
        queries, each with its mean over the seeds: what another sample of queries would do to it.
    labelled
        Share of queries that got a label other than ``other``.
    f1
        Of each class.
    confusion
        Of each true class, how many queries got which label, summed over the seeds.
    calibration_error
        Expected calibration error (Guo et al. 2017): the mean distance between how sure the classifier is and
        how often it is right, in ten bins of confidence. 0 is perfect.
    by_fold
        Accuracy of each fold, seed by seed.
    right
        Of each query, in the order of the texts, the share of the seeds with the right label.
    """

    accuracy: Interval
    labelled: float
    f1: dict[str, float]
    confusion: dict[str, dict[str, int]]
    calibration_error: float
    by_fold: tuple[float, ...]
    right: tuple[float, ...]
    queries: int

    def to_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in self._asdict().items() if name != "right"}
        return {**own, "accuracy": asdict(self.accuracy), "by_fold": list(self.by_fold)}


def crossvalidate(
    train: Callable[[list[str], list[str]], Classifier],
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    folds: int = 5,
    seeds: Sequence[int] = (0,),
    progress: Progress | None = None,
) -> CrossValidation:
    """Train on all folds but one, label that one, in turns; once for each seed.

    Parameters
    ----------
    train
        Makes a classifier of texts and labels, such as :func:`train_classifier`.
    folds
        Each class is dealt out evenly to them.
    seeds
        One division into folds for each.
    """
    ordered = sorted(zip(texts, labels, strict=True))  # the folds do not depend on the order of the rows
    truth = label_codes([label for _, label in ordered])
    chosen, by_fold, errors = [], [], []
    for number, seed in enumerate(seeds):
        part = stratified_folds(truth, folds, seed)
        probabilities = np.empty((len(truth), len(LABELS)))
        for fold in range(folds):
            inside = [pair for pair, where in zip(ordered, part, strict=True) if where != fold]
            outside = part == fold
            model = train([text for text, _ in inside], [label for _, label in inside])
            probabilities[outside] = model.predict_proba([ordered[i][0] for i in np.flatnonzero(outside)])
            by_fold.append(float((decide(probabilities[outside]) == truth[outside]).mean()))
            if progress:
                progress(number * folds + fold + 1, len(seeds) * folds)
        chosen.append(decide(probabilities))
        errors.append(calibration_error(probabilities, truth))
    return _summary(truth, np.array(chosen), by_fold, errors)


def _summary(
    truth: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], by_fold: list[float], errors: list[float]
) -> CrossValidation:
    """What the labels of all queries amount to; one row of `chosen` for each seed."""
    confusion = np.zeros((len(LABELS), len(LABELS) + 1), int)
    for row in chosen:
        np.add.at(confusion, (truth, row), 1)
    right, claimed = np.diag(confusion), confusion[:, : len(LABELS)].sum(0)
    f1 = 2 * right / np.maximum(claimed + confusion.sum(1), 1)
    return CrossValidation(
        accuracy=mean_interval((chosen == truth).mean(0)),
        labelled=float((chosen < len(LABELS)).mean()),
        f1=dict(zip(LABELS, f1.tolist(), strict=True)),
        confusion={
            label: dict(zip((*LABELS, OTHER), row.tolist(), strict=True))
            for label, row in zip(LABELS, confusion, strict=True)
        },
        calibration_error=float(np.mean(errors)),
        by_fold=tuple(by_fold),
        right=tuple((chosen == truth).mean(0).tolist()),
        queries=len(truth),
    )


def stratified_folds(codes: npt.NDArray[np.int64], folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each query, by scikit-learn: every class is shuffled and dealt out evenly."""
    smallest = min(np.bincount(codes, minlength=1)[np.unique(codes)], default=0)
    if folds < 2 or smallest < folds:
        raise InputError(
            f"{folds} folds need at least {max(folds, 2)} queries of each class; give more queries, or "
            "use fewer folds"
        )
    from sklearn.model_selection import StratifiedKFold

    part = np.empty(len(codes), np.int64)
    divided = StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
    for fold, (_, outside) in enumerate(divided):
        part[outside] = fold
    return part


def label_codes(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """Positions in :data:`LABELS`; any other label is refused."""
    if unknown := sorted(set(labels) - set(LABELS)):
        raise InputError(f"label {unknown[0]!r}; a classifier knows {', '.join(LABELS)}")
    return np.array([LABELS.index(label) for label in labels], np.int64)


def calibration_error(probabilities: Probabilities, truth: npt.NDArray[np.int64]) -> float:
    """Expected calibration error (Guo et al. 2017): |accuracy − confidence|, averaged over ten bins."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    bins = np.minimum((sure * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, right - sure, minlength=_CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / max(1, len(truth)))
