"""What many categories cost the matcher: 60 of them against 2, on the same text."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator

import pyarrow as pa

from benchmarks.corpus import passages
from benchmarks.timing import REPEATS, Row, both
from evenrank.text.lexicon import Lexicon, dictionary
from evenrank.text.matcher import Matcher

_SIZE = 20_000_000
_LIMIT = 1.5


def rows() -> Iterator[Row]:
    texts = pa.array(passages(_SIZE))
    groups = dictionary().groups
    # Each of the 30 categories in two halves: 60 categories, overlapping as in LIWC.
    halves = {f"{name}-{half}": words[half::2] for name, words in groups.items() for half in (0, 1)}
    words = sorted({word for of in groups.values() for word in of})
    sixty = Matcher(Lexicon("sixty", halves, overlapping=True))
    same = Matcher(Lexicon("same", {"a": tuple(words[::2]), "b": tuple(words[1::2])}, overlapping=True))
    gender = Matcher(dictionary().select(("female", "male")))
    yield _row("60 categories, the same entries in 2", sixty, same, texts)
    yield _row("60 categories, 2 of them alone", sixty, gender, texts)


def _row(what: str, many: Matcher, two: Matcher, texts: pa.Array) -> Row:
    many.count(texts[:1000]), two.count(texts[:1000])
    times = [(*both(lambda: many.count(texts)), *both(lambda: two.count(texts))) for _ in range(3 * REPEATS)]
    slow, busy, quick, less = (statistics.median(column) for column in zip(*times, strict=True))
    details = {
        "ratio of processor time": round(busy / less, 2),
        "load": round(os.getloadavg()[0], 1),
        "seconds": round(slow, 4),
        "seconds_of_two": round(quick, 4),
        "entries": sum(len(words) for words in many.lexicon.groups.values()),
        "entries_of_two": sum(len(words) for words in two.lexicon.groups.values()),
        "bytes": _SIZE,
    }
    return Row(what, "the same matcher with 2 categories", _LIMIT, round(slow / quick, 2), " times", details)
