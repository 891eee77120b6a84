"""The same input gives the same bytes on the same machine, and values equal to 1e-9 on any processor.

NumPy, OpenBLAS and numba choose their code by what the processor can do, and all three can be told to do
without. Two processes work as this machine would by itself, one as a machine of 2008 with a single core.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from tests.recorded.record import differences

from evenrank.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
INTEL = platform.machine() in ("x86_64", "AMD64")
FOUND = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def processors(folder: Path) -> dict[str, dict[str, str]]:
    """Environments that act like processors, by name."""
    return {
        "this": {},
        "again": {},
        "old": {
            **({"OPENBLAS_CORETYPE": "Nehalem"} if INTEL else {}),
            **({"NPY_DISABLE_CPU_FEATURES": " ".join(FOUND)} if FOUND else {}),
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": str(folder / "numba"),
            "OPENBLAS_NUM_THREADS": "1",
            "POLARS_MAX_THREADS": "1",
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
        },
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """What each processor made of the demo; all work at the same time."""
    folder = tmp_path_factory.mktemp("processors")
    running = {}
    for name, settings in processors(folder).items():
        (folder / name).mkdir()
        path = os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )  # for this file's imports
        own = {"EVENRANK_CACHE": str(folder / name / "cache"), "PYTHONPATH": path}
        environment = {**os.environ, **own, **settings}
        command = [sys.executable, __file__, "made"]
        running[name] = subprocess.Popen(
            command, cwd=folder / name, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    for name, process in running.items():
        _, said = process.communicate()
        assert process.returncode == 0, f"{name}: {said.decode()}"
    yield {name: folder / name / "made" for name in running}


def test_the_same_machine_makes_the_same_bytes(made: dict[str, Path]) -> None:
    here, there = (
        {path.relative_to(made[name]): path.read_bytes() for path in made[name].rglob("*") if path.is_file()}
        for name in ("this", "again")
    )
    assert {*here} == {*there}
    assert {Path("demo/tally.parquet"), Path("demo/audit.json"), Path("demo/report.html")} <= {*here}
    assert [str(name) for name in here if here[name] != there[name]] == []


def test_another_processor_ranks_alike_and_measures_the_same_values(made: dict[str, Path]) -> None:
    runs = sorted(path.relative_to(made["this"]) for path in made["this"].rglob("*.run"))
    assert len(runs) > 5
    for run in runs:
        here, there = ((made[name] / run).read_text().splitlines() for name in ("this", "old"))
        assert [line.split()[:4] for line in here] == [line.split()[:4] for line in there], run
    here, there = (json.loads((made[name] / "measured.json").read_bytes()) for name in ("this", "old"))
    for given in (here, there):
        given.pop("inputs", None)
    assert list(differences(here["runs"], there["runs"])) == []


MEASURES = (
    "RaB@10", "ARaB@10", "ARaB(magnitude='boolean')@10", "ARaB(magnitude='tf-words')@5",
    "RaB(magnitude='length')@20", "FaiRR@10", "NFaiRR@10", "GSR@10", "LIWC@10", "LIWC(signed=True)@10",
    "rND@20", "rKL@20", "rRD@20", "Skew@10", "NDKL@10", "Exposure@10", "DemographicParity@10", "AWRF@10",
    "nDCG@10", "RR@10",
)  # fmt: skip


def make(folder: Path) -> None:
    """The demo, and beside it the rankers and measures that its story leaves out."""
    here = folder / "demo"
    run("demo", "-o", here, "--no-open")
    index, queries = ("--index", here / "index"), ("--queries", here / "queries.tsv")
    for ranker in ("qld", "tfidf", "qld+rm3"):
        run("search", *index, *queries, "--ranker", ranker, "--depth", 50, "-o", folder / f"{ranker}.run")
    thesis = ("--set", "estimator=thesis", "--tag", "thesis")
    run("search", *index, *queries, "--ranker", "bm25+rm3", *thesis, "-o", folder / "thesis.run")
    given = ("--docs", here / "docs.tsv", *queries, "--qrels", here / "qrels.txt")
    runs = ("--run", here / "runs" / "bm25.run", "--run", here / "dense.run")
    shown = ("--format", "json", "--per-query", "--explain")
    run("measure", *MEASURES, *runs, *given, *shown, "-o", folder / "measured.json")
    limits = ("--limit", "abs(ARaB@10)<=0.05", "--limit", "NFaiRR@10>=0.9")
    tally = ("--tally", here / "tally.parquet")
    run(
        "mitigate", "constrain", "--run", here / "bm25.run", *tally, *limits, "-o", folder / "constrained.run"
    )


def run(*arguments: Any) -> None:
    """A command of evenrank, in this process; it has to succeed."""
    if code := main([str(argument) for argument in arguments]):
        raise SystemExit(f"evenrank {' '.join(map(str, arguments))} ended with {code}")


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    make(Path(sys.argv[1]))
