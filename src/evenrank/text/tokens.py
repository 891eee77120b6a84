"""What a token is: the two tokenizers, in plain Python.

This module is the definition; :mod:`evenrank.text.kernel` does the same on bytes, hundreds of times
faster, and is tested against it.

Unicode as the tokenizers see it (what each character is, what it becomes in lower case) is shipped:
``data/unicode.npz``, made by ``tools/unicode_tables.py``, so that a text has the same tokens under every
version of Python.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple, get_args

import numpy as np

from evenrank.errors import InputError

SEPARATOR, LETTER, MARK, APOSTROPHE = 0, 1, 2, 3


class Unicode(NamedTuple):
    """Tables by code point."""

    version: str  # of the Unicode data
    kind: np.ndarray  # uint8: SEPARATOR, LETTER (letters and digits), MARK, APOSTROPHE
    fold: np.ndarray  # uint32, as far as 0x20000: one-to-one case folding, É → é, ς → σ
    lower: np.ndarray  # uint32, as far as 0x20000: str.lower where it gives one character
    pairs: np.ndarray  # int64[·, 2], sorted: folded letter << 21 | combining mark, and the letter they make


@cache
def unicode_tables() -> Unicode:
    """The tables that are shipped."""
    with resources.files("evenrank.text").joinpath("data/unicode.npz").open("rb") as file:
        stored = dict(np.load(file, allow_pickle=False))
    codes = np.arange(len(stored["fold"]), dtype=np.uint32)
    fold, lower = codes + stored["fold"], codes + stored["lower"]
    return Unicode(str(stored["version"]), stored["kind"], fold, lower, stored["pairs"])


@cache
def _compositions() -> dict[int, int]:
    return dict(unicode_tables().pairs.tolist())


Tokenizer = Literal["words", "whitespace"]

_WORDS = re.compile("L[LM]*")  # among kinds of characters
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
    codes = np.fromiter(map(ord, text), np.int64, len(text))
    fold = tables.lower if tokenizer == "whitespace" else tables.fold
    kinds = tables.kind[codes]
    folded = np.flatnonzero((codes < len(fold)) & (kinds != MARK))
    codes[folded] = fold[codes[folded]]
    characters = [*map(chr, codes.tolist())]
    if tokenizer == "whitespace":
        return [piece for piece in "".join(characters).split(" ") if piece]
    names = []
    classes = "".join("SLMA"[kind] for kind in kinds.tolist())
    for match in _WORDS.finditer(classes):
        first, last = match.span()
        is_single = classes.count("L", first, last) == 1
        if not (is_single and "A" in classes[max(0, first - 1) : last + 1]):
            names.append(_composed(characters[first:last]))
    return names


def _composed(characters: list[str]) -> str:
    """A token whose combining marks are one character with their letter, where there is such a one."""
    token = characters[:1]
    for character in characters[1:]:
        pair = ord(token[-1]) << 21 | ord(character)
        if pair in _compositions():
            token[-1] = chr(_compositions()[pair])
        else:
            token.append(character)
    return "".join(token)
