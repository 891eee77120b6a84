"""Fixtures shared by all tests, and the count of tests that need data from outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["browser_fixtures"]

_REPOSITORY = Path(__file__).parent.parent

# Generated cases take what time they take: the first of them compiles kernels, and machines are shared.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real collections, runs and oracles.

    `EVENRANK_TEST_DATA` names it; set but missing is a failure. Not set, and no folder `shared` beside
    the repository: the tests that need it are skipped.
    """
    named = os.environ.get("EVENRANK_TEST_DATA")
    folder = Path(named) if named else _REPOSITORY.parent / "shared"
    if not folder.is_absolute():
        folder = _REPOSITORY / folder
    if (folder / "data").is_dir():
        return folder
    if named:
        pytest.fail(f"EVENRANK_TEST_DATA is {named!r}, but there is no folder data/ in it")
    pytest.skip("needs test data from outside the repository; set EVENRANK_TEST_DATA")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests never touch the user's cache."""
    monkeypatch.setenv("EVENRANK_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    without = [
        r for r in terminalreporter.stats.get("skipped", []) if "EVENRANK_TEST_DATA" in str(r.longrepr)
    ]
    if without:
        terminalreporter.write_line(f"{len(without)} tests skipped: they need EVENRANK_TEST_DATA")
