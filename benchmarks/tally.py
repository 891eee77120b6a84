"""The tally against the published Python, in memory and from file to file; its memory and its growth."""

from __future__ import annotations

import collections
import json
import math
import os
import pickle
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

import evenrank as er
from benchmarks.corpus import passages, write_tsv
from benchmarks.timing import Row, against, seconds
from evenrank.text.tally import tally_to_file

_SIZES = (24_000_000, 170_000_000)
_LEXICON = er.lexicon("rekabsaz2020")
_FEMALE, _MALE = (frozenset(words) for words in _LEXICON.groups.values())


def published(text: str) -> tuple[float, float, int, int, int, int]:
    """The algorithm of the released code of Rekabsaz & Schedl (2020), for one document."""
    counts = collections.Counter(text.lower().split(" "))
    female = male = 0
    for word in counts:
        if word in _FEMALE:
            female += counts[word]
        elif word in _MALE:
            male += counts[word]
    return math.log(female + 1), math.log(male + 1), female, male, int(female > 0), int(male > 0)


def rows() -> Iterator[Row]:
    for size in reversed(_SIZES):
        yield from _of_size(size)
    yield from _with_avx2_alone()
    yield from _growth()


def _of_size(size: int) -> Iterator[Row]:
    yield _in_memory("whitespace", size)
    yield _in_memory("words", size)
    yield _file_to_file(size)


_AVX2 = {"NUMBA_CPU_NAME": "znver3", "NUMBA_CPU_FEATURES": ""}


def _with_avx2_alone() -> Iterator[Row]:
    """The larger collection in a process whose kernels are compiled for a processor without AVX-512."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    known = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    newest = [name for name in known if name.startswith(("AVX512", "X86_V4"))]
    hidden = {"NPY_DISABLE_CPU_FEATURES": " ".join(newest)} if newest else {}
    command = [sys.executable, "-m", "benchmarks.tally"]
    out = subprocess.check_output(command, env={**os.environ, **_AVX2, **hidden}, text=True)
    for row in map(Row._make, json.loads(out.splitlines()[-1])):
        yield row._replace(what=f"{row.what}, AVX2 alone")


def _in_memory(tokenizer: str, size: int) -> Row:
    texts = passages(size)
    frame = pl.DataFrame({"doc_id": [str(i) for i in range(len(texts))], "text": texts})
    return against(
        f"tally in memory, tokenizer {tokenizer}, {size // 1_000_000} MB",
        "published Python (a Counter per document)",
        30,
        lambda: {i: published(text) for i, text in enumerate(texts)},
        lambda: er.tally(frame, _LEXICON, tokenizer=tokenizer),
        documents=len(texts),
        characters=sum(map(len, texts)),
    )


def _file_to_file(size: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        docs, result = Path(folder) / "docs.tsv", Path(folder) / "tally.parquet"
        write_tsv(docs, size)

        def peer() -> None:
            found = {}
            with docs.open() as lines:
                for line in lines:
                    doc_id, text = line.rstrip("\n").split("\t")
                    found[doc_id] = published(text)
            with (Path(folder) / "peer.pickle").open("wb") as out:
                pickle.dump(found, out)

        return against(
            f"tally from TSV to Parquet, {size // 1_000_000} MB",
            "published Python, line by line, pickled",
            25,
            peer,
            lambda: tally_to_file(docs, result, _LEXICON, tokenizer="whitespace"),
            bytes=docs.stat().st_size,
        )


_CHILD = """
import sys
from benchmarks.timing import peak_memory
from evenrank.text.tally import tally_to_file
tally_to_file(sys.argv[1], sys.argv[2])
print(peak_memory())
"""


def _growth() -> Iterator[Row]:
    """Peak memory in a process of its own, at 300 MB and at ten times that; time at 1× and 8×."""
    with tempfile.TemporaryDirectory() as folder:
        docs, result = Path(folder) / "docs.tsv", Path(folder) / "tally.parquet"
        memory, times = {}, {}
        for size in (300_000_000, 375_000_000, 3_000_000_000):
            write_tsv(docs, size)
            if size != 375_000_000:
                command = [sys.executable, "-c", _CHILD, str(docs), str(result)]
                memory[size] = float(subprocess.check_output(command, text=True))
            if size != 300_000_000:
                times[size] = min(seconds(lambda: tally_to_file(docs, result)) for _ in range(3))
    small, large = memory.values()
    yield Row("peak memory of a 3 GB tally", "–", 1024, round(large), "MB", {"at 300 MB": round(small)})
    short, long = times.values()
    details = {"375 MB": round(short, 2), "3 GB": round(long, 2), "MB/s": round(3000 / long)}
    yield Row("time when the input grows 8×", "–", 8.5, round(long / short, 2), "× as long", details)


if __name__ == "__main__":
    print(json.dumps(list(_of_size(_SIZES[-1]))))
