"""The progress bar says what it counts."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

import evenrank.cli
from evenrank.cli.common import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("unit", "done", "shown"),
    [("queries", 30, r"30/60\s+queries"), ("bytes", 30_000, r"30\.0/60\.0 kB")],
)
def test_a_bar_shows_its_unit(monkeypatch: pytest.MonkeyPatch, unit: str, done: int, shown: str) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("labelling", unit=unit) as show:
        assert show is not None
        show(done, 2 * done)
    assert re.search(shown, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()))


def test_without_a_terminal_there_is_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("labelling", unit="queries") as show:
        assert show is None
    assert capfd.readouterr().err == ""


def test_bytes_are_counted_only_where_files_are_read() -> None:
    """Queries, folds, settings and rankers are no bytes: every command names what it counts."""
    text = "\n".join(path.read_text() for path in Path(evenrank.cli.__file__).parent.rglob("*.py"))
    bars = dict(re.findall(r'progress_bar\("([^"]+)", unit="([^"]+)"', text))
    reading = {"counting", "indexing", "mirroring", "training", "reading"}
    assert {what for what, unit in bars.items() if unit == "bytes"} <= reading
    assert bars["labelling"] == "queries" and bars["sweeping"] == "settings"
    told = re.findall(r"progress_bar\(\"[^\"]+\", unit=", text)
    assert len(re.findall(r"progress_bar\(\"", text)) == len(told)
