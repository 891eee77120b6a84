"""A disk that is full and a folder that may not be written to: one line, exit code 2, and no half file."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.reliability import material
from benchmarks.reliability.killing import COMMANDS, HERE, _filled

_MORE: dict[str, list[str]] = {
    "measure": ["measure", "ARaB@10", f"{HERE / 'bm25.run'}", "--docs", f"{HERE / 'docs.tsv'}", "-o", "OUT"],
    "search": ["search", "--index", "FOLDER/index", "--queries", f"{HERE / 'queries.tsv'}", "-o", "OUT"],
    "classify": ["classify", f"{HERE / 'queries.tsv'}", "-o", "OUT"],
    "swap": ["mitigate", "swap", "--queries", f"{HERE / 'queries.tsv'}", "-o", "OUT"],
}
_SIZES = (0, 100, 4_096, 20_000)
_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def _all() -> dict[str, list[str]]:
    return {**{name: command.new for name, command in COMMANDS.items()}, **_MORE}


def full(_: str) -> dict[str, Any]:
    """Files cannot grow beyond a size (RLIMIT_FSIZE); and stdout is a device without room (/dev/full)."""
    found: dict[str, Any] = {}
    for name, arguments in _all().items():
        found[name] = _tried(name, arguments, [_limited(size) for size in _SIZES])
    outcomes: Counter[str] = Counter(refused=0, faults=0)
    for unbuffered in ("", "1"):
        for name in ("measure", "search"):
            given = [each for each in _MORE[name] if each not in ("-o", "OUT")]
            if name == "search":
                given = ["lexicons", "--format", "json"]
            with Path("/dev/full").open("w") as device:
                done = subprocess.run(
                    _filled(given, Path(), Path()),
                    stdout=device,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                    check=False,
                )
            outcomes["refused" if _clear(done) else "faults"] += 1
    return {**found, "stdout": {"tried": outcomes.total(), **outcomes}}


def read_only(_: str) -> dict[str, Any]:
    """The folder may not be written to: not ours, or for root, who may write anywhere, mounted read-only."""
    return {name: _tried(name, arguments, [None]) for name, arguments in _all().items()}


def _limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _tried(name: str, arguments: list[str], ways: list[Callable[[], None] | None]) -> dict[str, Any]:
    outcomes: Counter[str] = Counter(refused=0, done=0, faults=0)
    examples: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        material.index(folder / "index")
        for way in ways:
            out = folder / "out" / "result"
            shutil.rmtree(out.parent, ignore_errors=True)
            out.parent.mkdir()
            out.parent.chmod(0o555)
            command = _filled(arguments, folder, out)
            if way is None and os.geteuid() == 0:
                command = ["unshare", "-m", "sh", "-c", _MOUNTED, str(out.parent), *command]
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                preexec_fn=way,
                env={**os.environ, "NUMBA_CACHE_DIR": _compiled(), "EVENRANK_CACHE": f"{folder}/cache"},
                check=False,
            )
            left = [each.name for each in out.parent.rglob("*") if not each.name.startswith(".")]
            if _clear(done) and (not left or name in ("index", "audit", "monitor")):
                outcomes["refused"] += 1
            elif done.returncode == 0 and way is not None:
                outcomes["done"] += 1
            else:
                outcomes["faults"] += 1
                examples.append(f"exit {done.returncode}, {left}: {done.stderr.strip()[-200:]}")
    return {"tried": len(ways), **outcomes, "examples": examples[:3]}


def _compiled() -> str:
    """Where compiled code is kept, so that only results meet the limit."""
    folder = Path(tempfile.gettempdir()) / "evenrank-compiled"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return str(folder)


def _clear(done: subprocess.CompletedProcess[str]) -> bool:
    lines = [line for line in done.stderr.splitlines() if line.startswith("evenrank: ")]
    return done.returncode == 2 and len(lines) == 1 and "Traceback" not in done.stderr
