"""The server in a browser: search, switch, upload; light, dark, phone; no script errors, no other host."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import evenrank as er
from browser_fixtures import hindrances, watched
from evenrank import demo
from evenrank.server.monitor import Observation, Value
from evenrank.server.rendering import trend_page

pytestmark = pytest.mark.slow


def test_search_and_switch(browser: Any, address: str) -> None:
    with watched(browser, address) as (page, trouble):
        page.goto(address)
        page.fill("#q", "nurse")
        page.press("#q", "Enter")
        page.wait_for_selector(".hits")
        assert page.locator(".list").count() == 2 and page.locator(".hits li").count() == 20
        assert page.locator("mark.female").count() and page.locator("mark.male").count()
        before = page.locator(".figure-number").first.inner_text()
        page.locator("#even").focus()
        page.keyboard.press("Space")  # the switch works by keyboard
        page.wait_for_selector(".note")
        assert "even=1" in page.url
        after = page.locator(".figure-number").first.inner_text()
        assert after.startswith("+0.0") and not before.startswith("+0.0")
        assert page.locator(".chip.moved").count() and page.locator(".meter .was").count() == 2
        page.locator("#limit").focus()
        page.keyboard.press("Home")  # the tightest limit
        page.locator(".note", has_text="±0.00").first.wait_for()
        assert "bm25" in page.inner_text("#status")
        page.select_option("select[name=right]", "tfidf")
        page.locator(".list h2", has_text="tfidf").wait_for()
        page.reload()
        assert page.locator("#even").is_checked() and page.input_value("#limit") == "0"
        assert trouble == []


def test_everything_works_without_script(browser: Any, address: str) -> None:
    with watched(browser, address, java_script_enabled=False, color_scheme="dark") as (page, trouble):
        page.goto(address)
        page.fill("#q", "football coach")
        page.check("#even", force=True)
        page.click("text=Search >> nth=-1")
        assert page.locator(".hits li").count() == 20 and page.locator(".note").count() == 2
        assert trouble == []


def test_an_upload_becomes_a_report(browser: Any, address: str, tmp_path: Path) -> None:
    lines = (demo.folder() / "bm25.run").read_text().splitlines(keepends=True)
    run = tmp_path / "mine.run"
    run.write_text("".join(line for line in lines if line.split()[0] <= "q12"))
    with watched(browser, address) as (page, trouble):
        page.goto(f"{address}/audit")
        page.set_input_files("#run", tmp_path / "mine.run")
        page.set_input_files("#qrels", demo.folder() / "qrels.txt")
        page.click("button[type=submit]")
        page.wait_for_selector("html[data-charts=drawn]", timeout=120_000)
        assert "/audits/" in page.url and "Audit of mine" in page.inner_text("h1")
        assert trouble == []


def test_a_wrong_upload_is_explained(browser: Any, address: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with watched(browser, address) as (page, _):
        page.goto(f"{address}/audit")
        page.set_input_files("#run", tmp_path / "notes.txt")
        page.click("button[type=submit]")
        assert "notes.txt" in page.inner_text("[role=alert]")


def test_the_theme_follows_the_system_and_the_reader(browser: Any, address: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with watched(browser, address, color_scheme="dark") as (page, trouble):
        page.goto(f"{address}/?q=nurse")
        dark = page.evaluate(background)
        page.click("#theme")
        light = page.evaluate(background)
        assert dark != light
        page.goto(f"{address}/audit")
        assert page.evaluate(background) == light  # remembered
        assert trouble == []


def test_a_phone_needs_no_sideways_scrolling(browser: Any, address: str) -> None:
    with watched(browser, address, viewport={"width": 320, "height": 800}) as (page, trouble):
        for path in ("/", "/?q=nurse&even=1", "/audit", "/docs"):
            page.goto(address + path)
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            for width in (320, 390, 768):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        assert trouble == []


@pytest.fixture(scope="module")
def trend(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("trend") / "trend.html"
    seen = [
        Observation(f"2026-01-0{day}T06:00:00Z", "shop", 9, 9, (Value("ARaB@10", day / 10, 0.0, 0.9, 9),))
        for day in range(1, 9)
    ]
    path.write_text(trend_page([*seen, Observation("2026-01-09T06:00:00Z", "shop", 9, 0, problem="down")]))
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, address: str, trend: str, axe: str, scheme: str) -> None:
    with watched(browser, address, color_scheme=scheme, bypass_csp=True) as (page, _):
        for path in ("/", "/?q=nurse&even=1", "/audit", "/docs", "trend"):
            page.goto(trend if path == "trend" else address + path)
            assert hindrances(page, axe) == [], path


def test_lighthouse_finds_nothing_to_mend(lighthouse: Any, address: str, tmp_path: Path) -> None:
    assert lighthouse(f"{address}/?q=nurse&even=1") == []
    audit = er.audit(demo.folder() / "bm25.run", ["ARaB@10"], docs=demo.folder() / "docs.tsv")
    audit.report(tmp_path / "report.html")
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    Thread(target=served.serve_forever, daemon=True).start()
    try:
        assert lighthouse(f"http://127.0.0.1:{served.server_port}/report.html") == []
    finally:
        served.shutdown()
        served.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *what: Any) -> None:
        """Says nothing."""


def test_a_phone_shows_both_leans_one_list_and_the_newest_observation(
    browser: Any, address: str, trend: str
) -> None:
    with watched(browser, address, viewport={"width": 390, "height": 800}) as (page, trouble):
        page.goto(f"{address}/?q=nurse")
        left, right = page.locator(".list[data-side=left]"), page.locator(".list[data-side=right]")
        assert page.locator(".tabs button").count() == 2 and page.locator(".tabs").is_visible()
        assert left.is_visible() and not right.is_visible()
        page.click(".tabs [data-show=right]")
        assert right.is_visible() and not left.is_visible()
        page.goto(trend)
        drawn = "document.querySelector('.draw').getBoundingClientRect().right"
        newest = "document.querySelector('.draw svg').getBoundingClientRect().right"
        assert abs(page.evaluate(drawn) - page.evaluate(newest)) < 2
        assert trouble == []
    with watched(browser, address) as (page, _):
        page.goto(f"{address}/?q=nurse")
        assert not page.locator(".tabs").is_visible()


def test_the_trend_draws_in_the_colours_of_the_page(browser: Any, address: str, trend: str) -> None:
    with watched(browser, address, color_scheme="dark") as (page, trouble):
        page.goto(trend)
        label = "getComputedStyle(document.querySelector('svg text')).fill"
        assert page.evaluate(label) == "rgb(162, 173, 189)"
        assert trouble == []


def test_the_keyboard_reaches_the_content_first(browser: Any, address: str) -> None:
    with watched(browser, address) as (page, _):
        page.goto(f"{address}/?q=nurse")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
