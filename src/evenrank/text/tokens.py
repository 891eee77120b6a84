"""What a token is: the two tokenizers, in plain Python, and the Unicode tables they share with the kernel.

This module is the definition; :mod:`evenrank.text.matcher` does the same on bytes, hundreds of times
faster, and is tested against it.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np

from evenrank.errors import InputError

Tokenizer = Literal["words", "whitespace"]

SEPARATOR, LETTER, MARK, APOSTROPHE = 0, 1, 2, 3

_APOSTROPHES = "'‘’ʼ＇"
_PLANES = 0x20000  # the planes that have case; above them only ideographs are letters
_IDEOGRAPHS = range(0x20000, 0x323B0)


class Unicode(NamedTuple):
    """Tables by code point, as far as code point 0x20000."""

    kind: np.ndarray  # uint8: SEPARATOR, LETTER (letters and digits), MARK, APOSTROPHE
    fold: np.ndarray  # uint32: one-to-one case folding, É → é, ς → σ
    lower: np.ndarray  # uint32: str.lower where it gives one character
    pairs: np.ndarray  # int64, sorted: folded letter << 21 | combining mark …
    composed: np.ndarray  # uint32: … and the letter they make together


@lru_cache(maxsize=1)
def unicode_tables() -> Unicode:
    """The tables, built from Python's own Unicode data (some 50 ms, once)."""
    characters = [chr(code) for code in range(_PLANES)]
    category = unicodedata.category
    kinds = {"L": LETTER, "N": LETTER, "M": MARK}
    kind = np.array([kinds.get(category(c)[0], SEPARATOR) for c in characters], np.uint8)
    kind[[ord(c) for c in _APOSTROPHES]] = APOSTROPHE
    fold = np.array([ord(_fold(c)) for c in characters], np.uint32)
    lower = np.array([ord(c.lower()) if len(c.lower()) == 1 else ord(c) for c in characters], np.uint32)
    compositions = sorted(_compositions(characters))
    pairs = np.array([pair for pair, _ in compositions], np.int64)
    composed = np.array([code for _, code in compositions], np.uint32)
    return Unicode(kind, fold, lower, pairs, composed)


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
    if tokenizer == "whitespace":
        return [piece for piece in "".join(map(_lowered, text)).split(" ") if piece]
    found: list[str] = []
    token: list[int] = []
    beside = False  # does the token stand beside an apostrophe
    letters = 0
    for character in [*text, " "]:
        kind = _kind(character)
        if kind == LETTER:
            token.append(_folded(character))
            letters += 1
        elif kind == MARK and token:
            _append_mark(token, ord(character))
        else:
            if token and not (letters == 1 and (beside or kind == APOSTROPHE)):
                found.append("".join(map(chr, token)))
            token, letters = [], 0
            beside = kind == APOSTROPHE
    return found


def _kind(character: str) -> int:
    code = ord(character)
    if code < _PLANES:
        return int(unicode_tables().kind[code])
    return LETTER if code in _IDEOGRAPHS else SEPARATOR


def _folded(character: str) -> int:
    code = ord(character)
    return int(unicode_tables().fold[code]) if code < _PLANES else code


def _lowered(character: str) -> str:
    code = ord(character)
    return chr(unicode_tables().lower[code]) if code < _PLANES else character


def _append_mark(token: list[int], mark: int) -> None:
    tables = unicode_tables()
    pair = token[-1] << 21 | mark
    place = int(np.searchsorted(tables.pairs, pair))
    if place < len(tables.pairs) and tables.pairs[place] == pair:
        token[-1] = int(tables.composed[place])
    else:
        token.append(mark)
