"""The audit: what it measures, compares, explains and says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import demo, stats
from evenrank.auditing import Audit
from evenrank.auditing.passages import Segment, segments
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.measures.base import interpretation, meaning, preferred_direction, short
from evenrank.text.matcher import Matcher

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    here = demo.folder()
    docs, queries, qrels = er.load(here)
    return {"docs": docs, "queries": queries, "qrels": qrels, "genders": here / "genders.tsv"}


@pytest.fixture(scope="module")
def runs() -> dict[str, Path]:
    return {name: demo.folder() / f"{name}.run" for name in ("bm25", "dense")}


@pytest.fixture(scope="module")
def audit(runs: dict[str, Path], inputs: dict[str, Any]) -> Audit:
    return er.audit(runs, **inputs, fail_if="abs(ARaB@10)>0.1")


def names(audit: Audit) -> set[str]:
    return {measure.NAME for measure in audit.measures}


def test_all_measures_that_the_inputs_allow_are_there(audit: Audit) -> None:
    expected = {"nDCG", "RR", "AP", "RaB", "ARaB", "abs(ARaB@10)", "NFaiRR", "GSR", "LIWC"}
    assert expected == names(audit)


def test_without_judgments_there_is_no_effectiveness(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    found = er.audit(runs, docs=inputs["docs"], queries=inputs["queries"], confidence=None)
    assert {"nDCG", "RR", "AP"}.isdisjoint(names(found))
    assert "GSR@10" in map(str, found.measures)


def test_a_tally_alone_gives_what_needs_no_text(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    found = er.audit(runs["bm25"], tally=er.tally(inputs["docs"]), confidence=None)
    assert names(found) == {"RaB", "ARaB", "abs(ARaB@10)", "NFaiRR"}
    assert found.baseline is None and not found.comparisons
    assert all(not query.passages for query in found.leaning)


def test_labels_and_targets_bring_group_measures(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    tally = er.tally(inputs["docs"])
    label = pl.when(pl.col("female") > pl.col("male")).then(pl.lit("female")).otherwise(pl.lit("male"))
    labels = tally.frame.select("doc_id", group=label)
    targets = {query: {"female": 0.5} for query in inputs["queries"]["query_id"]}
    found = er.audit(runs, tally=tally, labels=labels, targets=targets, confidence=None)
    assert {"AWRF", "NDKL", "rKL", "MB"} <= names(found)
    assert set(found.representation) == {"bm25", "dense"}


def test_nothing_to_measure_is_an_error(runs: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="nothing to measure"):
        er.audit(runs)


def test_values_are_those_of_measure(audit: Audit, runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    measured = er.measure(runs, ["ARaB@10", "nDCG@10"], **inputs)
    for run in runs:
        for name in ("ARaB@10", "nDCG@10"):
            one, other = audit.measured[run, name], measured[run, name]
            assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


def test_comparisons_are_paired_and_corrected_over_all_of_them(audit: Audit) -> None:
    found = {str(one.measure): one for one in audit.comparisons}
    assert set(found) == set(map(str, audit.measures))
    bm25, dense = (audit.measured[run, "ARaB@10"].per_query() for run in ("bm25", "dense"))
    expected = stats.paired(list(dense.values()), [bm25[query] for query in dense])
    assert found["ARaB@10"].comparison == expected
    assert [one.p_holm for one in audit.comparisons] == stats.holm(
        [c.comparison.p for c in audit.comparisons]
    )


def test_another_baseline_turns_the_differences(
    audit: Audit, runs: dict[str, Path], inputs: dict[str, Any]
) -> None:
    other = er.audit(runs, ["ARaB@10"], **inputs, baseline="dense")
    there = next(one for one in audit.comparisons if str(one.measure) == "ARaB@10").comparison
    back = other.comparisons[0].comparison
    assert back.difference == pytest.approx(-there.difference) and back.p == pytest.approx(there.p)


def test_an_unknown_baseline_is_an_error_that_lists_the_runs(runs: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="'bert' is none of the runs; one of bm25, dense"):
        er.audit(runs, baseline="bert")


def test_passages_of_a_query_add_up_to_its_value(
    audit: Audit, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.auditing import passages
    from evenrank.measures.inputs import Inputs

    monkeypatch.setattr(passages, "PASSAGES", 10)
    opened = Inputs.open({name: demo.folder() / f"{name}.run" for name in audit.runs}, docs=inputs["docs"])
    found = [audit.measured[name, "ARaB@10"] for name in audit.runs]
    everything = passages.leaning_queries(found, opened)
    assert len(everything) == 20
    for query in everything:
        assert sum(p.contribution for p in query.passages) == pytest.approx(query.value)


def test_attribution_adds_up_to_the_value(audit: Audit) -> None:
    for run in audit.runs:
        words = audit.attributions[run].words
        assert words is not None
        assert words["contribution"].sum() == pytest.approx(audit.measured[run, "ARaB@10"].value)


def test_curves_pass_through_the_measured_values(audit: Audit) -> None:
    for run in audit.runs:
        for name in ("RaB", "ARaB", "NFaiRR"):
            at_ten = audit.curves.filter(run=run, measure=name, cutoff=10)["value"].item()
            assert at_ten == pytest.approx(audit.measured[run, f"{name}@10"].value)


def test_the_verdict_claims_a_lean_only_where_the_interval_excludes_zero(audit: Audit) -> None:
    assert audit.verdict().startswith(
        "bm25 leans male in its top 10 results; cannot tell whether dense leans."
    )
    assert audit.measured["bm25", "ARaB@10"].low > 0 > audit.measured["dense", "ARaB@10"].low  # type: ignore[operator]


def test_without_an_interval_nothing_is_said_about_one() -> None:
    docs = {"a": "he he", "b": "she said", "c": "nothing"}
    one = er.audit({"q": {"a": 2.0, "b": 1.0}}, ["ARaB@2"], docs=docs).verdict()
    assert one.startswith("Not judged: whether the top 2 results of run lean (fewer than two queries).")
    assert "run is not judged (fewer than two queries)" in one
    two = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 2.0}}
    other = er.audit(two, ["ARaB@2"], docs=docs, confidence=None).verdict()
    assert other.startswith("Not judged: whether the top 2 results of run lean (no interval was computed).")
    for said in (one, other):
        assert "Cannot tell" not in said and "interval includes 0" not in said


def test_a_change_is_told_with_interval_effect_and_corrected_p(audit: Audit) -> None:
    assert (
        "nDCG@10 +0.242 (95% interval +0.193 to +0.292, d_z +1.27, corrected p < 0.001, 60 queries)"
        in audit.verdict()
    )


def test_a_mean_that_changes_sides_is_not_called_less_biased() -> None:
    docs = {"a": "he he he", "b": "she she", "c": "nothing"}
    queries = [f"q{i}" for i in range(12)]
    before = {query: {"a": 2.0, "c": 1.0 - 0.1 * (i % 3)} for i, query in enumerate(queries)}
    after = {query: {"b": 2.0, "c" if i % 3 else "a": 1.0} for i, query in enumerate(queries)}
    found = er.audit({"before": before, "after": after}, ["ARaB@2"], docs=docs)
    assert "after leans more female than before: ARaB@2" in found.verdict()
    assert "biased" not in found.verdict()


def test_a_background_that_lacks_queries_leaves_only_nfairr_out() -> None:
    docs = {"a": "he he", "b": "she said", "c": "nothing"}
    runs = {"old": {"q1": {"a": 2.0, "c": 1.0}}, "new": {"q1": {"a": 1.0}, "q2": {"b": 2.0, "a": 1.0}}}
    found = er.audit(runs, docs=docs, confidence=None)
    assert "NFaiRR" not in names(found) and "ARaB" in names(found)
    assert any(warning.startswith("NFaiRR was left out: query q2") for warning in found.warnings)


def test_swapping_the_groups_swaps_the_verdict(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    words = er.lexicon("rekabsaz2020").groups
    swapped = {"female": words["male"], "male": words["female"]}
    found = er.audit(runs, ["ARaB@10"], **inputs, lexicon=swapped)
    assert found.verdict().startswith("bm25 leans female in its top 10 results")


def test_ties_that_decide_are_said(inputs: dict[str, Any]) -> None:
    docs = {"a": "he said", "b": "she said"}
    found = er.audit({"q": {"a": 1.0, "b": 1.0}, "r": {"a": 1.0, "b": 1.0}}, ["ARaB@1"], docs=docs)
    assert "In 100% of the queries, scores are tied" in found.verdict()


def test_a_bound_that_is_exceeded_names_run_and_value(audit: Audit) -> None:
    assert audit.failures == ("abs(ARaB@10)>0.1: abs(ARaB@10) of dense is 0.4646",)
    assert not audit.passed


def test_a_measure_that_the_texts_do_not_allow_is_left_out_and_said() -> None:
    docs = {"a": "zzzqq he", "b": "xxyyq she"}
    found = er.audit({"q1": {"a": 2.0, "b": 1.0}}, docs=docs, queries={"q1": "qqqq"}, confidence=None)
    assert "GSR" not in names(found)
    assert any(warning.startswith("GSR was left out: no word of any query") for warning in found.warnings)


def test_the_table_marks_what_differs(audit: Audit) -> None:
    text = str(audit)
    assert "0.899†" in text and "+0.071" in text and "[-0.089, +0.226]" in text
    assert "† differs from bm25" in text


def test_frame_csv_and_latex_hold_every_run_and_measure(audit: Audit) -> None:
    frame = audit.frame()
    assert frame.height == len(audit.runs) * len(audit.measures)
    assert frame.filter(run="bm25")["p_holm"].null_count() == len(audit.measures)
    assert audit.csv().count("\n") == frame.height + 1
    assert audit.latex().count(r"\\") == 1 + 2 * len(audit.runs)


def test_json_keeps_to_its_schema(audit: Audit) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "audit-schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(audit.to_json(per_query=True)), schema)


def test_selection_rates_keep_to_the_schema(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "audit-schema.json").read_text())
    labels = {doc_id: "ab"[n % 2] for n, doc_id in enumerate(inputs["docs"].frame()["doc_id"])}
    found = er.audit(runs, ["ARaB@10"], **inputs, labels=labels, selected=5)
    jsonschema.validate(json.loads(found.to_json()), schema)
    assert found.selection is not None and found.selection.at == 5
    with pytest.raises(er.InputError, match="selection rates need the groups of documents"):
        er.audit(runs, ["ARaB@10"], **inputs, selected=5)


def test_the_same_input_gives_the_same_bytes(runs: dict[str, Path], inputs: dict[str, Any]) -> None:
    first, second = (er.audit(runs, ["ARaB@10", "nDCG@10"], **inputs) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_three_groups_are_each_compared_with_the_first() -> None:
    lexicon = {"north": ["snow"], "south": ["sun"], "west": ["rain"]}
    docs = {"a": "snow sun", "b": "rain rain", "c": "sun"}
    found = er.audit({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, docs=docs, lexicon=lexicon, confidence=None)
    assert [str(m) for m in found.measures[:2]] == [
        "ARaB(of='south',against='north')@10",
        "ARaB(of='west',against='north')@10",
    ]


@given(st.text(max_size=80), st.sampled_from([None, 5, 20, 1000]))
def test_segments_of_a_text_are_the_text(text: str, longest: int | None) -> None:
    matcher = Matcher("rekabsaz2020")
    given_text = f"{text} she {text}"
    pieces = segments([given_text], matcher, longest)[0]
    joined = "".join(piece.text for piece in pieces)
    if longest is None or len(given_text.encode()) <= longest:
        assert joined == given_text
        assert Segment("she", "female") in pieces
    else:
        assert joined.removeprefix("… ").removesuffix(" …") in given_text


def test_an_excerpt_begins_shortly_before_the_first_marked_word() -> None:
    text = "word " * 300 + "she said " + "more " * 300
    (pieces,) = segments([text], Matcher("rekabsaz2020"), 200)
    assert pieces[0].text.startswith("… ") or pieces[0] == Segment("… ", None)
    assert Segment("she", "female") in pieces
    assert sum(len(piece.text) for piece in pieces) < 220


def test_measures_say_what_they_mean() -> None:
    for name in ("ARaB@10", "NFaiRR@10", "GSR", "LIWC@10", "nDCG@10", "DemographicParity@10", "Skew@10"):
        measure = er.parse(name if name != "Skew@10" else "Skew(group='female')@10")
        assert meaning(measure, ("female", "male")) and interpretation(measure, ("female", "male"))
        assert preferred_direction(measure) in ("zero", "high", "low", "one")
    assert short(er.parse("ARaB(magnitude='boolean')@10")) == "ARaB@10 boolean"
    paired = "ARaB(magnitude='boolean',of='young',against='old')@10"
    assert short(er.parse(f"abs({paired})")) == "abs(ARaB@10 boolean, young − old)"


def test_the_command_writes_report_json_and_tables(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    here = demo.folder()
    command = ["audit", str(here / "bm25.run"), "--run", f"new={here / 'dense.run'}", "ARaB@10", "nDCG@10"]
    given_files = ["--docs", str(here / "docs.tsv"), "--qrels", str(here / "qrels.txt")]
    given_files += ["--genders", str(here / "genders.tsv"), "--queries", str(here / "queries.tsv")]
    code = main([*command, *given_files, "--fail-if", "abs(ARaB@10)>0.1", "-o", str(tmp_path / "out")])
    out, err = capfd.readouterr()
    assert code == 1
    assert "new" in out and "bm25 (baseline)" in out
    assert "failed: abs(ARaB@10)>0.1: abs(ARaB@10) of new is" in err
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"report.html", "audit.json", "values.csv", "values.tex"}
    assert main([*command, *given_files, "--fail-if", "abs(ARaB@10)>0.9", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["verdict"]["passed"] is True


def test_predicted_genders_are_called_guesses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.tsv").write_text("q1\tbest female doctor in town\nq2\tweather in the alps\n")
    (tmp_path / "docs.tsv").write_text("a\the said\nb\tshe said\n")
    (tmp_path / "a.run").write_text(
        "".join(f"{q} Q0 {d} 1 {s} x\n" for q in ("q1", "q2") for d, s in ("a2", "b1"))
    )
    command = ["audit", str(tmp_path / "a.run"), "ARaB@2", "--docs", str(tmp_path / "docs.tsv")]
    command += ["--queries", str(tmp_path / "queries.tsv"), "--genders", "predict"]
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert any("are guesses of the shipped classifier" in warning for warning in found["warnings"])
    assert found["runs"][0]["measures"][0]["queries"] == 1  # the neutral one


def test_a_file_in_the_place_of_the_folder_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    command = ["audit", str(demo.folder() / "bm25.run"), "--docs", str(demo.folder() / "docs.tsv")]
    assert main([*command, "-o", str(tmp_path / "out")]) == 2
    assert (tmp_path / "out").read_text() == "mine"


def test_values_on_real_runs_agree_with_measure(shared: Path) -> None:
    docs, queries, qrels = er.load(shared / "data" / "time")
    runs = {name: shared / "runs" / f"time.{name}.run" for name in ("bm25", "bm25.rm3", "qld")}
    found = er.audit(runs, docs=docs, queries=queries, qrels=qrels, confidence=None)
    single = er.measure(runs, "NFaiRR@10", docs=docs, background=runs["bm25"], confidence=None)
    for run in runs:
        assert found.measured[run, "NFaiRR@10"].value == single[run, "NFaiRR@10"].value
    assert np.isfinite(found.curves["value"].to_numpy()).all()


def test_a_run_without_any_query_that_leans_has_a_report() -> None:
    docs = {"a": "he said", "b": "she said", "c": "it"}
    even, other = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 2.0, "c": 1.0}}
    found = er.audit({"even": even}, ["RaB(magnitude='boolean')@2"], docs=docs)
    assert found.leaning == () and "Verdict" in found.page()
    both = er.audit({"even": even, "other": other}, ["RaB(magnitude='boolean')@2"], docs=docs)
    assert {one.run for one in both.leaning} == {"other"}
