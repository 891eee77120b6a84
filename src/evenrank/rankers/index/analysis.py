"""From text to index terms, as Lucene's EnglishAnalyzer does it: the definition, in plain Python.

Words are cut by the rules of Unicode's text segmentation (UAX #29, which Lucene's StandardTokenizer
follows), lower-cased, freed of a possessive 's, then of stop words, and stemmed.
:mod:`evenrank.rankers.index.tokenizing` cuts on bytes, a hundred times faster, and is tested against this.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from evenrank.data.formats import text_lines
from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.text.tokens import unicode_tables

# The classes of characters that the rules speak of. IDEOGRAPH: a word of its own. SILENT: a soft hyphen and
# the like, which neither part words nor belong to them.
SEPARATOR, LETTER, DIGIT, UNDERSCORE, MARK, SILENT, IDEOGRAPH, MID_LETTER, MID_NUMBER, MID_BOTH = range(10)

LONGEST = 255
"""Characters of a word; what is longer is cut into pieces, as Lucene does."""

LUCENE_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)
"""The 33 English stop words of Lucene."""

_PLANES = 0x20000
_MIDDLE = {
    MID_LETTER: ":·\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a",
    MID_NUMBER: ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b",
    MID_BOTH: ".'‘’\u2024\ufe52\uff07\uff0e",
}
_IDEOGRAPHS = ((0x3007, 0x3008), (0x3041, 0x30A0), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00))
_UNSTEMMED = 2  # words of so many letters stay as they are, as in Porter's own program and in Lucene
_VERSION = 2  # of the rules from text to terms; an index made by other rules is not opened
# Porter's measure m > 0: a vowel with a consonant behind it; y is a vowel behind a consonant.
_MEASURED = re.compile(r"[aeiou][^aeiou]|[^aeiou]y[^aeiou]")
_ZERO_WIDTH_SPACE = 0x200B
_POSSESSIVES = ("'s", "’s", "\uff07s")


class Characters(NamedTuple):
    """Tables by code point, up to 0x20000; above, all that Unicode calls a letter is an ideograph."""

    kind: np.ndarray  # uint8
    lower: np.ndarray  # uint32
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | combining mark, and the letter they make


@lru_cache(maxsize=1)
def characters() -> Characters:
    """The tables, from Python's own Unicode data."""
    tables = unicode_tables()
    classes = {"L": LETTER, "M": MARK, "Nd": DIGIT, "Nl": LETTER, "Pc": UNDERSCORE, "Cf": SILENT}
    kind = np.zeros(_PLANES, np.uint8)
    for code in range(_PLANES):
        category = unicodedata.category(chr(code))
        kind[code] = classes.get(category) or classes.get(category[0], SEPARATOR)
    for first, behind in _IDEOGRAPHS:
        kind[first:behind] = np.where(kind[first:behind] == LETTER, IDEOGRAPH, kind[first:behind])
    for middle, marks in _MIDDLE.items():
        kind[[ord(mark) for mark in marks]] = middle
    kind[_ZERO_WIDTH_SPACE] = SEPARATOR
    pairs = np.stack([tables.pairs, tables.composed.astype(np.int64)], axis=1)
    return Characters(kind, tables.lower, pairs)


def split(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> split("O'Neil's 3.5 U.S. points, e.g. 中文")
    ["o'neil's", '3.5', 'u.s', 'points', 'e.g', '中', '文']
    """
    names: list[str] = []
    word: list[int] = []
    solid, previous, middle = False, SEPARATOR, 0  # a letter or digit in it? the last one's class
    kinds = [_kind(character) for character in text]

    def finish() -> None:
        nonlocal solid, previous
        if word and solid:
            names.append("".join(map(chr, word)))
        word.clear()
        solid, previous = False, SEPARATOR

    for place, (character, kind) in enumerate(zip(text, kinds, strict=True)):
        if kind == SILENT:
            continue
        if kind == MARK and word:
            _append_mark(word, ord(character))
            continue
        if kind == IDEOGRAPH:
            finish()
            word.append(ord(character))
            solid, previous = True, IDEOGRAPH
            continue
        middle = _next_kind(kinds, place + 1) if kind >= MID_LETTER else SEPARATOR
        joins = (middle == previous == LETTER and kind != MID_NUMBER) or (
            middle == previous == DIGIT and kind != MID_LETTER
        )
        if kind in (LETTER, DIGIT, UNDERSCORE) or joins:
            if previous == IDEOGRAPH or len(word) >= LONGEST:
                finish()
            word.append(_lower(character))
            solid = solid or kind in (LETTER, DIGIT)
            previous = kind
        else:
            finish()
    finish()
    return names


def _next_kind(kinds: Sequence[int], place: int) -> int:
    """The class of the next character that is not silent or a mark."""
    while place < len(kinds) and kinds[place] in (SILENT, MARK):
        place += 1
    return kinds[place] if place < len(kinds) else SEPARATOR


def _kind(character: str) -> int:
    code = ord(character)
    if code < _PLANES:
        return int(characters().kind[code])
    return IDEOGRAPH if 0x20000 <= code < 0x323B0 else SEPARATOR


def _lower(character: str) -> int:
    code = ord(character)
    return int(characters().lower[code]) if code < _PLANES else code


def _append_mark(word: list[int], mark: int) -> None:
    pairs = characters().pairs
    pair = word[-1] << 21 | mark
    place = int(np.searchsorted(pairs[:, 0], pair))
    if place < len(pairs) and pairs[place, 0] == pair:
        word[-1] = int(pairs[place, 1])
    elif len(word) < LONGEST:
        word.append(mark)


class Analyzer:
    """How texts become terms: the same for the documents of an index and for the queries put to it.

    Attributes
    ----------
    stemmer
        ``porter`` (Porter 1980), another algorithm that PyStemmer knows, or None.
    stop_words
        Words that are no terms; they do not count towards the length of a document either.
    """

    def __init__(
        self, *, stemmer: str | None = "porter", stop_words: Iterable[str] = LUCENE_STOP_WORDS
    ) -> None:
        self.stemmer = stemmer
        self.stop_words = frozenset(stop_words)
        if stemmer is not None:
            from Stemmer import algorithms

            known = algorithms(aliases=True)
            if stemmer not in known:
                raise InputError(f"unknown stemmer {show(stemmer)}; choose one of: {', '.join(algorithms())}")

    def __getstate__(self) -> dict[str, Any]:
        return {"stemmer": self.stemmer, "stop_words": self.stop_words}

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order.

        >>> Analyzer().terms("The nurse's patients were running")
        ['nurs', 'patient', 'were', 'run']
        """
        return [term for term in self.normalized(split(text)) if term is not None]

    def normalized(self, words: Sequence[str]) -> list[str | None]:
        """What becomes of each lower-cased word: a term, or None where it is a stop word."""
        kept = [word[:-2] if word.endswith(_POSSESSIVES) else word for word in words]
        if self.stemmer is None:
            return [None if word in self.stop_words or not word else word for word in kept]
        from Stemmer import Stemmer

        # Not shared: a stemmer of PyStemmer has a state. Nor its cache: the words here are distinct.
        stemmer = Stemmer(self.stemmer, 0)
        stems = stemmer.stemWords(kept)
        if self.stemmer == "porter":
            stems = [_departed(stem, stemmer) if stem.endswith(("logi", "bli")) else stem for stem in stems]
        stop = self.stop_words
        return [
            None if word in stop or not word else word if len(word) <= _UNSTEMMED else stem
            for word, stem in zip(kept, stems, strict=True)
        ]

    @cached_property
    def description(self) -> dict[str, Any]:
        """What a reader needs to analyse the same way."""
        return {
            "version": _VERSION,
            "tokenizer": "uax29",
            "unicode": unicodedata.unidata_version,
            "stemmer": self.stemmer,
            "unstemmed": f"words of up to {_UNSTEMMED} letters",
            "stop_words": sorted(self.stop_words),
        }

    @classmethod
    def of(cls, description: dict[str, Any]) -> Analyzer:
        """The analyzer that was so described; InputError where terms were made by other rules."""
        if description.get("version") != _VERSION:
            raise InputError("made by another version of evenrank, whose terms differ; build it again")
        return cls(stemmer=description["stemmer"], stop_words=description["stop_words"])


def _departed(stem: str, stemmer: Any) -> str:
    """A stem in -logi or -bli as Porter's own program and Lucene make it, which depart from the paper.

    In step 2 they turn -logi into -log and -bli into -ble, where the paper knows only -abli; so ideology
    meets ideological, and possibly meets possible. PyStemmer keeps to the paper.
    """
    ending, becomes = ("logi", "log") if stem.endswith("logi") else ("bli", "ble")
    before = stem.removesuffix(ending)
    if not _MEASURED.search(before):
        return stem
    built: str = before + becomes if ending == "logi" else stemmer.stemWord(before + becomes)
    return built


def read_stop_words(source: str | os.PathLike[str] | Iterable[str] | None) -> frozenset[str]:
    """Stop words by name (``lucene``), from a file with one on each line, or as they are; None: none."""
    if source is None:
        return frozenset()
    if isinstance(source, str) and source == "lucene":
        return LUCENE_STOP_WORDS
    if isinstance(source, (str, os.PathLike)):
        return frozenset(line.lower() for _, line in text_lines(source))
    return frozenset(word.lower() for word in source)
