"""Measures and conditions as text."""

import math

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import AP, RR, ARaB, FaiRR, InputError, NFaiRR, P, R, RaB, nDCG, parse
from evenrank.measures.parse import parse_condition
from evenrank.text.tally import MAGNITUDES

cutoffs = st.integers(1, 10**6)
group = st.text(min_size=1, max_size=8)
shares = st.lists(st.integers(1, 50), min_size=2, max_size=4).map(lambda n: tuple(x / sum(n) for x in n))
targets = (
    st.none()
    | shares
    | st.builds(
        lambda names, parts: dict(zip(names, parts, strict=False)) if len(names) >= len(parts) else parts,
        st.lists(group, min_size=4, max_size=4, unique=True),
        shares,
    )
)
rank_bias = st.builds(
    lambda measure, t, magnitude, of, against: measure(magnitude=magnitude, of=of, against=against) @ t,
    st.sampled_from([RaB, ARaB]),
    cutoffs,
    st.sampled_from(MAGNITUDES),
    st.none() | group,
    st.none() | group,
)
fairr = st.builds(
    lambda t, threshold, target: FaiRR(threshold=threshold, target=target) @ t,
    cutoffs,
    st.integers(0, 99),
    targets,
)
nfairr = st.builds(
    lambda t, more, target: NFaiRR(depth=t + more, target=target) @ t, cutoffs, st.integers(1, 999), targets
)
effective = st.one_of(
    st.builds(lambda m, t: m @ t, st.sampled_from([nDCG, RR, AP, P, R]), cutoffs),
    st.builds(lambda t, gain: nDCG(dcg="exp-log2", gains={1: gain}) @ t, cutoffs, st.integers(0, 9)),
    st.builds(lambda rel, only: AP(rel=rel, judged_only=only), st.integers(1, 4), st.booleans()),
    st.sampled_from([AP, nDCG, RR, ir_measures.SetF(beta=2.0), ir_measures.IPrec @ 0.1, ir_measures.NumRet]),
)
measures = st.one_of(rank_bias, fairr, nfairr, effective)
bounds = st.floats(allow_nan=False, allow_infinity=False)


@given(measures)
def test_a_printed_measure_parses_to_itself(measure: ir_measures.Measure) -> None:
    assert parse(str(measure)) == measure


@given(measures, st.booleans(), st.sampled_from(["<", "<=", ">", ">="]), bounds)
def test_a_printed_condition_parses_to_itself(
    measure: ir_measures.Measure, absolute: bool, op: str, bound: float
) -> None:
    text = f"abs({measure}){op}{bound!r}" if absolute else f"{measure} {op} {bound!r}"
    condition = parse_condition(text)
    assert (condition.measure, condition.absolute, condition.op) == (measure, absolute, op)
    assert condition.bound == bound
    assert parse_condition(str(condition)) == condition


@given(st.text(max_size=40) | st.text("ARaB(@)1<'=.,*-_ []{}", max_size=30))
def test_any_text_parses_or_is_refused_in_one_line(text: str) -> None:
    for read in (parse, parse_condition):
        try:
            read(text)
        except InputError as error:
            assert "\n" not in str(error)


def test_every_registered_measure_is_known() -> None:
    for name, measure in ir_measures.measures.registry.items():
        required = [key for key, info in measure.SUPPORTED_PARAMS.items() if info.required]
        if not required:
            assert parse(name) == measure


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("arab@10", r"measure 'arab@10' at character 1: there is no measure 'arab'; did you mean 'ARaB'\?"),
        ("nDGC@10", "did you mean 'nDCG'"),
        ("ARaB", "ARaB needs a cut-off, as in ARaB@10"),
        ("P", "P needs a cut-off"),
        ("ARaB@0", "at least 1"),
        ("nDCG@0", "at least 1"),
        ("ARaB@ten", "after @ comes a number"),
        ("ARaB@10.0", "must be of type int"),
        ("ARaB@'10'", "must be of type int"),
        (
            "ARaB(magnitude='bool')@10",
            r"at character 16: ARaB: magnitude cannot be 'bool'; did you mean 'boolean'",
        ),
        ("ARaB(magnitude=boolean)@10", "at character 16: a value is a number or a quoted text"),
        ("ARaB(magnitud='tf')@10", "no parameter 'magnitud'; did you mean 'magnitude'"),
        ("ARaB(cutoff=5)@10", "cutoff is given twice"),
        ("IPrec@9223372036854775807", r"recall is 9.223372036854776e\+18, but must be between 0 and 1"),
        ("IPrec@-0.1", "recall is -0.1, but must be between 0 and 1, as in IPrec@0.1"),
        ("ARaB('boolean')@10", "parameters go by name"),
        ("ARaB(**{'of': 'x'})@10", "parameters go by name"),
        ("nDCG(dcg='exp')@10", "dcg cannot be 'exp'"),
        ("NFaiRR(target=(0.5, 0.6))@10", "add up to 1"),
        ("ARaB@10 nDCG@10", "cannot be read"),
        ("", "cannot be read"),
        ("__import__('os').system('true')", "."),
        ("(lambda: 1)()", "name is expected"),
        ("[m for m in ()]", "name is expected"),
        ("'ARaB@10'", "name is expected"),
    ],
)
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ARaB@10", "compares a measure with a number"),
        ("0.1>=ARaB@10", "write a measure on the left and a number on the right"),
        ("0<ARaB@10<1", "one comparison"),
        ("ARaB@10==0", "one of < <= > >="),
        ("ARaB@10<'x'", "not a number"),
        ("ARaB@10<True", "not a number"),
        ("ARaB@10<1e999", "too large to be compared"),
        ("abs()<1", "abs.. takes one measure"),
        ("abs(ARab@10)<1", "at character 5: there is no measure 'ARab'; did you mean 'ARaB'"),
    ],
)
def test_what_is_wrong_with_a_condition_is_said(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_condition(text)


def test_conditions_hold_or_not() -> None:
    assert parse_condition("abs(ARaB@10)<=0.1").holds(-0.1)
    assert not parse_condition("abs(ARaB@10)<0.1").holds(-0.1)
    assert parse_condition("ARaB@10<0.1").holds(-5.0)
    assert parse_condition("NFaiRR@10>=0.95").holds(0.95)
    assert not parse_condition("NFaiRR@10>0.95").holds(0.95)


def test_an_undefined_value_holds_to_nothing() -> None:
    for op in ("<", "<=", ">", ">="):
        condition = parse_condition(f"ARaB@10{op}0")
        assert not condition.holds(None)
        assert not condition.holds(math.nan)


def test_a_measure_is_passed_through() -> None:
    assert parse(ARaB @ 10) is not None
    with pytest.raises(InputError, match="needs a cut-off"):
        parse(ARaB)
