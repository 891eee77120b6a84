"""What evenrank makes of the demo and of squad is what it made before: tally, runs, measures, audit, index.

A change that is meant to change a number renews the golden files with `python -m tests.golden.refresh`, in a
commit that says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import making
import pytest

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())


@pytest.fixture(scope="module")
def of_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("golden"), "demo")


@pytest.fixture(scope="module")
def of_squad(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    return _made(tmp_path_factory.mktemp("golden"), "squad", str(shared.resolve()))


def _made(folder: Path, *what: str) -> Path:
    """Made in a process of its own, as a user makes it."""
    environment = {**os.environ, "EVENRANK_CACHE": str(folder / "cache")}
    target = folder / "made"
    done = subprocess.run(
        [sys.executable, making.__file__, str(target), *what],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def test_the_main_values_of_the_demo_are_as_before(of_demo: Path) -> None:
    for name, values in GOLDEN["demo"]["values"].items():
        assert making.values(of_demo / name) == values


def test_every_file_of_the_demo_is_as_before(of_demo: Path) -> None:
    _compare(of_demo, "demo")


def test_the_main_values_of_squad_are_as_before(of_squad: Path) -> None:
    for name, values in GOLDEN["squad"]["values"].items():
        assert making.values(of_squad / name) == values


def test_every_file_of_squad_is_as_before(of_squad: Path) -> None:
    _compare(of_squad, "squad")


def _compare(folder: Path, name: str) -> None:
    found = {file: making.fingerprint(path) for file, path in making.files(folder).items()}
    golden = GOLDEN[name]["sha256"]
    assert {*found} == {*golden}
    changed = [file for file in golden if found[file] != golden[file]]
    assert not changed, f"other than before: {', '.join(changed)}"
