"""Confidence sequences: the closed form is the mixture it claims to be, and it keeps its level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from evenrank.errors import InputError
from evenrank.server.sequences import change, paired_changes, sequence


def first_alarms(rows: np.ndarray, baseline: int = 30) -> np.ndarray:
    return np.array([change(row, baseline=baseline).alarm or 0 for row in rows])


def test_the_bound_is_where_the_mixture_of_t_likelihoods_reaches_one_over_alpha() -> None:
    """The likelihood ratio of D and s, with a normal prior on the shift in standard deviations."""
    rng = np.random.default_rng(3)
    values = np.abs(rng.normal(size=60)) * np.where(np.arange(60) % 2, 1, -1)  # neighbours differ: f = 1
    cut, alpha, tau = 40, 0.05, 0.5
    seen = sequence(values, cut, alpha=alpha)
    assert seen.autocorrelation[-1] == 0
    k, nu = 20, 58
    v = 1 / k + 1 / cut
    before, after = values[:cut], values[cut:]
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    t_squared = seen.reach[-1] ** 2 / (squares / nu)  # of the bound itself

    def marginal(spread: float) -> float:
        """∫ N(D; 0, σ² spread) χ²-density(s² | σ) dσ/σ, without what both sides share."""

        def at(log_sigma: float) -> float:
            precision = math.exp(-2 * log_sigma)
            exponent = -(nu + 1) * log_sigma - precision * (nu + t_squared / spread) / 2
            return math.exp(exponent + nu / 2)

        return integrate.quad(at, -6, 6, limit=400)[0] / math.sqrt(spread)

    assert marginal(v + tau**2) / marginal(v) == pytest.approx(1 / alpha, rel=1e-6)


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-50, 50))
def test_scale_and_level_do_not_matter(seed: int, scale: float, level: float) -> None:
    values = np.random.default_rng(seed).normal(size=70) + np.repeat([0.0, 1.5], [40, 30])
    one, other = change(values), change(scale * values + level)
    assert one.alarm == other.alarm and one.cut == other.cut
    assert other.high == pytest.approx(scale * (one.high or 0), rel=1e-6, abs=1e-9)
    turned = change(-values)
    assert turned.alarm == one.alarm and turned.low == pytest.approx(-(one.high or 0), rel=1e-9, abs=1e-12)


def test_looks_without_any_spread_raise_no_alarm_and_a_step_does() -> None:
    still = change(np.full(60, 0.1))
    assert still.alarm is None and still.low == still.high == 0
    step = change(np.repeat([0.1, 0.3], [30, 5]))
    assert step.alarm == 33 and step.difference == pytest.approx(0.2)
    assert step.judged and step.low is None  # without any spread there is no interval


@pytest.mark.parametrize("at", [31, 45, 75, 200, 300])
def test_what_never_moved_and_then_did_is_found_wherever_that_is(at: int) -> None:
    found = change(np.repeat([0.0, 1.0], [at, 365 - at]))
    assert found.alarm is not None and found.alarm <= at + 4 and abs((found.cut or 0) - at) <= 1


def test_one_odd_look_a_year_raises_no_alarm() -> None:
    for look in (30, 31, 60, 90, 210, 330):
        assert change((np.arange(365) == look) * 1.0).alarm is None


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.2])
@pytest.mark.parametrize("baseline", [10, 60])
def test_rare_odd_looks_keep_the_level(rate: float, baseline: int) -> None:
    rng = np.random.default_rng(5)
    looks = (rng.random((60, 365)) < rate) * rng.choice([1.0, -2.0], (60, 365))
    assert (first_alarms(looks, baseline=baseline) > 0).mean() <= 0.1  # far from the level of a third
    more = (rng.random((20, 365)) < np.where(np.arange(365) < 120, rate, 0.7)) * 1.0
    assert (first_alarms(more, baseline=baseline) > 0).all()


def test_few_looks_are_not_judged() -> None:
    for looks in (0, 1, 2, 30):
        found = change(np.arange(looks) % 3)
        assert not found.judged and found.alarm is None and found.cut is None
    assert change(np.arange(60) % 3).judged
    with pytest.raises(InputError, match="at least 10 looks"):
        change([1.0, 2.0], baseline=2)


@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_false_alarms_are_rarer_than_alpha_and_changes_are_found(phi: float) -> None:
    rng = np.random.default_rng(16)
    noise = rng.normal(size=(300, 365))
    for look in range(1, 365):
        noise[:, look] = phi * noise[:, look - 1] + math.sqrt(1 - phi**2) * noise[:, look]
    assert (first_alarms(noise) > 0).mean() <= 0.05
    noise[:, 100:] += 2
    found = first_alarms(noise)
    assert np.mean((found > 100) & (found < 300)) > 0.9


def test_the_panel_is_compared_query_by_query() -> None:
    rng = np.random.default_rng(2)
    level, noise = rng.normal(size=9) * 100, rng.normal(size=(40, 9))
    whole = paired_changes(level + noise, 20)
    assert whole == pytest.approx(noise.mean(axis=1) - noise[:20].mean())
    holes = level + noise
    holes[rng.random(holes.shape) < 0.2] = np.nan
    assert np.abs(paired_changes(holes, 20)).max() < 5  # although levels differ by hundreds
    new = np.full((40, 2), np.nan)
    new[20:, 0] = 1.0
    new[:20, 1] = 1.0
    assert np.isnan(paired_changes(new, 20)[20:]).all()
