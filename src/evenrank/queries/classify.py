"""`er.classify`: which gender is a query about?"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.data.read import read_queries
from evenrank.errors import InputError
from evenrank.queries.features import LONGEST, clean
from evenrank.queries.model import LABELS, Classifier, Probabilities, load_classifier
from evenrank.show.numbers import counted

OTHER = "other"
"""The label of a query about both genders or another one, and of one where the classifier is not sure."""

Progress = Callable[[int, int | None], None]
_BLOCK = 1 << 13
_TIE = 1e-9


def decide(probabilities: Probabilities, least: float = 0.0) -> npt.NDArray[np.int64]:
    """The place of the most likely class in :data:`LABELS`; the next one for ties and below `least`."""
    if not len(probabilities):
        return np.zeros(0, np.int64)
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    is_other = (first - second < _TIE) | (first < least)
    return np.where(is_other, len(LABELS), probabilities.argmax(1))


def classify(
    queries: Any,
    model: str | os.PathLike[str] | Classifier = "static",
    *,
    min_confidence: float = 0.0,
    explain: bool = False,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Which gender each query is about: female, male, neutral, or other.

    Parameters
    ----------
    queries
        Anything :func:`evenrank.data.read.read_queries` takes.
    model
        ``static``, ``lexicon``, the folder of a saved model, or a classifier.
    min_confidence
        Below this probability the label is ``other``; the probabilities stay.
    explain
        Add a column ``reasons``: the words that drove the label.

    Returns
    -------
    pl.DataFrame
        ``query_id``, ``text``, ``label``, ``female``, ``male``, ``neutral`` (probabilities), ``note``
        (``empty``, ``truncated``, ``training query``; joined with ``; ``, else empty), and ``reasons``, a
        list of (``word``, ``group``, ``weight``).

    Notes
    -----
    A query without any letter or digit is neutral: nobody is asked about. Its probabilities are the shares of
    the classes in training, and its note is ``empty``. A query with words of both genders is ``other``, and
    so is one with a word of the lexicon rekabsaz2020 that seems to be about nobody (the title of a song).
    """
    if not 0 <= min_confidence <= 1:
        raise InputError(f"min_confidence is {min_confidence}; it must be between 0 and 1")
    table = read_queries(queries)
    classifier = load_classifier(model)
    given = table["text"].to_list()
    parts = []
    for start in range(0, len(given), _BLOCK):
        parts.append(classifier.predict_proba(given[start : start + _BLOCK]))
        if progress:
            progress(min(start + _BLOCK, len(given)), len(given))
    probabilities = np.concatenate(parts)
    empty = np.array([not clean(text) for text in given])
    chosen = np.where(
        empty & (min_confidence == 0), LABELS.index("neutral"), decide(probabilities, min_confidence)
    )
    result = table.with_columns(
        pl.Series("label", np.array((*LABELS, OTHER), object)[chosen], pl.String),
        *(pl.Series(name, probabilities[:, column]) for column, name in enumerate(LABELS)),
        pl.Series("note", _notes(given, empty, classifier.is_training_query(given)), pl.String),
    )
    if explain:
        reasons = [
            [dict(zip(("word", "group", "weight"), each, strict=True)) for each in row]
            for row in classifier.explain(given)
        ]
        kind = pl.List(pl.Struct({"word": pl.String, "group": pl.String, "weight": pl.Float64}))
        result = result.with_columns(pl.Series("reasons", reasons, kind))
    return result


def predicted_genders(queries: Any, *, keep_seen: bool = False) -> tuple[pl.DataFrame, str]:
    """``query_id, gender`` by the shipped classifier, and a sentence: how many got which label, and none.

    Queries that it was trained on get no label, unless `keep_seen`: a classifier is no evidence about its own
    training data.
    """
    result = classify(queries)
    seen = result["note"].str.contains("training query", literal=True)
    kept = result if keep_seen else result.filter(~seen)
    if len(result) and not len(kept):
        raise InputError("the classifier was trained on all of these queries; give labels as --genders FILE")
    all_of_them = counted(len(result), "query", "queries")
    summary = f"{len(kept):,} of {all_of_them} labelled by the classifier: {counted_labels(kept)}"
    if dropped := len(result) - len(kept):
        summary += f"; {dropped:,} get no predicted gender, because it was trained on them"
    return kept.select("query_id", gender="label"), summary


def counted_labels(labelled: pl.DataFrame) -> str:
    """How many queries have which label, the most frequent first."""
    counts = sorted(labelled["label"].value_counts().iter_rows(), key=lambda row: (-row[1], row[0]))
    return ", ".join(f"{number:,} {label}" for label, number in counts)


def _notes(given: list[str], empty: npt.NDArray[np.bool_], seen: npt.NDArray[np.bool_]) -> list[str]:
    notes = []
    for text, is_empty, is_seen in zip(given, empty, seen, strict=True):
        facts = {
            "empty": is_empty,
            "truncated": len(text) > LONGEST,
            "training query": is_seen and not is_empty,
        }
        notes.append("; ".join(name for name, holds in facts.items() if holds))
    return notes
