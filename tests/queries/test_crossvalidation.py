"""Cross-validation: every query is held out once, and the numbers are what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import InputError
from evenrank.queries.baselines import LexiconClassifier
from evenrank.queries.evaluation import (
    calibration_error,
    confusion_matrix,
    crossvalidate,
    f1_scores,
    stratified_folds,
)


class _Spy(LexiconClassifier):
    """Refuses to label what it was trained on."""

    def fit(self, texts: Sequence[str], labels: Sequence[str], **more: object) -> _Spy:
        self.seen = set(texts)
        return super().fit(texts, labels)  # type: ignore[return-value]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        assert not self.seen & set(texts)
        return super().predict_proba(texts)


_TEXTS = [f"{word} number {i}" for word in ("mother", "father", "table") for i in range(10)]
_LABELS = ["female"] * 10 + ["male"] * 10 + ["neutral"] * 10


def test_no_query_is_labelled_by_a_model_that_saw_it() -> None:
    found = crossvalidate(_Spy, _TEXTS, _LABELS, seeds=(0, 1))
    assert found.accuracy.value == 1.0
    assert found.f1 == {"female": 1.0, "male": 1.0, "neutral": 1.0}
    assert found.confusion["male"] == {"female": 0, "male": 20, "neutral": 0, "unknown": 0}
    assert len(found.by_fold) == 10 and len(found.by_seed) == 2


def test_the_same_seed_gives_the_same_numbers() -> None:
    once, again = (crossvalidate(LexiconClassifier, _TEXTS, _LABELS).to_dict() for _ in range(2))
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
        crossvalidate(LexiconClassifier, _TEXTS[:23], _LABELS[:23], folds=5)


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(InputError, match="'other'"):
        crossvalidate(LexiconClassifier, ["a"], ["other"])


def test_calibration_error_is_the_gap_between_sure_and_right() -> None:
    sure = np.tile([0.8, 0.1, 0.1], (10, 1))
    assert calibration_error(sure, np.array([0] * 8 + [1] * 2)) == pytest.approx(0)
    assert calibration_error(sure, np.array([0] * 5 + [1] * 5)) == pytest.approx(0.3)


def test_f1_of_a_class_that_is_never_found_is_zero() -> None:
    truth, chosen = np.array([0, 1, 1]), np.array([1, 1, 1])
    assert f1_scores(truth, chosen) == {"female": 0.0, "male": pytest.approx(0.8), "neutral": 0.0}


def test_unknown_is_wrong_and_counted() -> None:
    class Doubting(LexiconClassifier):
        abstains_below = 0.999

    found = crossvalidate(Doubting, _TEXTS, _LABELS, seeds=(0,))
    assert found.accuracy.value == 0 and found.coverage == 0
    assert found.confusion["male"]["unknown"] == 10
    assert confusion_matrix(np.array([0, 2]), np.array([3, 2])).tolist()[0] == [0, 0, 0, 1]


def test_the_order_of_the_rows_makes_no_difference() -> None:
    order = np.random.default_rng(0).permutation(len(_TEXTS))
    texts, labels = [_TEXTS[i] for i in order], [_LABELS[i] for i in order]
    once = crossvalidate(LexiconClassifier, _TEXTS, _LABELS, seeds=(0,)).to_dict()
    assert once == crossvalidate(LexiconClassifier, texts, labels, seeds=(0,)).to_dict()
