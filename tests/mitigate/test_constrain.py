"""Constrained re-ranking: never beaten by any ranking within the limits, and the limits hold."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from all_rankings import collection, every_ranking, ranking
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import InputError
from evenrank.data.runs import read_run, write_run
from evenrank.measures.parse import parse_condition

COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)
BOUND = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0])
LIMIT = st.one_of(
    st.builds(
        "abs({}(magnitude={!r})@{})<={}".format,
        st.sampled_from(["RaB", "ARaB"]),
        st.sampled_from(["tf", "boolean", "count", "length", "tf-words"]),
        st.integers(1, 7),
        BOUND,
    ),
    st.builds("ARaB@{}{}{}".format, st.integers(1, 5), st.sampled_from(["<=", ">="]), BOUND),
    st.builds("NFaiRR@{}>={}".format, st.integers(1, 5), st.sampled_from([0.3, 0.6, 0.9, 1.0])),
    st.builds("FaiRR(threshold=0)@{}>={}".format, st.integers(1, 5), st.sampled_from([0.3, 1.0])),
)


def scores_for(counts: list[tuple[int, int]], seed: int) -> list[float]:
    return np.random.default_rng(seed).random(len(counts)).round(3).tolist()


@given(counts=COUNTS, limits=st.lists(LIMIT, min_size=1, max_size=3), seed=st.integers(0, 99))
def test_no_ranking_within_the_limits_is_more_useful(counts, limits, seed):
    _compare_with_all(counts, limits, seed)


@pytest.mark.parametrize("seed", range(8))
def test_no_ranking_of_seven_is_more_useful(seed):
    rng = np.random.default_rng(seed)
    limits = [f"abs(ARaB@5)<={rng.choice([0.05, 0.2, 0.4])}", f"NFaiRR@7>={rng.choice([0.5, 0.8])}"]
    _compare_with_all(rng.poisson((1, 2), (7, 2)).tolist(), limits[: 1 + seed % 2], seed)


def _compare_with_all(counts, limits, seed):
    """All orders of the documents, measured by the package: none within the limits is better."""
    tally, run = collection(counts), ranking(scores_for(counts, seed))
    utility, over = every_ranking(run, tally, limits)
    fair = er.constrain(run, tally, limit=limits, exact=True)
    report = fair.report.row(0, named=True)
    defined = ~np.isnan(over).all(axis=0)
    within = (over[:, defined] <= 1e-12).all(axis=1)
    if within.any():
        assert report["status"] in ("kept", "optimal")
        assert report["utility"] == pytest.approx(utility[within].max(), abs=1e-8)
    else:
        assert report["status"] == "infeasible"
        least = over[:, defined].sum(axis=1)
        assert report["excess"] == pytest.approx(least.min(), abs=1e-8)
        if defined.sum() == 1:  # and of the least biased ones it is the most useful
            assert report["utility"] == pytest.approx(utility[least <= least.min() + 1e-9].max(), abs=1e-8)


@given(counts=COUNTS, limits=st.lists(LIMIT, min_size=1, max_size=2), seed=st.integers(0, 99))
def test_the_limits_hold_as_the_package_measures_them(counts, limits, seed):
    tally, run = collection(counts), ranking(scores_for(counts, seed))
    fair = er.constrain(run, tally, limit=limits)
    if fair.report["status"][0] not in ("kept", "optimal", "gap"):
        return
    for condition in map(parse_condition, limits):
        value = er.measure(fair, condition.measure, tally=tally, confidence=None)[condition.measure].value
        if value is not None:
            size = abs(value) if condition.absolute else value
            assert condition.holds(value) or abs(size - condition.bound) <= 1e-12 * max(1, abs(size))


@given(counts=COUNTS, limits=st.lists(LIMIT, min_size=1, max_size=2), seed=st.integers(0, 99))
def test_every_document_is_still_there_and_scores_fall(counts, limits, seed):
    run = ranking(scores_for(counts, seed))
    fair = er.constrain(run, collection(counts), limit=limits)
    assert sorted(fair["doc_id"]) == sorted(run["q"])
    single = fair["score"].to_numpy().astype(np.float32)
    assert (np.diff(single) < 0).all()
    assert fair.equals(er.constrain(run, collection(counts), limit=limits))
    assert read_run(fair)["doc_id"].to_list() == fair["doc_id"].to_list()


@given(counts=COUNTS, bound=st.floats(0, 1), wider=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_wider_limit_never_costs_more(counts, bound, wider, seed):
    tally, run = collection(counts), ranking(scores_for(counts, seed))
    tight, wide = (
        er.constrain(run, tally, limit=f"abs(ARaB@4)<={b!r}", exact=True).report.row(0, named=True)
        for b in (bound, bound + wider)
    )
    if tight["status"] != "infeasible":
        assert wide["utility"] >= tight["utility"] - 1e-9


@given(counts=COUNTS, bound=BOUND, seed=st.integers(0, 99))
def test_swapping_the_groups_changes_nothing(counts, bound, seed):
    run = ranking(scores_for(counts, seed))
    swapped = [(m, f) for f, m in counts]
    one, other = (
        er.constrain(run, collection(c), limit=f"abs(ARaB@5)<={bound}", exact=True) for c in (counts, swapped)
    )
    assert one.report["utility"][0] == pytest.approx(other.report["utility"][0], abs=1e-9)
    assert one.report["status"].to_list() == other.report["status"].to_list()


@pytest.mark.parametrize("bound", ["1e9", "inf"])
@pytest.mark.parametrize("name", ["abs(ARaB@3)", "RaB@3", "abs(Skew@3)", "MaxSkew@3", "abs(MB@3)"])
@pytest.mark.parametrize("mode", ["each", "mean"])
def test_a_limit_that_does_not_bind_returns_the_input(name, bound, mode):
    if mode == "mean" and "aB@" not in name:
        pytest.skip("limits on groups hold for each query")
    run = read_run({"q": {f"d{i}": 5.0 - i for i in range(5)}})
    tally = collection([(0, 4 - i) for i in range(5)])
    fair = er.constrain(run, tally, limit=f"{name}<={bound}", mode=mode)
    assert fair.equals(run)
    assert fair.report["status"].to_list() == ["kept"]
    beside = [f"{name}<={bound}", "abs(ARaB@3)<=0.8"]
    alone = er.constrain(run, tally, limit=beside[1:], mode=mode)
    assert alone["doc_id"].to_list() != run["doc_id"].to_list()
    assert er.constrain(run, tally, limit=beside, mode=mode).equals(alone)


def test_ties_keep_their_order_under_scores_that_fall():
    run = read_run({"q": {"d0": 1.0, "d1": 1.0, "d2": 1.0}})
    fair = er.constrain(run, collection([(0, 0)] * 3), limit="abs(ARaB@3)<=1")
    assert fair["doc_id"].to_list() == run["doc_id"].to_list()
    assert (np.diff(fair["score"].to_numpy().astype(np.float32)) < 0).all()


def test_documents_below_the_candidates_stay_where_they_are():
    counts = [(0, 3)] * 5 + [(3, 0)] * 5
    run = read_run({"q": {f"d{i}": 10.0 - i for i in range(10)}})
    fair = er.constrain(run, collection(counts), limit="abs(ARaB@3)<=0.4", candidates=7)
    assert fair["doc_id"].to_list()[7:] == ["d7", "d8", "d9"]
    assert {"d5", "d6"} & set(fair["doc_id"].to_list()[:3])


@pytest.mark.parametrize("kind", ["tied", "negative", "huge", "wide"])
def test_the_limits_hold_in_the_file_that_is_written(tmp_path, kind):
    rng = np.random.default_rng(3)
    scores = {
        "tied": rng.integers(0, 3, 20) * 1.0,
        "negative": -1e6 - rng.random(20) * 1e-3,
        "huge": 1e300 * rng.random(20),
        "wide": 10.0 ** rng.integers(-40, 37, 20),
    }[kind]
    tally = collection([tuple(pair) for pair in rng.poisson((1, 2), (20, 2)).tolist()])
    run = {str(q): {f"d{d}": float(scores[d]) for d in rng.permutation(20)[: 2 + 6 * q]} for q in range(4)}
    fair = er.constrain(run, tally, limit="abs(ARaB@10)<=0.2", candidates=12)
    write_run(fair, tmp_path / "fair.run", name="fair")
    read = read_run(tmp_path / "fair.run")
    assert read.select("query_id", "doc_id").equals(pl.DataFrame(fair).select("query_id", "doc_id"))
    values = er.measure(read, "ARaB@10", tally=tally, confidence=None)["ARaB@10"].per_query()
    within = fair.report.filter(pl.col("status") != "infeasible")["query_id"].to_list()
    assert within
    assert all(abs(values[query]) <= 0.2 + 1e-12 for query in within)


def test_a_cut_off_below_the_candidates_counts_what_stays_there():
    counts = [(0, 3), (0, 2), (3, 0), (0, 3), (0, 3)]
    tally, run = collection(counts), ranking([5, 4, 3, 2, 1])
    fair = er.constrain(run, tally, limit="abs(ARaB@5)<=0.62", candidates=3, exact=True)
    assert fair.report["status"].to_list() == ["optimal"]
    assert abs(er.measure(fair, "ARaB@5", tally=tally)["ARaB@5"].value) <= 0.62


def test_more_work_is_allowed_where_it_is_asked_for():
    rng = np.random.default_rng(5)
    tally = collection([tuple(pair) for pair in rng.poisson((1, 4), (60, 2)).tolist()])
    run = ranking(rng.random(60).tolist())
    limits = ["abs(ARaB(magnitude='length')@10)<=0.001", "NFaiRR@10>=0.7"]
    little, much = (
        er.constrain(run, tally, limit=limits, budget=b).report.row(0, named=True) for b in (1e-4, 1)
    )
    assert little["work"] < much["work"]
    if little["status"] == much["status"] == "gap":
        assert much["gap"] <= little["gap"] + 1e-12


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("nDCG@10>=0.5", "nDCG cannot be a limit; RaB, ARaB"),
        ("abs(ARaB@10)>=0.5", "from above"),
        ("MinSkew@10<=-0.1", "from below"),
        ("abs(MaxSkew@10)<=0.1", "its sign is known"),
        ("abs(Skew)<=0.1", "add a cut-off"),
        ("abs(ARaB@10)<=-0.1", "an absolute value is never below 0"),
        ("ARaB@10<0.1", "write a limit with <="),
        ([], "at least one limit"),
    ],
)
def test_what_cannot_be_a_limit_is_refused(limits, problem):
    with pytest.raises(er.InputError, match=problem):
        er.constrain({"q": {"d0": 1.0}}, collection([(0, 1)]), limit=limits)


@pytest.mark.parametrize("collected", ["time", "grepbiasir", "squad"])
def test_every_query_of_a_real_run_keeps_to_the_limits_or_is_said_not_to(shared, collected):
    data = er.load(shared / "data" / collected, split="test" if collected == "squad" else None)
    path = shared / "runs" / f"{collected}.bm25.run"
    run = read_run(path if path.exists() else path.with_suffix(".run.gz"))
    tally = er.tally(data.docs)
    fair = er.constrain(run, tally, limit=["abs(ARaB@10)<=0.1", "NFaiRR@10>=0.6"])
    status = fair.report["status"]
    assert (status != "unresolved").all()
    assert fair.certificate["proved"] > 0.9
    kept = fair.filter(
        pl.col("query_id").is_in(fair.report.filter(status != "infeasible")["query_id"].implode())
    )
    measured = er.measure(kept, ["ARaB@10", "NFaiRR@10"], tally=tally, confidence=None, background=run)
    assert np.abs(measured["ARaB@10"].values).max() <= 0.1 + 1e-12
    assert measured["NFaiRR@10"].values.min() >= 0.6 - 1e-12


def small_runs(seed: int) -> tuple[er.Tally, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    tally = collection([tuple(pair) for pair in rng.integers(0, 4, (9, 2)).tolist()])
    docs = rng.permutation(9).reshape(3, 3)
    return tally, {
        str(q): {f"d{d}": float(s) for d, s in zip(docs[q], -np.sort(-rng.random(3)), strict=True)}
        for q in range(3)
    }


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", ["abs(ARaB@3)<={}", "ARaB@3<={}"])
def test_the_mean_keeps_to_its_limit_and_the_bound_on_utility_holds(seed, limit):
    tally, run = small_runs(seed)
    before = er.measure(run, "ARaB@3", tally=tally, confidence=None)["ARaB@3"]
    size = before.abs if limit.startswith("abs") else before.value
    bound = size - 0.4 * abs(size)
    fair = er.constrain(run, tally, limit=limit.format(bound), mode="mean")
    after = er.measure(fair, "ARaB@3", tally=tally, confidence=None)["ARaB@3"]
    got = after.abs if limit.startswith("abs") else after.value
    # All choices of one ranking for each query.
    each = []
    for query, ranked in run.items():
        utility, over = every_ranking({"q": ranked}, tally, [limit.format(-1e6)])
        each.append(list(zip(utility, over[:, 0] - 1e6, strict=True)))
        assert query in fair["query_id"]
    kept = [
        sum(u for u, _ in choice)
        for choice in product(*each)
        if np.mean([size for _, size in choice]) <= bound + 1e-9
    ]
    total = fair.report["utility"].sum()
    ceiling = total + fair.certificate["largest_gap"] * fair.report["utility_before"].sum()
    if fair.certificate["outcome"] == "infeasible":
        assert not kept
        return
    assert got <= bound + 1e-9
    assert total <= max(kept) + 1e-8 <= ceiling + 2e-8


def test_the_mean_costs_less_than_the_same_limit_on_each(shared):
    data = er.load(shared / "data" / "time")
    tally, run = er.tally(data.docs), shared / "runs" / "time.bm25.run"
    mean, each = (
        er.constrain(run, tally, limit="abs(ARaB@10)<=1", mode=m).certificate for m in ("mean", "each")
    )
    assert mean["mean_loss"] < each["mean_loss"]
    assert mean["largest_gap"] < 1e-3


def test_several_limits_on_means_hold_together():
    rng = np.random.default_rng(1)
    tally = collection([tuple(pair) for pair in rng.poisson((1, 2), (40, 2)).tolist()])
    run = {
        str(q): {f"d{d}": float(40 - at) for at, d in enumerate(rng.permutation(40)[:20])} for q in range(10)
    }
    limits = ["abs(ARaB@10)<=0.1", "NFaiRR@10>=0.8", "abs(RaB@5)<=0.2"]
    fair = er.constrain(run, tally, limit=limits, mode="mean")
    measured = er.measure(fair, ["ARaB@10", "NFaiRR@10", "RaB@5"], tally=tally, background=run)
    assert fair.certificate["outcome"] in ("optimal", "gap")
    assert measured["ARaB@10"].abs <= 0.1 + 1e-9
    assert measured["NFaiRR@10"].value >= 0.8 - 1e-9
    assert measured["RaB@5"].abs <= 0.2 + 1e-9
    with pytest.raises(er.InputError, match="hold for each query"):
        er.constrain(run, tally, limit="abs(Skew@5)<=0.1", mode="mean")
    with pytest.raises(er.InputError, match="exact is for limits on each query"):
        er.constrain(run, tally, limit=limits, mode="mean", exact=True)
    assert set(fair.report["status"]) <= {"kept", "moved"}


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ({"candidates": 0}, "candidates is 0; it must be a whole number from 1 on"),
        ({"candidates": -1}, "candidates is -1; it must be a whole number from 1 on"),
        ({"budget": -1.0}, "budget is -1.0; it must be a number from 0 on"),
    ],
)
def test_settings_out_of_range_are_refused(refused: dict[str, Any], said: str) -> None:
    from evenrank.mitigate.constrain import rerank

    with pytest.raises(InputError, match=said):
        er.constrain(ranking([3, 2]), collection([(0, 1), (1, 0)]), limit="abs(RaB@2)<=0.2", **refused)
    if "candidates" in refused:
        counts = {"female": [0, 0, 2], "male": [3, 1, 0]}
        with pytest.raises(InputError, match=said):
            rerank([9.0, 8.0, 7.0], counts, limit="abs(RaB@2)<=0.2", **refused)


def test_constrain_passes_through_at_most_seven_files_of_this_folder() -> None:
    import evenrank.mitigate

    folder = Path(evenrank.mitigate.__file__).parent
    program = (
        "import sys, evenrank.mitigate.constrain\n"
        "print(*(each.__file__ for each in list(sys.modules.values()) if getattr(each, '__file__', None)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    files = {path for path in map(Path, loaded.stdout.split()) if folder in path.parents}
    files = {path for path in files if path.name != "__init__.py"}
    assert len(files) <= 7, sorted(files)
