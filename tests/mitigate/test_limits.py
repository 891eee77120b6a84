"""Limits on groups as linear constraints, the compiled parts by themselves, and lists from a search box."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from all_rankings import collection, every_ranking, ranking
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import evenrank as er
from evenrank import demo
from evenrank.data.runs import read_run
from evenrank.mitigate._solver.bound import assign, bound, charged
from evenrank.mitigate.constrain import rerank

LABELS = st.lists(st.sampled_from(["f", "m", None]), min_size=2, max_size=6).filter(
    lambda labels: {"f", "m"} <= {*labels}
)
TARGET = st.sampled_from(["", "target='equal'", "target={'female': 0.3, 'male': 0.7}", "target='list'"])
GROUPS = st.one_of(
    st.builds("abs(Skew({})@{})<={}".format, TARGET, st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.7, 1])),
    st.builds(
        "Skew({})@{}{}{}".format,
        TARGET,
        st.integers(1, 5),
        st.sampled_from(["<=", ">="]),
        st.sampled_from([-1.5, -0.7, -0.2, 0.0, 0.5]),
    ),
    st.builds("MinSkew({})@{}>={}".format, TARGET, st.integers(1, 5), st.sampled_from([-1.2, -0.5, 0])),
    st.builds("MaxSkew({})@{}<={}".format, TARGET, st.integers(1, 5), st.sampled_from([0.1, 0.5])),
    st.builds("abs(MB({})@{})<={}".format, TARGET, st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.5])),
    st.builds("MB({})@{}>={}".format, TARGET, st.integers(1, 5), st.sampled_from([-0.3, 0.0, 0.9])),
)


@given(labels=LABELS, limits=st.lists(GROUPS, min_size=1, max_size=2), seed=st.integers(0, 99))
def test_groups_are_shown_as_they_should_at_the_least_cost(labels, limits, seed):
    # Against its own list a list that is no longer than the cut-off is refused.
    own = [limit for limit in limits if not re.search(r"target='equal'|target=\{", limit)]
    assume(all(int(re.search(r"@(\d)", limit)[1]) < len(labels) for limit in own))
    rng = np.random.default_rng(seed)
    tally = collection([(0, 0)] * len(labels))
    run = ranking(rng.random(len(labels)).tolist())
    named = {f"d{i}": label or "unknown" for i, label in enumerate(labels)}
    utility, over = every_ranking(run, tally, limits, labels=named)
    fair = er.constrain(run, limit=limits, labels=named, exact=True)
    report = fair.report.row(0, named=True)
    defined = ~np.isnan(over).all(axis=0)
    within = (over[:, defined] <= 1e-12).all(axis=1)
    if within.any():
        assert report["status"] in ("kept", "optimal")
        assert report["utility"] == pytest.approx(utility[within].max(), abs=1e-8)
    else:
        assert report["status"] == "infeasible"


SOFT = st.builds("abs(ExposureGap@{})<={}".format, st.integers(1, 4), st.sampled_from([0.05, 0.3]))
CROSSED = st.one_of(
    st.builds("MaxSkew(target='equal', attribute='gender*field')@{}<=0.5".format, st.integers(2, 4)),
    st.builds("abs(MB(attribute='gender*field', group='female × law')@{})<=0".format, st.integers(1, 4)),
    st.builds("abs(Skew(attribute='gender', group='unknown')@{})<=0.4".format, st.integers(2, 4)),
    st.builds(
        "abs(ExposureGap(attribute='gender*field', of='male × art', against='female × law')@{})<=0.2".format,
        st.integers(2, 4),
    ),
)


def _best_of_all(labels, limits, seed):
    """`constrain` finds what the best of all rankings has, or says that none is within the limits."""
    tally = collection([(0, 0)] * 5)
    run = ranking(np.random.default_rng(seed).random(5).tolist())
    utility, over = every_ranking(run, tally, limits, labels=labels)
    report = er.constrain(run, limit=limits, labels=labels, exact=True).report.row(0, named=True)
    defined = ~np.isnan(over).all(axis=0)
    within = (over[:, defined] <= 1e-12).all(axis=1)
    if within.any():
        assert report["status"] in ("kept", "optimal")
        assert report["utility"] == pytest.approx(utility[within].max(), abs=1e-8)
    else:
        assert report["status"] == "infeasible"


@given(
    shares=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda x: 0 < sum(x) <= 4),
        min_size=5,
        max_size=5,
    ).filter(lambda rows: all(map(any, zip(*rows, strict=True)))),
    limits=st.lists(SOFT, min_size=1, max_size=2),
    seed=st.integers(0, 99),
)
def test_labels_as_shares_are_kept_within_limits_at_the_least_cost(shares, limits, seed):
    _best_of_all({f"d{i}": {"female": f / 4, "male": m / 4} for i, (f, m) in enumerate(shares)}, limits, seed)


@pytest.mark.parametrize("limit", ["abs(Skew@2)<=0.2", "abs(MB@2)<=0.1"])
def test_limits_on_counts_of_documents_refuse_labels_as_shares(limit):
    labels = {"d0": {"female": 0.5, "male": 0.5}, "d1": {"male": 1.0}, "d2": {"female": 1.0}}
    with pytest.raises(er.InputError, match="counts documents that show one group; these labels are shares"):
        er.constrain(ranking([3, 2, 1]), limit=limit, labels=labels)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["female", "male", "unknown"]), st.sampled_from(["art", "law"])),
        min_size=5,
        max_size=5,
    ).filter(lambda rows: {"female", "male"} <= {g for g, _ in rows} and len({f for _, f in rows}) == 2),
    limits=st.lists(CROSSED, min_size=1, max_size=2),
    seed=st.integers(0, 99),
)
def test_crossed_groups_are_kept_within_limits_at_the_least_cost(rows, limits, seed):
    labels = {f"d{i}": {"gender": gender, "field": field} for i, (gender, field) in enumerate(rows)}
    _best_of_all(labels, limits, seed)


def test_targets_from_a_table_are_kept_to():
    run = ranking([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    labels = {f"d{i}": "m" if i < 4 else "f" for i in range(6)}
    fair = er.constrain(run, limit="abs(MB@4)<=0", labels=labels, targets={"q": {"female": 0.5}})
    assert sum(labels[doc] == "f" for doc in fair["doc_id"].to_list()[:4]) == 2
    assert fair["doc_id"].to_list() == ["d0", "d1", "d4", "d5", "d2", "d3"]


def test_groups_and_words_can_be_limited_at_once():
    tally = collection([(0, 2), (0, 3), (1, 0), (2, 0), (0, 0)])
    fair = er.constrain(
        ranking([5, 4, 3, 2, 1]), tally, limit=["abs(Skew(target='equal')@4)<=0.1", "abs(ARaB@4)<=0.3"]
    )
    measured = er.measure(fair, ["Skew(target='equal')@4", "ARaB@4"], tally=tally)
    assert fair.report["status"].to_list() == ["optimal"]
    assert abs(measured["Skew(target='equal')@4"].value) <= 0.1
    assert abs(measured["ARaB@4"].value) <= 0.3


@given(m=st.integers(1, 6), extra=st.integers(0, 8), seed=st.integers(0, 999), digits=st.integers(0, 3))
def test_the_assignment_is_scipys_and_its_prices_prove_it(m, extra, seed, digits):
    profit = np.random.default_rng(seed).normal(size=(m, m + extra)).round(digits)
    chosen, ranks, docs = np.empty(m, np.int64), np.empty(m), np.empty(m + extra)
    total = assign(profit, chosen, ranks, docs)
    rows, columns = linear_sum_assignment(profit, maximize=True)
    assert total == pytest.approx(profit[rows, columns].sum())
    assert len(set(chosen)) == m
    assert (ranks[:, None] + docs >= profit - 1e-9).all()
    assert ranks.sum() + docs.sum() == pytest.approx(total)


def test_the_bound_is_that_of_the_linear_program():
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    m, n = 4, 12
    gain, discount = -np.sort(-rng.random(n)), 1 / np.log2(np.arange(m) + 2)
    weights, values = np.abs(rng.normal(size=(3, m))), rng.normal(size=(3, n))
    upper = np.array([-0.5, 0.1, 0.2])
    least, charges, over, _ = bound(gain, discount, weights, values, upper, np.full(3, 1e5), 120)
    each_rank, each_doc = np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))
    used = np.array([np.outer(w, v).ravel() for w, v in zip(weights, values, strict=True)])
    relaxed = linprog(
        -charged(gain, discount, weights, values, np.zeros(3)).ravel(),
        A_ub=np.vstack([each_doc, used]),
        b_ub=np.concatenate([np.ones(n), upper]),
        A_eq=each_rank,
        b_eq=np.ones(m),
    )
    assert over == pytest.approx(0, abs=1e-9)
    assert least == pytest.approx(-relaxed.fun, abs=1e-7)
    assert (charges >= 0).all()


@given(
    counts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12),
    seed=st.integers(0, 99),
)
def test_a_list_alone_is_ranked_as_in_a_run(counts, seed):
    scores = np.random.default_rng(seed).permutation(len(counts)).astype(float)
    limits = ["abs(ARaB@5)<=0.2", "NFaiRR@5>=0.5"]
    female, male = zip(*counts, strict=True)
    found = rerank(scores.tolist(), {"female": female, "male": male}, limit=limits)
    run = {"q": {f"d{i}": float(score) for i, score in enumerate(scores)}}
    fair = er.constrain(run, collection(counts), limit=limits)
    assert [f"d{i}" for i in found.order] == fair["doc_id"].to_list()
    assert found.status == fair.report["status"][0]
    assert found.after["ARaB@5"] == pytest.approx(fair.report["ARaB@5"][0])


def test_wrong_lists_are_refused():
    with pytest.raises(er.InputError, match="one for each result"):
        rerank([], {"female": [], "male": []}, limit="abs(ARaB@5)<=0.2")
    with pytest.raises(er.InputError, match="2 scores, but 1 results"):
        rerank([1.0, 0.5], {"female": [1], "male": [0]}, limit="abs(ARaB@5)<=0.2")
    with pytest.raises(er.InputError, match="needs labels"):
        rerank([1.0], {"female": [1], "male": [0]}, limit="abs(Skew@5)<=0.2")


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from evenrank.cli import main; sys.exit(main())",
            *arguments,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_writes_a_run_and_what_is_proved_of_it(tmp_path):
    demo.copy_to(tmp_path)
    done = command(
        "mitigate", "constrain", "--run", "bm25.run", "--docs", "docs.tsv", "--limit", "abs(ARaB@10)<=0.1",
        "--report", "report.json", "-o", "fair.run", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "re-ranked, proved best" in done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["limits"] == ["abs(ARaB@10)<=0.1"]
    assert report["proved"] == 1.0
    fair, before = read_run(tmp_path / "fair.run"), read_run(tmp_path / "bm25.run")
    assert fair.sort("query_id", "doc_id")["doc_id"].equals(before.sort("query_id", "doc_id")["doc_id"])
    values = er.measure(fair, "ARaB@10", docs=tmp_path / "docs.tsv")["ARaB@10"].values
    assert np.abs(values).max() <= 0.1 + 1e-12
    refused = command(
        "mitigate", "constrain", "--run", "bm25.run", "--docs", "docs.tsv", "--limit", "AP>=1", "-o", "x.run",
        folder=tmp_path,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "cannot be a limit" in refused.stderr
