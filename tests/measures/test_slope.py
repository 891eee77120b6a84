from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.measures.gsr import slope

POINTS = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3, max_size=20).map(np.array)


def test_the_document_at_rank_one_weighs_one_and_the_released_code_discounts_a_rank_later() -> None:
    ranks = np.array([1, 2, 3, 7])
    assert slope.rank_weights(ranks) == pytest.approx([1, 1 / np.log2(3), 0.5, 1 / 3])
    assert slope.rank_weights(ranks, "released") == pytest.approx([1, 1, 1 / np.log2(3), 1 / np.log2(7)])
    assert slope.rank_weights(ranks, "none").tolist() == [1, 1, 1, 1]


def test_a_document_without_a_value_leaves_with_its_weight() -> None:
    means, sizes = slope.list_means(
        np.array([0.4, np.nan, 0.1, np.nan]), np.array([1, 0.6, 0.5, 1]), np.array([0, 0, 0, 1]), 2
    )
    assert means[0] == pytest.approx((0.4 + 0.05) / 1.5)
    assert np.isnan(means[1])
    assert sizes.tolist() == [1.5, 0.0]


@given(points=POINTS)
def test_the_line_is_that_of_scipy_and_contributions_make_it_up(points: np.ndarray) -> None:
    x, y = points.T
    line = slope.fit(x, y)
    if np.ptp(x) < 1e-6 or np.ptp(y) < 1e-6:
        return
    assert line is not None
    expected = stats.linregress(x, y)
    assert line.slope == pytest.approx(expected.slope, abs=1e-9, rel=1e-6)
    assert line.r == pytest.approx(expected.rvalue, abs=1e-6)
    rounding = 1e-6 + 1e-7 * abs(expected.slope)  # on a line, 1 − r² is rounding alone; its root is not small
    assert line.error == pytest.approx(expected.stderr, abs=rounding, rel=1e-5)
    assert slope.slopes(x, y) == pytest.approx(line.slope, abs=1e-9, rel=1e-9)


@given(points=POINTS, seed=st.integers(0, 100))
def test_document_contributions_add_up_to_the_slope(points: np.ndarray, seed: int) -> None:
    x = points[:, 0]
    if np.ptp(x) < 1e-6:
        return
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(x)), rng.integers(1, 5, len(x)))
    values, weights = rng.normal(size=len(owner)), rng.random(len(owner)) + 0.1
    y, sizes = slope.list_means(values, weights, owner, len(x))
    entries = slope.Entries(owner, owner, owner, values)
    fitted = slope.Fitted(np.arange(len(x)), x, y, entries, weights / sizes[owner])
    assert fitted.line is not None
    close = {"rel": 1e-6, "abs": 1e-9}
    assert fitted.contributions.mean() == pytest.approx(fitted.line.slope, **close)
    assert fitted.shares.sum() == pytest.approx(fitted.line.slope, **close)
    assert np.bincount(owner, fitted.shares) * len(x) == pytest.approx(fitted.contributions, **close)
    assert sum(fitted.parts.values()) == pytest.approx(fitted.contributions, **close)


def test_no_line_goes_through_queries_that_are_all_alike() -> None:
    assert slope.fit(np.array([0.2, 0.2]), np.array([0.1, 0.9])) is None
    assert slope.fit(np.array([0.2]), np.array([0.1])) is None


@given(points=POINTS)
def test_mirrored_lists_mirror_the_slope(points: np.ndarray) -> None:
    x, y = points.T
    assert slope.slopes(x, -y) == pytest.approx(-slope.slopes(x, y), nan_ok=True)


def test_lists_that_are_all_alike_have_a_slope_of_exactly_zero_and_no_correlation() -> None:
    rng = np.random.default_rng(3)
    line = slope.fit(rng.normal(size=20), np.full(20, 0.1 + 0.2))
    assert line is not None
    assert (line.slope, line.error) == (0.0, 0.0)
    assert np.isnan(line.r)
    assert line.p is None


@given(points=POINTS)
def test_the_p_of_a_correlation_is_that_of_scipy(points: np.ndarray) -> None:
    x, y = points.T
    if np.ptp(x) < 1e-3 or np.ptp(y) < 1e-3:
        return
    line = slope.fit(x, y)
    assert line is not None
    assert line.p == pytest.approx(stats.pearsonr(x, y).pvalue, rel=1e-4, abs=1e-6)
