"""Sweeps: less bias at a price, the front, and the setting that is chosen. Interpolation, the yardstick."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from all_rankings import collection, ranking
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo, stats
from evenrank.data.docs import Dataset, open_docs
from evenrank.data.read import read_queries
from evenrank.data.runs import read_run, write_run
from evenrank.mitigate.base import Mitigation
from evenrank.mitigate.tradeoff import TradeOff

COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def data() -> tuple[er.Tally, Dataset]:
    loaded = er.load(demo.folder())
    return er.tally(loaded.docs), loaded


def swept(data: tuple[er.Tally, Dataset], **given) -> TradeOff:
    tally, loaded = data
    run = demo.folder() / "bm25.run"
    return er.sweep(run, tally, qrels=loaded.qrels, **{"resamples": 200, **given})


@given(counts=COUNTS)
def test_lambda_zero_keeps_the_run_and_lambda_one_sorts_by_bias(counts):
    tally = collection(counts)
    run = read_run(ranking(list(range(len(counts), 0, -1))))
    assert er.interpolate(run, tally, 0).equals(run)
    bias = np.abs(np.log1p([m for _, m in counts]) - np.log1p([f for f, _ in counts]))
    sorted_by_bias = [f"d{i}" for i in np.argsort(bias, kind="stable")]
    assert er.interpolate(run, tally, 1)["doc_id"].to_list() == sorted_by_bias


@given(counts=COUNTS, strength=st.floats(0, 1), candidates=st.integers(1, 9))
def test_interpolation_moves_only_candidates_and_loses_nothing(counts, strength, candidates):
    run = read_run(ranking(list(range(len(counts), 0, -1))))
    made = er.interpolate(run, collection(counts), strength, candidates=candidates)
    assert made["doc_id"].to_list()[candidates:] == run["doc_id"].to_list()[candidates:]
    assert sorted(made["doc_id"]) == sorted(run["doc_id"])
    assert (np.diff(made["score"].to_numpy()) < 0).all()


def test_interpolation_by_hand():
    # Scores 1, 0.5, 0 and biases 1, 0, 0.5 (of ln 3): at λ = ½ the middle one wins.
    tally = collection([(0, 2), (0, 0), (0, 2)])
    made = er.interpolate({"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}, tally, 0.5)
    assert made["doc_id"].to_list() == ["d1", "d0", "d2"]
    with pytest.raises(er.InputError, match="strength is 2; it must be a number from 0 to 1"):
        er.interpolate({"q": {"d0": 3.0}}, tally, 2)


@pytest.mark.parametrize("given", [{"mode": "mean"}, {"mode": "each"}])
def test_bias_falls_with_every_tighter_bound(data, given):
    curve = swept(data, **given)
    biases = [point.bias.value for point in curve]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(biases))
    assert biases[-1] < 0.1 * biases[0]
    assert curve.points[0].change is None
    for point in curve:
        assert point.bias.low <= point.bias.value <= point.bias.high


def test_interpolation_lowers_bias_though_not_at_every_step(data):
    curve = swept(data, method="interpolate")
    assert curve.points[-1].bias.value < 0.3 * curve.points[0].bias.value


def test_mean_bounds_are_met_exactly_where_queries_are_all_judged(data):
    curve = swept(data, strengths=[0.3, 0.1])
    assert [point.strength for point in curve] == [np.inf, 0.3, 0.1]
    for point in curve.points[1:]:
        assert point.bias.value <= point.strength + 1e-9


def test_no_setting_on_the_front_is_beaten(data):
    curve = swept(data)
    for point in curve:
        beaten = any(
            other.bias.value <= point.bias.value
            and other.utility.value >= point.utility.value
            and (other.bias.value < point.bias.value or other.utility.value > point.utility.value)
            for other in curve
        )
        assert point.front is not beaten


def test_the_choice_is_the_last_before_a_significant_loss(data):
    curve = swept(data)
    at = curve.points.index(curve.chosen)
    for point in curve.points[1 : at + 1]:
        assert point.change.difference >= 0 or point.p_holm >= 0.05
    if at + 1 < len(curve.points):
        following = curve.points[at + 1]
        assert following.change.difference < 0 and following.p_holm < 0.05


WORDS = {"a": "he said", "b": "she said", "c": "they said", "d": "said"}


class Fixed:
    """A mitigation that makes given runs of one query, one after the other."""

    name = "fixed"

    def __init__(self, *runs: str) -> None:
        self.runs = [{"q": {doc: -float(rank) for rank, doc in enumerate(docs)}} for docs in runs]

    def strengths(self) -> list[float]:
        return [float(place) for place in range(len(self.runs))]

    def apply(self, strength: float):
        return self.runs[int(strength)]


@pytest.mark.parametrize(
    ("runs", "at", "why"),
    [(("cb", "ab"), 0, "more bias"), (("acb", "cb", "dab"), 1, "beaten by the one before it")],
)
def test_nothing_is_chosen_that_has_more_bias_or_is_beaten(runs, at: int, why: str) -> None:
    given = {"qrels": {"q": {"b": 1}}, "bias": "abs(ARaB@1)", "resamples": 10, "tolerance": 1.0}
    found = er.sweep(tally=er.tally(WORDS), method=Fixed(*runs), **given)
    assert found.chosen is found.points[at], why


def test_nothing_is_chosen_that_cannot_be_tested(data) -> None:
    tally, loaded = data
    one = read_run(demo.folder() / "bm25.run").filter(pl.col("query_id") == pl.col("query_id").first())
    curve = er.sweep(one, tally, qrels=loaded.qrels, method="penalty", resamples=20)
    assert all(point.p_holm is None for point in curve)
    assert curve.chosen is curve.points[0]
    assert str(curve).splitlines()[-1].endswith(", 1 query")


def test_a_choice_says_where_its_bias_fell_by_no_more_than_chance(data) -> None:
    little = swept(data, method="penalty", strengths=[0.01])
    assert little.chosen is little.points[1] and little.less_bias_significant is False
    p = stats.paired(little.points[1].biases, little.points[0].biases).p
    assert little.points[1].bias_change.p == little.chosen.bias_p_holm == p and p > 0.05
    said = f"chosen: its abs(ARaB@10) is not significantly lower than at none (p = {p:.3f}, Holm)"
    over = "penalty, 60 queries"
    assert little.remarks() == [said, over] and str(little).endswith(f"\n{said}\n{over}")
    much = swept(data, strengths=[0.4])
    assert much.chosen is much.points[1] and much.less_bias_significant is True and len(much.remarks()) == 1
    nothing = swept(data, strengths=[0.2])
    assert nothing.chosen is nothing.points[0] and nothing.less_bias_significant is None
    assert nothing.remarks() == ["constrain (mean), 60 queries"]


def test_the_change_of_bias_is_that_of_the_sizes_shown_and_is_corrected(data) -> None:
    curve = swept(data, method="interpolate", strengths=[0.02, 0.2])
    frame = curve.frame()
    for point, row in zip(curve, frame.iter_rows(named=True), strict=True):
        if point is curve.points[0]:
            assert row["bias_difference"] is None and row["bias_p"] is None and row["bias_p_holm"] is None
            continue
        assert row["bias_difference"] == pytest.approx(point.bias.value - curve.points[0].bias.value)
        assert row["bias_difference_low"] < row["bias_difference"] < row["bias_difference_high"]
    assert frame["bias_p_holm"].to_list()[1:] == stats.holm(frame["bias_p"].to_list()[1:])
    assert curve.to_dict()["points"][1]["bias_p"] == frame["bias_p"][1]


def test_a_choice_that_one_query_made_says_that_its_bias_cannot_be_tested() -> None:
    given = {"qrels": {"q": {"b": 1}}, "bias": "abs(ARaB@1)", "resamples": 10, "tolerance": 1.0}
    found = er.sweep(tally=er.tally(WORDS), method=Fixed("acb", "cb"), **given)
    assert found.chosen is found.points[1] and found.to_dict()["less_bias_significant"] is False
    assert found.remarks() == [
        "chosen: whether its abs(ARaB@1) is lower by chance cannot be tested on 1 query",
        "fixed, 1 query",
    ]
    fairer = er.sweep(
        tally=er.tally(WORDS), method=Fixed("acb", "cb"), **{**given, "bias": "NFaiRR(threshold=0)@1"}
    )
    assert "whether its NFaiRR(threshold=0)@1 is higher by chance" in str(fairer)


@pytest.mark.parametrize(("method", "strength"), [("penalty", 2.0), ("interpolate", 1.0)])
def test_a_bias_of_groups_pushes_down_labelled_documents_and_no_words(method: str, strength: float) -> None:
    run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.5}}
    given = {"qrels": {"q": {"a": 1}}, "labels": {"a": "south", "c": "north", "d": "south"}}
    found = er.sweep(
        run,
        er.tally(WORDS),
        method=method,
        strengths=[strength],
        bias="AWRF(target='equal')@2",
        resamples=10,
        **given,
    )
    assert found.points[1].run["doc_id"].to_list() == ["b", "a", "c", "d"]


@pytest.mark.parametrize("method", ["penalty", "interpolate"])
def test_a_bias_that_says_nothing_of_documents_is_refused(data, method: str, monkeypatch) -> None:
    from evenrank.mitigate import sweep

    monkeypatch.setattr(sweep, "bias_by", lambda measure: None)
    with pytest.raises(er.InputError, match=f"{method} needs the bias of single documents, and ARaB@10"):
        swept(data, method=method)


@pytest.mark.parametrize("method", ["constrain", "penalty", "interpolate"])
def test_a_bias_that_reads_texts_can_be_swept_beside_a_tally(method: str) -> None:
    run, judged = {"q": {"a": 4.0, "d": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": 1}}
    given = {"docs": WORDS, "qrels": judged, "strengths": [1.0], "resamples": 10}
    found = er.sweep(run, er.tally(WORDS), method=method, bias="LIWC@1", **given)
    assert [point.bias.value for point in found] == [50.0, 0.0]


@pytest.mark.parametrize(
    ("bias", "named"),
    [
        ("ARaB@10", "abs(ARaB@10)"),
        ("Skew@10", "abs(Skew@10)"),
        ("DemographicParity@10", "abs(DemographicParity@10 - 1)"),
        ("NFaiRR@10", "NFaiRR@10"),
    ],
)
def test_a_curve_says_what_of_a_measure_it_shows(data, bias: str, named: str) -> None:
    assert swept(data, bias=bias, method="interpolate", strengths=[0.5]).bias == named


def test_a_penalty_moves_candidates_only(data) -> None:
    curve = swept(data, method="penalty", strengths=[50.0], candidates=3)
    before, after = (point.run.filter(pl.col("rank") > 3) for point in curve)
    assert after.select("query_id", "doc_id").equals(before.select("query_id", "doc_id"))
    before, after = (
        set(point.run.filter(pl.col("rank") <= 3).select("query_id", "doc_id").rows()) for point in curve
    )
    assert before == after
    assert not curve.points[0].run.equals(curve.points[1].run)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run, tally: er.penalise(run, tally, "1"), "strength is '1'; it must be a number from 0 on"),
        (
            lambda run, tally: er.interpolate(run, tally, "0.5"),
            "strength is '0.5'; it must be a number from 0",
        ),
        (
            lambda run, tally: er.interpolate(run, tally, candidates=2.5),
            "candidates is 2.5; it must be a whole",
        ),
        (lambda run, tally: er.interpolate(run, tally, missing="foo"), "missing cannot be 'foo'"),
        (lambda run, tally: er.penalise(run, tally, 1.7e308, bias="count"), r"strength is 1.7e\+308: scores"),
        (
            lambda run, tally: er.sweep(run, tally, qrels={"q": {"a": 1}}, strengths=["1"]),
            "not a finite number",
        ),
    ],
)
def test_what_no_ranking_can_be_made_with_is_refused_in_one_line(call, said: str) -> None:
    tally = er.tally({"a": "he and his son", "b": "rain"})
    with pytest.raises(er.InputError, match=said):
        call({"q": {"a": 2.0, "b": 1.0}}, tally)


def test_a_tolerance_chooses_by_what_is_lost(data):
    curve = swept(data, tolerance=0.01)
    whole = curve.points[0].utility.value
    assert curve.chosen.utility.value >= 0.99 * whole
    everything = swept(data, tolerance=1.0)
    assert everything.chosen is everything.points[-1]
    nothing = swept(data, tolerance=0.0, method="interpolate", strengths=[1.0])
    assert nothing.chosen is nothing.points[0]


def test_neutrality_rises_with_its_bound(data):
    curve = swept(data, bias="NFaiRR@10")
    values = [point.bias.value for point in curve]
    assert values == sorted(values)
    assert values[-1] > 0.95
    assert not curve.lower_is_fairer


def test_feedback_is_swept_on_an_index(data, tmp_path):
    tally, loaded = data
    index = er.index(loaded.docs, tmp_path / "index")
    given = {"index": index, "queries": loaded.queries, "resamples": 100}
    curve = er.sweep(None, tally, qrels=loaded.qrels, method="feedback", strengths=[0.5], **given)
    assert [point.strength for point in curve] == [0.0, 0.5]
    plain = er.search(index, loaded.queries, ranker="bm25+rm3")
    assert curve.points[0].run.equals(plain)


def test_the_frame_has_a_row_for_each_setting(data):
    curve = swept(data, strengths=[0.2])
    frame = curve.frame()
    assert frame["method"].to_list() == ["constrain (mean)"] * 2
    assert frame["chosen"].sum() == 1
    json.dumps(curve.to_dict(), allow_nan=False)
    assert "nDCG@10" in str(curve)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"method": "feedback"}, "give an index"),
        ({"method": "prayer"}, "method cannot be"),
        ({"bias": "nDCG@10"}, "not a measure of bias"),
        ({"strengths": []}, "at least one strength"),
        ({"bias": "FaiRR@10"}, "name the strengths"),
        ({"bias": "abs(Skew@10)"}, "cannot be bounded here"),
        ({"utility": "ARaB@10"}, "ARaB@10 is not a measure of effectiveness; write for example nDCG@10"),
        ({"utility": "abs(ARaB@10)"}, "not a measure of effectiveness"),
        ({"utility": er.NFaiRR @ 10}, "NFaiRR@10 is not a measure of effectiveness"),
        ({"tolerance": "x"}, "tolerance is 'x'; it must be a number from 0 to 1"),
        ({"tolerance": 5}, "tolerance is 5; it must be a number from 0 to 1"),
        ({"tolerance": -1}, "tolerance is -1; it must be a number from 0 to 1"),
        ({"confidence": "x"}, "confidence is 'x'; it must be a number"),
        ({"resamples": 0}, "resamples is 0; it must be a whole number from 1 on"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0 on"),
        ({"strengths": 0.5}, "strengths is 0.5; it must be a list of numbers, from weak to strong"),
    ],
)
def test_what_cannot_be_swept_is_refused(data, given, problem):
    with pytest.raises(er.InputError, match=problem):
        swept(data, **given)


INPUTS = ("run", "docs", "qrels", "queries", "background", "labels", "targets", "lexicon")
OF_TRAINING = ("train-queries", "train-qrels", "train-run")


@pytest.mark.parametrize("name", [*INPUTS, *OF_TRAINING, "tally", "vectors"])
@pytest.mark.parametrize("option", ["-o", "--chart"])
def test_the_command_overwrites_none_of_its_inputs(tmp_path, monkeypatch, capsys, name, option) -> None:
    from evenrank.cli import main

    monkeypatch.chdir(tmp_path)
    given = {"run": "bm25.run", "docs": "docs.tsv", "qrels": "qrels.txt", name: "mine.svg"}
    (tmp_path / "mine.svg").write_text("mine")
    left = {"vectors", "docs" if name == "tally" else "tally"}
    options = [f"--{each}={file}" for each, file in given.items() if each not in left]
    options += ["--set", "vectors = mine.svg"] if name == "vectors" else []
    (tmp_path / "same.svg").symlink_to("mine.svg")
    assert main(["mitigate", "sweep", *options, option, "same.svg"]) == 2
    said = capsys.readouterr().err
    assert said == "evenrank: same.svg: this is the input itself; give the output another name\n"
    assert (tmp_path / "mine.svg").read_text() == "mine"


def test_the_command_refuses_a_chart_where_the_table_goes(tmp_path, monkeypatch, capsys) -> None:
    from evenrank.cli import main

    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["mitigate", "sweep", "--run", "bm25.run", "--docs", "docs.tsv", "--qrels", "qrels.txt"]
    assert main([*given, "--chart", "a.svg", "-o", "./a.svg"]) == 2
    assert "a.svg: --chart and -o are the same file; give one of them another" in capsys.readouterr().err
    assert not (tmp_path / "a.svg").exists()


def test_the_command_says_below_the_table_what_is_not_significant(tmp_path, monkeypatch, capsys) -> None:
    from evenrank.cli import main

    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["mitigate", "sweep", "--run", "bm25.run", "--docs", "docs.tsv", "--qrels", "qrels.txt"]
    one = [*given, "--resamples", "20", "--method", "penalty", "--strengths", "0.01"]
    assert main(one) == 0
    said = "chosen: its abs(ARaB@10) is not significantly lower than at none (p = 0.504, Holm)"
    assert said in capsys.readouterr().out.splitlines()
    assert main([*one, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["less_bias_significant"] is False and told["trained"] is None
    assert told["points"][1]["bias_p"] == pytest.approx(0.504, abs=0.001)
    assert main([*one, "--format", "csv"]) == 0
    assert (
        ",bias_difference,bias_difference_low,bias_difference_high,bias_p,bias_p_holm,"
        in (capsys.readouterr().out.splitlines()[0])
    )


@pytest.mark.slow
def test_the_command_prints_the_curve(tmp_path):
    demo.copy_to(tmp_path)
    command = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
    given = ["mitigate", "sweep", "--run", "bm25.run", "--docs", "docs.tsv", "--qrels", "qrels.txt"]
    printed = {}
    for form in ("table", "json", "csv", "latex"):
        done = subprocess.run(
            [*command, *given, "--strengths", "0.3,0.1", "--format", form],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed[form] = done.stdout
    assert "chosen" in printed["table"] and "constrain (mean)" in printed["table"]
    assert [point["strength"] for point in json.loads(printed["json"])["points"]] == [None, 0.3, 0.1]
    assert printed["csv"].count("\n") == 4
    assert r"\toprule" in printed["latex"]


class Reversed:
    """A mitigation of a user's own: the list turned round, from some rank on."""

    name = "reversed"

    def __init__(self, run: pl.DataFrame) -> None:
        self.run = run

    def strengths(self) -> list[float]:
        return [0.0, 1.0, 2.0]

    def apply(self, strength: float) -> pl.DataFrame:
        turned = (
            pl.when(pl.col("rank") > 3 - strength).then(-pl.col("score")).otherwise(pl.col("score") + 100)
        )
        return self.run if strength == 0 else self.run.with_columns(score=turned).drop("rank")


def test_a_sweep_takes_any_mitigation_that_knows_its_strengths() -> None:
    docs = {"a": "he said", "b": "she said", "c": "they said", "d": "said"}
    run = read_run({"q1": {"a": 4.0, "c": 3.0, "b": 2.0, "d": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}})
    judged = {"q1": {"a": 1}, "q2": {"b": 1}}
    own = Reversed(run)
    assert isinstance(own, Mitigation)
    found = er.sweep(tally=er.tally(docs), qrels=judged, method=own, bias="abs(ARaB@2)", resamples=50)
    assert (found.method, [point.strength for point in found]) == ("reversed", [0.0, 1.0, 2.0])
    for point, made in zip(found, map(own.apply, own.strengths()), strict=True):
        assert point.run.equals(read_run(made))
        alone = er.measure(made, "ARaB@2", tally=er.tally(docs), confidence=None)["ARaB@2"]
        assert point.bias.value == pytest.approx(alone.abs)
    with pytest.raises(er.InputError, match="has its own strengths; leave them out"):
        er.sweep(tally=er.tally(docs), qrels=judged, method=own, strengths=[0.1])


@pytest.mark.parametrize("mode", ["each", "mean"])
def test_a_bound_beyond_any_bias_bounds_nothing(mode: str) -> None:
    docs = {"a": "he said", "b": "she said", "c": "they said"}
    run = {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}}
    judged = {"q1": {"a": 1}, "q2": {"b": 1}}
    found = er.sweep(run, er.tally(docs), qrels=judged, strengths=[1e308], mode=mode, resamples=50)
    before, after = found.points
    assert before.bias.value == after.bias.value
    assert before.run.equals(after.run)


@pytest.mark.parametrize("strength", [float("nan"), float("inf")])
def test_a_strength_is_a_finite_number(strength: float) -> None:
    with pytest.raises(er.InputError, match="a strength is not a finite number"):
        er.sweep({"q": {"a": 1.0}}, er.tally({"a": "he"}), qrels={"q": {"a": 1}}, strengths=[strength])


def test_sweep_and_constrain_take_the_inputs_that_they_look_at() -> None:
    docs = {"a": "he said", "b": "she said", "c": "they said"}
    run, judged = {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}, {"q": {"a": 1}}
    swept = er.sweep(run, docs=docs, qrels=judged, bias="LIWC(signed=True)@2", strengths=[1.0], resamples=10)
    fair = er.constrain(run, docs=docs, limit="abs(LIWC(signed=True)@2)<=1")
    assert swept.points[1].run["doc_id"].to_list() == fair["doc_id"].to_list()
    with pytest.raises(er.InputError, match="measured with relevance judgments; give qrels"):
        er.sweep(run, er.tally(docs))


@pytest.mark.parametrize("method", ["interpolate", "penalty", "detgreedy"])
def test_a_negative_strength_is_refused_and_not_dropped(data, method: str) -> None:
    with pytest.raises(er.InputError, match=f"strength -1 of {method}: it must be from 0"):
        swept(data, method=method, strengths=[-1.0, 0.5])


def untrained(**more):
    """A training that fails if it is begun: its files are not there."""
    from evenrank.mitigate.trained import RetrainSpec

    return RetrainSpec("knrm", "no-docs.tsv", "no-queries.tsv", "no-qrels.txt", run="no.run", **more)


@pytest.mark.parametrize(
    ("method", "strengths", "said"),
    [
        ("negatives", [0.4, -0.5], "strength -0.5 of negatives: it must be from 0 to 1"),
        ("negatives", [2.0], "strength 2 of negatives: it must be from 0 to 1"),
        ("negatives", [float("nan")], "a strength is not a finite number"),
        ("negatives", [], "name at least one strength"),
        ("adversary", [-1.0], "strength -1 of adversary: it must be from 0 on"),
        ("interpolate", [2.0], "strength 2 of interpolate: it must be from 0 to 1"),
        ("negativs", None, "method cannot be"),
    ],
)
def test_strengths_are_refused_before_training(data, method: str, strengths, said: str) -> None:
    tally, loaded = data
    run = demo.folder() / "bm25.run"
    given = {"qrels": loaded.qrels, "queries": loaded.queries, "strengths": strengths}
    training = None if method == "interpolate" else untrained()
    with pytest.raises(er.InputError, match=said):
        er.sweep(run, tally, method=method, training=training, **given)


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        (
            "adversary",
            {},
            "knrm has no vector for an adversary to read; choose one of cross-encoder, bi-encoder",
        ),
        ("consistency", {"consistency": 2.0}, "consistency sets consistency itself; leave that out"),
        ("list-bias", {"loss": "list-bias"}, "list-bias sets loss itself; leave that out of the settings"),
        ("constrain", {}, r"Skew@10 cannot be bounded here"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_training(data, method: str, given, said: str) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    tally, loaded = data
    run, training = demo.folder() / "bm25.run", untrained(settings=given)
    with pytest.raises(er.InputError, match=said):
        er.sweep(
            run,
            tally,
            method=method,
            bias="Skew@10",
            training=training,
            qrels=loaded.qrels,
            queries=loaded.queries,
        )


def test_queries_that_are_trained_on_and_other_tokens_are_refused_before_training(data, monkeypatch) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    from evenrank.mitigate.trained import RetrainSpec, TrainingMitigation

    tally, loaded = data
    run = demo.folder() / "bm25.run"
    monkeypatch.setattr(TrainingMitigation, "apply", lambda *given: pytest.fail("it was trained"))
    training = RetrainSpec("knrm", loaded.docs, loaded.queries[:40], loaded.qrels, run=run)
    given = {"qrels": loaded.qrels, "queries": loaded.queries, "training": training}
    with pytest.raises(er.InputError, match="trained on 40 of the 60 queries that they re-rank, such as"):
        er.sweep(run, tally, method="negatives", **given)
    spaced = er.tally(loaded.docs, tokenizer="whitespace")
    with pytest.raises(
        er.InputError, match="tokenizer words, and bias is counted with whitespace; leave the tok"
    ):
        er.sweep(run, spaced, method="negatives", **given)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--chart", "nodir/x.svg"], "nodir/x.svg: cannot be written: there is no folder nodir"),
        (
            ["--chart", "good.svg", "-o", "nodir/x.csv"],
            "nodir/x.csv: cannot be written: there is no folder nodir",
        ),
        (["--chart", "x.gif"], "a chart ends in"),
        (["--method", "negatives"], "negatives trains a ranker: give --train and --train-queries"),
        (["--method", "feedback"], "feedback searches again: give --index and --queries"),
    ],
)
def test_the_command_refuses_in_one_line_before_the_work(
    tmp_path, monkeypatch, capsys, more, said: str
) -> None:
    from evenrank.cli import main

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for method in ("constrain.ConstrainSweep", "rescoring.Rescoring", "feedback.Feedback"):
        monkeypatch.setattr(f"evenrank.mitigate.{method}.apply", refuse)
    given = ["mitigate", "sweep", "--run", "bm25.run", "--docs", "docs.tsv", "--qrels", "qrels.txt"]
    assert main([*given, "--resamples", "10", *more]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
    assert not (tmp_path / "good.svg").exists()


def test_strengths_of_training_rise() -> None:
    from evenrank.mitigate.trained import TrainingMitigation

    made = TrainingMitigation("negatives", untrained(), pl.DataFrame(), pl.DataFrame(), given=[1.0, 0.2, 0.2])
    assert made.strengths() == [0.0, 0.2, 1.0]


@pytest.mark.parametrize(
    ("bias", "labels", "expected"),
    [
        ("abs(ARaB(magnitude='boolean')@10)", False, "ARaB(magnitude='boolean')@10"),
        ("NFaiRR@10", False, "NFaiRR@10"),
        ("NDKL", True, "label"),
    ],
)
def test_negatives_are_drawn_by_the_bias_that_is_measured(
    tmp_path, monkeypatch, bias: str, labels: bool, expected: str
) -> None:
    pytest.importorskip("torch", reason="needs torch, of the extra 'neural'")
    from evenrank.cli import main
    from evenrank.mitigate import trained

    seen = []

    def watched(*given, **more):
        seen.append((str(more["bias"]), more["labels"]))
        return drawn(*given, **more)

    drawn = trained.negatives
    monkeypatch.setattr(trained, "negatives", watched)
    demo.copy_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    queries = (tmp_path / "queries.tsv").read_text().splitlines()
    (tmp_path / "train.tsv").write_text("\n".join(queries[:40]) + "\n")
    (tmp_path / "test.tsv").write_text("\n".join(queries[40:]) + "\n")
    test = read_queries(tmp_path / "test.tsv")["query_id"].to_list()
    run = read_run("bm25.run")
    write_run(run.filter(pl.col("query_id").is_in(test)), "test.run", name="x")
    ids = open_docs("docs.tsv").frame()["doc_id"].to_list()
    groups = "".join(f"{doc}\t{'north' if place % 3 else 'south'}\n" for place, doc in enumerate(ids))
    (tmp_path / "labels.tsv").write_text(f"doc_id\tgroup\n{groups}")
    arguments = ["mitigate", "sweep", "--run", "test.run", "--queries", "test.tsv", "--docs", "docs.tsv"]
    arguments += ["--qrels", "qrels.txt", "--train", "knrm", "--train-queries", "train.tsv"]
    arguments += ["--train-run", "bm25.run", "--method", "negatives", "--strengths", "1", "--bias", bias]
    for each in ("epochs=1", "dimension=8", "depth=10", "batch=32"):
        arguments += ["--set", each]
    arguments += ["--labels", "labels.tsv"] if labels else []
    assert main([*arguments, "--resamples", "20"]) == 0
    assert seen == [(expected, "labels.tsv" if labels else None)] * 2


def test_a_bias_that_single_documents_do_not_have_is_refused_where_it_is_needed(data) -> None:
    from evenrank.measures.base import BiasMeasure
    from evenrank.measures.inputs import Inputs
    from evenrank.mitigate.trained import TrainingMitigation

    class Whole(BiasMeasure):
        __name__ = NAME = "Whole"

    inputs = Inputs.open({"the run": demo.folder() / "bm25.run"}, tally=data[0])
    training = replace(untrained(), kind="head")
    with pytest.raises(er.InputError, match="negatives needs the bias of single documents, and Whole"):
        TrainingMitigation.measured_by(Whole(), "negatives", training, inputs, None)
    assert TrainingMitigation.measured_by(Whole(), "adversary", training, inputs, None).bias == "tf"
