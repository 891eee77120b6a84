"""Laws of neutrality, FaiRR and NFaiRR."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import FaiRR, InputError, NFaiRR
from evenrank.measures.lists import RankedLists, log_discount, ranked_lists
from evenrank.measures.neutrality import neutrality


@st.composite
def counts_and_target(draw: st.DrawFn) -> tuple[np.ndarray, tuple[float, ...] | None]:
    groups = draw(st.integers(2, 5))
    rows = st.lists(st.integers(0, 9), min_size=groups, max_size=groups)
    counts = np.array(draw(st.lists(rows, min_size=1, max_size=30)))
    parts = draw(st.none() | st.lists(st.integers(0, 9), min_size=groups, max_size=groups).filter(any))
    return counts, None if parts is None else tuple(part / sum(parts) for part in parts)


def lists_of(counts: np.ndarray, depth: int = 1000) -> RankedLists:
    groups = tuple(f"g{g}" for g in range(counts.shape[1]))
    ids = [f"d{i}" for i in range(len(counts))]
    ranks = range(1, len(ids) + 1)
    run = pl.DataFrame(
        {
            "query_id": ["q"] * len(ids),
            "doc_id": ids,
            "score": [-float(r) for r in ranks],
            "rank": list(ranks),
        }
    )
    tally = pl.DataFrame({"doc_id": ids, **{group: counts[:, g] for g, group in enumerate(groups)}})
    return ranked_lists(run, tally, groups, depth=depth)


def test_published_case_is_one_minus_the_distance_from_one_half() -> None:
    counts = np.array([[0, 0], [1, 0], [2, 0], [1, 1], [3, 1], [0, 7]])
    assert neutrality(counts).tolist() == [1, 1, 0, 1, 0.5, 0]


def test_the_threshold_decides_who_is_neutral_by_silence() -> None:
    assert neutrality(np.array([[1, 0], [2, 0], [3, 0]]), threshold=2).tolist() == [1, 1, 0]
    assert neutrality(np.array([[1, 0], [0, 0]]), threshold=0).tolist() == [0, 1]


@given(counts_and_target())
def test_neutrality_stays_between_0_and_1(case: tuple[np.ndarray, tuple[float, ...] | None]) -> None:
    found = neutrality(*case[:1], target=case[1])
    assert ((found >= 0) & (found <= 1)).all()


def test_a_document_at_the_target_is_neutral_and_the_rarest_alone_is_not() -> None:
    target = (0.2, 0.3, 0.5)
    assert neutrality(np.array([[2, 3, 5]]), target=target) == pytest.approx([1])
    assert neutrality(np.array([[4, 0, 0]]), target=target) == pytest.approx([0])
    assert neutrality(np.array([[0, 0, 4]]), target=target)[0] > 0


def test_one_group_alone_is_refused() -> None:
    with pytest.raises(InputError, match="at least two"):
        neutrality(np.array([[1], [2]]))


@given(counts_and_target(), st.integers(1, 40), st.integers(0, 3))
def test_fairr_equals_its_definition(
    case: tuple[np.ndarray, tuple[float, ...] | None], t: int, threshold: int
) -> None:
    counts, target = case
    measure = FaiRR(threshold=threshold, target=target) @ t
    found = measure.per_query(lists_of(counts)).values
    each = neutrality(counts, threshold, target)
    assert found == pytest.approx(sum(each[i - 1] / np.log2(i + 1) for i in range(1, min(t, len(each)) + 1)))
    assert found == pytest.approx(each @ log_discount(len(each), t))


@given(counts_and_target(), st.integers(1, 40), st.integers(0, 3), st.data())
def test_nfairr_stays_between_0_and_1_when_the_background_holds_the_run(
    case: tuple[np.ndarray, tuple[float, ...] | None], t: int, threshold: int, data: st.DataObject
) -> None:
    counts, target = case
    background = counts[list(data.draw(st.permutations(range(len(counts)))))]
    measure = NFaiRR(threshold=threshold, target=target) @ t
    found = measure.per_query(replace(lists_of(counts), background=lists_of(background))).values
    assert np.isnan(found).all() or ((found >= 0) & (found <= 1 + 1e-12)).all()


@given(counts_and_target(), st.integers(1, 40))
def test_the_fairest_order_reaches_1(case: tuple[np.ndarray, tuple[float, ...] | None], t: int) -> None:
    counts, target = case
    each = neutrality(counts, target=target)
    best = counts[np.argsort(-each, kind="stable")]
    found = (NFaiRR(target=target) @ t).per_query(replace(lists_of(best), background=lists_of(counts))).values
    assert found == pytest.approx([1]) if each.max() > 0 else np.isnan(found).all()


def test_nfairr_is_undefined_where_nothing_is_neutral() -> None:
    lists = lists_of(np.array([[2, 0], [0, 3]]))
    found = (NFaiRR @ 5).per_query(replace(lists, background=lists))
    assert np.isnan(found.values).all()
    assert found.undefined == "no neutral document in the background"


def test_depth_limits_the_background() -> None:
    lists = lists_of(np.array([[2, 0], [1, 1]]))
    assert (NFaiRR @ 2).per_query(replace(lists, background=lists)).values == pytest.approx([1 / np.log2(3)])
    assert np.isnan((NFaiRR(depth=1) @ 1).per_query(replace(lists, background=lists)).values).all()


def test_the_background_reaches_down_to_the_cut_off() -> None:
    with pytest.raises(InputError, match=r"depth is 1, but must be .* as in NFaiRR\(depth=2\)@2"):
        NFaiRR(depth=1) @ 2
    with pytest.raises(InputError, match="depth is 200"):
        NFaiRR @ 300
    assert str(NFaiRR(depth=300) @ 300) == "NFaiRR(depth=300)@300"


@pytest.mark.parametrize("target", [{"female": 0.5}, (0.5, 0.6), (1.5, -0.5), {"female": "x", "male": 1}])
def test_targets_that_are_no_shares_are_refused(target: object) -> None:
    with pytest.raises(InputError, match="add up to 1"):
        FaiRR(target=target)


def test_a_target_names_every_group() -> None:
    groups = ("female", "male")
    assert (FaiRR(target={"male": 0.7, "female": 0.3}) @ 5).shares(groups) == (0.3, 0.7)
    with pytest.raises(InputError, match="no group 'mal'; did you mean 'male'"):
        (FaiRR(target={"mal": 0.7, "female": 0.3}) @ 5).shares(groups)
    with pytest.raises(InputError, match="a share for each group: a, b, c"):
        (FaiRR(target=(0.5, 0.5)) @ 5).shares(("a", "b", "c"))
