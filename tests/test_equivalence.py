"""No bias beyond δ: what equivalence and power promise, and the words that a verdict makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import stats
from evenrank.auditing import Audit
from evenrank.auditing.certainty import parse_deltas
from evenrank.errors import InputError
from evenrank.stats.equivalence import _power

VALUES = st.lists(st.integers(-50, 50).map(lambda i: i / 10), min_size=3, max_size=30)


@given(VALUES, st.floats(0.01, 10))
def test_equivalence_sees_both_sides_alike(values: list[float], delta: float) -> None:
    there, back = stats.equivalence(values, delta), stats.equivalence([-x for x in values], delta)
    assert there.passed == back.passed
    assert (there.smallest is None) == (back.smallest is None)
    if there.smallest is not None:
        assert there.smallest == pytest.approx(back.smallest)


@given(VALUES, st.floats(0.01, 10))
def test_what_passes_with_one_bound_passes_with_any_larger_one(values: list[float], delta: float) -> None:
    if stats.equivalence(values, delta).passed:
        assert stats.equivalence(values, 2 * delta).passed
    smallest = stats.equivalence(values).smallest
    if smallest:
        assert stats.equivalence(values, smallest * 1.001).passed
        assert not stats.equivalence(values, smallest * 0.999).passed


@given(VALUES, st.floats(0.01, 10))
def test_the_t_interval_lies_within_exactly_where_both_one_sided_tests_reject(
    values: list[float], delta: float
) -> None:
    found = stats.equivalence(values, delta)
    if found.p is None or found.t_low is None or found.t_high is None:
        return
    inside = max(-found.t_low, found.t_high) < delta
    assert inside == (found.p < 0.05) or found.p == pytest.approx(0.05, abs=1e-6)


def test_two_one_sided_t_tests_are_those_of_scipy() -> None:
    from scipy.stats import ttest_1samp

    x = np.random.default_rng(3).normal(0.1, 1, 40)
    upper = ttest_1samp(x, 0.5, alternative="less").pvalue
    lower = ttest_1samp(x, -0.5, alternative="greater").pvalue
    assert stats.equivalence(x, 0.5).p == pytest.approx(max(upper, lower))


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0, 0.0]])
def test_without_a_spread_nothing_is_claimed(values: list[float]) -> None:
    found = stats.equivalence(values, 1.0)
    assert found.passed is None and found.smallest is None


def power(effect: float, sd: float, n: int, alpha: float = 0.05) -> float:
    return _power(effect * n**0.5 / sd, n, alpha)


def test_a_published_sample_size() -> None:
    """Cohen (1988): d = 0.5, α = 0.05 two-sided, one sample, power 0.8 takes 34; d = 0.2 takes 199."""
    assert stats.queries_for(0.5, 1.0) == 34
    assert stats.queries_for(0.2, 1.0) == 199
    assert power(0.5, 1.0, 34) == pytest.approx(0.8078, abs=1e-3)


@given(st.floats(0.1, 5), st.integers(3, 3000), st.sampled_from([0.05, 0.01]))
def test_what_is_detectable_has_the_power(sd: float, n: int, alpha: float) -> None:
    effect = stats.detectable(sd, n, alpha=alpha)
    assert effect is not None
    assert power(effect, sd, n, alpha=alpha) == pytest.approx(0.8, abs=1e-6)
    more = stats.detectable(sd, n + 1, alpha=alpha)
    assert more is not None and (more < effect or n == 1000)  # where the normal curve takes over


def test_the_number_of_queries_is_the_smallest_that_does() -> None:
    n = stats.queries_for(0.1, 0.6)
    assert power(0.1, 0.6, n) >= 0.8 > power(0.1, 0.6, n - 1)


def test_fewer_than_five_percent_of_means_at_delta_are_called_smaller() -> None:
    rng = np.random.default_rng(16)
    wrong = sum(
        bool(stats.equivalence(rng.normal(1.0, 1.0, 30), 1.0, resamples=100).passed) for _ in range(300)
    )
    assert wrong <= 300 * 0.05 + 3 * np.sqrt(300 * 0.05 * 0.95)


# The verdict

DOCS = {"m": "he he he", "f": "she she she", "x": "his", "n": "none"}


def audit(leaning: str, **more: Any) -> Audit:
    """A run whose queries put `leaning` documents first: m (male), f (female) or both by turns."""
    lists = {
        f"q{i}": {leaning[i % len(leaning)]: 2.0, "x" if i % 5 else "n": 1.0}
        for i in range(more.pop("n", 20))
    }
    return er.audit({"run": lists}, ["ARaB@2"], docs=DOCS, resamples=200, **more)


@pytest.mark.parametrize(
    ("leaning", "delta", "word", "said"),
    [
        ("m", None, "leans", "The top 2 results of run lean male."),
        ("m", 5.0, "leans, but less than δ", "The top 2 results of run lean male, but less than 5."),
        ("m", 0.1, "leans", "The top 2 results of run lean male."),
        ("mfffm", 5.0, "no lean beyond δ", "No lean beyond 5 in the top 2 results of run."),
        ("mfffm", None, "cannot tell", "Cannot tell whether the top 2 results of run lean female or male."),
        (
            "mfffm",
            0.1,
            "cannot tell",
            "Cannot tell whether the top 2 results of run lean",
        ),
    ],
)
def test_the_words_of_a_verdict(leaning: str, delta: float | None, word: str, said: str) -> None:
    found = audit(leaning, delta=None if delta is None else {"ARaB@2": delta})
    (one,) = found.certainty
    assert one.word == word and found.verdict().startswith(said)
    assert "would have been found with 80% power (α = 0.05, 1 run)" in found.verdict()
    assert "Smallest ARaB@2 that would be found with 80% power: run " in str(found)
    if delta is None:  # nothing is small without a bound: it says which one would pass
        assert f"Smallest δ of ARaB@2 that would pass as no lean beyond δ: run {one.smallest:.3f}." in str(
            found
        )
    else:
        assert f"90% interval of ARaB@2, compared with ±{delta:g}: run [{one.low:+.3f}, " in str(found)
    assert found.to_dict()["certainty"][0]["word"] == word


def test_a_measure_at_zero_that_names_no_group_is_judged_too() -> None:
    skew = "Skew(group='female')@2"
    lists = {f"q{i}": {"f": 3.0 if i % 3 else 0.5, "m": 2.0, "x": 1.0} for i in range(12)}
    labels = {"f": "female", "m": "male", "x": "male"}
    given = {"docs": DOCS, "labels": labels, "resamples": 200}
    for measures in ([skew], ["ARaB@2", skew]):  # in the headline, and beside it
        said = [one.text for one in er.audit({"run": lists}, measures, delta={skew: 9.0}, **given).findings]
        assert any(text.startswith(f"{skew} of run is ") and "away from 0" in text for text in said)
        assert not any("leans toward " in text for text in said)
    alike = er.audit({"run": {q: {"f": 3.0, "m": 2.0, "x": 1.0} for q in lists}}, [skew], **given)
    assert alike.certainty[0].detectable is None  # equal values: their spread is rounding
    found = er.audit({"run": lists}, [skew], **given)
    assert f"Smallest δ of {skew} that would pass as no lean beyond δ: run " in str(found)


def test_one_query_is_not_judged_whatever_delta_is() -> None:
    found = audit("m", n=1, delta="ARaB@2=9")
    assert found.certainty[0].word == "not judged" and found.certainty[0].detectable is None
    assert found.verdict().startswith("Not judged")


def test_a_delta_bounds_differences_of_any_measure() -> None:
    lists = {f"q{i}": {"m": 2.0, "x": 1.0 + i} for i in range(12)}
    qrels = {f"q{i}": {"m": 1} for i in range(12)}
    runs = {"a": lists, "b": {q: {"m": 3.0, "x": 1.0} for q in lists}}
    found = er.audit(runs, ["ARaB@2", "nDCG@2"], docs=DOCS, qrels=qrels, delta=["nDCG@2=0.9"], resamples=200)
    one = next(c for c in found.certainty if str(c.measure) == "nDCG@2")
    assert one.baseline == "a" and one.delta == 0.9 and one.tests == 2 and one.alpha == 0.025
    assert one.word in ("leans, but less than δ", "no lean beyond δ")
    with pytest.raises(InputError, match="give two"):
        er.audit({"a": lists}, ["ARaB@2"], docs=DOCS, qrels=qrels, delta=["nDCG@2=0.9"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ARaB@10", "write it as MEASURE=VALUE"),
        ("ARaB@10=no", "must be a number above 0"),
        ("ARaB@10=-1", "must be a number above 0"),
        (["ARaB@10=1", "ARaB@10=2"], "given twice"),
        ("ARab@10=1", "ARaB"),
    ],
)
def test_a_bad_delta_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_deltas(given)


def test_a_measure_with_parameters_can_have_a_delta() -> None:
    (measure,) = parse_deltas("ARaB(magnitude='boolean')@10=0.1")
    assert str(measure) == "ARaB(magnitude='boolean')@10"


def test_a_plan_takes_the_spread_of_a_run_or_a_number() -> None:
    lists = {f"q{i}": {"mf"[i % 2]: 1.0} for i in range(10)}
    made = er.plan(0.5, run=lists, measure="RaB@1", docs=DOCS)
    assert made.sd == pytest.approx(np.std([1, -1] * 5, ddof=1) * np.log(4))
    assert made.to_find == er.plan(0.5, sd=made.sd).to_find
    assert er.plan(0.5, sd=1.0, tests=5).to_find > er.plan(0.5, sd=1.0).to_find
    for wrong in (
        {},
        {"sd": 1.0, "run": lists},
        {"sd": 1.0, "tests": 0},
        {"sd": "x"},
        {"sd": 1.0, "docs": DOCS},
    ):
        with pytest.raises(InputError):
            er.plan(0.5, **wrong)
    with pytest.raises(InputError, match="NFaiRR@1: 0 is not good there, so a plan is for differences"):
        er.plan(0.5, run=lists, measure="NFaiRR@1", docs=DOCS)


def test_the_command_line_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evenrank.cli import main

    assert main(["plan", "--effect", "0.5", "--sd", "1"]) == 0
    assert capsys.readouterr().out.startswith("To find 0.5 with 80% power: 34 queries (α = 0.05).")
    assert main(["plan", "--effect", "0.5"]) == 2
    for unread in (["--measure", "ARaB@10"], ["--docs", "nowhere"], ["--only", "neutral"]):
        assert main(["plan", "--effect", "0.5", "--sd", "1", *unread]) == 2
        assert "go with --from" in capsys.readouterr().err


def test_every_delta_is_answered_on_the_terminal() -> None:
    lists = {f"q{i}": {"m": 2.0, "f": 1.0} if i % 2 else {"f": 2.0, "m": 1.0} for i in range(20)}
    turned = {query: {"m": scores["f"], "f": scores["m"]} for query, scores in lists.items()}
    qrels = {query: {"m": 1} for query in lists}
    given = {"docs": DOCS, "qrels": qrels, "resamples": 200}
    one = er.audit(lists, ["ARaB@2", "RaB@1"], delta={"RaB@1": 5.0}, **given)
    assert "RaB@1, δ = 5: run no lean beyond δ." in str(one)
    two = er.audit({"a": lists, "b": turned}, ["ARaB@2", "RR@2"], delta={"RR@2": 0.9}, **given)
    assert "RR@2 against a, δ = 0.9: b no difference beyond δ." in str(two)


def test_a_plan_for_queries_that_are_all_alike_needs_two() -> None:
    assert stats.queries_for(0.05, 0.0) == stats.queries_for_equivalence(0.05, 0.0) == 2
    for spread in (-1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="it must be a number, 0 or more"):
            stats.queries_for(0.05, spread)
    one = {"q": {"a": 2.0, "b": 1.0}}
    with pytest.raises(InputError, match="has 1 value; a spread needs at least two"):
        er.plan(0.05, run=one, docs={"a": "he", "b": "she"})
