"""Cross-validation: every query is held out once, and the numbers are what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from experiments.query_classifier.training import calibration_error, crossvalidate, stratified_folds
from hypothesis import given
from hypothesis import strategies as st

from evenrank import InputError
from evenrank.queries.model import LexiconClassifier


class _Spy(LexiconClassifier):
    """Refuses to label what it was trained on."""

    def __init__(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        self.seen = set(texts)

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        assert not self.seen & set(texts)
        return super().predict_proba(texts)


def _lexicon(texts: Sequence[str], labels: Sequence[str]) -> LexiconClassifier:
    return LexiconClassifier()


_TEXTS = [f"{word} number {i}" for word in ("mother", "father", "table") for i in range(10)]
_LABELS = ["female"] * 10 + ["male"] * 10 + ["neutral"] * 10


def test_no_query_is_labelled_by_a_model_that_saw_it() -> None:
    found = crossvalidate(_Spy, _TEXTS, _LABELS, seeds=(0, 1))
    assert found.accuracy.value == 1.0
    assert found.f1 == {"female": 1.0, "male": 1.0, "neutral": 1.0}
    assert found.confusion["male"] == {"female": 0, "male": 20, "neutral": 0, "other": 0}
    assert len(found.by_fold) == 10


def test_the_same_seed_gives_the_same_numbers() -> None:
    once, again = (crossvalidate(_lexicon, _TEXTS, _LABELS).to_dict() for _ in range(2))
    assert once == again


@given(st.lists(st.integers(0, 2), min_size=30, max_size=90), st.integers(0, 5))
def test_folds_hold_equal_shares_of_every_class(codes: list[int], seed: int) -> None:
    codes += [0, 1, 2] * 5
    part = stratified_folds(np.array(codes), 5, seed)
    for code in range(3):
        sizes = np.bincount(part[np.array(codes) == code], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_too_few_queries_for_the_folds_are_refused() -> None:
    with pytest.raises(InputError, match="fewer folds"):
        crossvalidate(_lexicon, _TEXTS[:23], _LABELS[:23], folds=5)


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(InputError, match="'other'"):
        crossvalidate(_lexicon, ["a"], ["other"])


def test_calibration_error_is_the_gap_between_sure_and_right() -> None:
    sure = np.tile([0.8, 0.1, 0.1], (10, 1))
    assert calibration_error(sure, np.array([0] * 8 + [1] * 2)) == pytest.approx(0)
    assert calibration_error(sure, np.array([0] * 5 + [1] * 5)) == pytest.approx(0.3)


def test_other_is_wrong_and_counted() -> None:
    class Undecided(LexiconClassifier):
        def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
            return np.full((len(texts), 3), 1 / 3)

    found = crossvalidate(lambda texts, labels: Undecided(), _TEXTS, _LABELS)
    assert found.accuracy.value == 0 and found.labelled == 0
    assert found.confusion["male"]["other"] == 10 and found.f1["male"] == 0


def test_the_order_of_the_rows_makes_no_difference() -> None:
    order = np.random.default_rng(0).permutation(len(_TEXTS))
    texts, labels = [_TEXTS[i] for i in order], [_LABELS[i] for i in order]
    once = crossvalidate(_lexicon, _TEXTS, _LABELS, seeds=(0,)).to_dict()
    assert once == crossvalidate(_lexicon, texts, labels, seeds=(0,)).to_dict()
