"""The counterfactual swap against the obvious Python: a regular expression and a dictionary, no grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from benchmarks.corpus import passages
from benchmarks.timing import Row, against
from evenrank.mitigate.swap import swapper

_WORD = re.compile(r"[^\W_]+")


def rows() -> Iterator[Row]:
    texts = passages(10_000_000)
    array = pa.array(texts, pa.string())
    mirror = swapper()
    table = {**mirror.words.female, **mirror.words.male, "her": "his", "him": "her"}

    def peer() -> list[str]:
        return [_WORD.sub(lambda match: table.get(match[0], match[0]), text) for text in texts]

    size = sum(map(len, texts)) / 1e6
    row = against(
        "swap, text in memory",
        "re.sub with a dictionary, words only",
        3,
        peer,
        lambda: mirror.texts(array),
        megabytes=round(size, 1),
    )
    yield row._replace(
        details={**row.details, "megabytes_per_second": round(size / row.details["seconds"], 1)}
    )
