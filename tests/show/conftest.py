"""An audit, and its report to look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.auditing import Audit


@pytest.fixture(scope="session")
def audit() -> Audit:
    """The audit of the demo collection."""
    here = demo.folder()
    docs, queries, qrels = er.load(here)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    return er.audit(
        runs,
        docs=docs,
        queries=queries,
        qrels=qrels,
        genders=here / "genders.tsv",
        fail_if="abs(ARaB@10)>0.1",
    )


@pytest.fixture(scope="session")
def report(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its report, with every optional section."""
    rng = np.random.default_rng(0)
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
    return audit.report(
        tmp_path_factory.mktemp("report") / "report.html",
        tradeoff=pl.DataFrame(
            {"name": ["a", "b", "c"], "bias": [0.3, -0.1, 0.2], "utility": [0.5, 0.4, 0.3]}
        ),
        rank_shift=pl.DataFrame({"before": rng.integers(1, 40, 50), "after": rng.integers(1, 40, 50)}),
        association=er.association(rng.normal(5, 1, 100), rng.normal(6, 1, 100)),
        representation=er.represent(shown, {f"job {q}": {"female": 0.5} for q in range(12)}),
    )
