"""What a static classifier knows about words before it has seen a query: names, lists, leanings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.queries import feature_kernel as kernel
from evenrank.queries import feature_passes
from evenrank.queries.words import (
    SAID,
    census_names,
    gendered_words,
    place_words,
    plain_queries,
    term_groups,
)
from evenrank.text.hashing import slots_for
from evenrank.vectors.gendered import genderedness
from evenrank.vectors.texts import COMMON_WORDS, stop_words

Array = npt.NDArray[Any]

PARTS = {
    "words": kernel.WORDS,
    "pairs": kernel.PAIRS,
    "letters": kernel.LETTERS,
    "contexts": kernel.CONTEXTS,
    "names": kernel.NAMES,
    "lexicon": kernel.LEXICON,
    "terms": kernel.TERMS,
    "genderedness": kernel.LEANING,
}
"""Groups of features that can be left out; ``vectors`` is one more."""
SCALES = (2.0, 1.0, 2.0, 2.0, 1.0)
"""Lengths of the words, pairs, letters and contexts of a query; of how it begins, with whom it names."""

# Words that shape a question, kept as they are in the patterns of kinds ("who is GIVEN SURNAME").
_SHAPING = frozenset(
    """a an the of to in on for is are was were be been do does did how what when where who why which can
    will would should could i you your my me we it its he she his her and or with from by at as that this if
    have has had not s t""".split()
)
_TURNS = frozenset(("in", "on", "from"))  # what follows tells less about whom a query is about
_MAKES = frozenset(  # after *who*: a title follows
    "sang sings sung wrote writes directed directs produced composed recorded performed starred stars".split()
)
_COMMON, _KNOWN, _FAMILIAR = 1500, 3000, 20_000  # places in a vocabulary sorted by frequency
_KINDS = {
    kind: number
    for number, kind in enumerate(
        "none F f M m A a surname word lexicon-female lexicon-male common known rare doubtful".split()
    )
}


@dataclass(frozen=True, eq=False)
class WordTable:
    """Facts about words, looked up by a hash of their bytes.

    Attributes
    ----------
    keys
        FNV-1a, 64 bits; no word can be read from it, but every word can be found.
    kind, bits
        What the word is in patterns, and where it is listed (the constants of the kernel).
    lean, frequency
        Of a given name: log odds of female against male, and how common it is.
    gender
        Genderedness; 0 where unknown.
    """

    keys: Array
    kind: Array
    bits: Array
    lean: Array
    frequency: Array
    gender: Array

    def arrays(self) -> dict[str, Array]:
        """To be saved."""
        return {name: getattr(self, name) for name in ("keys", "kind", "bits", "lean", "frequency", "gender")}

    @cached_property
    def slots(self) -> Array:
        return np.asarray(slots_for(self.keys))

    @cached_property
    def facts(self) -> tuple[Array, ...]:
        """As the kernel takes them."""
        floats = (np.ascontiguousarray(x, np.float64) for x in (self.lean, self.frequency, self.gender))
        return (self.kind, self.bits, *floats)


def build_table(ranked: Sequence[str], *, parts: Iterable[str]) -> tuple[WordTable, list[str]]:
    """The table for the words of some vectors and for all names and lists, and the word of each row.

    Parameters
    ----------
    ranked
        The vocabulary of the vectors, the most frequent first. If it is empty, nothing is known about how
        common a word is.
    parts
        What to use of names, lexicon, terms, genderedness.
    """
    parts = set(parts)
    names = census_names() if "names" in parts else {}
    lexicon = gendered_words() if "lexicon" in parts else {}
    leaning = genderedness() if "genderedness" in parts else None
    lists = (
        *_SHAPING,
        *_MAKES,
        *frozenset().union(*SAID),
        *stop_words(),
        *place_words(),
        *plain_queries()["work_words"],
    )
    words = list(dict.fromkeys((*ranked, *lists, *names, *lexicon)))
    if leaning is not None:
        words = list(dict.fromkeys((*words, *leaning.words)))
    words = [word for word in words if word.isalnum()]
    terms = term_groups(words) if "terms" in parts else {}
    doubtful, telling = COMMON_WORDS | stop_words(), place_words()
    works = frozenset(plain_queries()["work_words"])
    place = {word: rank for rank, word in enumerate(ranked)}
    kind, bits = np.zeros(len(words), np.uint8), np.zeros(len(words), np.uint16)
    lean, frequency = np.zeros(len(words), np.float16), np.zeros(len(words), np.float16)
    for row, word in enumerate(words):
        name, rank = names.get(word), place.get(word)
        kind[row] = _KINDS[_kind(word, name, rank, lexicon)]
        flags = kernel.STOP if word in _SHAPING else 0
        flags |= kernel.TURN if word in _TURNS or word in _MAKES else 0
        flags |= kernel.WORK if word in works or word in _MAKES else 0
        flags |= kernel.VECTOR if rank is not None else 0
        if name is not None:
            flags |= (kernel.GIVEN if name.given else 0) | (kernel.SURNAME if name.surname else 0)
            flags |= kernel.DOUBTFUL if word in doubtful else 0
        if word in telling or (rank is not None and rank < _COMMON and not (name and name.given)):
            flags |= kernel.PLAIN
        for source, female, male in (
            (lexicon, kernel.LEX_FEMALE, kernel.LEX_MALE),
            (terms, kernel.TERM_FEMALE, kernel.TERM_MALE),
        ):
            if word in source:
                flags |= female if source[word] == "female" else male
        if "lexicon" in parts:
            flags |= sum(kernel.SAID << side for side, said in enumerate(SAID) if word in said)
        bits[row] = flags
        if name is not None and name.given:
            lean[row] = name.lean
            frequency[row] = math.log1p(1000 * max(name.female, name.male)) / 5
    gender = np.zeros(len(words)) if leaning is None else np.nan_to_num(leaning.of(words))
    keys = feature_passes.hashes(*packed_bytes(words))
    keys, order = np.unique(keys, return_index=True)
    columns = (kind, bits, lean, frequency, gender.astype(np.float16))
    return WordTable(keys, *(column[order] for column in columns)), [words[row] for row in order]


def _kind(word: str, name: Any, rank: int | None, lexicon: dict[str, str]) -> str:
    if word in lexicon:
        return f"lexicon-{lexicon[word]}"
    if name is not None and name.given and word in COMMON_WORDS:
        return "doubtful"
    if name is not None and name.given:
        letter = "F" if name.lean > 1.5 else "M" if name.lean < -1.5 else "A"
        return letter if max(name.female, name.male) >= 0.004 else letter.lower()
    if name is not None:
        return "word" if rank is not None and rank < _KNOWN else "surname"
    if rank is None:
        return "none"
    return "common" if rank < _KNOWN else "known" if rank < _FAMILIAR else "rare"


def packed_bytes(texts: Sequence[str]) -> tuple[Array, Array]:
    """The texts as one array of bytes, and where each begins and ends."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded) or b" ", np.uint8), offsets


def switches(parts: Iterable[str]) -> int:
    """The bits of these groups of features."""
    return sum(PARTS[part] for part in set(parts) if part in PARTS)
