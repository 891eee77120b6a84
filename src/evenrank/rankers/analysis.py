"""From text to index terms, as Lucene's EnglishAnalyzer does it.

Texts are split into words by the rules of Unicode's text segmentation (UAX #29, which Lucene's
StandardTokenizer follows). Each distinct word is lower-cased, loses a possessive 's, is dropped if it is a
stop word, and stemmed. A compiled loop splits what is ASCII; of the rest, a regular expression with all the
rules splits each distinct piece once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evenrank.data.formats import text_lines
from evenrank.data.schema import show
from evenrank.errors import InputError
from evenrank.text.matcher import utf8

LUCENE_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)
"""The 33 English stop words of Lucene."""

_UNSTEMMED = 2  # words of so many letters stay as they are, as in Porter's own program and in Lucene
# Porter's measure m > 0: a vowel with a consonant behind it; y is a vowel behind a consonant.
_MEASURED = re.compile(r"[aeiou][^aeiou]|[^aeiou]y[^aeiou]")
_POSSESSIVES = ("'s", "’s", "\uff07s")

# Word boundaries of UAX #29, as a regular expression of Rust: ideographs and hiragana are words of their own;
# between two letters, or two digits, there may be one mark such as an apostrophe. Combining marks and
# invisible characters belong to the character before them.
_IDEOGRAPH = (
    r"[\x{3007}\x{3041}-\x{309F}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{323AF}"
    r"&&\p{L}\p{Nl}]"
)
_INVISIBLE = r"[\p{Cf}--\x{200B}]"
_MARKS = r"[\p{M}\p{Cf}--\x{200B}]*"
_LETTER = rf"[\p{{L}}\p{{Nl}}--{_IDEOGRAPH}]{_MARKS}"
_DIGIT = rf"\p{{Nd}}{_MARKS}"
_BETWEEN = ".'‘’\u2024\ufe52\uff07\uff0e"
_BETWEEN_LETTERS = rf"[{_BETWEEN}:·\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a]{_MARKS}"
_BETWEEN_DIGITS = (
    rf"[{_BETWEEN},;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b]{_MARKS}"
)
_WORD = (
    rf"{_IDEOGRAPH}{_MARKS}"
    rf"|(?:{_LETTER}(?:(?:{_BETWEEN_LETTERS})?{_LETTER})*"
    rf"|{_DIGIT}(?:(?:{_BETWEEN_DIGITS})?{_DIGIT})*"
    rf"|\p{{Pc}}{_MARKS})+"
)
_SOLID = r"[^\p{Pc}\p{M}\p{Cf}]"  # underscores alone are no word, nor with marks on them


class Words(NamedTuple):
    """Texts as numbers of words or terms, and the words or terms that they stand for."""

    numbers: np.ndarray  # int64: those of all texts, one text behind the other
    bounds: np.ndarray  # int64[texts + 1]: where each text begins in `numbers`
    vocabulary: list[str]  # by number; two may be the same


def words(texts: Any) -> Words:
    """Split texts (an Arrow array of strings or a sequence of str) into lower-cased words."""
    from evenrank.rankers.splitting import SPARE, expand, split_ascii

    data, places = utf8(texts)
    data = np.concatenate([data[places[0] : places[-1]], np.zeros(SPARE, np.uint8)])
    numbers, bounds, offsets, pool, is_word = split_ascii(data, places - places[0])
    buffers = pa.py_buffer(offsets), pa.py_buffer(pool)
    pieces = pl.Series(pa.LargeStringArray.from_buffers(len(is_word), *buffers))
    others = pl.DataFrame({"piece": np.flatnonzero(~is_word), "word": pieces.filter(~is_word)})
    others = others.with_columns(pl.col("word").str.extract_all(_WORD)).explode("word")
    spelled = pl.col("word").str.replace_all(_INVISIBLE, "").str.to_lowercase().str.normalize("NFC")
    others = others.with_columns(spelled).filter(pl.col("word").str.contains(_SOLID))
    piece = np.concatenate([np.flatnonzero(is_word), others["piece"].to_numpy()])
    vocabulary = pl.concat([pieces.filter(is_word).str.to_lowercase(), others["word"]])
    vocabulary = vocabulary.gather(np.argsort(piece, kind="stable"))
    firsts = np.searchsorted(np.sort(piece), np.arange(len(is_word) + 1))
    numbers, bounds = expand(numbers, bounds, firsts)
    return Words(numbers, bounds, vocabulary.to_list())


def split(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    >>> split("O'Neil's 3.5 U.S. points, e.g. 中文")
    ["o'neil's", '3.5', 'u.s', 'points', 'e.g', '中', '文']
    """
    found = words([text])
    return [found.vocabulary[number] for number in found.numbers.tolist()]


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

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order.

        >>> Analyzer().terms("The nurse's patients were running")
        ['nurs', 'patient', 'were', 'run']
        """
        found = self.analyze([text])
        return [found.vocabulary[number] for number in found.numbers.tolist()]

    def analyze(self, texts: Any) -> Words:
        """Return the terms of many texts."""
        from evenrank.rankers.splitting import expand

        found = words(texts)
        terms = self.normalized(found.vocabulary)
        firsts = np.cumsum([0, *(term is not None for term in terms)])
        numbers, bounds = expand(found.numbers, found.bounds, firsts)
        return Words(numbers, bounds, [term for term in terms if term is not None])

    def normalized(self, words: Sequence[str]) -> list[str | None]:
        """Return the term of each lower-cased word; None for a stop word."""
        kept = [word[:-2] if word.endswith(_POSSESSIVES) else word for word in words]
        if self.stemmer is None:
            return [None if word in self.stop_words or not word else word for word in kept]
        from Stemmer import Stemmer

        # Not shared: a stemmer of PyStemmer has a state. Nor its cache: the words here are distinct.
        stemmer = Stemmer(self.stemmer, 0)
        stems = stemmer.stemWords(kept)
        if self.stemmer == "porter":
            stems = [
                _lucene_stem(stem, stemmer) if stem.endswith(("logi", "bli")) else stem for stem in stems
            ]
        stop = self.stop_words
        return [
            None if word in stop or not word else word if len(word) <= _UNSTEMMED else stem
            for word, stem in zip(kept, stems, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """Return what is needed to analyze in the same way."""
        return {"tokenizer": "uax29", "stemmer": self.stemmer, "stop_words": sorted(self.stop_words)}


def _lucene_stem(stem: str, stemmer: Any) -> str:
    """Return a stem in -logi or -bli as Porter's own program and Lucene make it, unlike the paper.

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
    """Return stop words by name (``lucene``), from a file with one on each line, or as given."""
    if source is None:
        return frozenset()
    if isinstance(source, str) and source == "lucene":
        return LUCENE_STOP_WORDS
    if isinstance(source, (str, os.PathLike)):
        return frozenset(line.lower() for _, line in text_lines(source))
    return frozenset(word.lower() for word in source)
