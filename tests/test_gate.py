"""The gate: bounds on what is new, relative to the baseline or not, and what a build server reads of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import evenrank as er
from evenrank import stats
from evenrank.auditing import Audit
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.measures.parse import parse_condition

DOCS = {"m": "he he he", "f": "she she she", "n": "nothing", "h": "he"}
QUERIES = [f"q{i}" for i in range(12)]
QRELS = {query: {"n": 1} for query in QUERIES}


def run(*order: str, other: str = "") -> dict[str, dict[str, float]]:
    """The same list for every query; every third query begins with another document."""
    return {
        query: {
            doc: 9.0 - rank for rank, doc in enumerate([other, *order] if other and i % 3 == 0 else order)
        }
        for i, query in enumerate(QUERIES)
    }


BIASED, FAIR = run("m", "n"), run("n", "m", other="f")


def audit(*conditions: str, runs: Any = None, **more: Any) -> Audit:
    return er.audit(
        runs or {"old": BIASED, "new": FAIR},
        ["ARaB@2", "nDCG@2"],
        docs=DOCS,
        qrels=QRELS,
        fail_if=conditions,
        **more,
    )


def test_the_change_that_mends_a_bias_passes_though_the_baseline_is_beyond_the_bound() -> None:
    found = audit("abs(ARaB@2)>0.9")
    assert found.measured["old", "abs(ARaB@2)"].value > 0.9  # type: ignore[operator]
    assert found.passed and [one.run for one in found.checks] == ["new"]
    assert not audit("abs(ARaB@2)>0.9", baseline="new").passed  # the biased one is what is new
    assert "old is the baseline and exempt" in found.verdict()


def test_a_single_run_is_not_exempt() -> None:
    assert not audit("abs(ARaB@2)>0.9", runs={"old": BIASED}).passed


def test_abs_in_a_bound_is_the_mean_of_absolute_values() -> None:
    opposite = {query: {"m" if i % 2 else "f": 2.0, "n": 1.0} for i, query in enumerate(QUERIES)}
    found = audit("abs(ARaB@2)>0.1", "ARaB@2>0.1", runs={"both": opposite})
    assert [one.passed for one in found.checks] == [False, True]  # the mean itself is 0


def test_a_relative_bound_fails_where_the_one_sided_bound_of_the_change_is_beyond_the_margin() -> None:
    found = audit("nDCG@2<baseline")
    new, old = (found.measured[name, "nDCG@2"].values for name in ("new", "old"))
    end = stats.paired(new, old, confidence=0.90).low
    assert end is not None and np.mean(new - old) > end
    margin = -end
    assert audit(f"nDCG@2 < baseline - {margin + 0.001}").passed
    assert not audit(f"nDCG@2 < baseline - {margin - 0.001}").passed
    assert f"{end:+.4f}" in found.checks[0].text and "over 12 queries" in found.checks[0].text


def test_judged_by_the_point_only_the_change_itself_counts() -> None:
    change = float(
        np.mean(audit().measured["new", "nDCG@2"].values - audit().measured["old", "nDCG@2"].values)
    )
    for judging, end in (("point", change), ("interval", None)):
        found = audit(f"nDCG@2 < baseline + {change - 1e-6}", judging=judging)
        assert found.passed == (end is not None)


def test_values_are_judged_by_the_point_unless_the_interval_is_asked_for() -> None:
    value = audit().measured["new", "ARaB@2"].value
    bound = f"ARaB@2>{value + 1e-6}"  # type: ignore[operator]
    assert audit(bound).passed and audit(bound, judging="point").passed
    assert not audit(bound, judging="interval").passed


@pytest.mark.parametrize(
    ("condition", "remedy"),
    [
        ("nDCG@2 > baseline + 0.1", "write nDCG@2<baseline-0.1"),
        ("abs(ARaB@2) < baseline - 0.1", "write abs(ARaB@2)>baseline+0.1"),
        ("ARaB@2 > baseline + 0.1", "as in abs(ARaB@2)>baseline+0.02"),
    ],
)
def test_a_relative_bound_on_the_better_side_is_refused(condition: str, remedy: str) -> None:
    with pytest.raises(InputError, match=re.escape(remedy)):
        audit(condition)


def test_a_relative_bound_needs_a_baseline() -> None:
    with pytest.raises(InputError, match="give a second run"):
        audit("nDCG@2<baseline-0.1", runs={"new": FAIR})
    with pytest.raises(InputError, match="there is no baseline here"):
        parse_condition("nDCG@2<baseline-0.1")


@pytest.mark.parametrize("text", ["nDCG@2<baseline-0.1", "abs(ARaB@2)>baseline+0.02", "AP<=baseline"])
def test_relative_conditions_are_read_back(text: str) -> None:
    condition = parse_condition(text, relative=True)
    assert str(condition) == text and parse_condition(str(condition), relative=True) == condition
    assert parse_condition("AP <= baseline + 0", relative=True) == parse_condition(
        "AP<=baseline", relative=True
    )


def test_what_cannot_be_checked_fails() -> None:
    one = {"q0": BIASED["q0"]}
    found = audit("abs(ARaB@2)>baseline+0.1", runs={"old": one, "new": one})
    said = "abs(ARaB@2) of new cannot be checked: no interval from 1 query shared with old"
    assert not found.passed and said in found.failures[0]


def test_a_build_server_reads_a_test_for_each_bound_and_run() -> None:
    found = audit("abs(ARaB@2)>0.01", "nDCG@2<0.1", runs={"old": BIASED, "<new>": FAIR, "other": FAIR})
    suite = ElementTree.fromstring(found.junit().encode())
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    failed = [case for case in suite if case.find("failure") is not None]
    assert {case.get("name") for case in failed} == {"abs(ARaB@2)>0.01"}
    assert {case.get("classname") for case in failed} == {"evenrank.<new>", "evenrank.other"}


def test_a_summary_in_markdown_says_what_failed() -> None:
    text = audit("abs(ARaB@2)>0.01", runs={"old": BIASED, "a|b": FAIR}).markdown()
    assert "**Gate failed**" in text and "| failed | a\\|b | abs(ARaB@2)\\>0.01 |" in text


def test_the_command_takes_all_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, lists in (("old", BIASED), ("new", FAIR)):
        rows = (f"{q} Q0 {d} 1 {s} x\n" for q, docs in lists.items() for d, s in docs.items())
        (tmp_path / f"{name}.run").write_text("".join(rows))
    (tmp_path / "docs.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in DOCS.items()))
    runs = [str(tmp_path / "old.run"), str(tmp_path / "new.run")]
    command = ["audit", "ARaB@2", *runs, "--docs", str(tmp_path / "docs.tsv"), "--resamples", "50"]
    out = ["--markdown", str(tmp_path / "s.md"), "--junit", str(tmp_path / "j.xml")]
    assert main([*command, "--fail-if", "abs(ARaB@2) > baseline + 0.02", *out]) == 0
    assert "Gate passed" in (tmp_path / "s.md").read_text()
    assert main([*command, "--fail-if", "abs(ARaB@2) > baseline - 9", "--gate", "point", *out]) == 1
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("failures") == "1"
    assert "failed: abs(ARaB@2)>baseline-9.0: abs(ARaB@2) of new changes by -" in capfd.readouterr().err
