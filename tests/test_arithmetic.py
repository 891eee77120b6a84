"""Logarithms and sums of our own: as exact as those of NumPy, and the same everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import arithmetic

POSITIVE = st.floats(min_value=5e-324, max_value=1.7e308)


def ulps(found: float, wanted: float) -> float:
    return abs(found - wanted) / math.ulp(wanted)


@given(POSITIVE)
def test_logarithms_are_within_two_units_in_the_last_place(x: float) -> None:
    assert ulps(float(arithmetic.log(x)), math.log(x)) <= 1
    assert ulps(float(arithmetic.log2(x)), math.log2(x)) <= 2


@given(st.floats(min_value=0, max_value=1e300))
def test_the_logarithm_of_one_more_is_exact_near_zero(x: float) -> None:
    assert ulps(float(arithmetic.log1p(x)), math.log1p(x)) <= 2


@given(st.floats(min_value=-700, max_value=700))
def test_the_exponential_is_within_one_unit_in_the_last_place(x: float) -> None:
    assert ulps(float(arithmetic.exp(x)), math.exp(x)) <= 1


@given(st.lists(POSITIVE, min_size=1, max_size=9))
def test_one_number_and_many_have_the_same_logarithm_to_the_last_bit(values: list[float]) -> None:
    many = np.asarray(arithmetic.log(np.array(values * 1000))).tolist()
    assert many == [arithmetic.log_of(x) for x in values] * 1000


def test_the_compiled_logarithm_is_the_same_to_the_last_bit() -> None:
    from evenrank.rankers.scoring import _log

    values = np.random.default_rng(0).lognormal(0, 30, 2000)
    assert [_log(x) for x in values.tolist()] == arithmetic.log(values).tolist()


def test_counts_are_looked_up_with_the_same_result() -> None:
    counts = np.random.default_rng(1).integers(0, 90, 500)
    assert (arithmetic.log1p(counts) == arithmetic.log(counts + 1.0)).all()


def test_edges_are_those_of_numpy() -> None:
    edges = np.array([0.0, -1.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        assert np.array_equal(arithmetic.log(edges), np.log(edges), equal_nan=True)
        assert np.array_equal(arithmetic.log2(edges), np.log2(edges), equal_nan=True)
        assert np.array_equal(arithmetic.log1p(edges), np.log1p(edges), equal_nan=True)
    wide = np.array([-np.inf, -1000.0, 1000.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        assert np.array_equal(arithmetic.exp(wide), np.exp(wide), equal_nan=True)
    assert arithmetic.log2(2.0 ** np.arange(-1000, 1000)).tolist() == list(range(-1000, 1000))


@pytest.mark.parametrize(
    ("given", "rounded"),
    [(1 / 3, 0.333333333333), (-2e-20 / 3, -6.66666666667e-21), (0.0, 0.0), (None, None)],
)
def test_settled_numbers_have_twelve_digits(given: float | None, rounded: float | None) -> None:
    assert arithmetic.settled(given) == rounded
    if given is not None:
        assert arithmetic.settled(np.array([[given]])).tolist() == [[rounded]]


def test_a_sum_of_products_broadcasts_over_rows() -> None:
    rows = np.arange(6.0).reshape(2, 3)
    assert arithmetic.dot(rows, [1, 10, 100]).tolist() == [210.0, 543.0]
