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

from evenrank.text.tokens import APOSTROPHE, LETTER, MARK, SEPARATOR, Unicode

APOSTROPHES = "'‘’ʼ＇"
PLANES = 0x20000
"""The planes that have case; above them only ideographs are letters."""
IDEOGRAPHS = slice(0x20000, 0x323B0)
CODES = 1 << 21  # that four bytes of UTF-8 can give
TARGET = Path(__file__).parent.parent / "src" / "evenrank" / "text" / "data" / "unicode.npz"


def build() -> Unicode:
    """The tables as this Python's Unicode data has them."""
    characters = [chr(code) for code in range(PLANES)]
    category = unicodedata.category
    kinds = {"L": LETTER, "N": LETTER, "M": MARK}
    kind = np.full(CODES, SEPARATOR, np.uint8)
    kind[:PLANES] = [kinds.get(category(c)[0], SEPARATOR) for c in characters]
    kind[IDEOGRAPHS] = LETTER
    kind[[ord(c) for c in APOSTROPHES]] = APOSTROPHE
    fold = np.array([ord(_fold(c)) for c in characters], np.uint32)
    lower = np.array([ord(c.lower()) if len(c.lower()) == 1 else ord(c) for c in characters], np.uint32)
    pairs = np.array(sorted(_compositions(characters)), np.int64)
    return Unicode(unicodedata.unidata_version, kind, fold, lower, pairs)


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
    """The tables as they are stored: of letters that become others, by how much."""
    codes = np.arange(PLANES, dtype=np.uint32)
    return {**tables._asdict(), "fold": tables.fold - codes, "lower": tables.lower - codes}


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, **packed(build()))
