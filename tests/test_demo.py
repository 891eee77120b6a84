"""The demo does everything, offline, and leaves a report to read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenrank as er
from evenrank import demo

COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder that the command made, one with an odd name, and what the command said."""
    folder = tmp_path_factory.mktemp("demo") / "d[" / "e]"
    command = [*COMMAND, "demo", "-o", str(folder)]
    environment = {**os.environ, "EVENRANK_CACHE": str(folder.parent.parent / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.slow
def test_it_leaves_all_that_the_next_steps_need(told: tuple[Path, object]) -> None:
    folder, _ = told
    names = {path.name for path in folder.iterdir()}
    assert names >= {"index", "runs", "report.html", "audit.json", "tally.parquet"}
    assert names >= {path.name for path in demo.folder().iterdir()}
    assert er.Index.open(folder / "index").documents == 386
    assert er.load(folder).queries.height == 60
    runs = {path.stem for path in (folder / "runs").iterdir()}
    assert runs == {"bm25", "bm25+rm3", "dense", "bm25-constrained", "bm25+rm3-aware"}


def test_it_tells_the_story_with_its_numbers_and_names_the_report(told: tuple[Path, object]) -> None:
    folder, done = told
    shown = done.stdout  # type: ignore[attr-defined]
    measured = {
        each["run"]: each["measures"] for each in json.loads((folder / "audit.json").read_text())["runs"]
    }
    for run, measures in measured.items():
        bias = next(each for each in measures if each["measure"] == "ARaB@10")
        assert re.search(
            rf"^{re.escape(run)} +{re.escape(format(bias['value'], '+.3f'))} ", shown, re.MULTILINE
        )
    assert str(folder / "report.html") in shown.splitlines()[-1]
    assert "audit 5 runs" in done.stderr  # type: ignore[attr-defined]


def test_its_limit_holds_for_every_query(told: tuple[Path, object]) -> None:
    folder, _ = told
    found = er.measure(folder / "runs" / "bm25-constrained.run", "ARaB@10", tally=folder / "tally.parquet")
    assert max(abs(value) for value in found["ARaB@10"].per_query().values()) <= 0.1 + 1e-9


SECTIONS = {
    *("verdict", "values", "cutoff", "change", "words", "passages", "stereotype", "gendered", "tradeoff"),
    *("rankshift", "representation", "disparity", "psychology", "association", "reading", "provenance"),
}


def test_the_report_has_every_section(told: tuple[Path, object]) -> None:
    folder, _ = told
    text = (folder / "report.html").read_text()
    assert set(re.findall(r'<section id="(\w+)"', text)) == SECTIONS
    assert len(text) < 3_000_000


def test_a_folder_that_cannot_be_made_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [*COMMAND, "demo", "-o", str(tmp_path / "file" / "d")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
