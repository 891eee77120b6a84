"""`kill -9` while a command works: what is there afterwards is the old result, the new one, or none.

Half of the kills come at any time after the start, half right after something first changed on the disk,
where it hurts most.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import evenrank as er
from benchmarks.corpus import shared
from benchmarks.reliability import material
from evenrank import InputError, demo

KILLS = 30
COMMAND = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
HERE = demo.folder()


class Command(NamedTuple):
    old: list[str]
    """What makes the result that is there before; OUT and FOLDER are filled in."""
    new: list[str]
    name: str
    content: Callable[[Path], Any]
    """What the result holds; raises if it is not whole."""


def _report(folder: Path) -> Any:
    """Each file is whole in itself, and written in one step."""
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    return json.loads((folder / "audit.json").read_text())["verdict"]


def _observations(path: Path) -> Any:
    seen = material.history(path)
    assert all(len(each["measures"]) == 3 and each["problem"] is None for each in seen)
    return len(seen)


def _collection() -> str:
    data = shared()
    return str(data / "data" / "time" / "docs.tsv") if data else str(HERE / "docs.tsv")


_AUDIT = ["audit", "--docs", f"{HERE / 'docs.tsv'}", "--queries", f"{HERE / 'queries.tsv'}", "-o", "OUT"]
_WATCH = [
    "monitor",
    "--index",
    "FOLDER/index",
    "--queries",
    f"{HERE / 'queries.tsv'}",
    "--db",
    "OUT",
    "--once",
]
_TRAIN = [
    *("train", "--ranker", "knrm", "--docs", f"{HERE / 'docs.tsv'}", "--queries", f"{HERE / 'queries.tsv'}"),
    *("--qrels", f"{HERE / 'qrels.txt'}", "--run", f"{HERE / 'bm25.run'}", "-o", "OUT"),
    *("--set", "epochs=1", "--set", "depth=10"),
]
COMMANDS: dict[str, Command] = {
    "tally": Command(
        ["tally", _collection(), "-o", "OUT", "--lexicon", "fabris2020"],
        ["tally", _collection(), "-o", "OUT"],
        "t.parquet",
        lambda path: material.text_of(er.Tally.of(path).frame),
    ),
    "index": Command(
        ["index", f"{HERE / 'docs.tsv'}", "-o", "OUT", "--force"],
        ["index", _collection(), "-o", "OUT", "--force"],
        "index",
        lambda path: (er.Index.open(path).documents, er.Index.open(path).terms),
    ),
    "audit": Command(
        [*_AUDIT, "--run", f"{HERE / 'dense.run'}"],
        [*_AUDIT, "--run", f"{HERE / 'bm25.run'}"],
        "audit",
        _report,
    ),
    "monitor": Command(_WATCH, _WATCH, "m.db", _observations),
    "train": Command([*_TRAIN, "--seed", "1"], _TRAIN, "ranker", material.trained),
}


def kill(name: str) -> dict[str, Any]:
    """So many kills of one command."""
    command = COMMANDS[name]
    outcomes: Counter[str] = Counter(old=0, none=0, new=0, broken=0)
    examples: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if name == "monitor":
            material.index(folder / "index")
        out = folder / "out" / command.name
        old, new = folder / "old", folder / "new"
        _finish(command.old, folder, out, old)
        expected = {"old": command.content(old / command.name)}
        took = _finish(command.new, folder, out, new)
        expected["new"] = command.content(new / command.name)
        attempts = 0
        while sum(outcomes.values()) < KILLS and attempts < 10 * KILLS:
            luck = random.Random(f"{name} {attempts}")
            attempts += 1
            _reset(out.parent, old if attempts % 3 else None)
            if not _killed(command.new, folder, out, luck, took, early=bool(attempts % 2)):
                continue  # it was done before
            outcome = _seen(command, out, expected)
            outcomes[outcome] += 1
            if outcome == "broken":
                left = sorted(str(each.relative_to(out.parent)) for each in out.parent.rglob("*"))
                examples.append(f"{attempts}: {left[:6]}")
        left = sum(".tmp" in each.name for each in out.parent.rglob("*"))
        _finish(command.new, folder, out, folder / "again")  # over what the last kill has left
        whole = command.content(folder / "again" / command.name)
    again = whole == expected["new"] or (name == "monitor" and whole >= 1)
    return {
        "kills": sum(outcomes.values()),
        **outcomes,
        "works afterwards": again,
        "temporary files left by the last": left,
        "examples": examples[:5],
    }


def _filled(arguments: list[str], folder: Path, out: Path) -> list[str]:
    return [*COMMAND, *(each.replace("OUT", str(out)).replace("FOLDER", str(folder)) for each in arguments)]


def _finish(arguments: list[str], folder: Path, out: Path, kept: Path) -> float:
    """Run it to its end and keep what it made; how long it took."""
    out.parent.mkdir(exist_ok=True)
    began = time.monotonic()
    subprocess.run(_filled(arguments, folder, out), check=True, capture_output=True)
    took = time.monotonic() - began
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(out.parent, kept)
    return took


def _reset(place: Path, old: Path | None) -> None:
    shutil.rmtree(place)
    if old is None:
        place.mkdir()
    else:
        shutil.copytree(old, place)


def _killed(
    arguments: list[str], folder: Path, out: Path, luck: random.Random, took: float, *, early: bool
) -> bool:
    """Start it and kill it; whether it was still at work."""
    before = _look(out.parent)
    process = subprocess.Popen(
        _filled(arguments, folder, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if early:
        while process.poll() is None and _look(out.parent) == before:
            time.sleep(0.0005)
        time.sleep(luck.choice((0.0, 0.001, 0.005, 0.02, 0.1)) * luck.random())
    else:
        end = time.monotonic() + took * luck.uniform(0.2, 1.0)
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
    process.kill()
    return process.wait() == -9


def _look(place: Path) -> list[tuple[str, int]]:
    found = []
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                found.append((name, os.stat(f"{folder}/{name}").st_size))  # noqa: PTH116
            except OSError:
                continue
    return sorted(found)


def _seen(command: Command, out: Path, expected: dict[str, Any]) -> str:
    present = out.exists() and (
        not out.is_dir() or any(not each.name.startswith(".") for each in out.iterdir())
    )
    if not present:
        return "none"
    try:
        content = command.content(out)
    except FileNotFoundError:
        return "none"
    except InputError as error:  # an index that was begun is there, and says that it is none
        return "none" if "cut short" in str(error) else "broken"
    except Exception:
        return "broken"
    if content == expected["old"]:
        return "old"
    if content == expected["new"] or (command.name == "m.db" and content in (0, 1, 2)):
        return "new"
    return "broken"
