"""Every command and every example in the documentation is run, and what it shows is what it prints.

`console` blocks hold commands behind `$` and their output, if it is of interest; a `python` block may be
followed by a `text` block with its output, and shares its names with the blocks above it. A line that is `…`
stands for lines left out, one that ends in `…` for the rest of the line. Blocks of other kinds are not run.
"""

from __future__ import annotations

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


def ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "COLUMNS": "80", "PATH": path}
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_its_examples_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name != "README.md":  # there the first command makes it
        demo.copy_to(tmp_path / "demo")
    found = blocks(page)
    before = ["import sys; sys.path.insert(0, '.')"]
    for place, (kind, content) in enumerate(found):
        if kind == "console":
            for command, shown in commands(content):
                done = ran(["bash", "-c", command])
                shown_right = matches(shown, done.stdout) if shown.strip() else done.returncode == 0
                assert shown_right, f"$ {command}\n{done.stdout}"
        elif kind == "python":
            if place + 1 < len(found) and (named := re.match(r"Saved as `(\w+\.py)`", found[place + 1][1])):
                (tmp_path / named[1]).write_text(content)
            mark = "-- this block --"
            (tmp_path / "_page.py").write_text("\n".join([*before, f"print({mark!r})", content]) + "\n")
            done = ran([PYTHON, "_page.py"])
            real = done.stdout.partition(f"{mark}\n")[2]
            assert done.returncode == 0, done.stdout
            if place + 1 < len(found) and found[place + 1][0] == "text":
                assert matches(found[place + 1][1], real), real
            before.append(content)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), link
