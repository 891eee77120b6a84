"""Laws of RaB and ARaB, the published worked example, and the definitions they come from."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import ARaB, InputError, RaB
from evenrank.measures.base import BiasMeasure, PerQuery
from evenrank.measures.lists import ranked_lists
from evenrank.measures.rank_bias import arab_weights, rab_weights
from evenrank.text.tally import MAGNITUDES

# Counts of (female, male) words at ranks 1..10.
EXAMPLE = [(0, 0), (3, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 5), (0, 0), (0, 2)]
COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=25)
CUTOFF = st.integers(1, 30)
MEASURE = st.sampled_from([RaB, ARaB])


def values(
    measure: BiasMeasure,
    lists: list[list[tuple[int, ...]]],
    groups: tuple[str, ...] = ("female", "male"),
    scores: list[list[float]] | None = None,
    expected_ties: bool = False,
) -> PerQuery:
    """The measure over lists of documents that are nothing but counts."""
    entries = [entry for documents in lists for entry in documents]
    ids = [f"d{i}" for i in range(len(entries))]
    ranks = [rank for documents in lists for rank in range(1, len(documents) + 1)]
    run = pl.DataFrame(
        {
            "query_id": [f"q{q}" for q, documents in enumerate(lists) for _ in documents],
            "doc_id": ids,
            "score": [s for one in scores for s in one] if scores else [-float(rank) for rank in ranks],
            "rank": ranks,
        }
    )
    counts = {group: [entry[g] for entry in entries] for g, group in enumerate(groups)}
    logwords = {f"{group}_logwords": np.log1p(counts[group]) for group in groups}
    tally = pl.DataFrame({"doc_id": ids, "tokens": [20] * len(ids), **counts, **logwords})
    lists_ = ranked_lists(run, tally, groups, depth=measure.depth(), expected_ties=expected_ties)
    return measure.per_query(lists_)


def rab(documents: list[tuple[int, ...]], t: int) -> float:
    """RaB as printed, for counts."""
    top = documents[:t]
    return sum(male - female for female, male in top) / len(top)


def arab(documents: list[tuple[int, ...]], t: int) -> float:
    """ARaB as printed: the mean of RaB over all cut-offs up to t."""
    cutoffs = range(1, min(t, len(documents)) + 1)
    return sum(rab(documents, x) for x in cutoffs) / len(cutoffs)


def test_the_sign_flips_between_rab_and_arab_in_the_worked_example() -> None:
    assert values(RaB(magnitude="count") @ 10, [EXAMPLE]).values == pytest.approx([0.4])
    assert values(ARaB(magnitude="count") @ 10, [EXAMPLE]).values == pytest.approx([-0.390634920634920])


def test_arab_weights_the_top_most() -> None:
    weights = arab_weights(10, 10)
    assert weights[0] == pytest.approx(sum(1 / x for x in range(1, 11)) / 10)
    assert (np.diff(weights) < 0).all()


@given(n=st.integers(1, 60), t=CUTOFF)
def test_weights_sum_to_one_over_the_documents_that_count(n: int, t: int) -> None:
    for weights in (rab_weights(n, t), arab_weights(n, t)):
        assert len(weights) == n
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert not weights[t:].any()


@given(lists=st.lists(COUNTS, min_size=1, max_size=6), t=CUTOFF)
def test_values_equal_the_definitions(lists: list[list[tuple[int, ...]]], t: int) -> None:
    assert values(RaB(magnitude="count") @ t, lists).values == pytest.approx([rab(one, t) for one in lists])
    assert values(ARaB(magnitude="count") @ t, lists).values == pytest.approx(
        [arab(one, t) for one in lists], abs=1e-12
    )


@given(documents=COUNTS, t=CUTOFF, measure=MEASURE, magnitude=st.sampled_from(MAGNITUDES))
def test_swapping_the_groups_flips_the_sign(
    documents: list[tuple[int, ...]], t: int, measure: BiasMeasure, magnitude: str
) -> None:
    measure = measure(magnitude=magnitude) @ t
    swapped = [(male, female) for female, male in documents]
    assert values(measure, [swapped]).values == pytest.approx(-values(measure, [documents]).values)
    named = measure(of="female", against="male")
    assert values(named, [documents]).values == pytest.approx(-values(measure, [documents]).values)


@given(documents=COUNTS, t=CUTOFF, measure=MEASURE, data=st.data())
def test_documents_below_the_cut_off_change_nothing(
    documents: list[tuple[int, ...]], t: int, measure: BiasMeasure, data: st.DataObject
) -> None:
    below = data.draw(st.permutations(documents[t:]))
    before, after = values(measure @ t, [documents]), values(measure @ t, [documents[:t] + below])
    assert before.values.tolist() == after.values.tolist()


@given(documents=COUNTS, t=CUTOFF, measure=MEASURE, times=st.integers(0, 5))
def test_both_are_linear_in_the_magnitudes(
    documents: list[tuple[int, ...]], t: int, measure: BiasMeasure, times: int
) -> None:
    measure = measure(magnitude="count") @ t
    scaled = [(times * female, times * male) for female, male in documents]
    assert values(measure, [scaled]).values == pytest.approx(times * values(measure, [documents]).values)


@given(documents=COUNTS, t=CUTOFF, measure=MEASURE, magnitude=st.sampled_from(["boolean", "length"]))
def test_bounded_magnitudes_give_bounded_values(
    documents: list[tuple[int, ...]], t: int, measure: BiasMeasure, magnitude: str
) -> None:
    assert abs(values(measure(magnitude=magnitude) @ t, [documents]).values[0]) <= 1 + 1e-12


@given(
    documents=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6),
    t=st.integers(1, 7),
    measure=MEASURE,
    data=st.data(),
)
def test_expected_ties_are_the_mean_over_all_orders_of_tied_documents(
    documents: list[tuple[int, ...]], t: int, measure: BiasMeasure, data: st.DataObject
) -> None:
    levels = st.lists(st.integers(0, 2), min_size=len(documents), max_size=len(documents))
    scores = sorted((float(s) for s in data.draw(levels)), reverse=True)
    orders = itertools.product(
        *(
            itertools.permutations([d for d, s in zip(documents, scores, strict=True) if s == score])
            for score in sorted(set(scores), reverse=True)
        )
    )
    every = [values(measure @ t, [list(itertools.chain(*order))]).values[0] for order in orders]
    # A second list keeps the first from being the only one.
    lists, both = [documents, [(1, 0)]], [scores, [1.0]]
    found = values(measure @ t, lists, scores=both, expected_ties=True).values
    assert found[0] == pytest.approx(np.mean(every), abs=1e-12)
    assert found[1] == pytest.approx(-np.log(2))


def test_parts_are_the_groups_own_values_in_their_order() -> None:
    found = values(RaB(magnitude="count") @ 10, [EXAMPLE])
    assert list(found.parts) == ["female", "male"]
    assert [part.item() for part in found.parts.values()] == pytest.approx([0.3, 0.7])


def test_the_default_pair_is_second_minus_first() -> None:
    groups = ("young", "old")
    assert (RaB @ 10).pair(groups) == ("old", "young")
    assert (RaB(of="young") @ 10).pair(groups) == ("young", "old")
    assert (RaB(against="old") @ 10).pair(groups) == ("young", "old")


def test_more_than_two_groups_must_be_named() -> None:
    groups = ("a", "b", "c")
    with pytest.raises(InputError, match=r"name two of them, as in ARaB\(of='c', against='a'\)@10"):
        (ARaB @ 10).pair(groups)
    documents = [[(1, 2, 4), (0, 0, 8)]]
    measure = RaB(magnitude="count", of="c", against="a") @ 2
    assert values(measure, documents, groups).values.tolist() == [5.5]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"of": "mail"}, "did you mean 'male'"),
        ({"of": "male", "against": "male"}, "both"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(params: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        (RaB(**params) @ 5).pair(("female", "male"))


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"cutoff": 0}, "at least 1"),
        ({"cutoff": 2.5}, "type int"),
        ({"cutoff": True}, "type int"),
        ({"magnitude": "bool"}, "did you mean 'boolean'"),
        ({"magnitud": "tf"}, "did you mean 'magnitude'"),
    ],
)
def test_parameters_are_checked_at_once(params: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        ARaB(**params)


def test_measures_are_equal_whatever_order_their_parameters_came_in() -> None:
    assert ARaB(of="a", magnitude="count") @ 5 == ARaB(magnitude="count", of="a", cutoff=5)
    assert ARaB(magnitude="tf") @ 10 == ARaB @ 10
