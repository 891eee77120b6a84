"""The five magnitudes."""

import numpy as np
import pytest

from evenrank import InputError
from evenrank.text.tally import MAGNITUDES, magnitude

COUNTS = np.array([0, 1, 5])
TOKENS = np.array([0, 10, 20])
LOGWORDS = np.array([0.0, np.log(2), np.log(3) + np.log(4)])  # 5 = 2 + 3 occurrences of two words


def of(name: str) -> list[float]:
    return magnitude(name, COUNTS, logwords=LOGWORDS, tokens=TOKENS).tolist()


def test_tf_is_the_logarithm_of_the_total() -> None:
    assert of("tf") == pytest.approx([0, np.log(2), np.log(6)])


def test_tf_words_sums_logarithms_of_single_words() -> None:
    assert of("tf-words") == pytest.approx([0, np.log(2), np.log(12)])


def test_boolean_count_and_length() -> None:
    assert of("boolean") == [0, 1, 1]
    assert of("count") == [0, 1, 5]
    assert of("length") == [0, 0.1, 0.25]


def test_an_empty_document_has_magnitude_zero() -> None:
    assert all(of(name)[0] == 0 for name in MAGNITUDES)


def test_an_unknown_magnitude_is_refused() -> None:
    with pytest.raises(InputError, match="one of tf, tf-words, boolean, count, length"):
        magnitude("bool", COUNTS)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InputError, match="tokens"):
        magnitude("length", COUNTS)
    with pytest.raises(InputError, match="log-word"):
        magnitude("tf-words", COUNTS)
