"""The examples for continuous integration do what the documentation says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from evenrank import demo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
START = "import sys; from evenrank.cli import main; sys.exit(main())"
SETTINGS = """
docs = "docs.tsv"
genders = "genders.tsv"
measures = ["ARaB@10"]
fail_if = ["abs(ARaB@10)>0.1", "abs(ARaB@10)>0.9"]
report = "report.html"

[runs]
bm25 = "bm25.run"
"""


def test_the_pytest_plugin_makes_a_test_of_each_condition(tmp_path: Path) -> None:
    demo.copy_to(tmp_path)
    shutil.copy(EXAMPLES / "pytest_evenrank.py", tmp_path)
    (tmp_path / "search.audit.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_evenrank", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "abs(ARaB@10) of bm25 is 0.4858" in done.stdout
    assert (tmp_path / "report.html").exists()


def test_a_gate_can_predict_the_genders_of_its_queries(tmp_path: Path) -> None:
    demo.copy_to(tmp_path)
    shutil.copy(EXAMPLES / "pytest_evenrank.py", tmp_path)
    predicted = SETTINGS.replace('"genders.tsv"', '"predict"\nqueries = "queries.tsv"')
    (tmp_path / "search.audit.toml").write_text(predicted)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_evenrank", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr


def git(folder: Path, *arguments: str) -> None:
    told = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *told, *arguments], cwd=folder, check=True, capture_output=True)


def pull_request(folder: Path, *, main: str, new: str) -> Path:
    """A checkout of a change to a project: the demo's files, and as new.run this one instead of that."""
    origin, checkout = folder / "origin", folder / "checkout"
    demo.copy_to(origin)
    shutil.copy(origin / main, origin / "new.run")
    git(origin, "init", "-q")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "main")
    git(folder, "clone", "-q", str(origin), str(checkout))
    shutil.copy(origin / new, checkout / "new.run")
    return checkout


def acted(checkout: Path) -> tuple[int, dict[str, str]]:
    """Run the steps of the Action as a runner does; the code of the first that failed, and what was kept.

    `pip` is asked for nothing but the address; `evenrank` is this package. After a failure only the steps
    marked `always()` run.
    """
    tools = checkout.parent / "tools"
    tools.mkdir()
    for name, line in {
        "pip": "test $# = 2",
        "evenrank": f"exec '{sys.executable}' -c '{START}' \"$@\"",
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    summary = checkout.parent / "summary.md"
    given = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_BASE_REF": "main"}
    failed, kept = 0, {}
    for step in yaml.safe_load((EXAMPLES / "bias-gate.yml").read_text())["jobs"]["audit"]["steps"]:
        if failed and step.get("if") != "always()":
            continue
        if "run" in step:
            script = re.sub(r"\$\{\{.*?\}\}", f"git+file://{ROOT}", step["run"])
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
            done = subprocess.run(
                command, cwd=checkout, env={**given, "GITHUB_STEP_SUMMARY": str(summary)}, check=False
            )
            failed = failed or done.returncode
        elif "path" in step.get("with", {}):
            kept = {
                str(path.relative_to(checkout)): path.read_text()
                for each in step["with"]["path"].split()
                for path in [checkout / each, *(checkout / each).rglob("*")]
                if path.is_file()
            }
    return failed, {"summary": summary.read_text(), **kept}


def test_the_action_lets_a_change_pass_that_leans_less(tmp_path: Path) -> None:
    failed, kept = acted(pull_request(tmp_path, main="bm25.run", new="dense.run"))
    assert failed == 0 and kept["summary"].startswith("## ")
    assert {"audit/report.html", "audit/audit.json", "junit.xml"} <= set(kept)
    suite = ElementTree.fromstring(kept["junit.xml"])
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")


def test_the_action_stops_a_change_that_leans_more_and_keeps_what_was_found(tmp_path: Path) -> None:
    failed, kept = acted(pull_request(tmp_path, main="dense.run", new="bm25.run"))
    assert failed == 1 and kept["summary"].startswith("## ")
    assert {"audit/report.html", "audit/audit.json", "junit.xml"} <= set(kept)
    assert int(ElementTree.fromstring(kept["junit.xml"]).get("failures", 0)) >= 1


def test_what_the_action_installs_is_a_git_address_of_this_project(tmp_path: Path) -> None:
    text = (EXAMPLES / "bias-gate.yml").read_text()
    (line,) = re.findall(r"run: pip install (.*)", text)
    assert "git+" in line and "pip install evenrank\n" not in text
    address = re.sub(r"\$\{\{.*?\}\}", f"git+file://{ROOT}", shlex.split(line)[0])
    assert address == f"git+file://{ROOT}"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", address.removeprefix("git+"), tmp_path / "c"], check=True
    )
    project = tomllib.loads((tmp_path / "c" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "evenrank" and "evenrank" in project["scripts"]
