"""Make src/evenrank/text/data/unicode.npz: the Unicode tables of the tokenizers, from Python's own data.

They are shipped, not computed: building them takes half a second at every start, and tokens must not depend
on the Python that counts them. Run it with the Python whose Unicode version is to be shipped:

    python tools/unicode_tables.py
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.text.tokens import APOSTROPHE, LETTER, MARK, PLANES, SEPARATOR, Unicode

APOSTROPHES = "'‘’ʼ＇"
TARGET = Path(__file__).parent.parent / "src" / "evenrank" / "text" / "data" / "unicode.npz"


def build() -> Unicode:
    """The tables as this Python's Unicode data has them."""
    characters = [chr(code) for code in range(PLANES)]
    category = unicodedata.category
    kinds = {"L": LETTER, "N": LETTER, "M": MARK}
    kind = np.array([kinds.get(category(c)[0], SEPARATOR) for c in characters], np.uint8)
    kind[[ord(c) for c in APOSTROPHES]] = APOSTROPHE
    fold = np.array([ord(_fold(c)) for c in characters], np.uint32)
    lower = np.array([ord(c.lower()) if len(c.lower()) == 1 else ord(c) for c in characters], np.uint32)
    compositions = sorted(_compositions(characters))
    pairs = np.array([pair for pair, _ in compositions], np.int64)
    composed = np.array([code for _, code in compositions], np.uint32)
    return Unicode(unicodedata.unidata_version, kind, fold, lower, pairs, composed)


def _fold(character: str) -> str:
    """Simple case folding: ß stays ß, because a fold that changes the length is no longer one-to-one."""
    folded = character.casefold()
    if len(folded) != 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


def _compositions(characters: list[str]) -> list[tuple[int, int]]:
    """Canonical pairs letter + mark → letter, so that a decomposed é equals a composed one."""
    found = {}
    for character in characters:
        parts = unicodedata.decomposition(character).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            continue
        first, second = (chr(int(part, 16)) for part in parts)
        if unicodedata.normalize("NFC", first + second) != character or not unicodedata.combining(second):
            continue
        found[ord(_fold(first)) << 21 | ord(second)] = ord(_fold(character))
    return list(found.items())


def packed(tables: Unicode) -> dict[str, Any]:
    """The tables as they are stored: stretches of one kind, and only characters that become another."""
    starts = np.flatnonzero(np.diff(tables.kind, prepend=255))
    arrays = {
        "version": np.array(tables.version),
        "kinds": tables.kind[starts],
        "lengths": np.diff(starts, append=PLANES),
        "pairs": tables.pairs,
        "composed": tables.composed,
    }
    for name, table in (("fold", tables.fold), ("lower", tables.lower)):
        changed = np.flatnonzero(table != np.arange(PLANES)).astype(np.uint32)
        arrays |= {f"{name}_from": changed, f"{name}_to": table[changed]}
    return arrays


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, **packed(build()))
