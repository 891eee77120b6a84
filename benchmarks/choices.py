"""What the pages under docs/decisions say was measured: ratios of medians, taken in turns in one run."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from benchmarks.corpus import passages, write_tsv
from benchmarks.timing import seconds
from evenrank.data.docs import open_docs
from evenrank.text.matcher import Matcher
from evenrank.text.tally import Tally, tally_to_file

_REPEATS = 9
_CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопярстуввксз")


def in_turns(**ways: Callable[[], Any]) -> dict[str, float]:
    """How long each way takes against the first, which is 1."""
    for way in ways.values():
        way()
    times = [[seconds(way) for way in ways.values()] for _ in range(_REPEATS)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return {name: round(each / medians[0], 2) for name, each in zip(ways, medians, strict=True)}


def scripts() -> dict[str, float]:
    """Counting the same words in one thread: plain, with an accent in every ninth, all in Cyrillic."""
    texts = passages(8_000_000)
    accented = [
        " ".join(w.replace("e", "é", 1) if i % 9 == 0 else w for i, w in enumerate(text.split(" ")))
        for text in texts
    ]
    matcher = Matcher("rekabsaz2020")
    columns = {"plain": texts, "accented": accented, "cyrillic": [t.translate(_CYRILLIC) for t in texts]}
    arrays = {name: pa.array(column) for name, column in columns.items()}
    return in_turns(**{name: lambda array=array: matcher.count(array) for name, array in arrays.items()})


def files() -> dict[str, dict[str, float]]:
    """Splitting a TSV file against pyarrow, and reading a tally against counting it."""
    with tempfile.TemporaryDirectory() as folder:
        docs, tally = Path(folder) / "docs.tsv", Path(folder) / "tally.parquet"
        write_tsv(docs, 100_000_000)
        tally_to_file(docs, tally)

        def arrow(threads: bool) -> None:
            with csv.open_csv(
                docs,
                read_options=csv.ReadOptions(
                    column_names=["id", "text"], use_threads=threads, block_size=1 << 21
                ),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(column_types={"id": pa.string(), "text": pa.string()}),
            ) as batches:
                for _ in batches:
                    pass

        def ours() -> None:
            for _ in open_docs(docs).batches():
                pass

        splitting = in_turns(
            ours=ours, pyarrow=lambda: arrow(False), pyarrow_with_threads=lambda: arrow(True)
        )
        reading = in_turns(read=lambda: Tally.read(tally), count=lambda: tally_to_file(docs, tally))
    return {"splitting": splitting, "tally": reading}
