"""DetGreedy and its kin, FA*IR: against plain versions of the algorithms, and the papers' claims."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.cli import main
from evenrank.measures.parity import adjusted_alpha, minimum_counts
from evenrank.mitigate.rebalance import GREEDY, REBALANCERS

NAMES = ("a", "b", "c", "d", "e")


@st.composite
def lists(draw, groups=(2, 5), supply=(1, 12), unlabelled=True):
    """Groups of ranked documents (None: none), and the share that each group should have."""
    number = draw(st.integers(*groups))
    counts = [draw(st.integers(*supply)) for _ in range(number)]
    shown = [g for g, count in zip(NAMES, counts, strict=False) for _ in range(count)]
    if unlabelled:
        shown += [None] * draw(st.integers(0, 4))
    parts = [draw(st.integers(1, 8)) for _ in range(number)]
    return draw(st.permutations(shown)), {
        g: Fraction(p, sum(parts)) for g, p in zip(NAMES, parts, strict=False)
    }


def made(shown, shares, method, at=10, **given):
    run = {"q": {f"d{i:02}": float(-i) for i in range(len(shown))}}
    labels = {f"d{i:02}": group for i, group in enumerate(shown) if group}
    targets = {"q": {group: str(share) for group, share in shares.items()}}
    found = er.rebalance(run, method, labels=labels, targets=targets, at=at, **given)
    return [int(doc[1:]) for doc in found["doc_id"].to_list()], found


def published(shown, shares, method, at):
    """The algorithms as they are printed, with one addition: a group that has run out is passed over.

    Geyik et al. count places of DetConstSort from 0 and k from 1; a document may then be passed only if its
    new rank, counted from 1, is not beyond its k. Read the other way, it would come too late.
    """
    places = [i for i, group in enumerate(shown) if group]
    slots = sum(place < at for place in places)
    queues = {g: [i for i in places if shown[i] == g] for g in shares}
    picked = []
    if method == "detconstsort":
        due, k = [], 0
        counts = dict.fromkeys(shares, 0)
        while len(picked) <= slots and any(queues.values()):
            k += 1
            rising = [g for g in shares if math.floor(k * shares[g]) > counts[g]]
            for g in rising:
                counts[g] = math.floor(k * shares[g])
            for g in sorted((g for g in rising if queues[g]), key=lambda g: queues[g][0]):
                picked.append(queues[g].pop(0))
                due.append(k)
                s = len(picked) - 1
                while s > 0 and due[s - 1] >= s + 1 and picked[s - 1] > picked[s]:
                    picked[s - 1], picked[s] = picked[s], picked[s - 1]
                    due[s - 1], due[s] = due[s], due[s - 1]
                    s -= 1
    else:
        counts = dict.fromkeys(shares, 0)
        for k in range(1, slots + 1):
            left = [g for g in shares if queues[g]]
            low = [g for g in left if counts[g] < math.floor(k * shares[g])]
            free = [g for g in left if counts[g] < math.ceil(k * shares[g])]

            def soonest(g, k=k):
                at = math.ceil(k * shares[g]) / shares[g]
                return {"detgreedy": 0, "detcons": at, "detrelaxed": math.ceil(at)}[method]

            if low:
                best = min(low, key=lambda g: queues[g][0])
            elif free:
                best = min(free, key=lambda g: (soonest(g), queues[g][0]))
            else:
                best = min(left, key=lambda g: queues[g][0])
            picked.append(queues[best].pop(0))
            counts[best] += 1
    picked = picked[:slots]
    order = list(range(len(shown)))
    for place, document in zip(places, picked + [i for i in places if i not in picked], strict=True):
        order[place] = document
    return order


@given(lists(), st.sampled_from(GREEDY), st.integers(1, 14))
def test_every_order_is_that_of_the_published_algorithm(drawn, method, at):
    shown, shares = drawn
    assert made(shown, shares, method, at)[0] == published(shown, shares, method, at)


@given(lists(groups=(2, 3), supply=(10, 12)), st.sampled_from(GREEDY[:3]))
def test_up_to_three_groups_are_never_below_nor_above_their_shares(drawn, method):
    # Geyik et al., Theorem 1: feasible with fewer than four groups
    report = made(*drawn, method)[1].report.row(0, named=True)
    assert (report["too_few"], report["too_many"]) == (0, 0)
    assert report["status"] in ("kept", "moved")


@given(lists(groups=(2, 5), supply=(10, 12)))
def test_detconstsort_never_shows_too_few_of_any_number_of_groups(drawn):
    # Geyik et al., Theorem 2
    assert made(*drawn, "detconstsort")[1].report["too_few"].item() == 0


@given(lists(), st.sampled_from(REBALANCERS), st.integers(1, 12))
def test_documents_are_permuted_and_those_of_a_group_keep_their_order(drawn, method, at):
    shown, shares = drawn
    order, _ = made(shown, shares, method, at, **({"group": "a"} if method == "fair" else {}))
    assert sorted(order) == list(range(len(shown)))
    for group in shares:
        of_group = [i for i in order if shown[i] == group]
        assert of_group == sorted(of_group)
    if method != "fair":
        assert all(order[i] == i for i, group in enumerate(shown) if group is None)


@given(lists(), st.sampled_from(GREEDY), st.integers(1, 12))
def test_a_query_is_called_infeasible_exactly_where_a_group_has_too_few_documents(drawn, method, at):
    shown, shares = drawn
    report = made(shown, shares, method, at)[1].report.row(0, named=True)
    slots = sum(group is not None for group in shown[:at])
    lacking = [g for g, share in shares.items() if shown.count(g) < math.floor(slots * share)]
    assert (report["status"] == "infeasible") == bool(lacking)
    assert (report["lacking"] or "").split(", ") == (lacking or [""])
    assert not lacking or report["too_few"] > 0


@given(lists(groups=(2, 2), supply=(1, 15)), st.sampled_from([0.01, 0.1, 0.3]))
def test_fair_passes_its_own_test_wherever_there_are_documents_enough(drawn, alpha):
    shown, shares = drawn
    order, found = made(shown, shares, "fair", alpha=alpha, group="a")
    k = min(10, len(shown))
    needed = minimum_counts(k, float(shares["a"]), adjusted_alpha(k, float(shares["a"]), alpha))
    counts = np.cumsum([shown[i] == "a" for i in order[:k]])
    enough = shown.count("a") >= needed[-1]
    assert (found.report["status"].item() == "infeasible") == (not enough)
    if enough:
        passed = er.measure(
            found,
            f"FAIR(group='a', alpha={alpha})@10",
            labels={f"d{i:02}": group for i, group in enumerate(shown) if group},
            targets={"q": {g: str(share) for g, share in shares.items()}},
        )[f"FAIR(group='a', alpha={alpha})@10"]
        assert (counts >= needed).all()
        assert passed.value == 1


def test_fair_takes_the_group_only_where_the_published_table_says_so():
    # Zehlike et al., Table 2: α = 0.1, p = 0.5 asks for 1, 1, 2 of the first 4, 5, 7 (uncorrected table)
    assert minimum_counts(12, 0.5, 0.1).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4]
    # corrected for ten prefixes the level is lower, and the first member is due later
    level = adjusted_alpha(10, 0.5, 0.1)
    needed = minimum_counts(10, 0.5, level).tolist()
    shown = ["b"] * 10 + ["a"] * 10
    order, _ = made(shown, {"a": Fraction(1, 2), "b": Fraction(1, 2)}, "fair", group="a")
    assert np.cumsum([shown[i] == "a" for i in order[:10]]).tolist() == needed


@given(lists(groups=(2, 2), supply=(3, 4), unlabelled=False))
def test_with_two_equal_groups_no_list_within_the_bounds_of_detgreedy_is_more_useful(drawn):
    shown, _ = drawn
    labels = {f"d{i}": group for i, group in enumerate(shown)}
    run = {"q": {f"d{i}": float(-i) for i in range(len(shown))}}
    found = er.rebalance(run, "detgreedy", labels=labels, target="equal", at=6)
    limits = [f"abs(MB(target='equal', group='a')@{k})<=0" for k in range(1, 7)]
    best = er.constrain(run, limit=limits, labels=labels, exact=True)
    assert best["doc_id"].to_list()[:6] == found["doc_id"].to_list()[:6]


def test_by_hand():
    # two thirds m, one third f: minimums ⌊k/3⌋ of f rise at 3 and 6
    shown, shares = ["b"] * 6 + ["a"] * 3, {"a": Fraction(1, 3), "b": Fraction(2, 3)}
    assert made(shown, shares, "detgreedy", 6)[0][:6] == [0, 1, 6, 2, 3, 7]
    assert made(shown, shares, "detconstsort", 6)[0][:6] == [0, 1, 6, 2, 3, 7]
    # at k = 1 every group may come; ⌈k·p⌉/p is 4 for c, 2.86 for a, 2.5 for b, rounded up 4, 3 and 3
    shown, shares = ["c", "a", "b"] * 4, {"a": Fraction(7, 20), "b": Fraction(8, 20), "c": Fraction(5, 20)}
    firsts = {method: made(shown, shares, method)[0][0] for method in GREEDY}
    assert firsts == {"detgreedy": 0, "detcons": 2, "detrelaxed": 1, "detconstsort": 0}


def test_equal_scores_stand_in_the_given_order():
    run = {"q": dict.fromkeys(("d0", "d1", "d2", "d3"), 1.0)}  # trec_eval: d3 first
    labels = {"d0": "f", "d1": "f", "d2": "m", "d3": "m"}
    for method in GREEDY:
        found = er.rebalance(run, method, labels=labels, target="equal", at=4)
        assert found["doc_id"].to_list() == ["d3", "d1", "d2", "d0"]
        assert found["score"].is_sorted(descending=True)
        assert found["score"].n_unique() == 4


def test_a_share_of_29_in_100_is_reached_at_29():
    # 0.29 · 100 is 28.999… in binary
    shown = ["b"] * 100 + ["a"] * 40
    order, _ = made(shown, {"a": Fraction(29, 100), "b": Fraction(71, 100)}, "detgreedy", 100, candidates=140)
    assert sum(shown[i] == "a" for i in order[:100]) == 29


def test_strength_goes_from_the_shares_of_the_list_to_the_target():
    shown = ["b"] * 8 + ["a"] * 8 + ["b"] * 16
    shares = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    counts = [
        sum(shown[i] == "a" for i in made(shown, shares, "detgreedy", 8, strength=s)[0][:8]) for s in (0, 1)
    ]
    assert counts == [2, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "detgredy"}, "did you mean"),
        ({"at": 0}, "at is 0"),
        ({"strength": 2.0}, "strength is 2.0"),
        ({"method": "fair"}, "name one"),
        ({"target": {"f": 0.5}}, "must name a share for each group"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, message):
    labels = {"a": "f", "b": "g", "c": "h"}
    with pytest.raises(er.InputError, match=message):
        er.rebalance({"q": {"a": 2.0, "b": 1.0}}, labels=labels, **{"target": "equal", **given})


def test_queries_without_target_stay_as_they_are_and_are_named():
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 3.0, "b": 2.0, "c": 1.0}}
    found = er.rebalance(run, labels={"a": "m", "b": "m", "c": "f"}, targets={"q": {"f": 0.5}})
    assert found.report["status"].to_list() == ["moved", "no target"]
    assert found.filter(pl.col("query_id") == "r")["doc_id"].to_list() == ["a", "b", "c"]


def test_a_sweep_takes_every_method():
    run = {"q": {f"d{i}": float(-i) for i in range(20)}}
    labels = {f"d{i}": "m" if i < 10 else "f" for i in range(20)}
    for method in REBALANCERS:
        found = er.sweep(
            run,
            labels=labels,
            method=method,
            qrels={"q": {"d0": 1}},
            bias="abs(MB(target='equal')@10)",
            strengths=[0.5, 1.0],
        )
        assert found.method == method
        assert found.points[-1].bias.value < found.points[0].bias.value


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("run").write_text("".join(f"{q} Q0 {d} 1 {-i} x\n" for q in "qr" for i, d in enumerate("abcd")))
    Path("labels.tsv").write_text("doc_id\tgender\na\tm\nb\tm\nc\tf\n")
    command = ["mitigate", "rebalance", "--run", "run", "--labels", "labels.tsv", "--report", "r.json"]
    assert main([*command, "--target", "{'female': 0.7, 'male': 0.3}", "-o", "even.run"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "2 queries cannot have the shares, a group has too few documents: q, r" in said
    assert json.loads(Path("r.json").read_text())["queries"][0]["lacking"] == "female"
    assert [line.split()[2] for line in Path("even.run").read_text().splitlines()[:4]] == list("acbd")
    assert main([*command, "-o", "x", "--target", "{"]) == 2
    assert main([*command, "-o", "x", "--target", "evenly"]) == 2


def test_a_share_of_one_asks_for_nothing_but_the_group():
    order, found = made("bbaab", {"a": Fraction(1), "b": Fraction(0)}, "fair", at=2, group="a")
    assert order == [2, 3, 0, 1, 4] and found.report["status"].to_list() == ["moved"]
    _, short = made("bbaab", {"a": Fraction(1), "b": Fraction(0)}, "fair", at=4, group="a")
    assert short.report["status"].to_list() == ["infeasible"] and short.report["lacking"].to_list() == ["a"]
