"""A measure of one's own says what it is in its own file, and every part of the package believes it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.cli import main
from evenrank.errors import InputError
from evenrank.measures.base import (
    BiasMeasure,
    LinearMeasure,
    Param,
    PerQuery,
    RankedLists,
    interpretation,
    meaning,
    preferred_direction,
    register,
)
from evenrank.measures.parse import load_entry_points
from evenrank.measures.rank_bias import rab_weights
from evenrank.mitigate.constrain import rerank

HERE = demo.folder()
SOURCE = Path(er.__file__).parent
RUNS = {name: HERE / f"{name}.run" for name in ("bm25", "dense")}


class _Untouched(LinearMeasure):
    """Share of the top t documents that hold no word of any group: 1 is best."""

    __name__ = NAME = "Untouched"
    SHORT_DESC = "Share of the top t documents that name no group."
    PREFERRED = "high"
    BEST = 1.0
    MEANING = "The share of the top {k} documents that name no group."
    SUPPORTED_PARAMS: dict[str, Any] = {"cutoff": Param(dtype=int, required=True, minimum=1)}  # noqa: RUF012
    weights = staticmethod(rab_weights)

    def values(self, lists: RankedLists) -> Any:
        return lists.counts().sum(axis=1) == 0


class _Crooked(BiasMeasure):
    """The same, squared: no sum over documents."""

    __name__ = NAME = "Crooked"
    SHORT_DESC = "Square of the share of the top t documents that name no group."
    PREFERRED = "high"
    SUPPORTED_PARAMS = _Untouched.SUPPORTED_PARAMS

    def per_query(self, lists: RankedLists) -> PerQuery:
        named = lists.counts().sum(axis=1) == 0
        return PerQuery(lists.weigh(rab_weights, self["cutoff"]).total(1.0 * named) ** 2)


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    register(_Untouched())
    register(_Crooked())
    yield
    del ir_measures.measures.registry["Untouched"], ir_measures.measures.registry["Crooked"]


@pytest.fixture(scope="module")
def tally() -> er.Tally:
    return er.tally(HERE / "docs.tsv")


def test_where_higher_is_fairer_it_is_said_so() -> None:
    own = er.parse("Untouched@10")
    assert preferred_direction(own) == "high"
    assert interpretation(own) == "higher is fairer"
    assert meaning(own) == "The share of the top 10 documents that name no group."


def test_a_sum_over_documents_is_what_per_query_would_have_given(tally: er.Tally) -> None:
    found = er.measure(RUNS["bm25"], ["Untouched@10", "Crooked@10"], tally=tally, confidence=None)
    plain, squared = found["Untouched@10"], found["Crooked@10"]
    assert 0 < plain.value < 1
    assert np.allclose(plain.values**2, squared.values)


def test_the_verdict_and_the_report_read_a_measure_as_it_reads_itself(
    tmp_path: Path, tally: er.Tally
) -> None:
    found = er.audit(RUNS, ["Untouched@10", "Crooked@10"], tally=tally, seed=1)
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Higher is fairer." in page and "Lower is fairer." not in page
    assert "The share of the top 10 documents that name no group." in page
    assert found.headline == er.parse("Untouched@10")
    said = " ".join(finding.text for finding in found.findings)
    assert re.search(r"dense (is fairer|is less fair) than bm25|do not differ clearly", said)
    assert "less biased" not in said and "more biased" not in said


def test_explain_tells_what_adds_up_to_the_value(capfd: pytest.CaptureFixture[str]) -> None:
    files = ["--run", str(RUNS["bm25"]), "--docs", str(HERE / "docs.tsv")]
    assert main(["measure", "Untouched@10", *files, "--explain", "--format", "json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)["runs"][0]["measures"]
    assert found["attribution"]["documents"] and "words" not in found["attribution"]
    whole = er.measure(RUNS["bm25"], "Untouched@10", docs=HERE / "docs.tsv", explain=True)["Untouched@10"]
    for frame in (whole.attribution.documents, whole.attribution.queries):
        assert frame["contribution"].sum() == pytest.approx(whole.value)


def test_ties_are_averaged_over() -> None:
    run = {"q": {"a": 1.0, "b": 1.0}}
    docs = {"a": "he said", "b": "nothing"}
    assert er.measure(run, "Untouched@1", docs=docs, ties="expected")["Untouched@1"].value == 0.5


@pytest.mark.parametrize("mode", ["each", "mean"])
def test_a_sum_over_documents_can_be_a_limit(tally: er.Tally, mode: Any) -> None:
    limit, plain = "Untouched@10>=0.5", er.parse("Untouched@10")
    fair = er.constrain(RUNS["bm25"], tally, limit=limit, mode=mode)
    found = er.measure(pl.DataFrame(fair), plain, tally=tally, confidence=None)[plain]
    kept = fair.report.filter(pl.col("status") != "infeasible")["query_id"].to_list()
    assert kept
    if mode == "each":
        assert all(found.per_query()[query] >= 0.5 - 1e-9 for query in kept)
    else:
        assert found.value >= 0.5 - 1e-9


def test_the_command_takes_it_as_a_limit(tmp_path: Path) -> None:
    out = tmp_path / "fair.run"
    given = ["--run", str(RUNS["bm25"]), "--docs", str(HERE / "docs.tsv"), "-o", str(out)]
    assert main(["mitigate", "constrain", *given, "--limit", "Untouched@5>=0.4"]) == 0
    assert out.exists()


def test_a_single_list_is_re_ranked_within_it() -> None:
    counts = {"female": [0, 0, 2], "male": [3, 1, 0]}
    counts = {name: [*values, 0] for name, values in counts.items()}
    assert 3 in rerank([9.0, 8.0, 7.0, 6.0], counts, limit="Untouched@2>=0.5").order[:2]


def test_what_is_no_sum_over_documents_is_refused_as_a_limit_with_what_can_be_one(tally: er.Tally) -> None:
    with pytest.raises(InputError, match=r"Crooked cannot be a limit; RaB, ARaB and other sums"):
        er.constrain(RUNS["bm25"], tally, limit="Crooked@10>=0.5")


def test_a_sweep_knows_which_way_is_fairer(tally: er.Tally) -> None:
    found = er.sweep(RUNS["bm25"], tally, qrels=HERE / "qrels.txt", bias="Untouched@10", resamples=50)
    assert not found.lower_is_fairer
    values = [point.bias.value for point in found]
    assert values[-1] > values[0]
    assert [point.strength for point in found] == sorted(point.strength for point in found)


def test_the_gate_reads_it(tally: er.Tally, capfd: pytest.CaptureFixture[str]) -> None:
    files = ["--run", str(RUNS["bm25"]), "--docs", str(HERE / "docs.tsv"), "--format", "csv"]
    assert main(["measure", "Untouched@10", *files, "--fail-if", "Untouched@10<0.99"]) == 1
    assert "failed: Untouched@10<0.99" in capfd.readouterr().err


def test_the_monitor_and_the_server_read_it_as_it_reads_itself() -> None:
    pytest.importorskip("fastapi")
    from evenrank.server.evaluating import Text, evaluate
    from evenrank.text.matcher import Matcher

    seen = evaluate(
        Matcher("rekabsaz2020"), [Text("", "he said"), Text("", "nothing at all")], measures=["Untouched@10"]
    )
    own = next(value for value in seen.values() if value.measure == "Untouched@10")
    assert own.value == 0.5
    assert own.reading == "higher is fairer"


class _Silent(_Untouched):
    __name__ = NAME = "Silent"
    PREFERRED = None


class _Puzzling(_Untouched):
    __name__ = NAME = "Puzzling"
    MEANING = "The share of {whom}."


@pytest.mark.parametrize(
    ("measure", "why"), [(_Silent, "where good values lie"), (_Puzzling, "MEANING may hold")]
)
def test_a_measure_that_does_not_say_what_it_is_is_refused_at_once(
    measure: type[BiasMeasure], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        register(measure())
    assert measure.NAME not in ir_measures.measures.registry


def test_every_measure_of_the_package_says_where_good_values_lie() -> None:
    ours = [m for m in ir_measures.measures.registry.values() if isinstance(m, BiasMeasure)]
    assert len(ours) > 15
    assert {preferred_direction(m) for m in ours} == {"zero", "high", "low", "one"}
    assert preferred_direction(er.nDCG @ 10) == "high"


def _classes(of: type[Any]) -> set[str]:
    return {of.__name__} | {name for each in of.__subclasses__() for name in _classes(each)}


def test_what_a_measure_is_is_asked_of_the_measure_and_nowhere_else() -> None:
    """No test for a class of measures and no comparison of a measure's name outside measures/."""
    classes = "|".join(sorted(_classes(BiasMeasure) | {"StereotypeReinforcement", "DictionaryBias"}))
    tests = re.compile(
        rf"(isinstance|issubclass)\([^()]*\b({classes})\b|type\(\w+\) is"
        r"|\.NAME\s*(==|!=|in\b|not in\b)|(==|!=|\bin)\s*\w+(\.\w+)*\.NAME\b"
    )
    outside = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] != "measures"]
    found = [
        f"{file.relative_to(SOURCE)}:{number}: {line.strip()}"
        for file in outside
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if tests.search(line)
    ]
    assert len(outside) > 100
    assert not found, "\n".join(found)


def test_a_second_measure_of_the_same_name_is_refused() -> None:
    class Other(_Untouched):
        """Another one, of the same name."""

    with pytest.raises(InputError, match=r"two measures called Untouched: .*_Untouched and .*Other; rename"):
        register(Other())
    assert type(ir_measures.measures.registry["Untouched"]) is _Untouched
    with pytest.raises(InputError, match="two measures called nDCG"):

        class Taken(_Untouched):
            __name__ = NAME = "nDCG"

        register(Taken())


def _example(folder: Path) -> Path:
    """The measure of CONTRIBUTING.md, as a file."""
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(\"\"\"Touched:.*?)```", text, re.DOTALL)
    assert code
    path = folder / "touched.py"
    path.write_text(code[1], encoding="utf-8")
    return path


@pytest.mark.parametrize("first", [True, False])
def test_a_plugin_works_on_the_command_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], first: bool
) -> None:
    plugin = ["--plugin", str(_example(tmp_path))]
    command = ["measure", "Touched@10", "--run", str(RUNS["dense"]), "--docs", str(HERE / "docs.tsv")]
    try:
        assert main([*plugin, *command] if first else [*command, *plugin]) == 0
        assert "Touched@10" in capfd.readouterr().out
    finally:
        ir_measures.measures.registry.pop("Touched", None)
        sys.modules.pop("evenrank_plugin_touched", None)


def test_a_plugin_that_does_not_run_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    assert main(["--plugin", str(tmp_path / "broken.py"), "measure", "ARaB@10"]) == 2
    assert "the plugin does not run: ZeroDivisionError" in capfd.readouterr().err
    assert main([f"--plugin={tmp_path / 'missing.py'}", "measure", "ARaB@10"]) == 2
    assert "no such Python file" in capfd.readouterr().err


def test_installed_packages_bring_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _example(tmp_path)
    facts = tmp_path / "touched-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: touched\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[evenrank.measures]\ntouched = touched\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_entry_points.cache_clear()
    try:
        assert str(er.parse("Touched@3")) == "Touched@3"
    finally:
        ir_measures.measures.registry.pop("Touched", None)
        sys.modules.pop("touched", None)
        load_entry_points.cache_clear()
