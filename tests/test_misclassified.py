"""Groups whose labels are guesses: shares and means come back where errors are known, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import stats
from evenrank.errors import InputError

GROUPS = ("female", "male", "neutral")
RATES = np.array([[0.75, 0.05, 0.20], [0.05, 0.75, 0.20], [0.10, 0.05, 0.85]])
TABLE = stats.Confusion.of(
    {
        truth: dict(zip(GROUPS, (1000 * row).round().astype(int).tolist(), strict=True))
        for truth, row in zip(GROUPS, RATES, strict=True)
    }
)


def population(
    shares: tuple[float, ...], means: tuple[float, ...], size: int
) -> tuple[list[float], list[str]]:
    """Values and guesses in which every rate holds exactly."""
    values, guesses = [], []
    for c, (share, mean) in enumerate(zip(shares, means, strict=True)):
        for g, rate in enumerate(RATES[c]):
            count = round(size * share * rate)
            values += [mean] * count
            guesses += [GROUPS[g]] * count
    return values, guesses


@given(
    st.sampled_from([(0.2, 0.3, 0.5), (0.1, 0.1, 0.8), (0.4, 0.4, 0.2)]),
    st.tuples(*[st.floats(-2, 2).map(lambda x: round(x, 2))] * 3),
)
def test_true_shares_and_means_are_found_again(shares: tuple[float, ...], means: tuple[float, ...]) -> None:
    values, guesses = population(shares, means, 1000)
    found = stats.adjusted_means(values, guesses, TABLE, pairs=[("male", "female")], resamples=20)
    assert [found.shares[g].value for g in GROUPS] == pytest.approx(shares, abs=1e-6)
    assert [found.means[g].value for g in GROUPS] == pytest.approx(means, abs=1e-5)
    assert found.differences["male", "female"].value == pytest.approx(means[1] - means[0], abs=1e-5)


def test_without_errors_nothing_is_changed() -> None:
    rng = np.random.default_rng(1)
    guesses = rng.choice(GROUPS, 200).tolist()
    values = rng.normal(size=200)
    right = stats.Confusion.of({t: {g: 50 * (t == g) for g in GROUPS} for t in GROUPS})
    found = stats.adjusted_means(values, guesses, right, resamples=400)
    for group in GROUPS:
        side = values[np.array(guesses) == group]
        assert found.means[group].value == pytest.approx(side.mean())
        plain = stats.mean_interval(side)
        assert found.means[group].low == pytest.approx(plain.low, abs=0.06)


def test_the_order_of_the_values_does_not_matter() -> None:
    values, guesses = population((0.2, 0.3, 0.5), (0.1, 0.5, 0.0), 200)
    turned = stats.adjusted_means(values[::-1], guesses[::-1], TABLE, resamples=50)
    assert turned == stats.adjusted_means(values, guesses, TABLE, resamples=50)


def test_what_cannot_be_inverted_is_said() -> None:
    blind = stats.Confusion.of({"female": {"female": 50, "male": 50}, "male": {"female": 51, "male": 49}})
    found = stats.adjusted_means(
        [1.0, 2.0, 3.0], ["female", "male", "male"], blind, pairs=[("male", "female")]
    )
    assert found.problem is not None and "too little" in found.problem
    assert found.means["male"].value is None and found.differences["male", "female"].value is None
    few = stats.Confusion.of({"female": {"female": 2, "male": 1}, "male": {"female": 5, "male": 90}})
    assert "only 3 labelled items are female" in (few.problem() or "")
    one = stats.adjusted_means([1.0], ["male"], TABLE)
    assert one.problem == "fewer than two values"
    with pytest.raises(InputError, match="no label 'other'"):
        stats.adjusted_means([1.0, 2.0], ["male", "other"], TABLE)


def test_a_group_of_which_hardly_any_is_there_has_no_mean() -> None:
    values, guesses = population((0.0, 0.4, 0.6), (0.0, 0.5, 0.1), 500)
    found = stats.adjusted_means(values, guesses, TABLE, resamples=50)
    assert found.means["female"].value is None and found.means["male"].value == pytest.approx(0.5, abs=1e-3)


def test_shares_of_documents_are_those_of_rogan_and_gladen() -> None:
    tables = {
        group: stats.Confusion.of({"yes": {"yes": 80, "no": 20}, "no": {"yes": 10, "no": 90}})
        for group in ("female", "male")
    }
    seen = {"female": [0.1, 0.45], "male": [0.8, 0.66]}
    found = stats.adjusted_shares(seen, tables, pair=("male", "female"), resamples=50)
    assert found.means["female"].value == pytest.approx((0.275 - 0.1) / 0.7)
    assert found.differences["male", "female"].value == pytest.approx((0.73 - 0.275) / 0.7)


def test_errors_that_depend_on_the_value_are_found() -> None:
    rng = np.random.default_rng(4)
    truths = ["female"] * 200 + ["male"] * 200
    values = rng.normal(size=400)
    guesses = ["male" if value > 0.8 else "female" for value in values[:200]] + [
        "female" if draw < 0.2 else "male" for draw in rng.random(200)
    ]
    found = stats.error_tests(values, truths, guesses)
    assert (found["female"].p or 1) < 0.01 < 0.05 < (found["male"].p or 0)
    assert stats.error_tests([1.0, 2.0], ["male", "male"], ["male", "male"]) == {}
