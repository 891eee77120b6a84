"""How good is a classifier on queries it has not seen, and which words drove a label? The model's card."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import evenrank
from evenrank.data.files import writing
from evenrank.data.read import labelled_queries
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, UNKNOWN, Classifier, Probabilities, Reason, clean, decide
from evenrank.stats import Interval, mean_interval

BINS = 10
"""Of equal width, for the calibration error."""


@dataclass(frozen=True)
class CrossValidation:
    """What held-out queries say about a classifier; means over the seeds.

    Attributes
    ----------
    accuracy
        Share of queries with the right label; ``unknown`` is never right. Its interval is a bootstrap over
        queries, each with its
        mean over the seeds: what another sample of queries would do to it.
    coverage
        Share of queries that got a label other than ``unknown``.
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
    coverage: float
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
    if len(texts) != len(labels):
        raise InputError(f"{len(texts)} texts and {len(labels)} labels; there must be one for each")
    ordered = sorted(zip(texts, labels, strict=True))  # the folds do not depend on the order of the rows
    texts, labels = [text for text, _ in ordered], [label for _, label in ordered]
    truth = label_codes(labels)
    result, doubts, by_fold = [], [], []
    for round_, seed in enumerate(seeds):
        part = stratified_folds(truth, folds, seed)
        probabilities, doubt = np.empty((len(texts), len(LABELS))), np.empty(len(texts))
        for fold in range(folds):
            outside = np.flatnonzero(part == fold)
            inside = np.flatnonzero(part != fold).tolist()
            model = make().fit([texts[i] for i in inside], [labels[i] for i in inside], seed=seed)
            probabilities[outside] = model.predict_proba([texts[i] for i in outside.tolist()])
            doubt[outside] = model.abstains_below
            by_fold.append(float((decide(probabilities[outside], doubt[outside]) == truth[outside]).mean()))
            if progress:
                progress(round_ * folds + fold + 1, len(seeds) * folds)
        result.append(probabilities)
        doubts.append(doubt)
    return summary(truth, result, doubts, by_fold, folds, tuple(seeds))


def stratified_folds(codes: npt.NDArray[np.int64], folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each query, by scikit-learn: every class is shuffled and dealt out evenly."""
    smallest = min(np.bincount(codes, minlength=1)[np.unique(codes)], default=0)
    if folds < 2 or smallest < folds:
        raise InputError(
            f"{folds} folds need at least {max(folds, 2)} queries of each class; give more queries, or "
            "use fewer folds"
        )
    try:
        from sklearn.model_selection import StratifiedKFold
    except ImportError:
        raise InputError(
            "dividing queries into folds needs scikit-learn: pip install 'evenrank[train]'"
        ) from None
    part = np.empty(len(codes), np.int64)
    divided = StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
    for fold, (_, outside) in enumerate(divided):
        part[outside] = fold
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


def f1_scores(truth: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> dict[str, float]:
    """F1 of each class, by scikit-learn; 0 where a class was never right. Other codes are unknown."""
    from sklearn.metrics import f1_score

    result = f1_score(truth, chosen, labels=range(len(LABELS)), average=None, zero_division=0)
    return dict(zip(LABELS, map(float, result), strict=True))


def confusion_matrix(truth: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many queries of each class (rows) got each label (columns; the last is unknown)."""
    size = len(LABELS) + 1
    return np.bincount(truth * size + chosen, minlength=size * len(LABELS)).reshape(len(LABELS), size)


def summary(
    truth: npt.NDArray[np.int64],
    found: list[Probabilities],
    doubts: list[npt.NDArray[np.float64]],
    by_fold: list[float],
    folds: int,
    seeds: tuple[int, ...],
) -> CrossValidation:
    """What the probabilities of all queries amount to; one matrix, and one row of bounds, for each seed."""
    labels = [decide(probabilities, doubt) for probabilities, doubt in zip(found, doubts, strict=True)]
    right = np.array([chosen == truth for chosen in labels], float)
    matrices = [confusion_matrix(truth, chosen) for chosen in labels]
    scores = [f1_scores(truth, chosen) for chosen in labels]
    total = np.sum(matrices, axis=0)
    return CrossValidation(
        accuracy=mean_interval(right.mean(0)),
        coverage=float(np.mean([chosen < len(LABELS) for chosen in labels])),
        f1={label: float(np.mean([score[label] for score in scores])) for label in LABELS},
        confusion={
            label: {other: int(total[i, j]) for j, other in enumerate((*LABELS, UNKNOWN))}
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


class Labelled(NamedTuple):
    """Texts, the label of each, and how many queries were left out because theirs is another."""

    texts: list[str]
    labels: list[str]
    left_out: int


def read_labelled(path: str | os.PathLike[str]) -> Labelled:
    """``query_id<TAB>text<TAB>label``, with or without a header.

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
    return Labelled([text for text, _ in kept], [label for _, label in kept], len(table) - len(kept))


_LEAST_EFFECT = 0.005  # on a probability; below it a word drove nothing
_MOST_REASONS = 5
_MARKS = "?!.,;:'\"()"
_MOST_WORDS = 32  # of a query; every one costs a prediction


def reasons(predict: Callable[[Sequence[str]], Probabilities], texts: Sequence[str]) -> list[list[Reason]]:
    """For each text its words, the class that would lose most without each, and how much probability."""
    split = [clean(text).split()[:_MOST_WORDS] for text in texts]
    without = [" ".join(words[:i] + words[i + 1 :]) for words in split for i in range(len(words))]
    whole = predict([" ".join(words) for words in split])
    left = predict(without)
    rows: list[list[Reason]] = []
    place = 0
    for words, row in zip(split, whole, strict=True):
        drops = row - left[place : place + len(words)]
        place += len(words)
        each = [
            (word.strip(_MARKS) or word, LABELS[int(drop.argmax())], round(float(drop.max()), 3))
            for word, drop in zip(words, drops, strict=True)
        ]
        strongest = sorted((r for r in each if r[2] >= _LEAST_EFFECT), key=lambda reason: -reason[2])
        rows.append(strongest[:_MOST_REASONS])
    return rows


def softmax(scores: Probabilities) -> Probabilities:
    """Probabilities, row by row."""
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def temperature(scores: Probabilities, truth: npt.NDArray[np.int64]) -> float:
    """What to divide scores by, so that held-out queries are as likely as can be (Guo et al. 2017).

    Above 1 the scores were too sure. The order of the classes never changes.
    """
    from scipy.optimize import minimize_scalar

    def surprise(log_temperature: float) -> float:
        chosen = softmax(scores / np.exp(log_temperature))[np.arange(len(truth)), truth]
        return -float(np.log(np.maximum(chosen, 1e-12)).mean())

    result = minimize_scalar(surprise, bounds=(np.log(0.2), np.log(5)), method="bounded")
    return float(np.exp(result.x))


def calibration(scores: Probabilities, truth: npt.NDArray[np.int64]) -> tuple[float, npt.NDArray[np.float64]]:
    """A temperature, and what to add to the scores of each class before (Alexandari et al. 2020).

    Made samples shift the shares of the classes; this brings them back to those of real queries that were
    held out. Female and male get the same shift, none, so that the two stay mirror images.
    """
    from scipy.optimize import minimize

    neutral = np.arange(len(LABELS)) == LABELS.index("neutral")

    def surprise(point: npt.NDArray[np.float64]) -> float:
        chosen = softmax((scores + point[1] * neutral) / np.exp(point[0]))[np.arange(len(truth)), truth]
        return -float(np.log(np.maximum(chosen, 1e-12)).mean())

    result = minimize(surprise, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6})
    log_temperature = float(np.clip(result.x[0], np.log(0.2), np.log(5)))
    return float(np.exp(log_temperature)), neutral * float(result.x[1])


def towards(
    shares: npt.NDArray[np.float64], neutral_share: float | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """What to add to log probabilities where `neutral_share` of the queries are neutral; the shares then.

    Bayes' rule with other shares of the classes (Saerens, Latinne and Decaestecker 2002). Queries about women
    and about men stay as frequent beside each other as they are.
    """
    if neutral_share is None:
        return np.zeros(len(LABELS)), shares
    neutral = np.arange(len(LABELS)) == LABELS.index("neutral")
    requested = np.where(neutral, neutral_share, shares * (1 - neutral_share) / (1 - shares[neutral]))
    return np.asarray(np.log(requested) - np.log(shares)), requested


def calibrated(
    scores: Probabilities, truth: npt.NDArray[np.int64], neutral_share: float | None
) -> tuple[float, npt.NDArray[np.float64]]:
    """A temperature, and what to add to scores before, for queries of which `neutral_share` are neutral."""
    if neutral_share is None:
        return temperature(scores, truth), np.zeros(len(LABELS))
    heat, shift = calibration(scores, truth)
    shares = (np.bincount(truth, minlength=len(LABELS)) + 1) / (len(truth) + len(LABELS))
    return heat, shift + heat * towards(shares, neutral_share)[0]


_LIMITS = (
    "A query is labelled by its words, not by facts: an unknown name, or a name of another language, is "
    "often missed.",
    "Three classes, as people annotated them: queries about several genders, or other ones, have no class.",
    "Names follow the US census of 1990.",
    "English only. Other scripts are mostly labelled neutral.",
    "It is meant to split sets of queries for an audit. It says nothing about the person who searches.",
)


def write_card(
    folder: str | os.PathLike[str], model: Classifier, found: CrossValidation | None, *, left_out: int = 0
) -> None:
    """Write ``card.json`` and ``card.md`` into the folder of a saved model."""
    card = {
        "evenrank": evenrank.__version__,
        **model.describe(),
        "left_out": left_out,
        "cross_validation": None if found is None else found.to_dict(),
        "limits": list(_LIMITS),
    }
    with writing(Path(folder) / "card.json") as file:
        file.write((json.dumps(card, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode())
    with writing(Path(folder) / "card.md") as file:
        file.write(_markdown(card).encode())


def _markdown(card: dict[str, Any]) -> str:
    lines = [f"# Query-gender classifier: {card['kind']}", ""]
    if "queries" in card:
        classes = ", ".join(f"{number:,} {label}" for label, number in card.get("classes", {}).items())
        lines += [f"Trained on {card['queries']:,} labelled queries ({classes}).", ""]
    if card["cross_validation"]:
        lines += _numbers(card["cross_validation"])
    lines += ["## What it cannot do", "", *(f"- {limit}" for limit in card["limits"]), ""]
    if "settings" in card:
        lines += ["## Settings", "", "```json", json.dumps(card["settings"], indent=1), "```", ""]
    return "\n".join(lines)


def _numbers(found: dict[str, Any]) -> list[str]:
    accuracy = found["accuracy"]
    interval = "" if accuracy["low"] is None else f" (95%: {accuracy['low']:.3f} to {accuracy['high']:.3f})"
    head = (
        f"{found['folds']}-fold cross-validation, {len(found['seeds'])} seeds, {found['queries']:,} queries."
    )
    rows = [
        f"| {label} | {found['f1'][label]:.3f} | "
        + " | ".join(str(found["confusion"][label][other]) for other in LABELS)
        + " |"
        for label in LABELS
    ]
    return [
        "## How good it is",
        "",
        head,
        "",
        f"- accuracy {accuracy['value']:.3f}{interval}",
        f"- expected calibration error {found['ece']:.3f}",
        "",
        "| true class | F1 | " + " | ".join(f"labelled {label}" for label in LABELS) + " |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
