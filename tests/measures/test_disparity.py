"""Disparity between query genders, changes of it, and degrees of association."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import InputError, association, disparity, stats
from evenrank.data.files import writing
from evenrank.measures.disparity import percent_of_lower

GENDERS = {"m1": "male", "m2": "male", "m3": "male", "f1": "female", "f2": "female", "f3": "female"}
QRELS = {query: {"good": 1, "bad": 0} for query in GENDERS}


def ranked(**ranks: int) -> dict[str, dict[str, float]]:
    """A run in which the relevant document of each query stands at this rank."""
    others = {f"x{i}": -float(i) for i in range(20)}
    return {q: {**others, f"x{rank}": -99.0, "good": -float(rank)} for q, rank in ranks.items()}


WORSE = ranked(m1=0, m2=0, m3=1, f1=1, f2=3, f3=1)
LEVEL = ranked(m1=0, m2=1, m3=1, f1=1, f2=1, f3=0)


@pytest.mark.parametrize(
    ("male", "female", "percent"), [(0.4065, 0.3397, 19.66), (0.4913, 0.4292, 14.47), (0.2783, 0.2284, 21.85)]
)
def test_percentages_are_of_the_lower_as_in_table_2(male: float, female: float, percent: float) -> None:
    assert round(percent_of_lower(male, female), 2) == percent
    assert percent_of_lower(female, male) == pytest.approx(-percent_of_lower(male, female))


def test_disparity_compares_the_mean_effectiveness_of_the_two_sets() -> None:
    found = disparity(WORSE, QRELS, GENDERS)["run"]
    male, female = (1 + 1 + 1 / 2) / 3, (1 / 2 + 1 / 4 + 1 / 2) / 3
    assert found.means == pytest.approx({"male": male, "female": female})
    assert found.difference == pytest.approx(male - female)
    assert found.percent == pytest.approx(100 * (male - female) / female)
    assert found.welch.p == pytest.approx(stats.welch([1, 1, 0.5], [0.5, 0.25, 0.5]).p)
    assert found.permutation.p == pytest.approx(6 / 20)  # of the 20 splits, those as far apart
    assert found.paired is None


def test_swapping_the_genders_flips_the_sign() -> None:
    swapped = {q: {"male": "female", "female": "male"}[g] for q, g in GENDERS.items()}
    one, other = disparity(WORSE, QRELS, GENDERS)["run"], disparity(WORSE, QRELS, swapped)["run"]
    assert (other.difference, other.percent) == pytest.approx((-one.difference, -one.percent))
    assert (other.welch.p, other.permutation.p) == pytest.approx((one.welch.p, one.permutation.p))


def test_a_paired_test_needs_a_pairing() -> None:
    pairs = [("m1", "f1"), ("m2", "f2"), ("m3", "f3")]
    found = disparity(WORSE, QRELS, GENDERS, pairs=pairs)["run"]
    assert found.paired.p == pytest.approx(stats.paired([1, 1, 0.5], [0.5, 0.25, 0.5]).p)
    with pytest.raises(InputError, match="f1 is not a judged query labelled male"):
        disparity(WORSE, QRELS, GENDERS, pairs=[("f1", "m1")])


def test_change_between_runs_is_paired_within_the_query() -> None:
    found = disparity({"worse": WORSE, "level": LEVEL}, QRELS, GENDERS)
    (((name, _), change),) = found.changes.items()
    assert (name, found.baseline) == ("level", "worse")
    assert change.change.difference == pytest.approx(change.after - change.before)
    assert change.after == pytest.approx(0)
    assert change.reduction == pytest.approx(1)


def test_one_of_several_measures_is_chosen_by_its_name() -> None:
    found = disparity({"worse": WORSE, "level": LEVEL}, QRELS, GENDERS, measure=["RR@10", "P@1"])
    for run in ("worse", "level"):
        assert [found[run, "RR@10"], found[run, "P@1"]] == [one for one in found if one.run == run]
    for unknown in ("worse", ("worse", "AP"), ("x", "P@1")):
        with pytest.raises(InputError, match=r"not name one result; there are \['worse', 'RR@10'\], \["):
            found[unknown]
    alone = disparity(WORSE, QRELS, GENDERS)
    assert alone["run"] is alone["run", "RR@10"]


def test_the_same_run_twice_changes_nothing() -> None:
    (change,) = disparity({"a": WORSE, "b": WORSE}, QRELS, GENDERS).changes.values()
    assert (change.change.difference, change.change.p, change.reduction) == (0, 1, 0)


def test_unlabelled_and_unjudged_queries_are_counted() -> None:
    found = disparity(WORSE, {**QRELS, "q": {"d": 1}}, {**GENDERS, "z": "female"})
    assert found.left_out == {"no gender label": 1, "labelled, but not judged": 1}


def test_a_judged_query_with_nothing_returned_counts_as_zero() -> None:
    run = {q: docs for q, docs in WORSE.items() if q != "f1"}
    assert disparity(run, QRELS, GENDERS)["run"].queries == {"female": 3, "male": 3}


def test_bias_measures_and_one_sided_labels_are_refused() -> None:
    with pytest.raises(InputError, match="measures bias"):
        disparity(WORSE, QRELS, GENDERS, measure="ARaB@10")
    with pytest.raises(InputError, match="labelled female"):
        disparity(WORSE, QRELS, dict.fromkeys(GENDERS, "male"))
    with pytest.raises(InputError, match="no run 'x'"):
        disparity(WORSE, QRELS, GENDERS, baseline="x")


def test_association_of_the_released_scores(shared: Path) -> None:
    folder = shared / "data" / "association"
    found = association(folder / "female.tsv.gz", folder / "male.tsv.gz")
    assert found.pairs == {"female": 14_000, "male": 14_000}
    assert {g: round(mean, 2) for g, mean in found.means.items()} == {"female": 12.58, "male": 12.86}
    assert found.welch.difference > 0
    assert found.p < 1e-10
    assert sum(found.histogram["male"]) == 14_000


SCORES = st.lists(st.floats(-50, 50).map(lambda x: round(x, 3)), min_size=2, max_size=30)


@given(SCORES, SCORES)
def test_distances_are_symmetric_and_bounded(a: list[float], b: list[float]) -> None:
    one, other = association(a, b), association(b, a)
    for name in ("kolmogorov_smirnov", "wasserstein", "overlap"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)
    assert 0 <= one.overlap <= 1 + 1e-12
    assert 0 <= one.kolmogorov_smirnov <= 1
    assert one.wasserstein >= abs(one.means["male"] - one.means["female"]) - 1e-9


@given(SCORES)
def test_equal_scores_overlap_wholly(a: list[float]) -> None:
    found = association(a, a)
    assert (found.kolmogorov_smirnov, found.wasserstein) == (0, 0)
    assert found.overlap == pytest.approx(1)


def test_one_table_is_split_by_gender_labels(tmp_path: Path) -> None:
    file = tmp_path / "scores.tsv"
    file.write_text("query_id\tdoc_id\tscore\n1\ta\t3.5\n2\tb\t1.5\n3\tc\t2\n")
    found = association(file, genders={"1": "m", "2": "f"})
    assert found.means == {"female": 1.5, "male": 3.5}
    with pytest.raises(InputError, match="needs genders"):
        association(file)


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.csv", "pairs.tsv.gz", "pairs.tsv.zst"])
@pytest.mark.parametrize("head", ["", "male\tfemale\n"])
def test_pairs_come_from_any_small_table(name: str, head: str, tmp_path: Path) -> None:
    content = f"{head}m1\tf1\nm2\tf2\nm3\tf3\n"
    with writing(tmp_path / name) as out:
        out.write(content.replace("\t", "," if name.endswith("csv") else "\t").encode())
    found = disparity(WORSE, QRELS, GENDERS, pairs=tmp_path / name)["run"]
    given = disparity(WORSE, QRELS, GENDERS, pairs={"m1": "f1", "m2": "f2", "m3": "f3"})["run"]
    assert found.paired == given.paired


def test_pairs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.tsv: no such file"):
        disparity(WORSE, QRELS, GENDERS, pairs=tmp_path / "missing.tsv")
    (tmp_path / "three.tsv").write_text("m1\tf1\tx\n")
    with pytest.raises(InputError, match=r"three.tsv:1: 3 columns instead of 2; expected male<TAB>female"):
        disparity(WORSE, QRELS, GENDERS, pairs=tmp_path / "three.tsv")
