"""Unicode as the tokenizers see it: what each character is, and what it becomes in lower case.

The tables are shipped (``data/unicode.npz``, made by ``tools/unicode_tables.py``), so that a text has the
same tokens under every version of Python.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

SEPARATOR, LETTER, MARK, APOSTROPHE = 0, 1, 2, 3

PLANES = 0x20000
"""The planes that have case; above them only ideographs are letters."""
IDEOGRAPHS = range(0x20000, 0x323B0)


class Unicode(NamedTuple):
    """Tables by code point, as far as code point 0x20000."""

    version: str  # of the Unicode data
    kind: np.ndarray  # uint8: SEPARATOR, LETTER (letters and digits), MARK, APOSTROPHE
    fold: np.ndarray  # uint32: one-to-one case folding, É → é, ς → σ
    lower: np.ndarray  # uint32: str.lower where it gives one character
    pairs: np.ndarray  # int64, sorted: folded letter << 21 | combining mark …
    composed: np.ndarray  # uint32: … and the letter they make together


@lru_cache(maxsize=1)
def unicode_tables() -> Unicode:
    """The tables that are shipped."""
    with resources.files("evenrank.text").joinpath("data/unicode.npz").open("rb") as file:
        stored = dict(np.load(file, allow_pickle=False))
    kind = np.repeat(stored["kinds"], stored["lengths"])
    fold, lower = (_mapped(stored[f"{name}_from"], stored[f"{name}_to"]) for name in ("fold", "lower"))
    return Unicode(str(stored["version"]), kind, fold, lower, stored["pairs"], stored["composed"])


def packed(tables: Unicode) -> dict[str, Any]:
    """The tables as they are stored: stretches of one kind, and only characters that become another."""
    starts = np.flatnonzero(np.diff(tables.kind, prepend=255))
    found = {
        "version": np.array(tables.version),
        "kinds": tables.kind[starts],
        "lengths": np.diff(starts, append=PLANES),
        "pairs": tables.pairs,
        "composed": tables.composed,
    }
    for name, table in (("fold", tables.fold), ("lower", tables.lower)):
        changed = np.flatnonzero(table != np.arange(PLANES)).astype(np.uint32)
        found |= {f"{name}_from": changed, f"{name}_to": table[changed]}
    return found


def _mapped(characters: np.ndarray, becoming: np.ndarray) -> np.ndarray:
    table = np.arange(PLANES, dtype=np.uint32)
    table[characters] = becoming
    return table
