"""The report in a browser: it draws, keeps to itself, and serves every reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import evenrank as er
from browser_fixtures import hindrances, watched

pytestmark = pytest.mark.slow


@contextmanager
def opened(browser: Any, report: Path, **how: Any) -> Iterator[tuple[Any, list[str]]]:
    """The page, drawn, and what it complained about or asked the network for."""
    with watched(browser, **how) as (page, trouble):
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-charts=drawn]")
        yield page, trouble


def test_every_chart_is_drawn_without_errors_or_requests(browser: Any, report: Path) -> None:
    with opened(browser, report) as (page, trouble):
        places = page.locator("[data-figure]")
        assert places.count() >= 15
        empty = page.evaluate(
            "[...document.querySelectorAll('[data-figure]')]"
            ".filter(p => p.querySelectorAll('svg path, svg line, svg rect').length < 5)"
            ".map(p => p.dataset.figure)"
        )
        assert empty == []
        assert trouble == []


def test_the_theme_follows_the_system_and_the_reader(browser: Any, report: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    label = "getComputedStyle(document.querySelector('[data-figure] svg text')).fill"
    with opened(browser, report, color_scheme="dark") as (page, trouble):
        dark = page.evaluate(background), page.evaluate(label)
        page.click("#theme")
        light = page.evaluate(background), page.evaluate(label)
        assert dark[0] == "rgb(15, 18, 24)" and light[0] == "rgb(246, 247, 249)"
        assert dark[1] != light[1]
        for _ in range(20):  # what one process of the browser has stored, another may see a little later
            page.reload()
            page.wait_for_selector("html[data-charts=drawn]")
            if page.evaluate(background) == light[0]:
                break
        assert page.evaluate(background) == light[0]
        assert trouble == []


def test_a_phone_needs_no_sideways_scrolling(browser: Any, report: Path) -> None:
    with opened(browser, report, viewport={"width": 320, "height": 800}) as (page, trouble):
        for width in (320, 390, 768):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(200)  # charts follow
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        for width in (768, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert trouble == []


def test_charts_follow_the_width_of_the_window(browser: Any, report: Path) -> None:
    with opened(browser, report) as (page, _):
        before = page.locator("[data-figure] svg").first.bounding_box()["width"]
        page.set_viewport_size({"width": 400, "height": 800})
        page.wait_for_timeout(400)
        assert page.locator("[data-figure] svg").first.bounding_box()["width"] < before


def test_charts_can_be_saved(browser: Any, report: Path, tmp_path: Path) -> None:
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "csv": b"measure,run,"}
    with opened(browser, report, color_scheme="dark") as (page, trouble):
        for form, start in starts.items():
            with page.expect_download() as waiting:
                page.locator(f"[data-export={form}]").first.click()
            waiting.value.save_as(tmp_path / "chart")
            content = (tmp_path / "chart").read_bytes()
            assert waiting.value.suggested_filename == f"values-lean.{form}"
            assert content.startswith(start) and b"var(--" not in content
            if form == "svg":  # a file is read away from its page
                assert b"Lean toward a group" in content and b"n = 48" in content
            if form == "pdf":  # the table of contents of the file points at its beginning
                place = int(content.rsplit(b"startxref\n", 1)[1].split()[0])
                assert content[place:].startswith(b"xref\n0 6\n")
        assert trouble == []


def test_paper_is_light_whatever_the_screen(browser: Any, report: Path) -> None:
    with opened(browser, report, color_scheme="dark") as (page, _):
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.locator("nav").is_visible()
        assert not page.locator(".tools").first.is_visible()


def test_paper_loses_nothing(browser: Any, report: Path) -> None:
    with opened(browser, report, viewport={"width": 700, "height": 1000}) as (page, _):
        folded = page.locator("details:not([open])").count()
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        cut = page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter(s => s.offsetParent)"
            ".filter(s => s.querySelector('table').scrollWidth > s.clientWidth + 2)"
            ".map(s => s.getAttribute('aria-label'))"
        )
        assert cut == []
        assert page.evaluate(
            "[...document.querySelectorAll('h2, .lead')]"
            ".every(e => getComputedStyle(e).breakAfter === 'avoid')"
        )
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details:not([open])").count() == folded


def test_symbols_of_legends_are_seen_in_the_dark(browser: Any, report: Path) -> None:
    with opened(browser, report, color_scheme="dark") as (page, _):
        unseen = page.evaluate(
            "[...document.querySelectorAll('.role-legend-symbol path')].filter(p => {"
            " const s = getComputedStyle(p), dark = c => /^rgb\\(0, 0, 0\\)$/.test(c);"
            " return (s.fill === 'none' || dark(s.fill)) && (s.stroke === 'none' || dark(s.stroke)); })"
            ".map(p => p.closest('[data-figure]').dataset.figure)"
        )
        assert unseen == []


def test_the_keyboard_reaches_the_verdict_first(browser: Any, report: Path) -> None:
    with opened(browser, report) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_a_chart_has_a_description_and_its_numbers(browser: Any, report: Path) -> None:
    with opened(browser, report) as (page, _):
        without = page.evaluate(
            "[...document.querySelectorAll('[data-figure]')].filter(p => !p.getAttribute('aria-label')"
            " || !p.closest('figure').querySelector('details table')).length"
        )
        assert without == 0


def test_axe_finds_nothing_serious(browser: Any, report: Path, axe: str) -> None:
    with opened(browser, report, color_scheme="light", bypass_csp=True) as (page, _):
        assert hindrances(page, axe) == []
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert hindrances(page, axe) == []


def test_hostile_texts_do_nothing(browser: Any, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>x</a>"
    docs = {f"d{i}{evil}": f"{word} {evil}" for i, word in enumerate(["he he", "she", "man", "woman her"])}
    ids = list(docs)
    runs = {
        evil: {f"q{i}{evil}": {ids[(i + j) % 4]: 4.0 - j for j in range(4)} for i in range(4)},
        "plain": {f"q{i}{evil}": {ids[(3 * i + j) % 4]: 4.0 - j for j in range(4)} for i in range(4)},
    }
    queries = {
        f"q{i}{evil}": f"{word} {evil}" for i, word in enumerate(["nurse", "engineer", "mother", "coach"])
    }
    found = er.audit(runs, docs=docs, queries=queries, qrels={q: {ids[0]: 1, ids[1]: 1} for q in queries})
    path = found.report(tmp_path / "evil.html", title=evil)
    with opened(browser, path) as (page, trouble):
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        for place in page.locator("[data-figure] svg").all()[:6]:  # tooltips hold texts too
            box = place.bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.locator("img, iframe, object").count() == 0
        assert page.locator("a[href^=javascript]").count() == 0
        assert evil in page.inner_text("h1")
        assert trouble == []
