"""Fixtures of tests that look at pages: a browser, what finds hindrances for readers, and a watched page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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


@contextmanager
def watched(browser: Any, own: str = "file:", **how: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it complained about or asked of others than its own address."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
    page, trouble = context.new_page(), list[str]()
    page.set_default_timeout(60_000)
    page.on(
        "console",
        lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda r: trouble.append(r.url) if not r.url.startswith((own, "blob:", "data:", "file:")) else None,
    )
    page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
    yield page, trouble
    context.close()


def hindrances(page: Any, axe: str) -> list[Any]:
    """What axe-core calls serious or critical, with everything on the page unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes[0].html]))")
    return [violation for violation in found if violation[0] in ("serious", "critical")]
