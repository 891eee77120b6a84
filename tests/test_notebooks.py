"""The notebooks of examples/ run from beginning to end, and show what they are stored with."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
from tools.run_notebooks import EXAMPLES, executed, printed  # noqa: E402

pytestmark = pytest.mark.slow

NAMES = ("auditor", "engineer", "researcher")


def test_there_is_a_notebook_for_each_reader() -> None:
    assert tuple(sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_it_is_stored_with(name: str) -> None:
    path = Path(EXAMPLES) / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    assert printed(executed(path)) == printed(stored)
    shown = [output for cell in stored.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert not any(output.output_type == "error" for output in shown)
    assert "/work/" not in path.read_text() and "/home/" not in path.read_text()
