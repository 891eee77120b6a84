"""The documentation builds as a site without a warning, loads nothing from elsewhere, and lists all names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import evenrank
from browser_fixtures import watched

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("mkdocs", "material", "mkdocstrings_handlers"):
        if find_spec(package) is None:
            pytest.skip("needs the site's tools: pip install 'evenrank[site]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]*rel=\"?(?:stylesheet|preconnect|icon)[^>]*href=\"?([^\s\">]+)", page.read_text()
        )
        assert not [address for address in loaded if address.startswith(("http", "//"))], page


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    missing = [
        name
        for name, home in evenrank._HOME.items()
        if home != "ir_measures" and not re.search(rf">\s*{name}\s*<", text)
    ]
    assert missing == []


def test_references_are_plain_names(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        assert ":func:" not in page.read_text() and ":class:" not in page.read_text(), page


def test_search_works_from_the_disk_and_a_sample_report_is_there(site: Path) -> None:
    assert (
        site / "search" / "search_index.js"
    ).is_file()  # a page on the disk may load a script, but no JSON
    report = (site / "sample-report.html").read_text()
    assert "bm25 leans male in its top 10 results" in report
    assert 'href="sample-report.html"' in (site / "audit.html").read_text()


def test_a_search_from_the_disk_finds_pages(site: Path, browser: Any) -> None:
    with watched(browser) as (page, trouble):
        page.goto((site / "measures" / "gsr.html").as_uri())
        page.click(".md-search__input")
        page.keyboard.type("bundle", delay=20)
        page.wait_for_selector(".md-search-result__link")
        found = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
        assert any("auditors.html" in link for link in found)
        assert trouble == []
