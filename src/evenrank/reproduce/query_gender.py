"""How well can the gender of a query be predicted? (thesis, Section 3.1.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from evenrank.errors import InputError, check_choice
from evenrank.queries.evaluation import crossvalidate, read_labelled
from evenrank.reproduce.page import Chart, Claim, Page, Table, alike, bounded
from evenrank.reproduce.settings import Settings
from evenrank.reproduce.steps import Steps
from evenrank.show.figure import asked
from evenrank.show.numbers import counted, number

_TABLE_3_2 = {  # accuracy, and F1 of female, male and neutral queries
    "BERT (base uncased)": (0.856, 0.816, 0.872, 0.862),
    "DistilBERT (base uncased)": (0.847, 0.815, 0.861, 0.853),
    "RoBERTa": (0.810, 0.733, 0.820, 0.836),
    "DistilBERT (base cased)": (0.800, 0.730, 0.823, 0.833),
    "BERT (base cased)": (0.797, 0.710, 0.805, 0.827),
    "XLNet (base cased)": (0.795, 0.710, 0.805, 0.826),
    "Word2Vec": (0.757, 0.626, 0.756, 0.809),
    "fastText": (0.750, 0.615, 0.759, 0.792),
}
LABELS = ("female", "male", "neutral")
_KINDS = ("lexicon", "svm", "static")
_SAME = 0.03


def query_gender_recipe(settings: Settings, steps: Steps) -> Page:
    """Classifiers of query gender, cross-validated."""
    path = Path(settings.data or "") / "annotated.tsv"
    if settings.data is None or not path.exists():
        raise InputError("query-gender needs --data: a folder with annotated.tsv (queries and their gender)")
    vectors = settings.option("vectors")
    found = {}
    for kind in settings.some("classifiers"):
        check_choice("classifiers", kind, _KINDS)
        if kind == "svm" and not vectors:
            raise InputError("the classifier svm needs word vectors: --set vectors=FILE")
        found[kind] = steps(f"query-gender {kind}", settings.facts, partial(_validated, settings, path, kind))
    return _page(settings, found)


def _validated(settings: Settings, path: Path, kind: str) -> dict[str, Any]:
    queries = read_labelled(path)
    texts, labels = queries.texts, queries.labels
    if settings.queries:
        every = max(1, len(texts) // settings.queries)
        texts, labels = texts[::every], labels[::every]
    made = crossvalidate(
        _maker(kind, settings.option("vectors")), texts, labels, seeds=range(settings.option("seeds"))
    )
    return made.to_dict()


def _maker(kind: str, vectors: str) -> Callable[[], Any]:
    if kind == "lexicon":
        from evenrank.queries.baselines import LexiconClassifier

        return LexiconClassifier
    if kind == "svm":
        from evenrank.queries.baselines import SvmClassifier

        return partial(SvmClassifier, vectors=[vectors])
    from evenrank.queries.static_classifier import StaticClassifier

    return partial(StaticClassifier, vectors=[vectors] if vectors else [])


def _charts(found: Mapping[str, Any], queries: int) -> list[Chart]:
    """Accuracy beside the published one, and F1 for each gender."""
    right = [{"x": kind, **bounded(one["accuracy"]), "of": "here"} for kind, one in found.items()]
    right += [{"x": name, "value": values[0], "of": "published"} for name, values in _TABLE_3_2.items()]
    told = {f"{kind}, here": [one["f1"][label] for label in LABELS] for kind, one in found.items()}
    told |= {name: list(values[1:]) for name, values in _TABLE_3_2.items()}
    scores = [
        {"x": name, "value": value, "of": label}
        for name, values in told.items()
        for label, value in zip(LABELS, values, strict=True)
    ]
    n = asked([queries])
    return [
        Chart("dots", right, "", "accuracy", f"Further right is more often right. Here {n}.", "Accuracy"),
        Chart("dots", scores, "", "F1", f"F1 of each gender. Here {n}.", "F1 by gender"),
    ]


def _page(settings: Settings, found: dict[str, Any]) -> Page:
    rows = []
    for kind, one in found.items():
        accuracy = one["accuracy"]
        bounds = f" [{number(accuracy['low'], '.3f')}, {number(accuracy['high'], '.3f')}]"
        shown = [number(one["f1"][label], ".3f") for label in LABELS]
        rows.append([f"{kind}, here", number(accuracy["value"], ".3f") + bounds, *shown])
    for name, values in _TABLE_3_2.items():
        rows.append([f"{name}, published", *(f"{value:.3f}" for value in values)])
    claims = [
        Claim("fine-tuned BERT tells the gender of a query best", "no transformer was trained here", None)
    ]
    if "svm" in found:
        one = found["svm"]["accuracy"]
        told = _TABLE_3_2["Word2Vec"][0]
        half = 1.645 / 1.96
        change = {
            "difference": one["value"] - told,
            "low": one["low"] - told,
            "high": one["high"] - told,
            "p": None,
            "n": found["svm"]["queries"],
            "low 90": (one["low"] - one["value"]) * half + one["value"] - told,
            "high 90": (one["high"] - one["value"]) * half + one["value"] - told,
        }
        claims.append(
            alike("mean word vectors and an SVM are right for 75.7%", "the accuracy", change, _SAME)
        )
    queries = next(iter(found.values()))["queries"]
    return Page(
        "query-gender",
        "How well can the gender of a query be predicted?",
        "A. Bigdeli, thesis, Section 3.1.1, Table 3.2",
        "Transformers and static embeddings on 3,750 annotated MS MARCO queries, five folds.",
        f"{', '.join(found)} on {counted(queries, 'labelled query', 'labelled queries')} of {settings.name}.",
        [
            Table(
                "Table 3.2: accuracy and F1 by gender",
                ["classifier", "accuracy", *LABELS],
                rows,
                _charts(found, queries),
            )
        ],
        claims,
        [
            "GloVe in the place of word2vec, if the given vectors are those.",
            "Queries of other or multiple genders are left out. The model that ships is described on its "
            "own page.",
        ],
        found,
    )
