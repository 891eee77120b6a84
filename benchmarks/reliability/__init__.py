"""What happens when things go wrong: broken files, killed commands, flipped bits, full disks, rude clients.

`python -m benchmarks.reliability` runs what has not been run yet and writes docs/evidence/reliability.json;
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
        if not _kept(name).exists():
            run(name)
    return gathered()


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
    _kept(name).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def here(name: str) -> dict[str, Any]:
    """One section in this process."""
    found: dict[str, Any] = SECTIONS[name](name.partition(":")[2])
    return found


def gathered() -> dict[str, Any]:
    """What all sections found."""
    found: dict[str, Any] = {}
    for name in SECTIONS:
        if _kept(name).exists():
            kind, _, of = name.partition(":")
            content = json.loads(_kept(name).read_text())
            if of:
                found.setdefault(kind, {})[of] = content
            else:
                found[kind] = content
    return found


def _kept(name: str) -> Path:
    return FOLDER / f"{name.replace(':', '-')}.json"
