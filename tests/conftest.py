"""Fixtures shared by all tests, and the count of tests that need data from outside the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["browser_fixtures"]

_REPOSITORY = Path(__file__).parent.parent

# `make test` uses "quick"; `make test-all` passes --hypothesis-profile=thorough. There are no deadlines and
# no health checks: the first example may compile kernels, and machines are shared.
_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=25, **_COMMON)
settings.register_profile("thorough", max_examples=100, **_COMMON)
settings.load_profile("quick")


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
