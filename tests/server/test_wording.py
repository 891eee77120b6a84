"""The words for sizes change where the docs say, and the gauge stands where the numbers are."""

from __future__ import annotations

import math

import pytest

from evenrank.server.evaluating import lean, side, verdict
from evenrank.server.searching import Service
from evenrank.server.site import Asked, columns


def below(x: float) -> float:
    return math.nextafter(x, 0)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0.0, "near balance"),
        (below(0.05), "near balance"),
        (0.05, "leans slightly"),
        (below(0.3), "leans slightly"),
        (0.3, "leans"),
        (below(0.8), "leans"),
        (0.8, "leans strongly"),
        (5.0, "leans strongly"),
    ],
)
def test_words_for_sizes_begin_where_the_docs_say(size: float, words: str) -> None:
    for sign, group in ((1, " male"), (-1, " female")):
        expected = words if words == "near balance" else words + group
        assert lean(sign * size, "male", "female") == expected
        assert side(sign * size, "male", "female") == (None if words == "near balance" else group.strip())
    assert lean(None, "male", "female") == "nothing to measure" and side(None, "male", "female") is None


def test_a_verdict_is_true_of_what_it_counts() -> None:
    assert verdict(0.4, "male", "female", [(2, 0), (0, 1), (0, 0)], at=3) == (
        "The top 3 results lean male: 1 female word and 2 male words. 1 of 3 contain neither."
    )
    assert verdict(0.4, "male", "female", [(2, 0)], at=10) == (
        "The only result leans male: 0 female words and 2 male words."
    )
    assert (
        verdict(None, "male", "female", [(0, 0)], at=10) == "The only result holds no female or male words."
    )
    assert verdict(0.01, "male", "female", [(1, 1), (1, 1)], at=10) == (
        "The top 2 results are near balance: 2 female words and 2 male words."
    )
    assert "are higher up" in verdict(0.4, "male", "female", [(1, 0), (0, 2)], at=2)
    assert verdict(0.4, "male", "female", [(1, 0), (9, 9)], at=1).startswith("The only result leans male: 0 ")


def test_the_gauge_stands_where_the_numbers_are(service: Service) -> None:
    lists, reach = columns(service, Asked("nurse", "bm25", "tfidf", True, 0.1))
    for column in lists:
        seen, gauge = column.listed.evaluated, column.gauge
        assert seen is not None and seen.lean is not None and gauge is not None
        assert gauge.value == round(50 + 48 * seen.lean / reach, 2)
        assert gauge.before == round(50 + 48 * (column.listed.before or 0.0) / reach, 2)
        assert (gauge.low, gauge.high) == (round(50 - 4.8 / reach, 2), round(50 + 4.8 / reach, 2))
    leans = [x for column in lists for x in (column.listed.before, column.listed.evaluated.lean)]  # type: ignore[union-attr]
    assert reach == (1.0 if max(map(abs, leans)) <= 1 else math.floor(max(map(abs, leans))) + 1.0)


def test_a_list_that_leans_far_stretches_the_gauge(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenrank.server.evaluating import Evaluated

    monkeypatch.setattr(Evaluated, "lean", -2.5)
    (left, _), reach = columns(service, Asked("nurse", "bm25", "tfidf", False, 0.1))
    assert reach == 3.0 and left.gauge is not None and left.gauge.value == 10.0
    assert (left.gauge.before, left.gauge.low, left.gauge.high) == (None, None, None)
