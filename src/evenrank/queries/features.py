"""A query as numbers for a linear model, such that queries about women and about men look alike.

Gendered words and given names are not read as they are but as what they mean for the query: the gender of the
first one is its *own* gender (+), the other gender is −. *How old is mary* and *how old is james* therefore
have the same features, and a model that says of one whether it is about a person says the same of the other.
Which gender it is, the words themselves tell.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import xxhash
from scipy.sparse import csr_matrix

from evenrank.queries.words import (
    census_names,
    clear_names,
    explicit_words,
    gendered_words,
    mirrored_names,
    mirrored_words,
    place_words,
    plain_queries,
    term_groups,
)
from evenrank.vectors.gendered import genderedness
from evenrank.vectors.texts import stop_words

BUCKETS = 1 << 16
"""Hashed features: pairs of words, letters, patterns."""
WORD_LENGTH, PAIR_LENGTH, LETTER_LENGTH, PATTERN_LENGTH = 2.0, 1.0, 2.0, 2.0
"""Euclidean length of each group of features, however long the query."""
COMMON, KNOWN, ORDINARY, FAMILIAR = 1_500, 3_000, 7_000, 20_000
"""Ranks in a vocabulary that is sorted by frequency."""

LEANINGS = 4
"""Columns for the genderedness of a query's words."""

LONGEST = 1_000
"""Characters of a query that are looked at; what follows is left out, and a note says so."""

_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W_]")
_FOREIGN = re.compile(r"[^\x00-\x7f\w]+")
_COMMON_NAME = 0.004  # per cent of people
_LEANING = 5.0
_USUAL = 8  # words of a query
# Words that shape a question, kept as they are in patterns ("who is NAME SURNAME").
_SHAPING = frozenset(
    """a an the of to in on for is are was were be been do does did how what when where who why which can
    will would should could i you your my me we it its or and with from by at as that this if
    have has had not s t""".split()
)
_ROLES = frozenset("actor actors actress actresses waiter waiters waitress waitresses".split())  # jobs, too
_TURNS = frozenset(("in", "on", "from"))  # what follows tells less about whom a query is about
_MAKES = frozenset(  # after *who*: a title follows
    "sang sings sung wrote writes directed directs produced composed recorded performed starred stars".split()
)


def clean(text: str) -> str:
    """A query as classifiers see it: the first :data:`LONGEST` characters, lower case, single blanks.

    Beyond ASCII only letters, marks of letters and digits stay: an emoji or a typographic quote is a blank.
    Without a letter or digit nothing stays at all.
    """
    text = text[:LONGEST].lower()
    if not text.isascii():
        text = _FOREIGN.sub(" ", unicodedata.normalize("NFC", text.replace("’", "'")))
    return " ".join(text.split()) if _LETTER.search(text) else ""


GROUP_WORDS = frozenset("female females women girls gals male males men boys lads".split())
"""Words of rekabsaz2020 that mean many, which hardly stand in names or titles."""


class Cue(NamedTuple):
    """A word that tells a gender: where it stands, what it is, and which gender."""

    place: int
    kind: str
    gender: str


class Reading(NamedTuple):
    """The words of a query, the symbol that stands for each in patterns, and what tells a gender.

    Kinds of cues: `explicit` (a word of rekabsaz2020), `term` (another word that has a mirror image, as king
    and queen), `name`, and `hint` (a gendered word without a mirror image, as pregnancy). Names count only
    where there are no words, and hints where there are neither: *mary's father* is about a man, and so is
    *can a man get pregnant*. Hidden are the places of cues and of other
    given names: features hold their symbols, not the words.
    """

    words: list[str]
    symbols: list[str]
    cues: list[Cue]
    hidden: frozenset[int]
    turn: int

    @property
    def gender(self) -> str | None:
        """The gender of the first cue."""
        return self.cues[0].gender if self.cues else None

    @property
    def is_explicit(self) -> bool:
        return any(cue.kind == "explicit" for cue in self.cues)

    @property
    def names_a_group(self) -> bool:
        """Whether it speaks of women or men in general."""
        return any(cue.kind == "explicit" and self.words[cue.place] in GROUP_WORDS for cue in self.cues)

    @property
    def names_both(self) -> bool:
        """Whether it holds words of both genders, or names a woman and a man before it turns."""
        genders = {cue.gender for cue in self.cues if cue.kind != "name" or cue.place < self.turn}
        return len(genders) == 2


class Features:
    """Reads queries, and makes a sparse row of numbers of each.

    Parameters
    ----------
    vocabulary
        Words that have a column of their own, the most frequent first.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = list(vocabulary)
        self._rank = {word: rank for rank, word in enumerate(self.vocabulary)}
        self.columns = BUCKETS + len(self.vocabulary) + LEANINGS
        table = genderedness()
        values = zip(table.words, (_LEANING * table.values).tolist(), strict=True)
        self._leaning = {word: value for word, value in values if word not in stop_words()}
        self._known = lru_cache(1 << 17)(self._look_up)
        self._plain = lru_cache(1 << 17)(self._is_plain)
        self._lists = plain_queries()["work_words"], place_words()
        from evenrank.mitigate.swap_words import word_sets

        self._places, self._before_places = word_sets()["places"], word_sets()["before_places"]

    def read(self, text: str) -> Reading:
        """The words of a cleaned query, and what tells a gender."""
        words = _WORD.findall(text)
        facts = [self._known(word) for word in words]
        has_words = any(kind in ("explicit", "term") for kind, _, _ in facts)
        symbols: list[str] = []
        cues: list[Cue] = []
        hidden: set[int] = set()
        last_name = -2
        for place, (kind, symbol, gender) in enumerate(facts):
            if kind == "doubtful" and not (place + 1 < len(words) and self._is_surname(words[place + 1])):
                kind, symbol = "", "doubtful"
            if kind:
                hidden.add(place)
            if kind in ("name", "doubtful"):
                if place and words[place - 1] in self._before_places:
                    kind, symbol = "", "place"
                elif last_name == place - 1 or has_words:
                    kind, symbol = "", "surname"
                if symbol != "place":
                    last_name = place
            symbols.append(symbol)
            if kind:
                cues.append(Cue(place, "name" if kind == "doubtful" else kind, gender))
        if any(cue.kind != "hint" for cue in cues):
            cues = [cue for cue in cues if cue.kind != "hint"]
        own = cues[0].gender if cues else ""
        for cue in cues:
            symbols[cue.place] += "+" if cue.gender == own else "-"
        return Reading(words, symbols, cues, frozenset(hidden), _turn(words))

    def matrix(self, readings: Sequence[Reading]) -> Any:
        """One sparse row for each query."""
        columns: list[Any] = []  # arrays of columns, of all groups one after another
        values: list[float] = []  # one for each array
        sizes = np.zeros(len(readings) + 1, np.int64)
        for row, reading in enumerate(readings, 1):
            for group, length in self._groups(reading):
                size = sum(map(len, group))
                columns += group
                values += [length / math.sqrt(size) if length else 1.0] * len(group)
                sizes[row] += size
            for column, value in enumerate(self._leanings(reading), self.columns - LEANINGS):
                columns.append((column,))
                values.append(value)
                sizes[row] += 1
        lengths = np.fromiter(map(len, columns), np.int64, len(columns))
        flat = np.fromiter(chain.from_iterable(columns), np.int32, int(lengths.sum()))
        data = np.repeat(np.array(values, np.float32), lengths)
        return csr_matrix((data, flat, sizes.cumsum()), shape=(len(readings), self.columns))

    def _look_up(self, word: str) -> tuple[str, str, str]:
        """What kind of cue a word is, its symbol, and its gender."""
        mirrored = mirrored_words().get(word)
        if word in explicit_words():
            return "explicit", "explicit", explicit_words()[word]
        if mirrored is not None:
            return "term", "role" if word in _ROLES else "term", mirrored[0]
        gender = gendered_words().get(word) or term_groups([word]).get(word)
        if gender is not None:
            return "hint", "term", gender
        if word in _SHAPING:
            return "", word, ""
        name, rank = census_names().get(word), self._rank.get(word)
        if name is not None and name.given:
            if not name.clear:
                return "", "unclear", ""
            gender = "female" if name.lean > 0 else "male"
            pair = (word, mirrored_names().get(word, word))
            shares = [max(census_names()[each][:2]) for each in pair]
            often = max(shares) >= _COMMON_NAME
            ordinary = any(self._rank.get(each, ORDINARY) < ORDINARY for each in pair)
            if word not in clear_names() or word in self._places or (ordinary and not often):
                return "doubtful", "rare name", gender
            return "name", "name" if often else "rare name", gender
        if word[0].isdigit():
            return "", "number", ""
        if name is not None and (rank is None or rank >= KNOWN):
            return "", "surname", ""
        if rank is None:
            return "", "strange", ""
        return "", "common" if rank < KNOWN else "known" if rank < FAMILIAR else "rare", ""

    def _groups(self, reading: Reading) -> list[tuple[list[Sequence[int]], float]]:
        """The columns of each group of features, in parts, and its length; 0 if each feature counts 1."""
        words, symbols, hidden = reading.words, reading.symbols, reading.hidden
        if not words:
            return []
        shown = [self._shown(word, symbols[at]) if at in hidden else word for at, word in enumerate(words)]
        plain = [
            word if at not in hidden and self._plain(word) else symbols[at] for at, word in enumerate(words)
        ]
        around = ["^", *shown, "$"]
        letters: list[Sequence[int]] = [_letters(word) for at, word in enumerate(words) if at not in hidden]
        patterns = _grams("k", ["^", *symbols, "$"], (1, 2, 3)) + _grams("m", ["^", *plain, "$"], (2, 3))
        return [
            ([[self._word(word) for word in shown]], WORD_LENGTH),
            ([_grams("p", around, (2,))], PAIR_LENGTH),
            *([(letters, LETTER_LENGTH)] if letters else []),
            ([patterns], PATTERN_LENGTH),
            ([self._questions(reading, around)], 0.0),
        ]

    def _questions(self, reading: Reading, around: list[str]) -> list[int]:
        """How a question begins and ends, and what stands beside each cue.

        *who sang* goes before a title, *how old is* before a person: the same name tells less after the one
        than after the other.
        """
        words, symbols, cues, _, turn = reading
        works = self._lists[0]
        about_work = any(word in works and word not in _MAKES for word in words)
        last = len(words)
        starts = [" ".join(around[1 : size + 1]) for size in range(1, min(3, last) + 1)]
        columns = []
        seen = set()
        for cue in (None, *cues):
            said = "nobody" if cue is None else f"{cue.kind} {symbols[cue.place][-1]} {cue.place > turn}"
            if said in seen:
                continue
            seen.add(said)
            columns += [_bucket(f"q {said} {start}") for start in starts]
            columns += [_bucket(f"z {said} {around[last]}"), _bucket(f"w {said} {about_work}")]
            columns.append(_bucket(f"n {said} {about_work} {min(last, _USUAL)}"))
            if cue is not None:
                end = cue.place + 1
                while cue.kind == "name" and end < last and symbols[end] in ("surname", "unclear"):
                    end += 1
                columns.append(_bucket(f"b {said} {around[cue.place]}"))
                columns.append(_bucket(f"a {said} {around[end + 1]}"))
                columns.append(_bucket(f"j {said} {end - cue.place}"))
        return columns

    def _leanings(self, reading: Reading) -> tuple[float, ...]:
        """The genderedness of the shown words: mean, greatest, least, mean of absolute values."""
        shown = (word for at, word in enumerate(reading.words) if at not in reading.hidden)
        known = [self._leaning[word] for word in shown if word in self._leaning]
        if not known:
            return ()
        size = len(known)
        return sum(known) / size, max(known), min(known), sum(map(abs, known)) / size

    def _word(self, word: str) -> int:
        rank = self._rank.get(word)
        return _bucket(f"v {word}") if rank is None else BUCKETS + rank

    def _is_surname(self, word: str) -> bool:
        """Whether a word may be a surname: one of the census, or one that is in no list at all."""
        name = census_names().get(word)
        if name is None:
            return word not in self._rank and word[0].isalpha() and len(word) > 1
        return name.surname > 0 and word not in _SHAPING

    @staticmethod
    def _shown(word: str, symbol: str) -> str:
        """What is seen of a hidden word: of terms, which pair it is of."""
        pair = mirrored_words().get(word, ("", word))[1]
        return f"{symbol} {pair}" if symbol.startswith(("term", "role")) else symbol

    def _is_plain(self, word: str) -> bool:
        """Whether a word stays as it is in patterns."""
        if word in _SHAPING or word in self._lists[1]:
            return True
        name = census_names().get(word)
        return self._rank.get(word, KNOWN) < COMMON and not (name and name.given)


def _turn(words: list[str]) -> int:
    """Where a query turns from whom it is about to where or in what: *who plays mary in hair*."""
    for place, word in enumerate(words):
        if (word in _TURNS and place) or (word in _MAKES and place == 1):
            return place
    return len(words)


def _grams(kind: str, symbols: list[str], sizes: tuple[int, ...]) -> list[int]:
    """The columns of so many symbols in a row."""
    rows = (zip(*(symbols[at:] for at in range(size)), strict=False) for size in sizes)
    return [_gram(kind, gram) for grams in rows for gram in grams]


@lru_cache(maxsize=1 << 18)
def _gram(kind: str, symbols: tuple[str, ...]) -> int:
    return _bucket(f"{kind} {' '.join(symbols)}")


@lru_cache(maxsize=1 << 17)
def _letters(word: str) -> tuple[int, ...]:
    """Two to five letters in a row, the edges of the word among them."""
    edged = f"^{word}$"
    return tuple(
        _bucket(f"l {edged[at : at + size]}") for size in range(2, 6) for at in range(len(edged) - size + 1)
    )


@lru_cache(maxsize=1 << 18)
def _bucket(feature: str) -> int:
    return xxhash.xxh32_intdigest(feature.encode()) % BUCKETS
