"""The analyses that go with GSR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evenrank as er
from evenrank import GSR
from evenrank.measures.gsr.measure import most_gendered
from evenrank.vectors import genderedness


def test_most_gendered_queries_show_the_words_that_count() -> None:
    queries = {"1": "the nurse", "2": "plumber's boss", "3": "the of", "4": "women in parliaments"}
    female, male = most_gendered(queries, count=1)
    assert [query.query_id for query in (*female, *male)] == ["1", "2"]
    assert female[0].words[0] == ("the", None)
    assert female[0].words[1] == ("nurse", pytest.approx(genderedness()["nurse"]))
    assert male[0].g < 0 < female[0].g


@pytest.fixture(scope="module")
def time(shared: Path) -> dict:
    data = er.load(shared / "data" / "time")
    return {"docs": data.docs, "queries": data.queries, "qrels": data.qrels}


@pytest.fixture(scope="module")
def runs(shared: Path) -> dict[str, Path]:
    return {name: shared / "runs" / f"time.{name}.run" for name in ("bm25", "qld", "bm25.rm3")}


def test_the_points_of_a_scatter_lie_around_the_line(time: dict, runs: dict[str, Path]) -> None:
    found = er.measure(runs["bm25"], GSR, **time, confidence=None)[GSR]
    slope, intercept = np.polyfit(found.points["x"], found.points["y"], 1)
    assert found.line is not None
    assert (found.line.slope, found.line.intercept) == pytest.approx((slope, intercept))
    perfect = found.baselines["perfect"].line
    assert perfect is not None and perfect.slope == pytest.approx(found.baselines["perfect"].value)
    assert found.points["contribution"].mean() == pytest.approx(found.value)
