"""From text to index terms, as Lucene's EnglishAnalyzer does it.

Words are cut by the rules of Unicode's text segmentation (UAX #29, which Lucene's StandardTokenizer
follows), lower-cased, freed of a possessive 's, then of stop words, and stemmed. The kernel cuts UTF-8 bytes
and numbers the words as they first appear; whatever else is done to words is done once to each distinct one.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenrank.data.formats import text_lines
from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.text.hashing import FREE, compiled, put_words, word_slot
from evenrank.text.kernel import composed, decode, encode
from evenrank.text.matcher import utf8
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
_WIDEST = 4 * (LONGEST + 2)
_FIRST_SLOTS = 1 << 12


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
    return Characters(kind, tables.lower, tables.pairs)


class Words(NamedTuple):
    """Texts as word numbers, and the words that these stand for."""

    numbers: np.ndarray  # int32: the words of all texts, one behind the other
    bounds: np.ndarray  # int64[texts + 1]: where each text begins in `numbers`
    distinct: pa.LargeStringArray  # the words by number


def words(texts: Any) -> Words:
    """Cut texts (an Arrow array of strings of any layout, or a sequence of str) into words."""
    data, places = utf8(texts)
    tables = characters()
    size = int(places[-1] - places[0])
    room = size // 2 + len(places)  # a word has a byte, and mostly a separator behind it
    numbers, bounds = np.empty(room, np.int32), np.zeros(len(places), np.int64)
    slots = np.empty(max(_FIRST_SLOTS, 1 << (2 * room).bit_length()), np.int32)
    offsets = np.zeros(room + 1, np.int64)
    pool, word = np.empty(2 * size + _WIDEST, np.uint8), np.zeros(_WIDEST, np.uint8)
    distinct = _cut(
        data,
        places,
        tables.kind,
        tables.lower,
        tables.pairs,
        word,
        numbers,
        bounds,
        slots,
        offsets,
        pool,
    )
    buffers = [pa.py_buffer(offsets[: distinct + 1]), pa.py_buffer(pool[: offsets[distinct]])]
    return Words(numbers[: bounds[-1]], bounds, pa.LargeStringArray.from_buffers(distinct, *buffers))


def split(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    >>> split("O'Neil's 3.5 U.S. points, e.g. 中文")
    ["o'neil's", '3.5', 'u.s', 'points', 'e.g', '中', '文']
    """
    cut = words([text])
    distinct = cut.distinct.to_pylist()
    return [distinct[number] for number in cut.numbers.tolist()]


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


@compiled
def _kind_of(kinds: Any, code: Any) -> Any:
    if code < len(kinds):
        return np.int64(kinds[code])
    return np.int64(IDEOGRAPH) if 0x20000 <= code < 0x323B0 else np.int64(SEPARATOR)


@compiled
def _kind_behind(kinds: Any, data: Any, position: Any, end: Any) -> Any:
    """The class of the next character that is not silent or a mark."""
    while position < end:
        code, width = decode(data, position, end)
        kind = _kind_of(kinds, code)
        if kind not in (SILENT, MARK):
            return kind
        position += width
    return np.int64(SEPARATOR)


@compiled
def _next_word(data: Any, position: Any, end: Any, kinds: Any, lower: Any, pairs: Any, word: Any) -> Any:
    """Put the next word into `word`: (its size in bytes, where it ends); the size is 0 at the end."""
    size, count = 0, 0  # bytes and characters
    solid = False
    previous = np.int64(SEPARATOR)
    letter, before = np.int64(-1), 0  # the last character, and the size before it
    while position < end:
        byte = np.int64(data[position])
        if byte < 0x80:
            code, width = byte, 1
            kind = np.int64(kinds[byte])
        else:
            code, width = decode(data, position, end)
            kind = _kind_of(kinds, code)
        if kind in (LETTER, DIGIT, UNDERSCORE):
            if previous == IDEOGRAPH or count >= LONGEST:
                if solid:
                    return size, position
                size, count = 0, 0
            previous = kind
            solid = solid or kind != UNDERSCORE
        elif kind == SEPARATOR:
            if solid:
                return size, position + width
            size, count, previous = 0, 0, np.int64(SEPARATOR)
            position += width
            continue
        elif kind == SILENT:
            position += width
            continue
        elif kind == MARK and count > 0:
            joined = composed(pairs, letter, code)
            if joined >= 0:
                letter, size = joined, before
                size = encode(letter, word, size)
            elif count < LONGEST:
                letter, before = code, size
                size = encode(letter, word, size)
                count += 1
            position += width
            continue
        elif kind == IDEOGRAPH:
            if solid:
                return size, position
            size = encode(code, word, 0)
            solid, previous, count, letter, before = True, kind, 1, code, 0
            position += width
            continue
        else:
            behind = np.int64(SEPARATOR)
            if kind >= MID_LETTER and previous in (LETTER, DIGIT):
                behind = _kind_behind(kinds, data, position + width, end)
            letters = behind == LETTER and previous == LETTER and kind != MID_NUMBER
            digits = behind == DIGIT and previous == DIGIT and kind != MID_LETTER
            if not (letters or digits):
                if solid:
                    return size, position + width
                size, count, previous = 0, 0, np.int64(SEPARATOR)
                position += width
                continue
            if count >= LONGEST:
                return size, position
            previous = kind
        before = size
        if byte < 0x80:
            letter = byte | 0x20 if 0x41 <= byte <= 0x5A else byte
            word[size] = letter
            size += 1
        else:
            letter = np.int64(lower[code]) if code < len(lower) else code
            size = encode(letter, word, size)
        count += 1
        position += width
    return (size if solid else 0), position


@compiled
def _cut(
    data: Any, places: Any, kinds: Any, lower: Any, pairs: Any, word: Any,
    numbers: Any, bounds: Any, slots: Any, offsets: Any, pool: Any,
) -> Any:  # fmt: skip
    """Fill the other arrays with the words of the texts data[places[i]:places[i + 1]]; how many differ.

    The hash table uses the first part of `slots`, which grows with the words.
    """
    distinct, count = np.int64(0), np.int64(0)
    table = slots[:_FIRST_SLOTS]
    table[:] = FREE
    for row in range(len(places) - 1):
        position, end = places[row], places[row + 1]
        while position < end:
            size, position = _next_word(data, position, end, kinds, lower, pairs, word)
            if size == 0:
                break
            slot = word_slot(table, offsets, pool, word, 0, size)
            number = np.int64(table[slot])
            if number == FREE:
                number = distinct
                begin = offsets[number]
                for i in range(size):
                    pool[begin + i] = word[i]
                offsets[number + 1] = begin + size
                table[slot] = number
                distinct += 1
                if 2 * distinct > len(table):
                    table = slots[: 2 * len(table)]
                    put_words(table, offsets, pool, distinct)
            numbers[count] = number
            count += 1
        bounds[row + 1] = count
    return distinct
