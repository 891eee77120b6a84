"""Labels as shares, crossed attributes, what is unknown, the targets of TREC Fair Ranking 2022."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.cli import main
from evenrank.measures.exposure import js_divergence
from evenrank.measures.groups import Labels

DOCS = [f"d{i}" for i in range(6)]
GENDERS, FIELDS = st.sampled_from(["f", "m", None]), st.sampled_from(["art", "law", None])
TABLE = st.lists(st.tuples(GENDERS, FIELDS), min_size=6, max_size=6).filter(
    lambda rows: {"f", "m"} <= {g for g, _ in rows} and {"art", "law"} <= {f for _, f in rows}
)
SHARES = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 10)).filter(lambda pair: 0 < sum(pair) <= 10),
    min_size=6,
    max_size=6,
)
RUN = {"q": {doc: float(-i) for i, doc in enumerate(DOCS)}}


def value(measure, run=RUN, **given):
    return er.measure(run, measure, confidence=None, **given)[measure].value


def table(rows):
    return pl.DataFrame(
        {"doc_id": DOCS[: len(rows)], "gender": [g for g, _ in rows], "field": [f for _, f in rows]}
    )


def soft(pairs):
    return {doc: {"female": f / 10, "male": m / 10} for doc, (f, m) in zip(DOCS, pairs, strict=True)}


@given(TABLE)
def test_crossed_shares_add_up_to_those_of_each_attribute(rows):
    found = Labels.of(table(rows))
    crossed, gender = found.groups("gender × field"), found.groups("gender")
    assert crossed.frame.select(pl.sum_horizontal(crossed.groups)).to_series().to_list() == [1] * 6
    for group in gender.groups:
        of_group = [name for name in crossed.groups if name.split(" × ")[0] == group]
        added = crossed.frame.select(pl.sum_horizontal(of_group)).to_series()
        assert added.to_list() == gender.frame[group].to_list()


@given(TABLE, st.integers(1, 5))
def test_shares_of_one_are_plain_labels(rows, k):
    plain = {doc: g for doc, (g, _) in zip(DOCS, rows, strict=True) if g}
    shares = {doc: {g: 1.0} for doc, g in plain.items()}
    for measure in (f"AWRF@{k}", f"NDKL@{k}", f"Skew@{k}", f"MB@{k}", "Exposure(group='female')", f"rND@{k}"):
        assert value(measure, labels=plain) == value(measure, labels=shares)


@given(SHARES, st.integers(1, 5))
def test_values_of_shares_by_their_formulas(pairs, k):
    labels, shown = soft(pairs), np.array(pairs) / 10
    attention = 1 / np.log2(np.maximum(np.arange(1, k + 1), 2)) @ shown[:k]
    attention /= attention.sum()
    whole = shown.sum(axis=0) / shown.sum()
    assert value(f"AWRF@{k}", labels=labels) == pytest.approx(1 - js_divergence(attention, whole), abs=1e-12)
    assert value(f"MB(group='female')@{k}", labels=labels) == pytest.approx(
        shown[:k, 0].sum() / k - shown[:, 0].sum() / 6, abs=1e-12
    )
    gap = 1 / np.log2(np.arange(1, k + 1) + 1) @ (shown[:k, 1] - shown[:k, 0])
    assert value(f"ExposureGap@{k}", labels=labels) == pytest.approx(
        gap / (1 / np.log2(np.arange(1, k + 1) + 1)).sum(), abs=1e-12
    )
    top = shown[:k, 0].sum() / shown[:k].sum()
    if top and whole[0]:
        assert value(f"Skew@{k}", labels=labels) == pytest.approx(np.log(top / whole[0]), abs=1e-12)


@given(SHARES, st.integers(1, 6))
def test_swapping_the_groups_flips_the_sign(pairs, k):
    there, back = soft(pairs), soft([(m, f) for f, m in pairs])
    measure = f"ExposureGap@{k}"
    assert value(measure, labels=there) == pytest.approx(-value(measure, labels=back), abs=1e-12)
    assert value(f"NDKL@{k}", labels=there) == pytest.approx(value(f"NDKL@{k}", labels=back), abs=1e-12)


def test_what_is_unknown_is_a_group_and_is_said():
    labels = table([("f", "art"), ("m", None), (None, "law")])  # d3, d4 and d5 are not listed
    found = er.measure(RUN, "AWRF(attribute='gender')@4", labels=labels, confidence=None)[0]
    assert "50.0% of the documents looked at are unknown, which is a group of its own" in found.notes
    # d0 and d1 have weight 1, d2 0.63, d3 0.5
    weights = 1 / np.log2([2, 2, 3, 4])
    attention = np.array([weights[0], weights[1], weights[2] + weights[3]]) / weights.sum()
    whole = np.array([1, 1, 4]) / 6
    assert found.value == pytest.approx(1 - js_divergence(attention, whole), abs=1e-12)
    named = er.measure(RUN, "AWRF@4", labels=labels, confidence=None)[0]
    assert "50.0% of the documents looked at show no group" in named.notes
    left = er.measure(RUN, "Skew(attribute='gender', group='unknown')@2", labels=labels, confidence=None)[0]
    assert left.value < 0  # none of the first two, though most of the list


def test_a_target_for_what_is_known_leaves_the_unknown_its_share():
    labels = table([("f", None), ("f", None), ("m", None), (None, None)])
    shown = np.array([2, 1, 3]) / 6  # of the whole list; d4 and d5 are not listed
    weights = 1 / np.log2([2, 2, 3, 4])
    attention = np.array([weights[0] + weights[1], weights[2], weights[3]]) / weights.sum()
    known = 1 - shown[2]
    expected = 1 - js_divergence(attention, np.array([known / 2, known / 2, shown[2]]))
    measure = "AWRF(attribute='gender', target='equal')@4"
    assert value(measure, labels=labels) == pytest.approx(expected, abs=1e-12)
    named = "AWRF(attribute='gender', target={'female': 0.5, 'male': 0.5})@4"
    assert value(named, labels=labels) == pytest.approx(expected, abs=1e-12)
    fixed = "AWRF(attribute='gender', target={'female': 0.5, 'male': 0.5, 'unknown': 0})@4"
    assert value(fixed, labels=labels) == pytest.approx(1 - js_divergence(attention, np.array([0.5, 0.5, 0])))


def test_the_score_of_task_1_by_hand():
    labels = {"d0": "m", "d1": "m", "d2": "f", "d3": "f"}
    qrels = {"q": {"d1": 1, "d2": 1, "d5": 1, "d0": 0}}
    target = "target='relevant', attribute='group'"
    # d1 is male, d2 female, d5 unknown: a third each
    attention = np.array([1 / np.log2(3), 2, 0]) / (2 + 1 / np.log2(3))
    fair = 1 - js_divergence(attention, np.array([1, 1, 1]) / 3)
    useful = (1 + 1 / np.log2(3)) / (1 + 1 + 1 / np.log2(3))
    assert value(f"AWRF({target})@3", labels=labels, qrels=qrels) == pytest.approx(fair, abs=1e-12)
    score = value(f"nDCGxAWRF({target})@3", labels=labels, qrels=qrels)
    assert score == pytest.approx(fair * useful, abs=1e-12)


def test_measures_print_as_they_are_written():
    for text in (
        "AWRF(attribute='gender*field')@10",
        "EEL(attribute='gender', target='relevant')@5",
        "nDCGxAWRF(target='relevant')",
    ):
        measure = er.parse(text)
        assert er.parse(str(measure)) == measure
    assert er.parse("AWRF(attribute='gender*field')") == er.parse("AWRF(attribute='Gender × field')")


def test_crossed_groups_work_in_audit_gate_and_sweep(tmp_path, monkeypatch, capsys):
    labels = table([("m", "art"), ("m", "law"), ("m", "law"), ("f", "law"), ("f", "art"), (None, "art")])
    measure = "AWRF(attribute='gender*field',target='equal')@4"
    audit = er.audit({"a": RUN}, [measure, "nDCG@4"], labels=labels, qrels={"q": {"d0": 1}})
    assert "gender × field" in str(audit)
    curve = er.sweep(
        RUN, labels=labels, qrels={"q": {"d0": 1}}, method="detconstsort", bias=measure, strengths=[1.0]
    )
    assert curve.points[1].bias.value >= curve.points[0].bias.value
    monkeypatch.chdir(tmp_path)
    labels.write_csv("labels.tsv", separator="\t")
    Path("run").write_text("".join(f"q Q0 {doc} 1 {score} x\n" for doc, score in RUN["q"].items()))
    asked = ["measure", measure, "--run", "run", "--labels", "labels.tsv"]
    assert main([*asked, "--fail-if", f"{measure}<0.99", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["runs"][0]["measures"][0]
    assert found["value"] == pytest.approx(value(measure, labels=labels))


def test_an_audit_of_shares_leaves_out_what_counts_documents_and_says_so():
    labels = soft([(7, 3), (10, 0), (0, 10), (2, 4), (5, 5), (1, 1)])
    found = er.audit({"a": RUN}, labels=labels, qrels={"q": {"d0": 1}})
    assert any("Labels are shares" in warning for warning in found.warnings)
    assert "AWRF@10" in str(found) and "rKL" not in str(found)
    with pytest.raises(er.InputError, match="give labels"):
        value("AWRF(attribute='gender')@3", tally=er.tally(dict.fromkeys(DOCS, "she")))


@pytest.mark.parametrize(
    ("text", "measure", "message"),
    [
        (
            "doc_id\tgroup\tshare\nd0\tf\t0.7\nd0\tm\t0.4\n",
            "AWRF@3",
            ":3: the shares of document 'd0' add up",
        ),
        ("doc_id\tgroup\tshare\nd0\tf\tmost\n", "AWRF@3", ":2: share is 'most'; it must be a number"),
        ("doc_id\tgroup\tshare\nd0\tf\t0.2\nd0\tf\t0.3\n", "AWRF@3", r":3: .*the same group twice"),
        (
            "doc_id\tgender\nd0\tf\nd1\tm\n",
            "AWRF(attribute='field')@3",
            "no attribute 'field'; one of gender",
        ),
        ("doc_id\tgender\nd0\tf\nd1\tm\n", "AWRF(attribute='gender*gender')@3", "with itself"),
        (
            "doc_id\tgroup\tshare\nd0\tf\t0.5\nd1\tm\t1\n",
            "rND(step=2)@3",
            "counts documents that show a group or do not",
        ),
        (
            "doc_id\tattribute\tgroup\tshare\nd0\tgender\tf\t1\nd0\tfield\tlaw\t1\n",
            "AWRF@3",
            r"about gender, field; name one, as in AWRF\(attribute='gender'\)",
        ),
    ],
)
def test_what_is_wrong_with_labels_is_said(tmp_path, text, measure, message):
    path = tmp_path / "labels.tsv"
    path.write_text(text)
    with pytest.raises(er.InputError, match=message):
        value(measure, labels=path)
