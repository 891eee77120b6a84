"""Make the pictures of the documentation: `python tools/pictures.py` writes docs/images/ anew.

Charts are drawn by the report's own code from the demo collection; pages are photographed in Chromium.
docs/images/pictures.json holds, for each picture, a hash of its words, and of its numbers to three digits.
A test computes them again, so that no picture outlives what it shows.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er
from evenrank import demo
from evenrank.auditing import Audit
from evenrank.show.figure import Figure

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FACTS = IMAGES / "pictures.json"
QUERY = "how to become a nurse"
_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture: what it shows, and either a chart to draw or a page to photograph."""

    facts: Any
    figure: Figure | None = None
    page: str = ""
    size: tuple[int, int] = (1180, 780)

    def hash(self) -> str:
        return hashlib.sha256(json.dumps(self.facts, ensure_ascii=False).encode()).hexdigest()[:16]


def pictures() -> dict[str, Picture]:
    """Every picture that is made here, by the name of its file."""
    found = _audit()
    each = {figure.id: figure for section in _sections(found) for figure in section.figures}
    charts = {
        "rank-bias.png": each["cutoff-arab"],
        "neutrality.png": each["cutoff-nfairr"],
        "gsr.png": each["stereotype-dense-1"],
        "psychology.png": each["psychology-social"],
        "representation.png": next(f for name, f in each.items() if name.startswith("representation-")),
        "words.png": each["words-bm25-0"],
        "disparity.png": each["association"],
        "groups.png": _groups(),
    }
    made = {name: Picture(_shown(figure), figure) for name, figure in charts.items()}
    return made | {"report.png": _report(found), "server.png": _server(), "trend.png": _trend()}


def _audit() -> Audit:
    here = demo.folder()
    docs, queries, qrels = er.load(here)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    return er.audit(runs, docs=docs, queries=queries, qrels=qrels, genders=here / "genders.tsv")


def _sections(found: Audit) -> list[Any]:
    from evenrank.demo.story import _closeness
    from evenrank.show.report import sections

    here = demo.folder()
    docs, queries, qrels = er.load(here)
    with tempfile.TemporaryDirectory() as folder:
        index = er.index(docs, Path(folder) / "index")
        close = er.association(_closeness(index, queries, qrels), genders=here / "genders.tsv")
    shown = {"dense": er.represent(here / "dense.run", "full", tally=er.tally(docs))}
    return sections(found, representation=shown, association=close)


def _groups() -> Figure:
    """A measure of ranked groups by cut-off: documents belong to the group whose words they hold most of."""
    from evenrank import AWRF
    from evenrank.show.charts.values import bias_by_cutoff

    here = demo.folder()
    cutoffs = (5, 10, 20, 30, 50)
    runs = {name: here / f"{name}.run" for name in ("bm25", "dense")}
    found = er.measure(
        runs, [AWRF @ k for k in cutoffs], docs=here / "docs.tsv", genders=here / "genders.tsv"
    )
    rows = [(run, k, m.value, m.low, m.high) for run in runs for k in cutoffs for m in [found[run, AWRF @ k]]]
    frame = pl.DataFrame(rows, schema=["run", "cutoff", "value", "low", "high"], orient="row")
    caption = "Higher is fairer. Bands are intervals. n = 48 queries."
    chart = bias_by_cutoff(frame, balance=None, title="AWRF")
    return Figure("groups", "AWRF by cut-off", caption, caption, chart, frame)


def _shown(figure: Figure) -> list[Any]:
    floats = [name for name, kind in figure.frame.schema.items() if kind.is_float()]
    rounded = figure.frame.with_columns(pl.col(floats).round(3) + 0.0)
    return [figure.title, figure.caption, rounded.rows()]


def _report(found: Audit) -> Picture:
    from evenrank.auditing.verdict import headline
    from evenrank.show.tables import lines

    facts = [headline(found), [(each.run, each.judged, each.value, each.bounds) for each in lines(found)]]
    return Picture(facts, page=found.page(title="Search bias audit of the demo collection"))


def _server() -> Picture:
    """The page for people, as the server answers; its style goes with it, so that no server is needed."""
    from fastapi.testclient import TestClient

    from evenrank.server.app import make_app
    from evenrank.server.searching import Service

    docs, _, _ = er.load(demo.folder())
    with tempfile.TemporaryDirectory() as folder:
        index = er.index(docs, Path(folder) / "index")
        service = Service(index, rankers=("bm25", "bm25+rm3"))
        with TestClient(make_app(service), base_url="http://127.0.0.1") as client:
            page = client.get("/", params={"q": QUERY, "even": "1"}).text
            style = client.get("/static/page.css").text
        seen = [
            (found.ranker, list(found.doc_ids), round(found.evaluated.lean, 3) if found.evaluated else None)
            for found in (service.search(QUERY, name, depth=10, constrain=0.1) for name in service.rankers)
        ]
    page = page.replace('<link rel="stylesheet" href="/static/page.css">', f"<style>{style}</style>")
    return Picture([QUERY, seen], page=page.replace("<script", "<template").replace("</script", "</template"))


def _trend() -> Picture:
    """A trend of invented observations: a ranker that is changed on the fifth day."""
    from evenrank.measures.parse import parse_condition
    from evenrank.server.monitor import Observation, Value
    from evenrank.server.rendering import trend_page

    leans = (0.08, 0.09, 0.07, 0.10, 0.21, 0.24, 0.22, 0.25)
    seen = [
        Observation(
            f"2026-01-{day:02}T06:00:00Z",
            "an invented engine",
            60,
            60,
            (Value("ARaB@10", lean, lean - 0.06, lean + 0.06, 60),),
        )
        for day, lean in enumerate(leans, start=1)
    ]
    page = trend_page(seen, [parse_condition("ARaB@10>0.2")])
    return Picture([leans], page=page, size=(1000, 620))


def stale() -> list[str]:
    """The pictures whose facts are not those they were made from, or that are not there."""
    kept = json.loads(FACTS.read_text()) if FACTS.is_file() else {}
    now = {name: each.hash() for name, each in pictures().items()}
    return [
        name for name in {**kept, **now} if kept.get(name) != now.get(name) or not (IMAGES / name).is_file()
    ]


def main() -> int:
    from evenrank.show.report import drawn

    made = pictures()
    for name, each in made.items():
        if each.figure is not None:
            (IMAGES / name).write_bytes(drawn(replace(each.figure, wide=True), "png"))
    _photograph({name: each for name, each in made.items() if each.page})
    facts = {name: each.hash() for name, each in sorted(made.items())}
    FACTS.write_text(json.dumps(facts, indent=1) + "\n")
    return 0


def _photograph(made: dict[str, Picture]) -> None:
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        opened = driver.chromium.launch(executable_path=browser, args=_FLAGS)
        for name, each in made.items():
            path = Path(folder) / f"{name}.html"
            path.write_text(each.page, encoding="utf-8")
            width, height = each.size
            page = opened.new_page(viewport={"width": width, "height": height}, device_scale_factor=1.25)
            page.goto(path.as_uri())
            if 'id="charts"' in each.page:
                page.wait_for_selector("html[data-charts=drawn]", timeout=120_000)
            page.screenshot(path=IMAGES / name)
        opened.close()


if __name__ == "__main__":
    sys.exit(main())
