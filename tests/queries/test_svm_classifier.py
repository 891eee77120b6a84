"""The support vector machine of the thesis: scikit-learn fits it, numpy labels with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenrank import InputError
from evenrank.queries.baselines import SvmClassifier
from evenrank.queries.classifier import load_classifier
from evenrank.vectors import Vectors, load

_TEXTS = ["mother queen", "queen aunt", "aunt mother", "father king", "king uncle", "uncle father"]
_TEXTS += ["table chair", "chair lamp", "lamp table"]
_LABELS = ["female"] * 3 + ["male"] * 3 + ["neutral"] * 3


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    random = np.random.default_rng(0)
    words = " ".join(_TEXTS).split()
    centre = {0: [1.0, 0.0, 0.0], 1: [0.0, 1.0, 0.0], 2: [0.0, 0.0, 1.0]}
    return load({word: list(centre[i // 6] + random.normal(0, 0.1, 3)) for i, word in enumerate(words)})


@pytest.fixture(scope="module")
def model(vectors: Vectors) -> SvmClassifier:
    pytest.importorskip("sklearn")
    return SvmClassifier(vectors=[vectors], strength=100.0).fit(_TEXTS, _LABELS)


def test_it_learns_its_training_queries(model: SvmClassifier) -> None:
    assert (model.predict_proba(_TEXTS).argmax(1) == np.repeat([0, 1, 2], 3)).all()


def test_numpy_decides_as_scikit_learn_does(model: SvmClassifier) -> None:
    from sklearn.svm import SVC

    means = model._means(_TEXTS)
    theirs = SVC(kernel="poly", degree=3, C=100.0, gamma="scale").fit(means, np.repeat([1, 0, 0], 3))
    assert model._scores(means)[:, 0] == pytest.approx(theirs.decision_function(means), abs=2e-3)


def test_a_saved_model_says_the_same_without_scikit_learn(model: SvmClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = load_classifier(tmp_path / "m")
    assert np.array_equal(again.predict_proba(_TEXTS), model.predict_proba(_TEXTS))
    assert again.describe() == model.describe()
    program = """
import sys
sys.modules["sklearn"] = None
import evenrank as er
print(er.classify({"a": "queen mother"}, sys.argv[1])["label"][0])
"""
    arguments = [sys.executable, "-c", program, str(tmp_path / "m")]
    assert subprocess.run(arguments, check=True, capture_output=True, text=True).stdout == "female\n"


def test_odd_queries_have_an_answer(model: SvmClassifier) -> None:
    found = model.predict_proba(["", "🎉", "unheard of", "queen " * 900])
    assert found.sum(1) == pytest.approx(1)
    assert np.array_equal(found[0], found[1]) and found[3].argmax() == 0


def test_reasons_are_words_of_the_query(model: SvmClassifier) -> None:
    assert model.explain(["queen unheard"])[0][0][:2] == ("queen", "female")


def test_without_vectors_it_says_what_to_give() -> None:
    with pytest.raises(InputError, match="--vectors"):
        SvmClassifier().fit(_TEXTS, _LABELS)
