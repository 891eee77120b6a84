"""One flipped bit in a file: it is refused, or it changes nothing. Other numbers in silence are a fault."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import evenrank as er
from benchmarks.reliability import material
from evenrank.errors import InputError

FLIPS = 300


class Kind(NamedTuple):
    make: Callable[[Path], Path]
    name: str
    read: Callable[[Path], Any]
    files: str = "*"
    """Which files of a folder are damaged."""


def _measured(path: Path) -> Any:
    found = er.measure(
        material.HERE / "bm25.run", ["ARaB@10", "RaB@5", "NFaiRR@10"], tally=path, confidence=None
    )
    return found.to_dict(per_query=True)["runs"], material.text_of(er.Tally.of(path).frame)


KINDS: dict[str, Kind] = {
    "tally": Kind(material.tally, "t.parquet", _measured),
    "index": Kind(material.index, "index", material.search),
    "forward-index": Kind(material.index, "index", material.search, "forward-*"),
    "offsets": Kind(material.index, "index", material.search, "*-offsets"),
    "bundle": Kind(material.bundle, "b.zip", material.unbundled),
    "classifier-model": Kind(material.model, "model", material.classified),
}


def flip(name: str, flips: int = FLIPS) -> dict[str, Any]:
    """So many flips in files of one kind, each in a fresh copy."""
    kind = KINDS[name]
    outcomes: Counter[str] = Counter({"refused": 0, "nothing changed": 0, "other numbers": 0, "faults": 0})
    examples: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        good = kind.make(Path(folder) / kind.name)
        expected = kind.read(good)
        for number in range(flips):
            luck = random.Random(f"{name} {number}")
            tried = Path(folder) / "tried" / kind.name
            shutil.rmtree(tried.parent, ignore_errors=True)
            tried.parent.mkdir()
            shutil.copytree(good, tried) if good.is_dir() else shutil.copy(good, tried)
            damaged = _damaged(tried, kind.files, luck)
            try:
                same = kind.read(tried) == expected
                outcome = "nothing changed" if same else "other numbers"
            except InputError:
                outcome = "refused"
            except Exception as error:
                outcome = "faults"
                examples.append(f"{number}: {type(error).__name__}: {str(error)[:120]}")
            outcomes[outcome] += 1
            if outcome == "other numbers":
                examples.append(f"{number}: {damaged}")
    return {"flips": flips, **outcomes, "examples": examples[:5]}


def _damaged(path: Path, files: str, luck: random.Random) -> str:
    """Flip one bit; every byte of all files is as likely as any other."""
    chosen = [path]
    if path.is_dir():
        chosen = sorted(each for each in path.rglob(files) if each.is_file() and each.stat().st_size)
    sizes = [each.stat().st_size for each in chosen]
    file = luck.choices(chosen, sizes)[0]
    content = bytearray(file.read_bytes())
    at, bit = luck.randrange(len(content)), luck.randrange(8)
    content[at] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {at} of {file.name}"
