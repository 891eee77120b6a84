"""What a token is: the two tokenizers, in plain Python, and a matcher of the same kind.

This module is the definition; :mod:`evenrank.text.matcher` does the same on bytes, hundreds of times
faster, and is tested against it. A few texts are counted here, before its compiled kernel is loaded.

Unicode as the tokenizers see it (what each character is, what it becomes in lower case) is shipped:
``data/unicode.npz``, made by ``tools/unicode_tables.py``, so that a text has the same tokens under every
version of Python.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Literal, NamedTuple, get_args

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
    if code < PLANES:
        return int(unicode_tables().kind[code])
    return LETTER if code in IDEOGRAPHS else SEPARATOR


def _folded(character: str) -> int:
    code = ord(character)
    return int(unicode_tables().fold[code]) if code < PLANES else code


def _lowered(character: str) -> str:
    code = ord(character)
    return chr(unicode_tables().lower[code]) if code < PLANES else character


def _append_mark(token: list[int], mark: int) -> None:
    tables = unicode_tables()
    pair = token[-1] << 21 | mark
    place = int(np.searchsorted(tables.pairs, pair))
    if place < len(tables.pairs) and tables.pairs[place] == pair:
        token[-1] = int(tables.composed[place])
    else:
        token.append(mark)


ENOUGH = 1 << 20
"""Bytes that are counted here; for more the kernel (half a second to load) is the quicker way."""
SLOW = 16
"""A character beyond ASCII counts as many: its text is cut character by character."""


class PlainMatcher:
    """Finds entries token by token, as :class:`evenrank.text.matcher.Matcher` says, as the kernel does."""

    def __init__(
        self,
        entries: Sequence[tuple[tuple[str, ...], bool]],
        memberships: Sequence[Sequence[int]],
        tokenizer: Tokenizer,
    ) -> None:
        self._tokenizer = tokenizer
        self._memberships = memberships
        self._words: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[tuple[str, ...], bool, int]]] = {}
        for number, (parts, is_open) in enumerate(entries):
            first, *rest = parts
            if rest:
                self._phrases.setdefault(first, []).append((tuple(rest), is_open, number))
            else:
                (self._prefixes if is_open else self._words)[first] = number
        for phrases in self._phrases.values():  # most tokens first, whole before open, long before short
            phrases.sort(key=lambda phrase: (-len(phrase[0]), phrase[1], -len(phrase[0][-1].encode())))
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def count(
        self, texts: Iterable[str | None], size: np.ndarray, counts: np.ndarray, logwords: np.ndarray
    ) -> None:
        """Fill size[n], counts[n, groups] and logwords[n, groups], as the kernel would."""
        for row, text in enumerate(texts):
            cut = tokens(text or "", self._tokenizer)
            size[row], counts[row], logwords[row] = len(cut), 0, 0.0
            for entry, times in Counter(self._entries(cut)).items():  # in the order of their first
                logarithm = math.log1p(times)
                for group in self._memberships[entry]:
                    counts[row, group] += times
                    logwords[row, group] += logarithm

    def _entries(self, cut: list[str]) -> Iterator[int]:
        if not (self._prefixes or self._phrases):
            yield from (self._words[token] for token in cut if token in self._words)
            return
        place = 0
        while place < len(cut):
            entry, width = self._at(cut, place)
            if entry is not None:
                yield entry
            place += width

    def _at(self, cut: list[str], place: int) -> tuple[int | None, int]:
        """The entry at a token, if any, and how many tokens it takes."""
        token = cut[place]
        for rest, is_open, number in self._phrases.get(token, ()):
            there = tuple(cut[place + 1 : place + 1 + len(rest)])
            if len(there) < len(rest) or there[:-1] != rest[:-1]:
                continue
            if there[-1].startswith(rest[-1]) if is_open else there[-1] == rest[-1]:
                return number, 1 + len(rest)
        if token in self._words:
            return self._words[token], 1
        prefixes = (token[:length] for length in self._lengths if length <= len(token))
        return next((self._prefixes[prefix] for prefix in prefixes if prefix in self._prefixes), None), 1
