"""The examples for continuous integration do what the documentation says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from evenrank import demo
from evenrank.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
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


def test_the_command_of_the_action_runs(tmp_path: Path) -> None:
    text = (EXAMPLES / "bias-gate.yml").read_text()
    found = re.search(r"run: >\n((?: {10}.*\n)+)", text)
    assert found is not None
    demo.copy_to(tmp_path)
    words = shlex.split(" ".join(found[1].split("\n")))
    files = {"main.run": "bm25.run", "new.run": "dense.run"}
    known = {path.name for path in tmp_path.iterdir()} | set(files)

    def placed(word: str) -> str:
        before, equals, name = word.rpartition("=")
        return f"{before}{equals}{tmp_path / files.get(name, name)}" if name in known else word

    command = [placed(word) for word in words[1:]]
    for option in ("-o", "--markdown", "--junit"):
        command[command.index(option) + 1] = str(tmp_path / command[command.index(option) + 1])
    assert main(command) == 0
    assert (tmp_path / "audit" / "report.html").exists()
    assert (tmp_path / "summary.md").read_text().startswith("## ")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")


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
