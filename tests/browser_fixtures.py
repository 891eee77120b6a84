"""Fixtures of tests that look at pages: a browser, what finds hindrances for readers, and a watched page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; without either, the tests that need it are skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = _chromium()
    if chromium is None:
        pytest.skip("needs a Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which finds what hinders readers; from npm, else the test is skipped."""
    folder = _from_npm("axe-core@4", tmp_path_factory.mktemp("axe"))
    return (folder / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="session")
def lighthouse(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """What Lighthouse would have mended on a page: for readers, by good practice, for who finds it."""
    folder = _from_npm("lighthouse@12", tmp_path_factory.mktemp("lighthouse"))
    chromium = str(_chromium())

    def unmended(address: str) -> list[str]:
        command = [
            *("node", str(folder / "lighthouse" / "cli" / "index.js"), address),
            *("--quiet", "--output=json", "--only-categories=accessibility,best-practices,seo"),
            f"--chrome-flags={' '.join(_FLAGS)}",
        ]
        asked = subprocess.run(
            command, env={**os.environ, "CHROME_PATH": chromium}, capture_output=True, timeout=300, check=True
        )
        found = json.loads(asked.stdout)
        weights = {
            each["id"]: each["weight"]
            for category in found["categories"].values()
            for each in category["auditRefs"]
        }
        return [
            f"{name}: {audit['title']}"
            for name, audit in found["audits"].items()
            if weights.get(name)
            and audit["score"] is not None
            and audit["score"] < 1
            and name != "robots-txt"  # it is asked for from within the page, which may ask for nothing
        ]

    return unmended


def _from_npm(package: str, folder: Path) -> Path:
    """Where a package of npm was installed; the test is skipped where it cannot be."""
    npm = shutil.which("npm")
    name = package.partition("@")[0]
    if npm is None:
        pytest.skip(f"needs npm, for {name}")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", package]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=240)
    except (subprocess.SubprocessError, OSError):
        pytest.skip(f"{name} cannot be installed: no network?")
    return folder / "node_modules"


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
