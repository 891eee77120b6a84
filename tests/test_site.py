"""The documentation builds as a site without a warning, loads nothing from elsewhere, and lists all names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import evenrank

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
    missing = [name for name in evenrank._HOME if not re.search(rf">\s*{name}\s*<", text)]
    assert missing == []


def test_references_are_plain_names(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        assert ":func:" not in page.read_text() and ":class:" not in page.read_text(), page
