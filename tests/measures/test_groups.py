"""Ranked groups: worked examples by hand or from the papers, and laws."""

import itertools
import math
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import binom

import evenrank as er
from evenrank import (
    AWRF,
    FAIR,
    NDKL,
    DemographicParity,
    InputError,
    MaxSkew,
    MinSkew,
    Skew,
    nDCG,
    rKL,
    rND,
    rRD,
)
from evenrank.measures.exposure import awrf, group_exposure, treatment
from evenrank.measures.parity import (
    _highest,
    adjusted_alpha,
    difference,
    divergence,
    failure_probability,
    minimum_counts,
    passes,
    ranked_parity,
    ratio_difference,
)
from evenrank.measures.skew import ndkl, skews

TERMS = (difference, divergence, ratio_difference)
members = st.lists(st.booleans(), min_size=1, max_size=40).map(np.array)


def shown(letters: str, groups: str = "fm") -> np.ndarray:
    """A ranking written as text: a letter for the group of each document, - for none."""
    return np.array([[int(letter == group) for group in groups] for letter in letters])


rankings = st.text("fm-", min_size=1, max_size=30).map(shown)
labelled = st.text("fm", min_size=1, max_size=30).map(shown)


# rND, rKL, rRD (Yang and Stoyanovich 2017)


def test_ranked_parity_by_hand() -> None:
    """Twenty documents, ten members, four of them in the first ten; the second prefix is the whole."""
    ranking = np.array([True] * 4 + [False] * 6 + [True] * 6 + [False] * 4)
    assert ranked_parity(ranking, difference) == pytest.approx(0.1 / 0.5)
    kl = 0.4 * math.log(0.8) + 0.6 * math.log(1.2)
    assert ranked_parity(ranking, divergence) == pytest.approx(kl / math.log(2))
    assert ranked_parity(ranking, ratio_difference) == pytest.approx((1 - 4 / 6) / (9 - 1))


def test_ranked_parity_discounts_later_prefixes() -> None:
    """Thirty documents, fifteen members, all of them last: Z is this very sum."""
    last = np.array([False] * 15 + [True] * 15)
    total = 0.5 / math.log2(10) + (0.5 - 5 / 20) / math.log2(20)
    assert _highest(difference, (10, 20, 30), 0.5, 15, 15) == pytest.approx(total)
    assert ranked_parity(last, difference) == pytest.approx(1)
    one = np.array([False] * 10 + [True] * 10 + [False, True] * 5)
    assert ranked_parity(one, difference) == pytest.approx(0.5 / math.log2(10) / total)


@pytest.mark.parametrize("term", TERMS)
@given(ranking=members, k=st.integers(1, 40) | st.none(), step=st.integers(2, 12))
def test_ranked_parity_lies_between_0_and_1(term, ranking: np.ndarray, k: int | None, step: int) -> None:
    value = ranked_parity(ranking, term, k=k, step=step)
    assert math.isnan(value) or -1e-12 <= value <= 1 + 1e-12


@pytest.mark.parametrize("term", TERMS)
@given(n=st.integers(2, 9), data=st.data())
def test_the_normaliser_is_the_highest_value_of_any_order(term, n: int, data: st.DataObject) -> None:
    size, step = data.draw(st.integers(0, n)), data.draw(st.integers(2, 4))
    points = tuple(range(step, n + 1, step))
    if not points:
        return
    p = size / n
    sums = [
        sum(float(term(np.array(sum(c < i for c in chosen)), i, p)) / math.log2(i) for i in points)
        for chosen in itertools.combinations(range(n), size)
    ]
    assert _highest(term, points, p, size, n - size) == pytest.approx(max(sums))


@given(members, st.integers(2, 10))
def test_rnd_is_the_same_for_the_group_and_the_rest(ranking: np.ndarray, step: int) -> None:
    for term in (difference, divergence):
        one, other = ranked_parity(ranking, term, step=step), ranked_parity(~ranking, term, step=step)
        assert one == pytest.approx(other, nan_ok=True)


def test_every_prefix_as_the_whole_is_0() -> None:
    for term in TERMS:
        assert ranked_parity(np.array([True, False] * 10), term) == pytest.approx(0)
        assert math.isnan(ranked_parity(np.array([True] * 20), term))  # nothing to be unfair with
        assert math.isnan(ranked_parity(np.array([True, False] * 4), term))  # shorter than the first prefix


# Skew and NDKL (Geyik et al. 2019)


def test_skew_by_hand() -> None:
    """Three of ten where half should be: ln(0.3 / 0.5) and ln(0.7 / 0.5)."""
    found = skews(np.array([3, 7]), np.array([0.5, 0.5]))
    assert found == pytest.approx([math.log(0.6), math.log(1.4)])


def test_an_absent_group_counts_as_half_a_document() -> None:
    assert skews(np.array([0, 10]), np.array([0.5, 0.5]))[0] == pytest.approx(math.log(0.05 / 0.5))
    assert skews(np.array([0, 10]), np.array([0.01, 0.99]))[0] == pytest.approx(math.log(0.5))
    assert math.isnan(skews(np.array([0, 10]), np.array([0.0, 1.0]))[0])


targets = st.integers(1, 99).map(lambda share: np.array([share / 100, 1 - share / 100]))


@given(labelled, targets)
def test_skew_has_one_side_below_and_one_above(ranking: np.ndarray, target: np.ndarray) -> None:
    found = skews(ranking.sum(axis=0), target)
    assert found.min() <= 1e-12 and found.max() >= -1e-12


@given(labelled, targets)
def test_more_of_a_group_never_lowers_its_skew(ranking: np.ndarray, target: np.ndarray) -> None:
    counts = ranking.sum(axis=0)
    if counts[1]:
        assert skews(counts + np.array([1, -1]), target)[0] > skews(counts, target)[0]


def test_ndkl_by_hand() -> None:
    """f, m with half wished for: the first prefix is ln 2 away, the second not at all."""
    discount = 1 / math.log2(3)
    assert ndkl(shown("fm"), np.array([0.5, 0.5])) == pytest.approx(math.log(2) / (1 + discount))
    assert ndkl(shown("ff"), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert math.isnan(ndkl(shown("fm"), np.array([1.0, 0.0])))


@given(rankings, targets)
def test_ndkl_is_never_negative_and_ignores_names(ranking: np.ndarray, target: np.ndarray) -> None:
    value = ndkl(ranking, target)
    assert math.isnan(value) or value >= 0
    assert ndkl(ranking[:, ::-1], target[::-1]) == pytest.approx(value, nan_ok=True)


# Exposure (Singh and Joachims 2018), AWRF (TREC)


def test_the_job_seekers_of_singh_and_joachims() -> None:
    """Their Figure 1: three men of relevance 0.82, 0.81, 0.80 above three women of 0.79, 0.78, 0.77."""
    ranking = shown("mmmfff")
    female, male = group_exposure(ranking)
    assert (round(male, 2), round(female, 2)) == (0.71, 0.39)
    deserved = treatment(ranking, np.array([0.82, 0.81, 0.80, 0.79, 0.78, 0.77]))
    assert deserved[1] / deserved[0] == pytest.approx(1.7483, abs=1e-4)


def test_documents_below_the_cut_off_have_no_exposure() -> None:
    assert group_exposure(shown("mf"), 1) == pytest.approx([0, 1])
    assert group_exposure(shown("mff"), 2) == pytest.approx([1 / math.log2(3) / 2, 1])


@given(labelled)
def test_exposure_is_shared_out_whole(ranking: np.ndarray) -> None:
    sizes = ranking.sum(axis=0)
    total = np.nan_to_num(group_exposure(ranking)) @ sizes
    assert total == pytest.approx(sum(1 / math.log2(1 + rank) for rank in range(1, len(ranking) + 1)))


def test_awrf_by_hand() -> None:
    """Attention 1, 1 for the first two ranks: f, m shares it equally; f, f gives all to one."""
    half = np.array([0.5, 0.5])
    assert awrf(shown("fm"), half) == pytest.approx(1)
    assert awrf(shown("ff"), half) == pytest.approx(1 - jensenshannon([1, 0], half) ** 2)
    assert awrf(shown("ff"), np.array([0.0, 1.0])) == pytest.approx(1 - math.log(2))


@given(rankings, targets)
def test_awrf_agrees_with_scipy_and_stays_in_bounds(ranking: np.ndarray, target: np.ndarray) -> None:
    if not ranking.any():
        assert math.isnan(awrf(ranking, target))
        return
    weights = 1 / np.log2(np.maximum(np.arange(1, len(ranking) + 1), 2))
    expected = 1 - jensenshannon(weights @ ranking, target) ** 2
    assert awrf(ranking, target) == pytest.approx(expected)
    assert 1 - math.log(2) - 1e-9 <= awrf(ranking, target) <= 1


# FA*IR (Zehlike et al. 2017)


@pytest.mark.parametrize(
    ("p", "row"),
    [
        (0.1, "0 0 0 0 0 0 0 0 0 0 0 0"),
        (0.3, "0 0 0 0 0 0 1 1 1 1 1 2"),
        (0.5, "0 0 0 1 1 1 2 2 3 3 3 4"),
        (0.7, "0 1 1 2 2 3 3 4 5 5 6 6"),
    ],
)
def test_minimum_counts_by_hand(p: float, row: str) -> None:
    """k = 12, α = 0.1; F(0; 4, 0.5) = 1/16 ≤ 0.1 asks for one of four."""
    assert minimum_counts(12, p, 0.1).tolist() == [int(cell) for cell in row.split()]


@given(st.integers(1, 80), st.integers(1, 99), st.integers(1, 30))
def test_minimum_counts_agree_with_the_binomial_distribution(k: int, percent: int, alpha: int) -> None:
    p, level = percent / 100, (alpha + 0.5) / 100
    expected = [int(binom.ppf(level, i, p)) for i in range(1, k + 1)]
    assert minimum_counts(k, p, level).tolist() == expected


def test_minimum_counts_as_the_authors_library_prints_them() -> None:
    """fairsearch-fair-python, README: k = 20, p = 0.25, α = 0.1, not adjusted."""
    expected = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]
    assert minimum_counts(20, 0.25, 0.1).tolist() == expected


@given(st.integers(1, 10), st.integers(1, 19), st.integers(1, 40))
def test_failure_probability_is_that_of_all_rankings(k: int, twentieths: int, percent: int) -> None:
    p, alpha = twentieths / 20, percent / 100
    minimums = minimum_counts(k, p, alpha)
    failed = 0.0
    for ranking in itertools.product([0, 1], repeat=k):
        if (np.cumsum(ranking) < minimums).any():
            failed += p ** sum(ranking) * (1 - p) ** (k - sum(ranking))
    assert failure_probability(minimums, p) == pytest.approx(failed)


@given(st.integers(1, 60), st.integers(1, 19), st.integers(1, 20))
def test_the_adjusted_significance_keeps_the_promised_error(k: int, twentieths: int, percent: int) -> None:
    p, alpha = twentieths / 20, percent / 100
    level = adjusted_alpha(k, p, alpha)
    assert 0 <= level <= alpha
    assert failure_probability(minimum_counts(k, p, level), p) <= alpha + 1e-12
    above = np.unique(minimum_counts(k, p, min(alpha, level + 1e-3)) - minimum_counts(k, p, level))
    assert (above >= 0).all()


def test_tests_without_adjustment_reject_far_too_often() -> None:
    assert failure_probability(minimum_counts(100, 0.5, 0.1), 0.5) > 0.3
    assert failure_probability(minimum_counts(100, 0.5, adjusted_alpha(100, 0.5, 0.1)), 0.5) <= 0.1


@given(members, st.integers(1, 9))
def test_moving_a_member_up_never_fails_a_ranking(ranking: np.ndarray, tenths: int) -> None:
    better = np.sort(ranking)[::-1]
    assert passes(better, tenths / 10) or not passes(ranking, tenths / 10)


# As measures


LABELS = {f"d{i}": "female" if i % 3 == 0 else "male" for i in range(30)} | {"d7": ""}
RUN = {"q1": {f"d{i}": 30.0 - i for i in range(30)}, "q2": {f"d{i}": float(i) for i in range(20)}}
QRELS = {"q1": {"d0": 1, "d1": 1, "d4": 2}, "q2": {"d3": 1, "d1": 1}}
EVERY = [
    "rND@20",
    "rKL@20",
    "rRD(step=5)@20",
    "Skew(group='female')@10",
    "MinSkew@10",
    "MaxSkew@10",
    "NDKL",
    "Exposure(group='male')@10",
    "DemographicParity@10",
    "DisparateTreatment",
    "FAIR(alpha=0.05, adjust=False)@10",
    "AWRF(target={'female': 0.3, 'male': 0.7})@10",
]


@pytest.mark.parametrize("name", EVERY)
def test_every_measure_is_used_like_any_other(name: str) -> None:
    parsed = er.parse(name)
    assert er.parse(str(parsed)) == parsed
    found = er.measure(RUN, ["nDCG@10", parsed], labels=LABELS, qrels=QRELS)[parsed]
    assert found.value is not None and found.low <= found.value <= found.high
    assert found.notes[0] == "group labels: given"


def test_measures_read_the_lists_they_should() -> None:
    per_query = er.measure(RUN, [Skew @ 10], labels=LABELS)[Skew @ 10].per_query()
    # q1: d0, d3, d6, d9 of nine labelled, where 10 of 29 are female in the whole list.
    assert per_query["q1"] == pytest.approx(math.log((4 / 9) / (10 / 29)))
    asked = Skew(target="equal") @ 10
    assert er.measure(RUN, [asked], labels=LABELS)[asked].per_query()["q1"] == pytest.approx(math.log(8 / 9))
    asked = Skew(target="collection", group="male") @ 10
    expected = math.log((5 / 9) / (19 / 29))
    assert er.measure(RUN, [asked], labels=LABELS)[asked].per_query()["q1"] == pytest.approx(expected)
    assert "target: the shares in the collection" in er.measure(RUN, [asked], labels=LABELS)[asked].notes


def test_groups_inferred_from_words_say_so() -> None:
    docs = {"d1": "she and her son", "d2": "he", "d3": "nobody", "d4": "she and he"}
    run = {"q": {"d1": 4.0, "d2": 3.0, "d3": 2.0, "d4": 1.0}}
    found = er.measure(run, [DemographicParity], docs=docs, confidence=None)[DemographicParity]
    assert found.value == pytest.approx(1 / math.log2(3))
    assert found.notes == (
        "group labels: inferred, the group with most words (lexicon rekabsaz2020)",
        "50.0% of the documents looked at show no group",
    )


def test_words_and_labels_stand_in_one_list() -> None:
    docs = {f"d{i}": "he" for i in range(30)}
    found = er.measure(RUN, ["RaB@10", "Skew@10"], docs=docs, labels=LABELS, confidence=None)
    assert found["RaB@10"].value > 0 and found["Skew@10"].value is not None
    assert found.provenance["groups"]["labels"] == "given"


def test_bound_measures_give_the_same_values() -> None:
    tenth = [MinSkew @ 10, MaxSkew @ 10, NDKL @ 10, AWRF @ 10, FAIR @ 10, nDCG @ 10]
    wanted = [rND @ 20, *tenth, "DisparateTreatment"]
    bound = er.bind(wanted, labels=LABELS)
    found = ir_measures.calc_aggregate(bound, QRELS, RUN)
    expected = er.measure(RUN, wanted, labels=LABELS, qrels=QRELS, confidence=None)
    assert [found[m] for m in bound] == pytest.approx([m.value for m in expected])


def test_more_than_two_groups_have_to_be_named() -> None:
    three = {f"d{i}": "abc"[i % 3] for i in range(30)}
    with pytest.raises(InputError, match="name one"):
        er.measure(RUN, [rKL @ 20], labels=three)
    with pytest.raises(InputError, match="name two"):
        er.measure(RUN, [DemographicParity], labels=three)
    assert er.measure(RUN, [rKL(group="b") @ 20], labels=three)[rKL(group="b") @ 20].value is not None
    for measure in (MinSkew @ 10, NDKL @ 10, AWRF @ 10):
        assert er.measure(RUN, [measure], labels=three)[measure].value is not None


def test_what_is_refused() -> None:
    for text, why in [
        ("Skew(group='women')@10", "no group 'women'"),
        ("Skew(target='half')@10", "target cannot be 'half'"),
        ("AWRF(target={'female': 0.8, 'male': 0.8})", "together at most 1"),
        ("AWRF(target={'woman': 0.8})", "no group 'woman'"),
        ("FAIR(alpha=2)@10", "between 0 and 1"),
        ("rND(step=1)", "at least 2"),
    ]:
        with pytest.raises(InputError, match=why):
            er.measure(RUN, text, labels=LABELS)
    with pytest.raises(InputError, match="needs labels of documents, a tally"):
        er.measure(RUN, rRD @ 10)
    with pytest.raises(InputError, match="needs relevance judgments"):
        er.measure(RUN, "DisparateTreatment", labels=LABELS)
    with pytest.raises(InputError, match="none of its documents has a group"):
        er.measure(RUN, "Skew@10", labels={"x": "female", "y": "male"})


def test_label_files_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"

    def refused(text: str) -> str:
        path.write_text(text)
        with pytest.raises(InputError) as error:
            er.measure(RUN, "Skew@10", labels=path)
        return str(error.value)

    assert "labels.tsv:3: repeats line 2" in refused("doc_id\tgroup\nd1\tfemale\nd1\tmale\n")
    assert "labels.tsv:3: 1 column instead of 2" in refused("doc_id\tgroup\nd1\tfemale\nd2\n")
    assert "labels.tsv:2: doc_id is empty" in refused("doc_id\tgroup\n\tfemale\n")
    assert "no column group" in refused("doc_id\tcolour\nd1\tred\n")
    assert "no document has a label" in refused("doc_id\tgroup\nd1\tunknown\n")
    path.write_text("docno,Gender\n" + "".join(f"{d},{g[:1].upper()}\n" for d, g in LABELS.items()))
    one = er.measure(RUN, "Skew@10", labels=path)["Skew@10"].value
    assert one == er.measure(RUN, "Skew@10", labels=LABELS)["Skew@10"].value
    frame = pl.DataFrame({"doc_id": list(LABELS), "label": list(LABELS.values())})
    assert one == er.measure(RUN, "Skew@10", labels=frame)["Skew@10"].value


# Targets for each query, and representation bias as a measure


TARGETS = {"q1": {"female": 0.15}, "q2": {"female": 0.5}}


def test_a_table_of_targets_is_what_measures_compare_with() -> None:
    found = er.measure(RUN, [Skew @ 10, Skew(target="equal") @ 10], labels=LABELS, targets=TARGETS)
    assert found[Skew @ 10].per_query()["q1"] == pytest.approx(math.log((4 / 9) / 0.15))
    assert "target: the given shares of each query" in found[Skew @ 10].notes
    assert found[Skew(target="equal") @ 10].per_query()["q1"] == pytest.approx(math.log((4 / 9) / 0.5))
    assert "targets" in found.provenance
    one = er.measure(RUN, "AWRF@10", labels=LABELS, targets={"q1": {"female": 0.15}})["AWRF@10"]
    assert one.left_out == {"no target, or no labelled document in the top": 1}


def test_mb_is_what_represent_says() -> None:
    for targets in (TARGETS, None):
        found = er.measure(RUN, "MB(group='male')@10", labels=LABELS, targets=targets)["MB(group='male')@10"]
        same = er.represent(RUN, targets or "full", labels=LABELS, at=10)
        summary = same.summary("male")
        assert found.per_query() == dict(same.of("male").select("query", "bias").iter_rows())
        assert found.value == pytest.approx(summary["MB"])
        assert found.abs == pytest.approx(summary["MAB"])
        assert found.spread == pytest.approx(summary["SB"])


def test_mb_decides_one_half_exactly() -> None:
    """0.15 of ten is one and a half, whoever writes the target: two of ten are right."""
    run = {"q": {f"d{i}": 10.0 - i for i in range(10)}}
    labels = {f"d{i}": "female" if i < 2 else "male" for i in range(10)}
    for measure in ("MB@10", "MB(target={'female': 0.15})@10", "MB(target={'male': 0.85})@10"):
        targets = {"q": {"male": "0.85"}} if measure == "MB@10" else None
        assert er.measure(run, measure, labels=labels, targets=targets)[measure].value == 0


def test_bound_measures_know_their_targets() -> None:
    wanted = ["MB@10", "AWRF@10", "rND@20"]
    bound = er.bind(wanted, labels=LABELS, targets=TARGETS)
    found = ir_measures.calc_aggregate(bound, QRELS, RUN)
    expected = er.measure(RUN, wanted, labels=LABELS, targets=TARGETS, confidence=None)
    assert [found[m] for m in bound] == pytest.approx([m.value for m in expected])
    assert str(bound[0]) != str(er.bind(wanted, labels=LABELS)[0])


def test_image_search_as_a_run(shared: Path) -> None:
    folder = shared / "data" / "image-search"
    table = pl.read_csv(folder / "results.tsv", separator="\t")
    run = table.select(query_id="query", doc_id="doc_id", score=-pl.col("rank").cast(pl.Float64))
    found = er.measure(run, ["MB@10", "MB@20"], labels=folder / "results.tsv", targets=folder / "targets.tsv")
    for measured in found:
        at = measured.measure["cutoff"]
        same = er.represent(folder / "results.tsv", folder / "targets.tsv", at=at).summary("female")
        assert (measured.value, measured.abs) == pytest.approx((same["MB"], same["MAB"]))
