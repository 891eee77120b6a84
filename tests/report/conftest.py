"""A browser, and reports to look at with it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import demo

_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; without either, the tests that need it are skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs a Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo collection, with every optional section."""
    here, rng = demo.folder(), np.random.default_rng(0)
    docs, queries, qrels = er.load(here)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    found = er.audit(
        runs,
        docs=docs,
        queries=queries,
        qrels=qrels,
        genders=here / "genders.tsv",
        fail_if="abs(ARaB@10)>0.1",
    )
    shown = [
        {
            "query": f"job {q}",
            "doc_id": f"{q}-{i}",
            "rank": i + 1,
            "group": "female" if rng.random() < 0.4 else "male",
        }
        for q in range(12)
        for i in range(12)
    ]
    return found.report(
        tmp_path_factory.mktemp("report") / "report.html",
        tradeoff=pl.DataFrame(
            {"name": ["a", "b", "c"], "bias": [0.3, -0.1, 0.2], "utility": [0.5, 0.4, 0.3]}
        ),
        rank_shift=pl.DataFrame({"before": rng.integers(1, 40, 50), "after": rng.integers(1, 40, 50)}),
        association=er.association(rng.normal(5, 1, 100), rng.normal(6, 1, 100)),
        representation=er.represent(shown, {f"job {q}": {"female": 0.5} for q in range(12)}),
    )


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which finds what hinders readers; from npm, else the test is skipped."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("axe-core cannot be installed: no network?")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
