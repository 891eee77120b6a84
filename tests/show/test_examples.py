"""The examples for continuous integration do what the documentation says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from evenrank import demo
from evenrank.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
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
    assert "abs(ARaB@10)>0.1 for bm25, where ARaB@10 is +0.2026" in done.stdout
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
    command[command.index("-o") + 1] = str(tmp_path / "audit")
    assert main(command) == 0
    assert (tmp_path / "audit" / "report.html").exists()
