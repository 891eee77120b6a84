"""GSR as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenrank import demo

DEMO = demo.folder()
COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]


def evenrank(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    queries = [line.split("\t")[0] for line in (DEMO / "queries.tsv").read_text().splitlines()]
    docs = [line.split("\t")[0] for line in (DEMO / "docs.tsv").read_text().splitlines()]
    path = folder / "any.run"
    path.write_text(
        "".join(
            f"{q} Q0 {docs[(7 * i + j) % len(docs)]} {j + 1} {10 - j} any\n"
            for i, q in enumerate(queries)
            for j in range(5)
        )
    )
    return path


def test_measure_needs_no_vectors(run: Path) -> None:
    texts = ("--run", run, "--docs", DEMO / "docs.tsv", "--queries", DEMO / "queries.tsv")
    done = evenrank("measure", "GSR@5", *texts, "--format", "json", "--per-query")
    (found,) = json.loads(done.stdout)["runs"][0]["measures"]
    assert {
        "value",
        "low",
        "high",
        "queries",
        "left_out",
        "parts",
        "r",
        "p",
        "error",
        "random",
    } <= found.keys()
    assert set(found["parts"]) == {"stereotypical", "counter-stereotypical"}
    assert len(found["per_query"]) == found["queries"]
    shown = evenrank("measure", "GSR@5", *texts).stdout
    assert "(random)" in shown and "stereotypical" in shown


def test_what_is_lacking_is_said_in_one_line(run: Path) -> None:
    texts = ("--docs", DEMO / "docs.tsv", "--queries", DEMO / "queries.tsv")
    for arguments, message in (
        (
            ("GSR", "--run", run, *texts),
            "GSR needs relevance judgments; give --qrels, or a depth, as in GSR@10",
        ),
        (("GSR@5", "--run", run, *texts[:2]), "GSR@5 needs the text of the queries; give --queries"),
        (
            ("GSR@5", "--run", run, "--tally", "t", *texts[2:]),
            "GSR@5 needs the text of the documents; give --docs",
        ),
        (("GSR@5", "--run", run, *texts, "--vectors", "no-such-file"), "no-such-file"),
    ):
        (line,) = evenrank("measure", *arguments, code=2).stderr.strip().splitlines()
        assert message in line
