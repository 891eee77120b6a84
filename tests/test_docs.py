"""Every command and every example in the documentation is run, and what it shows is what it prints.

`console` blocks hold commands behind `$` and their output, if it is of interest; a `python` block may be
followed by a `text` block with its output, and shares its names with the blocks above it. A line that is `…`
stands for lines left out, one that ends in `…` for the rest of the line. Blocks of other kinds are not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenrank import demo

ROOT = Path(__file__).parent.parent
PYTHON = os.environ.get("EVENRANK_PYTHON", sys.executable)  # another one: what `make dist` has installed
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Kind and content of each fenced block; anything between two blocks keeps them apart."""
    found: list[tuple[str, str]] = []
    kind, lines = None, []
    for line in page.read_text().split("\n"):
        if kind is not None and line.startswith("```"):
            found.append((kind, "\n".join(lines)))
            kind, lines = None, []
        elif kind is not None:
            lines.append(line)
        elif line.startswith("```"):
            kind = line.removeprefix("```")
        elif line.strip():
            found.append(("prose", line))
    return found


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, with continuation lines and here-documents, and their outputs."""
    lines = iter(block.split("\n"))
    command: list[str] = []
    shown: list[str] = []
    for line in lines:
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command:
            yield "\n".join(command), "\n".join(shown)
        command, shown = [line[2:]], []
        if here := re.search(r"<<'(\w+)'", line):
            while command[-1] != here[1]:
                command.append(next(lines))
        while command[-1].endswith("\\"):
            command.append(next(lines))
    if command:
        yield "\n".join(command), "\n".join(shown)


def matches(shown: str, real: str) -> bool:
    pattern = []
    for line in shown.strip("\n").split("\n"):
        if line.strip() == "…":
            pattern.append(r"(.*\n)*")
        elif line.endswith("…"):
            pattern.append(re.escape(line.removesuffix("…").rstrip()) + r".*\n")
        else:
            pattern.append(re.escape(line.rstrip()) + r"[ \t]*\n")
    return re.fullmatch("".join(pattern), real.strip("\n") + "\n") is not None


def run_page(steps: list[tuple[str, str]], folder: Path) -> list[tuple[str, int]]:
    """The outputs and exit codes of all steps, which run in one process: see `run_page.py`."""
    steps_file, results_file = folder / "steps.json", folder / "results.json"
    steps_file.write_text(json.dumps(steps))
    environment = {
        **os.environ,
        "COLUMNS": "80",
        "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("run_page.py"), steps_file, results_file],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [(output, code) for output, code in json.loads(results_file.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_its_examples_print(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name != "README.md":  # there the first command makes it
        demo.copy_to(tmp_path / "demo")
    page_blocks = blocks(page)
    steps: list[tuple[str, str]] = []
    expected: list[str | None] = []  # None: no output is shown
    for place, (kind, content) in enumerate(page_blocks):
        after_kind, after = page_blocks[place + 1] if place + 1 < len(page_blocks) else ("", "")
        if kind == "console":
            for command, shown in commands(content):
                steps.append(("console", command))
                expected.append(shown if shown.strip() else None)
        elif kind == "python":
            if named := re.match(r"Saved as `(\w+\.py)`", after):
                (tmp_path / named[1]).write_text(content)
            steps.append(("python", content))
            expected.append(after if after_kind == "text" else None)
    if not steps:
        return
    for (kind, source), shown, (output, code) in zip(
        steps, expected, run_page(steps, tmp_path_factory.mktemp("page")), strict=False
    ):
        if kind == "python" or shown is None:
            assert code == 0, f"{source}\n{output}"
        if shown is not None:
            assert matches(shown, output), f"{source}\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), link
