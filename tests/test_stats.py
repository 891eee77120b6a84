"""Intervals cover, tests agree with scipy and statsmodels, and laws hold for any values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evenrank.errors import InputError
from evenrank.stats import (
    Comparison,
    Interval,
    bootstrap,
    holm,
    mean_interval,
    paired,
    permutation,
    rank_sum,
    welch,
)

# Quarters: sums are exact, so that laws can be stated without tolerances for ties.
number = st.integers(-40, 40).map(lambda x: x / 4)
numbers = st.lists(number, min_size=2, max_size=25)
pairs = st.lists(st.tuples(number, number), min_size=2, max_size=25).map(
    lambda rows: tuple(zip(*rows, strict=True))
)
probability = st.floats(0, 1, allow_nan=False)

# Student (1908): extra hours of sleep under two drugs, the same ten patients. R's `sleep`.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def slope(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    x = x - x.mean(axis=axis, keepdims=True)
    return (x * y).sum(axis=axis) / (x * x).sum(axis=axis)


def same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def minus(x: float | None) -> float | None:
    return None if x is None else -x


def mirrored(one: Comparison, other: Comparison) -> bool:
    return (
        same(one.difference, minus(other.difference))
        and same(one.low, minus(other.high))
        and same(one.high, minus(other.low))
        and same(one.p, other.p)
        and same(one.effect, minus(other.effect))
    )


class TestMeanInterval:
    def test_no_queries_give_no_numbers(self):
        assert mean_interval([]) == Interval(None, None, None)

    def test_one_query_gives_a_mean_without_an_interval(self):
        assert mean_interval([0.3]) == Interval(0.3, None, None)

    @pytest.mark.parametrize("method", ["bootstrap", "t"])
    def test_constant_values_give_an_interval_of_no_width(self, method):
        assert mean_interval([0.1] * 7, method=method) == Interval(0.1, 0.1, 0.1)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, None])
    def test_undefined_values_are_refused(self, bad):
        with pytest.raises(InputError, match="1 undefined"):
            mean_interval([0.1, bad])

    def test_an_unknown_method_and_an_impossible_confidence_are_refused(self):
        with pytest.raises(InputError, match="bootstrap, t"):
            mean_interval([1, 2], method="bca")
        with pytest.raises(InputError, match="between 0 and 1"):
            mean_interval([1, 2], confidence=95)

    def test_t_is_students_interval(self):
        found = mean_interval(SLEEP_1, method="t", confidence=0.9)
        low, high = scipy.stats.ttest_1samp(SLEEP_1, 0).confidence_interval(0.9)
        assert (found.low, found.high) == pytest.approx((low, high))

    def test_for_many_values_it_is_close_to_the_normal_interval(self):
        values = np.random.default_rng(3).exponential(size=5000)
        found = mean_interval(values)
        reach = 1.96 * values.std(ddof=1) / math.sqrt(5000)
        assert (found.low, found.high) == pytest.approx(
            (values.mean() - reach, values.mean() + reach), abs=0.1 * reach
        )

    @pytest.mark.parametrize("shape", ["normal", "half zero", "reciprocal rank"])
    @pytest.mark.parametrize("n", [15, 60])
    def test_it_covers_the_true_mean_about_as_often_as_it_says(self, shape, n):
        rng = np.random.default_rng(20)
        truth = {"normal": 0.0, "half zero": 0.0, "reciprocal rank": 0.5 * np.mean(1 / np.arange(1, 11))}[
            shape
        ]

        def sample() -> np.ndarray:
            if shape == "normal":
                return rng.normal(size=n)
            kept = rng.random(n) < 0.5
            return kept * (rng.laplace(size=n) if shape == "half zero" else 1 / rng.integers(1, 11, n))

        found = [mean_interval(sample(), resamples=400, seed=i) for i in range(400)]
        covered = np.mean([x.low <= truth <= x.high for x in found])
        assert (0.85 if shape == "reciprocal rank" else 0.915) <= covered <= 0.985

    def test_on_half_zero_values_it_covers_more_often_than_bca(self):
        rng = np.random.default_rng(7)
        covered = np.zeros(2)
        for seed in range(400):
            values = rng.laplace(size=30) * (rng.random(30) < 0.5)
            bca = scipy.stats.bootstrap((values,), np.mean, n_resamples=400, method="BCa", rng=seed)
            for i, found in enumerate(
                (mean_interval(values, resamples=400, seed=seed), bca.confidence_interval)
            ):
                covered[i] += found.low <= 0 <= found.high
        assert covered[0] / 400 > covered[1] / 400 + 0.02

    def test_it_is_seeded(self):
        assert mean_interval(SLEEP_1) == mean_interval(SLEEP_1)
        assert mean_interval(SLEEP_1, seed=1) != mean_interval(SLEEP_1)

    def test_the_draws_are_the_same_everywhere(self):
        found = mean_interval(SLEEP_2 * 2, resamples=500)
        assert (found.low, found.high) == pytest.approx((1.5079742363564146, 3.2156752545478615))

    @given(numbers, st.randoms(use_true_random=False))
    def test_the_order_of_the_queries_does_not_matter(self, values, random):
        mixed = random.sample(values, len(values))
        assert mean_interval(mixed, resamples=99) == mean_interval(values, resamples=99)

    @given(numbers, st.sampled_from(["bootstrap", "t"]))
    def test_turning_the_signs_mirrors_the_interval(self, values, method):
        one = mean_interval(values, resamples=99, method=method)
        other = mean_interval([-x for x in values], resamples=99, method=method)
        assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))

    @given(numbers)
    def test_it_lies_within_the_values_around_the_mean_and_widens_with_confidence(self, values):
        wide, narrow = (mean_interval(values, resamples=199, confidence=c) for c in (0.95, 0.5))
        assert min(values) <= wide.low <= narrow.low <= narrow.high <= wide.high <= max(values)
        assert wide.low <= wide.value <= wide.high


class TestBootstrap:
    def test_a_slope_is_refitted_on_whole_queries(self):
        rng = np.random.default_rng(5)
        x = rng.normal(size=300)
        y = 2 * x + rng.normal(size=300)
        found = bootstrap(slope, x, y)
        fit = scipy.stats.linregress(x, y)
        assert found.value == pytest.approx(fit.slope)
        assert (found.high - found.low) / 3.92 == pytest.approx(fit.stderr, rel=0.15)

    def test_an_exact_line_has_no_spread_when_paired_and_some_when_not(self):
        x = np.arange(10.0)
        assert bootstrap(slope, x, 3 * x) == Interval(3.0, pytest.approx(3), pytest.approx(3))
        apart = bootstrap(slope, x, 3 * x, paired=False)
        assert apart.low < 1 < apart.high

    def test_two_samples_of_different_size_are_resampled_on_their_own(self):
        a, b = np.arange(8.0), np.arange(5.0)
        found = bootstrap(lambda x, y, axis: x.mean(axis) - y.mean(axis), a, b, paired=False)
        assert found.low < found.value == 1.5 < found.high

    def test_unequal_lengths_cannot_be_paired(self):
        with pytest.raises(InputError, match="equally long"):
            bootstrap(slope, [1, 2, 3], [1, 2])

    def test_a_statistic_that_is_undefined_has_no_value(self):
        assert bootstrap(slope, [1, 1, 1], [1, 2, 3]) == Interval(None, None, None)
        assert bootstrap(slope, [], []) == Interval(None, None, None)

    def test_no_interval_when_too_many_resamples_are_undefined(self):
        found = bootstrap(slope, [0, 0, 0, 1], [1, 2, 3, 4])  # a third of the resamples miss the one
        assert found == Interval(pytest.approx(2.0), None, None)

    def test_the_order_of_the_queries_does_not_matter(self):
        x, y = np.random.default_rng(1).normal(size=(2, 40))
        order = np.random.default_rng(2).permutation(40)
        assert bootstrap(slope, x, y, resamples=99).low == pytest.approx(
            bootstrap(slope, x[order], y[order], resamples=99).low, rel=1e-12
        )

    def test_for_the_mean_it_agrees_with_mean_interval(self):
        values = np.random.default_rng(9).normal(size=200)
        one, other = bootstrap(np.mean, values, resamples=20_000), mean_interval(values, resamples=20_000)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.01)


class TestPaired:
    def test_students_sleep_data_give_the_textbook_values(self):
        found = paired(SLEEP_1, SLEEP_2)
        assert (found.difference, found.statistic) == pytest.approx((-1.58, -4.0621), abs=5e-5)
        assert found.p == pytest.approx(0.002833, abs=5e-7)
        assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142))
        assert (found.effect, found.effect_name) == (pytest.approx(-4.0621277 / math.sqrt(10)), "d_z")
        assert (found.test, found.n) == ("t", 10)

    def test_t_agrees_with_scipy(self):
        a, b = np.random.default_rng(4).normal(size=(2, 60))
        expected = scipy.stats.ttest_rel(a, b)
        found = paired(a, b)
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))

    def test_wilcoxon_agrees_with_scipy_and_its_effect_with_the_simple_difference_formula(self):
        a, b = np.random.default_rng(4).normal(size=(2, 30)).round(1)
        expected = scipy.stats.wilcoxon(a - b)
        found = paired(a, b, test="wilcoxon")
        assert (found.statistic, found.p) == (expected.statistic, pytest.approx(expected.pvalue))
        # Kerby (2014): favourable minus unfavourable share of the rank sum.
        moved = (a - b)[(a - b) != 0]
        total = len(moved) * (len(moved) + 1) / 2
        assert abs(found.effect) == pytest.approx(1 - 2 * expected.statistic / total)
        assert found.effect_name == "rank-biserial"

    def test_sign_flips_of_few_pairs_are_enumerated(self):
        found = paired(SLEEP_1, SLEEP_2, test="permutation")
        exact = scipy.stats.permutation_test(
            (np.subtract(SLEEP_1, SLEEP_2),), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        assert found.p == pytest.approx(exact.pvalue)
        assert found.p == 4 / 1024  # one difference is 0: both its signs count

    def test_fishers_darwin_example(self):
        """Fisher (1935, §21): 1,726 of the 2^15 sign patterns reach the sum of the 15 differences."""
        differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
        assert paired(differences, [0] * 15, test="permutation").p == pytest.approx(1726 / 2**15)

    def test_drawn_sign_flips_come_close_to_the_t_test_and_are_never_zero(self):
        rng = np.random.default_rng(8)
        a = rng.normal(size=200)
        b = a + rng.normal(0.1, 0.7, size=200)
        assert paired(a, b, test="permutation").p == pytest.approx(paired(a, b).p, abs=0.01)
        assert paired(a, a + 1, test="permutation").p == 1 / 10_001

    @pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation"])
    def test_no_difference_anywhere_is_no_evidence(self, test):
        found = paired(SLEEP_1, SLEEP_1, test=test)
        assert (found.difference, found.low, found.high, found.p, found.effect) == (0, 0, 0, 1, 0)

    def test_rounding_is_no_difference(self):
        assert paired([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]).p == 1

    def test_an_equal_difference_everywhere_leaves_t_undefined_but_not_the_others(self):
        a, b = [1.1, 2.1, 3.1, 4.1, 5.1, 6.1], [1, 2, 3, 4, 5, 6]
        t = paired(a, b)
        assert (t.p, t.effect, t.statistic) == (None, None, None)
        assert t.low == t.high == pytest.approx(0.1)
        assert paired(a, b, test="permutation").p == 2 / 64
        ranks = paired(a, b, test="wilcoxon")
        assert (ranks.effect, ranks.p) == (1, pytest.approx(2 / 64))

    @pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation"])
    def test_too_few_pairs_have_no_p(self, test):
        assert paired([], [], test=test).difference is None
        one = paired([3], [1], test=test)
        assert (one.difference, one.p, one.n) == (2, None, 1)

    def test_lengths_must_agree_and_the_test_must_exist(self):
        with pytest.raises(InputError, match="2 and 1"):
            paired([1, 2], [1])
        with pytest.raises(InputError, match="wilcoxon, permutation"):
            paired([1, 2], [1, 2], test="sign")

    @given(pairs, st.sampled_from(["t", "wilcoxon", "permutation"]))
    def test_looking_from_the_other_side_turns_the_signs(self, values, test):
        a, b = values
        one, other = (paired(*ab, test=test, draws=200) for ab in ((a, b), (b, a)))
        assert mirrored(one, other)
        assert one.p is None or 0 < one.p <= 1 or test == "t"
        assert test != "wilcoxon" or -1 <= one.effect <= 1

    @given(pairs, st.sampled_from(["t", "wilcoxon", "permutation"]), st.randoms(use_true_random=False))
    def test_the_order_of_the_queries_does_not_matter(self, values, test, random):
        a, b = values
        order = random.sample(range(len(a)), len(a))
        assert paired([a[i] for i in order], [b[i] for i in order], test=test, draws=200) == paired(
            a, b, test=test, draws=200
        )


class TestUnpaired:
    def test_welch_agrees_with_scipy(self):
        found, expected = welch(SLEEP_1, SLEEP_2), scipy.stats.ttest_ind(SLEEP_1, SLEEP_2, equal_var=False)
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
        assert found.p == pytest.approx(0.07939, abs=5e-6)  # R's t.test(extra ~ group, sleep)

    def test_hedges_g_is_cohens_d_shrunk(self):
        """Hedges (1981): the shrinkage is close to 1 − 3 / (4·freedom − 1)."""
        pooled = math.sqrt((np.var(SLEEP_1, ddof=1) + np.var(SLEEP_2, ddof=1)) / 2)
        assert welch(SLEEP_1, SLEEP_2).effect == pytest.approx(-1.58 / pooled * (1 - 3 / 71), rel=1e-3)

    def test_rank_sum_agrees_with_scipy_and_cliffs_delta_counts_pairs(self):
        found, expected = rank_sum(SLEEP_1, SLEEP_2), scipy.stats.mannwhitneyu(SLEEP_1, SLEEP_2)
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
        signs = np.sign(np.subtract.outer(SLEEP_1, SLEEP_2))
        assert found.effect == pytest.approx(signs.mean())

    def test_splits_of_few_values_are_enumerated(self):
        a, b = [1.2, 3.4, 2.2, 5.0, 4.1, 3.3], [0.3, 1.0, 2.0, 0.4]

        def difference(x, y, axis):
            return x.mean(axis=axis) - y.mean(axis=axis)

        exact = scipy.stats.permutation_test((a, b), difference, n_resamples=np.inf, alternative="greater")
        assert permutation(a, b, alternative="greater").p == pytest.approx(exact.pvalue)
        below = scipy.stats.permutation_test((b, a), difference, n_resamples=np.inf, alternative="greater")
        assert permutation(b, a, alternative="greater").p == pytest.approx(below.pvalue)

    def test_both_tails_count_by_default(self):
        # 10 splits of 1..5 into two and three: {1,2}, {4,5} are the farthest apart.
        assert permutation([4, 5], [1, 2, 3]).p == 2 / 10
        assert permutation([4, 5], [1, 2, 3], alternative="greater").p == 1 / 10

    def test_drawn_splits_come_close_to_the_t_test(self):
        rng = np.random.default_rng(2)
        a, b = rng.normal(size=80), rng.normal(0.3, 1, size=120)
        assert permutation(a, b).p == pytest.approx(welch(a, b).p, abs=0.02)

    @pytest.mark.parametrize("test", [welch, rank_sum, permutation])
    def test_equal_values_everywhere_are_no_evidence(self, test):
        found = test([0.5] * 4, [0.5] * 6)
        assert (found.difference, found.p, found.effect) == (0, 1, 0)

    @pytest.mark.parametrize("test", [welch, rank_sum, permutation])
    def test_an_empty_side_leaves_everything_undefined(self, test):
        found = test([], [1, 2, 3])
        assert (found.difference, found.low, found.high, found.p, found.effect) == (None,) * 5

    def test_two_constants_leave_welch_undefined_but_not_the_permutation(self):
        found = welch([1, 1, 1], [0, 0, 0])
        assert (found.difference, found.p, found.effect) == (1, None, None)
        assert permutation([1, 1, 1], [0, 0, 0]).p == 2 / 20

    @given(numbers, numbers, st.sampled_from([welch, rank_sum, permutation]))
    def test_looking_from_the_other_side_turns_the_signs(self, a, b, test):
        assume(sorted(a) != sorted(b))  # two equal samples have one interval, mirrored up to the draws
        options = {"draws": 100} if test is permutation else {}
        one, other = test(a, b, **options), test(b, a, **options)
        assert mirrored(one, other)
        assert one.p is None or 0 <= one.p <= 1


class TestCorrections:
    def test_holms_textbook_example(self):
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    @pytest.mark.slow
    @given(st.lists(probability, min_size=1, max_size=20))
    def test_it_agrees_with_statsmodels(self, p):
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist())

    @given(st.lists(probability, min_size=1, max_size=20))
    def test_corrected_values_are_never_smaller_never_above_one_and_keep_the_order(self, p):
        adjusted = holm(p)
        assert all(x <= y + 1e-15 and y <= 1 for x, y in zip(p, adjusted, strict=True))
        assert all(adjusted[i] <= adjusted[j] for i in range(len(p)) for j in range(len(p)) if p[i] < p[j])

    def test_undefined_values_stay_so_and_do_not_count(self):
        first, none, second, nan = holm([0.01, None, 0.02, math.nan])
        assert (none, nan) == (None, None)
        assert [first, second] == holm([0.01, 0.02])
        assert holm([None]) == [None]
        assert holm([]) == []

    def test_what_is_no_probability_is_refused(self):
        with pytest.raises(InputError, match="between 0 and 1"):
            holm([0.5, 1.2])
