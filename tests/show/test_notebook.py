"""What a notebook shows of results, how they print, and what charts and frames they give."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import altair as alt
import polars as pl
import pytest

import evenrank as er
from evenrank import demo

DEMO = demo.folder()
RUNS = {"bm25": DEMO / "bm25.run", "dense": DEMO / "dense.run"}
GIVEN = {"docs": DEMO / "docs.tsv", "qrels": DEMO / "qrels.txt", "genders": DEMO / "genders.tsv"}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    measured = er.measure(RUNS, ["ARaB@10", "nDCG@10"], resamples=50, **GIVEN)
    audit = er.audit(RUNS, ["ARaB@10", "nDCG@10"], resamples=50, **GIVEN)
    tally = er.tally(GIVEN["docs"])
    fair = er.constrain(RUNS["dense"], tally, limit="abs(ARaB@10)<=0.1")
    swept = er.sweep(
        RUNS["dense"], tally, qrels=GIVEN["qrels"], method="interpolate", strengths=[0.0, 0.5], resamples=50
    )
    lists = {"q1": {"a": 3.0, "b": 2.0}, "q2": {"b": 2.0, "c": 1.0}}
    groups = {"a": "male", "b": "female", "c": "male"}
    halves = {query: {"female": 0.5, "male": 0.5} for query in lists}
    shown = er.represent(lists, halves, labels=groups, at=2)
    served = er.disparity(RUNS, GIVEN["qrels"], GIVEN["genders"])
    return {
        "measured": measured, "audit": audit, "fair": fair, "swept": swept, "shown": shown, "served": served,
    }  # fmt: skip


class Page(HTMLParser):
    """Every element is closed where it should be, and nothing comes from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        assert tag not in ("script", "link", "iframe", "style", "img")
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(result: Any) -> Page:
    found = Page()
    found.feed(result._repr_html_())
    assert not found.open
    return found


NAMES = ("measured", "audit", "fair", "swept", "shown", "served")


@pytest.mark.parametrize("name", NAMES)
def test_a_result_prints_as_it_is_represented(results: dict[str, Any], name: str) -> None:
    assert repr(results[name]) == str(results[name])
    assert "object at 0x" not in repr(results[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_every_result_without_scripts_or_colours_of_its_own(
    results: dict[str, Any], name: str
) -> None:
    html = results[name]._repr_html_()
    assert len(html) < 60_000 and "#010203" not in html and "#010204" not in html
    assert not re.search(r"(?<!-)\bcolor:\s*#|background(-color)?:\s*#", html)
    assert "<table" in html and page(results[name]).text.strip()


def test_an_audit_begins_with_its_verdict_and_shows_each_lean(results: dict[str, Any]) -> None:
    found = page(results["audit"])
    assert found.text.startswith("bm25 leans male in its top 10 results; cannot tell whether dense leans.")
    assert results["audit"]._repr_html_().count('aria-label="bm25: +0.2') == 1
    assert "† differs from bm25" in found.text


def test_names_are_shown_as_they_are() -> None:
    nasty = "<script>alert(1)</script>&"
    found = er.measure({nasty: {"q": {"d": 1.0}}}, "ARaB@10", docs={"d": "he"}, confidence=None)
    assert "<script" not in found._repr_html_() and nasty in page(found).text


@pytest.mark.parametrize("name", ["measured", "audit", "fair", "swept", "shown"])
def test_a_chart_is_an_altair_object_that_draws(results: dict[str, Any], name: str) -> None:
    chart = results[name].chart()
    assert isinstance(chart, alt.TopLevelMixin)
    assert chart.to_dict()["config"]["params"]


def test_frames_are_there_in_pandas_too(results: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    for name in NAMES:
        assert isinstance(results[name].to_pandas(), pd.DataFrame)
    measured = results["measured"]
    assert measured.to_pandas()["value"].tolist() == measured.frame()["value"].to_list()


def test_one_measurement_prints_as_one_line(results: dict[str, Any]) -> None:
    shown = repr(results["measured"]["bm25", "ARaB@10"])
    assert re.fullmatch(r"bm25  ARaB@10  \+0\.\d{4} \[.*\]  48 queries", shown)


def test_every_pair_is_compared_once_and_corrected_together(results: dict[str, Any]) -> None:
    pairs = er.compare(results["measured"])
    assert [(p.run, p.baseline, str(p.measure)) for p in pairs] == [
        ("bm25", "dense", "ARaB@10"),
        ("bm25", "dense", "nDCG@10"),
    ]
    one = er.audit(RUNS, ["ARaB@10", "nDCG@10"], resamples=50, **GIVEN).comparisons
    for pair, compared in zip(pairs, one, strict=True):
        assert pair.comparison.difference == pytest.approx(-compared.comparison.difference)
        assert pair.p_holm == pytest.approx(compared.p_holm)
    assert pairs.to_dict()["comparisons"][1]["significant"] is True


def test_a_long_frame_prints_its_first_rows() -> None:
    from evenrank.show.grid import frame_grid

    shown = frame_grid(pl.DataFrame({"n": range(20), "name": ["x"] * 20}), rows=3).text()
    assert shown.splitlines()[0].split() == ["name", "n"] and shown.splitlines()[-1].startswith("… 17 more")
