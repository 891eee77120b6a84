"""Which gender is a query about? What every classifier can do, and the one call that labels queries."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import xxhash

from evenrank.errors import InputError
from evenrank.show.numbers import counted

LABELS = ("female", "male", "neutral")
"""The classes, in the order of the columns of every matrix of probabilities."""
UNKNOWN = "unknown"
"""The label of a query on which the classifier abstains."""
LONGEST = 1_000
"""Characters of a query that are looked at; what follows is left out, and a note says so."""

Probabilities = npt.NDArray[np.float64]
Progress = Callable[[int, int | None], None]
Reason = tuple[str, str, float]
"""A word, the class it speaks for, and how much (in the model's own units, larger is more)."""

_BLOCK = 1 << 15
_FOREIGN = re.compile(r"[^\x00-\x7f\w]+")
_SPEAKS = re.compile(r"[^\W_]")

_KINDS = {
    "static": "evenrank.queries.static_classifier:StaticClassifier",
    "lexicon": "evenrank.queries.baselines:LexiconClassifier",
    "svm": "evenrank.queries.baselines:SvmClassifier",
    "transformer": "evenrank.queries.transformer_classifier:TransformerClassifier",
}


class Classifier(Protocol):
    """Tells whether the person or thing a query is about is female, male or of no gender.

    Attributes
    ----------
    name
        The kind, as in ``--model``: also the ``kind`` in the header of a saved model.
    labels
        :data:`LABELS`.
    trained_on
        Hashes of the training queries (:func:`query_hashes`), sorted; empty for a classifier that was
        not trained. Labelling these for an audit would be cheating.
    abstains_below
        Where no class is as probable as this, the label is ``unknown``.
    """

    name: ClassVar[str]
    labels: ClassVar[tuple[str, ...]]
    trained_on: npt.NDArray[np.uint64]
    abstains_below: float

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Learn from labelled queries; returns itself."""
        ...

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label; rows sum to 1. Texts come through :func:`clean`."""
        ...

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text the words that drove its label, the strongest first."""
        ...

    def describe(self) -> dict[str, Any]:
        """Settings and provenance as plain JSON values."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder (:func:`~evenrank.data.files.write_model`)."""
        ...

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model folder; a changed one is refused."""
        ...


def kind_of(name: str) -> type[Any]:
    """The class of classifiers with this name; what it needs is imported only now."""
    if name not in _KINDS:
        raise InputError(f"unknown model {name!r}; choose {', '.join(_KINDS)} or the folder of a saved model")
    module, _, attribute = _KINDS[name].partition(":")
    return getattr(import_module(module), attribute)


def load_classifier(model: str | os.PathLike[str] | Classifier) -> Classifier:
    """A classifier that is ready to label: the shipped one of a kind, or a saved one.

    Parameters
    ----------
    model
        ``static`` (shipped, trained), ``lexicon`` (nothing to train), ``transformer`` (loaded from where
        its own module keeps a trained one, if anywhere), a folder written by :meth:`Classifier.save`, or
        a classifier.
    """
    if not isinstance(model, (str, os.PathLike)):
        return model
    name = os.fspath(model)
    if name in _KINDS:
        return _shipped(name)
    from evenrank.data.files import model_kind

    if not Path(name).exists() and os.sep not in name:
        kind_of(name)  # neither a name nor a folder: the error lists the names
    return kind_of(model_kind(name)).load(name)


@lru_cache(maxsize=4)
def _shipped(name: str) -> Classifier:
    folder = Path(str(resources.files("evenrank.queries"))) / "data" / name
    kind = kind_of(name)
    if folder.is_dir():
        return kind.load(folder)
    if hasattr(kind, "shipped"):
        return kind.shipped()
    raise InputError(
        f"no trained {name} model comes with the package; "
        f"make one: evenrank classify-train DATA --model {name} -o MODEL"
    )


def clean(text: str) -> str:
    """A query as classifiers see it: the first :data:`LONGEST` characters, lower case, single blanks.

    Beyond ASCII only letters, marks of letters and digits stay: an emoji or a typographic quote is a blank.
    Without a letter or digit nothing stays at all.
    """
    text = text[:LONGEST].lower()
    if not text.isascii():
        text = _FOREIGN.sub(" ", unicodedata.normalize("NFC", text.replace("’", "'")))
    return " ".join(text.split()) if _SPEAKS.search(text) else ""


def query_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """XXH3-64 of each cleaned text: enough to recognise a training query, not to recover it."""
    return np.array([xxhash.xxh3_64_intdigest(clean(text).encode()) for text in texts], np.uint64)


def decide(probabilities: Probabilities, below: float | npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The place of the likeliest class in :data:`LABELS`; one more where it is less likely than ``below``."""
    chosen = probabilities.argmax(1)
    return np.where(probabilities.max(1, initial=0) < below, len(LABELS), chosen)


def seen_in_training(model: Classifier, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which of the texts the classifier was trained on."""
    return np.isin(query_hashes(texts), model.trained_on)


def classify(
    queries: Any,
    model: str | os.PathLike[str] | Classifier = "static",
    *,
    min_confidence: float | None = None,
    explain: bool = False,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Which gender each query is about: female, male, neutral, or unknown where the model is unsure.

    Parameters
    ----------
    queries
        Anything :func:`evenrank.data.read.read_queries` takes.
    model
        ``static``, ``lexicon``, ``transformer``, the folder of a saved model, or a classifier.
    min_confidence
        Abstain below this probability: the label is then ``unknown``; the probabilities stay. If not given,
        the model's own bound (:attr:`Classifier.abstains_below`).
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
    A query without any letter or digit, an empty one too, is neutral: nobody is asked about. Its
    probabilities are the shares of the classes in training, and its note is ``empty``.
    """
    from evenrank.data.read import read_queries as as_queries

    if min_confidence is not None and not 0 <= min_confidence <= 1:
        raise InputError(f"min_confidence is {min_confidence}; it must be between 0 and 1")
    table = as_queries(queries)
    classifier = load_classifier(model)
    given = table["text"].to_list()
    texts = [clean(text) for text in given]
    probabilities = _predict(classifier, texts, progress)
    empty = np.array([not text for text in texts])
    below = classifier.abstains_below if min_confidence is None else min_confidence
    chosen = decide(probabilities, below)
    if min_confidence is None:
        chosen[empty] = LABELS.index("neutral")
    label = pl.Series("label", np.array((*LABELS, UNKNOWN), object)[chosen], pl.String)
    result = table.with_columns(
        label,
        *(pl.Series(name, probabilities[:, column]) for column, name in enumerate(LABELS)),
        pl.Series("note", _notes(given, texts, seen_in_training(classifier, texts)), pl.String),
    )
    if explain:
        reasons = [
            [{"word": w, "group": g, "weight": x} for w, g, x in row] for row in classifier.explain(texts)
        ]
        kind = pl.List(pl.Struct({"word": pl.String, "group": pl.String, "weight": pl.Float64}))
        result = result.with_columns(pl.Series("reasons", reasons, kind))
    return result


def predicted_genders(queries: Any, *, keep_seen: bool = False) -> tuple[pl.DataFrame, str]:
    """``query_id, gender`` by the shipped classifier, and a sentence: how many got which label, and none.

    Queries that it was trained on get no label, unless they may be `keep_seen`: a classifier is no evidence
    about what it was told.
    """
    result = classify(queries)
    seen = result["note"].str.contains("training query", literal=True)
    kept = result if keep_seen else result.filter(~seen)
    if len(result) and not len(kept):
        raise InputError("the classifier was trained on all of these queries; give labels as --genders FILE")
    all_of_them = counted(len(result), "query", "queries")
    said = f"{len(kept):,} of {all_of_them} labelled by the classifier: {counted_labels(kept)}"
    if dropped := len(result) - len(kept):
        said += f"; {dropped:,} get no predicted gender, because it was trained on them"
    return kept.select("query_id", gender="label"), said


def counted_labels(found: pl.DataFrame) -> str:
    """How many queries have which label, the most frequent first."""
    counts = sorted(found["label"].value_counts().iter_rows(), key=lambda row: (-row[1], row[0]))
    return ", ".join(f"{number:,} {label}" for label, number in counts)


def _predict(classifier: Classifier, texts: list[str], progress: Progress | None) -> Probabilities:
    """Block by block, so that progress can be shown."""
    parts = []
    for start in range(0, len(texts), _BLOCK):
        parts.append(classifier.predict_proba(texts[start : start + _BLOCK]))
        if progress:
            progress(min(start + _BLOCK, len(texts)), len(texts))
    return np.concatenate(parts)


def _notes(given: list[str], texts: list[str], seen: npt.NDArray[np.bool_]) -> list[str]:
    notes = [""] * len(texts)
    for row, (before, text) in enumerate(zip(given, texts, strict=True)):
        if text and not seen[row] and len(before) <= LONGEST:
            continue
        said = ("empty" if not text else "", "truncated" if len(before) > LONGEST else "")
        notes[row] = "; ".join(filter(None, (*said, "training query" if text and seen[row] else "")))
    return notes
