"""What happens when things go wrong: broken files, killed commands, flipped bits, full disks, rude clients.

`python -m benchmarks.reliability` runs what docs/evidence/reliability.json lacks, and writes it there;
`python -m benchmarks.reliability fuzz:run kill:tally` runs these sections again. Each section is a process of
its own, so that a crash is a result too, and leaves its numbers in build/reliability.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.reliability import disk, flips, fuzzing, killing, load

FOLDER = Path(__file__).parents[2] / "build" / "reliability"
EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence" / "reliability.json"
SECTIONS = {
    **{f"fuzz:{name}": fuzzing.fuzz for name in fuzzing.READERS},
    **{f"flip:{name}": flips.flip for name in flips.KINDS},
    **{f"kill:{name}": killing.kill for name in killing.COMMANDS},
    "disk:full": disk.full,
    "disk:read-only": disk.read_only,
    "load": load.load,
}


def reliability(_: Path) -> dict[str, Any]:
    """All sections, those from the folder that are there."""
    for name in SECTIONS:
        if not kept(name).exists():
            run(name)
    found = gathered()
    write_table(found)
    return found


def run(name: str) -> None:
    """One section in a process of its own; what it found, or how it ended, is kept."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability", "--here", name],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, Any]
    if done.returncode == 0:
        found = json.loads(done.stdout.splitlines()[-1])
    else:
        found = {"ended with": done.returncode, "said": done.stderr.strip().splitlines()[-3:]}
    found["seconds"] = round(time.monotonic() - began)
    kept(name).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def here(name: str) -> dict[str, Any]:
    """One section in this process."""
    found: dict[str, Any] = SECTIONS[name](name.partition(":")[2])
    return found


def gathered() -> dict[str, Any]:
    """What all sections found: here, or where the committed file comes from."""
    found: dict[str, Any] = json.loads(EVIDENCE.read_text())["results"] if EVIDENCE.exists() else {}
    for name in SECTIONS:
        if kept(name).exists():
            kind, _, of = name.partition(":")
            content = json.loads(kept(name).read_text())
            if of:
                found.setdefault(kind, {})[of] = content
            else:
                found[kind] = content
    return found


def missing(found: dict[str, Any]) -> list[str]:
    """Sections that nobody has run."""
    places = [(name, *name.partition(":")[::2]) for name in SECTIONS]
    return [name for name, kind, of in places if (of not in found.get(kind, {}) if of else kind not in found)]


def kept(name: str) -> Path:
    return FOLDER / f"{name.replace(':', '-')}.json"


def table(found: dict[str, Any]) -> str:
    """What was tried and what happened, as Markdown."""
    lines = ["| tried | times | what happened | wrong |", "|---|--:|---|--:|"]
    for name, of in found.get("fuzz", {}).items():
        seen = f"{of.get('read', 0):,} read, {of.get('refused', 0):,} refused"
        lines.append(_row(f"broken file: {name}", of, "mutations", seen, of.get("faults")))
    for name, of in found.get("flip", {}).items():
        seen = f"{of.get('refused', 0):,} refused, {of.get('nothing changed', 0):,} without effect"
        wrong = of.get("other numbers", 0) + of.get("faults", 0)
        lines.append(_row(f"flipped bit: {name}", of, "flips", seen, wrong))
    for name, of in found.get("kill", {}).items():
        seen = ", ".join(f"{of.get(each, 0)} {each}" for each in ("old", "none", "new"))
        seen += "; works afterwards" if of.get("works afterwards") else "; does not work afterwards"
        lines.append(_row(f"kill -9: {name}", of, "kills", seen, of.get("broken")))
    for kind, what in (("full", "full disk"), ("read-only", "read-only folder")):
        for name, of in found.get("disk", {}).get(kind, {}).items():
            if isinstance(of, dict):
                seen = f"{of['refused']} refused" + (f", {of['done']} done" if of.get("done") else "")
                lines.append(_row(f"{what}: {name}", of, "tried", seen, of["faults"]))
    if load := found.get("load"):
        seen = f"{load.get('answered', 0):,} answered, p99 {load.get('99th percentile ms')} ms"
        wrong = load.get("wrong", 0) + (not load.get("alive"))
        lines.append(_row("requests, rude clients among them", load, "requests", seen, wrong))
    return "\n".join(lines)


def _row(what: str, of: dict[str, Any], times: str, seen: str, wrong: int | None) -> str:
    if "ended with" in of:
        return f"| {what} | – | the process ended with {of['ended with']} | 1 |"
    return f"| {what} | {of[times]:,} | {seen} | {wrong} |"


def write_table(found: dict[str, Any]) -> None:
    """Put the table into the page."""
    page = FOLDER.parents[1] / "docs" / "reliability.md"
    before, start, rest = page.read_text().partition("<!-- table -->\n")
    _, end, after = rest.partition("<!-- /table -->")
    open_ = ", ".join(f"`{name}`" for name in missing(found))
    rest = f"Not run yet: {open_}.\n\n" if open_ else ""
    page.write_text(f"{before}{start}\n{table(found)}\n\n{rest}{end}{after}")
