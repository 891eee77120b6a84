"""Numbers behind docs/query-gender.md: cross-validation, ablation, agreement with the thesis' labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.queries.classifier import LABELS, Classifier, load_classifier, seen_in_training
from evenrank.queries.crossvalidation import (
    confusion_matrix,
    crossvalidate,
    f1_scores,
    label_codes,
    stratified_folds,
)
from evenrank.queries.labelled import read_labelled
from evenrank.queries.lexicon_classifier import LexiconClassifier
from evenrank.queries.static_classifier import StaticClassifier, StaticSettings
from evenrank.queries.svm_classifier import SvmClassifier
from evenrank.text.lexicon import lexicon
from evenrank.vectors import Vectors, distil, load

# A. Bigdeli, thesis, Table 3.2: five folds of the full annotations (3,709 queries); accuracy, F1.
PUBLISHED = {
    "BERT (base uncased)": (0.856, 0.816, 0.872, 0.862),
    "DistilBERT (base uncased)": (0.847, 0.815, 0.861, 0.853),
    "RoBERTa": (0.810, 0.733, 0.820, 0.836),
    "DistilBERT (base cased)": (0.800, 0.730, 0.823, 0.833),
    "BERT (base cased)": (0.797, 0.710, 0.805, 0.827),
    "XLNet (base cased)": (0.795, 0.710, 0.805, 0.826),
    "Word2Vec + SVM": (0.757, 0.626, 0.756, 0.809),
    "fastText": (0.750, 0.615, 0.759, 0.792),
}
_TELLING = (
    ("women", "men"),
    ("females", "males"),
    ("girls", "boys"),
    ("a woman", "a man"),
    ("my wife", "my husband"),
    ("my mother", "my father"),
)
COMMON = 75_000
"""Of the GloVe vocabulary, this many words are encoded by MiniLM too, and all given names."""


def query_gender(data: Path) -> dict[str, Any]:
    """Static and lexicon classifiers: five folds, three seeds; beside the published numbers."""
    queries = read_labelled(data / "data" / "query-gender" / "annotated.tsv")
    vectors = training_vectors(data)
    makers: dict[str, Callable[[], Classifier]] = {
        "static": lambda: StaticClassifier(vectors=vectors),
        "lexicon": LexiconClassifier,
        "svm": lambda: SvmClassifier(vectors=vectors[:1]),
    }
    return {
        "queries": {"labelled": len(queries.texts), "left out": queries.left_out},
        "published": {name: list(row) for name, row in PUBLISHED.items()},
        **{
            name: crossvalidate(make, queries.texts, queries.labels).to_dict()
            for name, make in makers.items()
        },
        "agreement with the thesis' labels": {
            name: _agreement(load_classifier(name), data) for name in ("static", "lexicon")
        },
        "words of the published list": gendered_words_alone(),
    }


def query_gender_ablation(data: Path) -> dict[str, Any]:
    """What helped: five folds within the training part of the first fold, where settings were chosen."""
    queries = read_labelled(data / "data" / "query-gender" / "annotated.tsv")
    dev = np.flatnonzero(stratified_folds(label_codes(queries.labels), 5, 0) != 0)
    texts, labels = [queries.texts[i] for i in dev], [queries.labels[i] for i in dev]
    found = {}
    for name, make in _tried(training_vectors(data)).items():
        accuracy = crossvalidate(make, texts, labels, seeds=(11,)).accuracy.value
        found[name] = {"accuracy": accuracy, "with a gendered word": told(make, texts, labels)}
        print(name, *found[name].values(), flush=True)
    return {"queries": len(dev), "folds": 5, "settings": found}


def training_vectors(data: Path) -> tuple[Vectors, ...]:
    """GloVe, and its words as MiniLM encodes them; EVENRANK_MINILM_WORDS may name a file of the latter."""
    import os

    from evenrank.queries.word_lists import census_names

    glove = load(data / "data" / "vectors" / "glove-100d.bin.gz")
    kept = os.environ.get("EVENRANK_MINILM_WORDS")
    if kept and Path(kept).exists():
        return glove, load(kept)
    given = [name for name, facts in census_names().items() if facts.given]
    return glove, distil([*glove.words[:COMMON], *given])


def _tried(vectors: tuple[Vectors, ...]) -> dict[str, Callable[[], Classifier]]:
    """The chosen settings, these less one thing, or plus one."""
    chosen = StaticSettings()

    def static(given: tuple[Vectors, ...] = vectors, **changed: Any) -> Callable[[], Classifier]:
        return lambda: StaticClassifier(replace(chosen, **changed), vectors=given)

    def less(*parts: str) -> tuple[str, ...]:
        return tuple(part for part in chosen.parts if part not in parts)

    return {
        "chosen": static(),
        "without names": static(parts=less("names")),
        "without lexicon": static(parts=less("lexicon")),
        "without our own terms": static(parts=less("terms")),
        "without genderedness": static(parts=less("genderedness")),
        "without letters": static(parts=less("letters")),
        "without contexts": static(parts=less("contexts")),
        "without words and pairs": static(parts=less("words", "pairs")),
        "without MiniLM": static(vectors[:1]),
        "without GloVe": static(vectors[1:]),
        "without vectors": static(()),
        "with swapped queries": static(swaps=0.3),
        "without gendered words as queries": static(word_samples=0.0),
        "words, pairs and letters only": static((), parts=("words", "pairs", "letters")),
    }


def told(make: Callable[[], Classifier], texts: list[str], labels: list[str]) -> float:
    """Neutral queries of a fold that was held out, with a word that makes each female or male: share right.

    No query was like these in training: there the words came before the query, or after *for*.
    """
    part = stratified_folds(label_codes(labels), 5, 11)
    inside = np.flatnonzero(part != 0)
    model = make().fit([texts[i] for i in inside], [labels[i] for i in inside], seed=11)
    neutral = [texts[i] for i in np.flatnonzero(part == 0) if labels[i] == "neutral"]
    shares = [
        np.mean(model.predict_proba([f"{query} in {word}" for query in neutral]).argmax(1) == code)
        for pair in _TELLING
        for code, word in enumerate(pair)
    ]
    return float(np.mean(shares))


def _agreement(model: Classifier, data: Path) -> dict[str, Any]:
    """On queries that neither model was trained on; the thesis' labels are a model's, not people's."""
    queries = read_labelled(data / "data" / "query-gender" / "predicted.tsv")
    unseen = ~seen_in_training(model, queries.texts)
    texts = [text for text, new in zip(queries.texts, unseen, strict=True) if new]
    truth = label_codes(queries.labels)[unseen]
    matrix = confusion_matrix(truth, model.predict_proba(texts).argmax(1))
    return {
        "queries": len(texts),
        "seen in training": int((~unseen).sum()),
        "agreement": float(np.diag(matrix).sum() / matrix.sum()),
        "of each class": {label: float(matrix[i, i] / matrix[i].sum()) for i, label in enumerate(LABELS)},
        "f1": f1_scores(matrix),
    }


def gendered_words_alone() -> dict[str, int]:
    """How many words of the published list the shipped model labels as the list does."""
    model = load_classifier("static")
    groups = lexicon("rekabsaz2020").groups
    return {
        group: int((model.predict_proba(words).argmax(1) == LABELS.index(group)).sum())
        for group, words in groups.items()
    }
