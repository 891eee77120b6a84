"""What a token is: the two tokenizers, in plain Python.

This module is the definition; :mod:`evenrank.text.kernel` does the same on bytes, hundreds of times
faster, and is tested against it.

Unicode as the tokenizers see it (what each character is, what it becomes in lower case) is shipped:
``data/unicode.npz``, made by ``tools/unicode_tables.py``, so that a text has the same tokens under every
version of Python.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Literal, NamedTuple, get_args

import numpy as np

from evenrank.errors import InputError

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


def _mapped(characters: np.ndarray, becoming: np.ndarray) -> np.ndarray:
    table = np.arange(PLANES, dtype=np.uint32)
    table[characters] = becoming
    return table


Tokenizer = Literal["words", "whitespace"]

# The same of texts in ASCII, in one search: a single letter beside an apostrophe is no token.
_ASCII_WORDS = re.compile(r"[a-z0-9]{2,}|(?<!')[a-z0-9](?!')")


def check_tokenizer(name: str) -> Tokenizer:
    """The name itself if it is a tokenizer's, else an error that lists them."""
    if name not in get_args(Tokenizer):
        raise InputError(f"unknown tokenizer {name!r}; choose one of: {', '.join(get_args(Tokenizer))}")
    return name  # type: ignore[return-value]


def tokens(text: str, tokenizer: Tokenizer = "words") -> list[str]:
    """The tokens of a text, folded to lower case.

    Parameters
    ----------
    text
        Any text.
    tokenizer
        ``words``: maximal runs of letters and digits, with the combining marks that belong to them.
        Apostrophes and hyphens separate; a single letter beside an apostrophe is no token, so that
        "he's" is *he* and "l'homme" is *homme*. ``whitespace``: lower-cased pieces between single
        spaces, punctuation and all, as in the released code of Rekabsaz & Schedl (2020).

    Examples
    --------
    >>> tokens("Dell'uomo, She'll (HER)")
    ['dell', 'uomo', 'she', 'll', 'her']
    >>> tokens("she said: (her) son.", "whitespace")
    ['she', 'said:', '(her)', 'son.']
    """
    if text.isascii():
        text = text.lower()
        return _ASCII_WORDS.findall(text) if tokenizer == "words" else [p for p in text.split(" ") if p]
    tables = unicode_tables()
    if tokenizer == "whitespace":
        lowered = (chr(tables.lower[ord(c)]) if ord(c) < PLANES else c for c in text)
        return [piece for piece in "".join(lowered).split(" ") if piece]
    names: list[str] = []
    token: list[int] = []
    beside = False  # does the token stand beside an apostrophe
    letters = 0
    for code in [*map(ord, text), ord(" ")]:
        kind = LETTER if code in IDEOGRAPHS else SEPARATOR
        folded = code
        if code < PLANES:
            kind, folded = int(tables.kind[code]), int(tables.fold[code])
        if kind == LETTER:
            token.append(folded)
            letters += 1
        elif kind == MARK and token:
            _append_mark(token, code)
        else:
            if token and not (letters == 1 and (beside or kind == APOSTROPHE)):
                names.append("".join(map(chr, token)))
            token, letters = [], 0
            beside = kind == APOSTROPHE
    return names


def _append_mark(token: list[int], mark: int) -> None:
    tables = unicode_tables()
    pair = token[-1] << 21 | mark
    place = int(np.searchsorted(tables.pairs, pair))
    if place < len(tables.pairs) and tables.pairs[place] == pair:
        token[-1] = int(tables.composed[place])
    else:
        token.append(mark)
