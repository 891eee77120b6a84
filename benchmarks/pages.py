"""Tables of the docs, filled in from what was measured: nobody types them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.common import grid

import evenrank
from evenrank.show.numbers import DASH, minus

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def kept_tables(content: str) -> str | None:
    """What stands between the marks of a page; None where there are none."""
    _, found, rest = content.partition(BEGIN)
    kept, closed, _ = rest.partition(END)
    return kept if found and closed else None


def current_source() -> str:
    """The hash of `src/` as it was committed last."""
    return _git("rev-parse", "HEAD:src")


def committed_source() -> str:
    """The same; refused where `src/` holds what was not committed, since evidence must name its source."""
    if changed := _git("status", "--porcelain", "--", "src"):
        first = changed.splitlines()[0].strip()
        raise SystemExit(f"src/ has changes that are not committed ({first}); commit first")
    return current_source()


def used_source() -> dict[str, str]:
    """The files of `src/` that this process has used so far, in one line, and their hash.

    Modules that were imported, and what lies in the data folders of their packages. Commands that were
    started are not seen: evidence that starts some has no such list.
    """
    root = DOCS.parent
    blobs = _blobs()
    loaded = {
        Path(file).resolve()
        for file in (getattr(m, "__file__", None) for m in [*sys.modules.values()])
        if file
    }
    used = {path for path in blobs if (root / path).resolve() in loaded}
    packages = {Path(path).parent for path in used}
    used |= {path for path in blobs if not path.endswith(".py") and packages & {*Path(path).parents}}
    return {"hash": _digest(blobs, used), "files": " ".join(sorted(used))}


def used_files(used: Mapping[str, Any]) -> list[str]:
    """The files of evidence, which are a line of names or a list."""
    found = used.get("files", "")
    return found.split() if isinstance(found, str) else list(found)


def changed_files(used: Mapping[str, Any]) -> bool:
    """Whether any of these files is another now."""
    blobs, files = _blobs(), used_files(used)
    return not set(files) <= set(blobs) or _digest(blobs, files) != used["hash"]


def changed_since(tree: str | None) -> set[str]:
    """The files of `src/` that differ from an earlier tree of it; none where that is not known here."""
    try:
        names = [] if tree is None else _git("diff", "--name-only", tree, "HEAD:src").splitlines()
    except subprocess.CalledProcessError:
        names = []
    return {f"src/{name}" for name in names}


def _blobs() -> dict[str, str]:
    """The files of `src/` as they were committed last, with their hashes."""
    lines = (line.split("\t") for line in _git("ls-tree", "-r", "HEAD", "src").splitlines())
    return {path: facts.split()[2] for facts, path in lines}


def _digest(blobs: Mapping[str, str], files: Iterable[str]) -> str:
    lines = "".join(f"{path} {blobs[path]}\n" for path in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def last_change(path: Path) -> str:
    """The day of the commit that last changed a file."""
    return _git("log", "-1", "--format=%cs", "--", str(path)) or "not committed"


def common_source(units: Iterable[Mapping[str, Any]]) -> str | None:
    """The `src/` that all units of some evidence were made from; None where they differ or do not say."""
    found = {unit.get("src") for unit in units}
    return found.pop() if len(found) == 1 else None


def _git(*words: str) -> str:
    command = ["git", "-C", str(DOCS.parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def write_evidence(
    path: Path, command: str, results: Mapping[str, Any], units: Iterable[Mapping[str, Any]], **more: Any
) -> None:
    """A file of evidence: what made it, of which source its units are, and what they came to."""
    source = common_source(units)
    content = {"command": command, "evenrank": evenrank.__version__, "src": source, "results": results}
    path.write_text(json.dumps(content | more, indent=1, ensure_ascii=False) + "\n")


def fill(page: str, text: str) -> None:
    """Put the text between the marks of a page."""
    path = DOCS / page
    before, found, rest = path.read_text().partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{path} has no place for tables: {BEGIN} … {END}")
    path.write_text(f"{before}{BEGIN}\n{text.rstrip()}\n{END}{after}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text."""
    lines = [headings, ["---"] * left + ["--:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def study_tables(record: Mapping[str, Any], titles: Sequence[str]) -> str:
    """The tables of a study's record whose titles begin so, as Markdown."""
    tables = [each for start in titles for each in record["tables"] if each["title"].startswith(start)]
    return "\n".join(f"{each['title']}:\n\n{grid(each).markdown()}" for each in tables)


def number(value: float | None, form: str = "+.3f") -> str:
    """A number with a true minus sign, or a dash."""
    return DASH if value is None else minus(format(value, form))


def interval(low: float | None, high: float | None, form: str = "+.3f") -> str:
    """Both ends, or nothing."""
    return "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]"
