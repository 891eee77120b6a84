"""What is known about a word before any query is read: lists, names, its vector, who bears it."""

from __future__ import annotations

import gzip
import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.vectors import Vectors, load
from evenrank.vectors.texts import COMMON_WORDS, stop_words

LISTS = ("rekabsaz2020", "fabris2020")
"""Published words that are female or male by meaning."""
FEWEST = 0.002
"""Per cent of people; added to both shares of a name, so that a rare name on one list only is not certain."""
AMBIGUOUS = frozenset(
    """ma pa ms bachelor bachelors actor actors waiter waiters maid maids
    king kings queen queens prince""".split()
)
"""On the published lists, but in queries mostly states, a disease or software, degrees, jobs,
and chess."""
SAID = (
    frozenset("female females women womens girls ladies maternity motherhood".split()),
    frozenset("male males men mens boys gentlemen paternity fatherhood".split()),
    frozenset("woman womans girl lady she her hers herself".split()),
    frozenset("man mans boy gentleman he him his himself".split()),
)
"""Words that say a gender and nothing else: female and male ones that mean many, which hardly stand in titles
or for anybody, and female and male ones that mean one."""
_BEGUN = """
pregnancy pregnant menstruation menstrual menopause ovary ovaries ovarian ovulation ovulate cervix cervical
vagina vaginal womb breast breasts breastfeeding mammogram hysterectomy miscarriage endometriosis placenta
trimester estrogen maternal lactation abortion testicles testicle testicular prostate penis sperm scrotum
vasectomy testosterone ejaculation paternal foreskin circumcision masculine feminine heifer ewe lioness
mermaid goddess heroine empress duchess countess emperor pharaoh sultan rooster stallion stewardess
ballerina cowboy godfather grandma grandpa grandmother grandfather widower nephew niece lesbian
"""
CLEAR = 0.8
"""Of the bearers of a given name that tells a gender, at least this share has it."""


class Name(NamedTuple):
    """US census of 1990: per cent of women and of men with this given name, of all with this surname."""

    female: float
    male: float
    surname: float

    @property
    def given(self) -> bool:
        return self.female + self.male > 0

    @property
    def lean(self) -> float:
        """Log odds of female against male: 0 for a name on neither list, or equally often on both."""
        return math.log((self.female + FEWEST) / (self.male + FEWEST))


def data() -> Path:
    """The folder with the shipped lists and models."""
    return Path(str(resources.files("evenrank.queries"))) / "data"


@lru_cache(maxsize=1)
def census_names() -> dict[str, Name]:
    """Given names of the US census of 1990, and the surnames of at least 1 in 100,000, in lower case."""
    lines = gzip.decompress((data() / "census-names.tsv.gz").read_bytes()).decode().splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {name: Name(float(female), float(male), float(last)) for name, female, male, last in rows}


@lru_cache(maxsize=1)
def gendered_words() -> dict[str, str]:
    """Word to ``female`` or ``male``: single words of the published lists, less the ambiguous ones."""
    result: dict[str, str] = {}
    for source in LISTS:
        for group, words in lexicon(source).groups.items():
            result |= {word: group for word in words if word.isalnum() and word not in AMBIGUOUS}
    return result


@lru_cache(maxsize=1)
def plain_queries() -> dict[str, Any]:
    """Our lists of jobs, things, fields, places and sentences that samples to learn from are made of."""
    return tomllib.loads((data() / "plain-queries.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def place_words() -> frozenset[str]:
    """Words beside which a name is a place's or an institution's: *bay*, *airport*, *san*."""
    lists = plain_queries()
    return frozenset(
        word for phrase in (*lists["place_nouns"], *lists["place_fronts"]) for word in phrase.split()
    )


@lru_cache(maxsize=1)
def gender_terms() -> Lexicon:
    """Our own list beyond the published ones: bodies, births, titles, roles, animals."""
    return lexicon(data() / "gender-terms.toml")


@lru_cache(maxsize=1)
def whole_terms() -> dict[str, str]:
    """Word to ``female`` or ``male``: whole ones of our own list, and some that its beginnings stand for."""
    result = term_groups(_BEGUN.split())
    for group, entries in gender_terms().groups.items():
        result |= {entry: group for entry in entries if not entry.endswith("*") and entry not in AMBIGUOUS}
    return result


def term_groups(words: Iterable[str]) -> dict[str, str]:
    """The group of each of these words that stands, or begins as an entry, in :func:`gender_terms`."""
    whole: dict[str, str] = {}
    starts: dict[str, str] = {}
    for group, entries in gender_terms().groups.items():
        for entry in entries:
            (starts if entry.endswith("*") else whole)[entry.rstrip("*")] = group
    longest = max(map(len, starts))
    result = {}
    for word in words:
        said = whole.get(word)
        for length in range(2, min(longest, len(word)) + 1):
            said = said or starts.get(word[:length])
        if said:
            result[word] = said
    return result


@lru_cache(maxsize=1)
def clear_names() -> dict[str, float]:
    """Given names that tell a gender and are no ordinary words, with the log odds of female against male."""
    unclear = stop_words() | COMMON_WORDS | AMBIGUOUS | gendered_words().keys()
    return {
        name: facts.lean
        for name, facts in census_names().items()
        if facts.given
        and max(facts.female, facts.male) >= CLEAR * (facts.female + facts.male)
        and name not in unclear
        and len(name) > 1
    }


Floats = npt.NDArray[np.float32]
Source = Vectors | str | os.PathLike[str]

WORD = re.compile(r"[^\W\d_]+")
"""A run of letters: `lincoln's` is `lincoln` and `s`, which keeps the name whole."""
_NAME_FACTS = 5
_LENGTH = 3.0  # of a word vector as a feature: each of its numbers is then about as large as a name fact


class WordKnowledge:
    """Numbers for words, to be added to what a text encoder makes of them.

    An encoder of word pieces breaks rare names up and has to learn from few queries that Judith is a
    woman. The census knows it, and word vectors know that Hemingway writes.

    Parameters
    ----------
    words
        One for each row; words not among them are all zeros.
    rows
        Their numbers.
    """

    def __init__(self, words: Sequence[str], rows: npt.NDArray[Any]) -> None:
        self.words = list(words)
        self.rows = np.vstack([rows, np.zeros((1, rows.shape[1]), rows.dtype)])
        self._places = dict(zip(self.words, range(len(self.words)), strict=True))

    @classmethod
    def gathered(cls, *, names: bool = True, vectors: Sequence[Vectors] = ()) -> WordKnowledge | None:
        """From the census and the published gendered words, from word vectors, or both; None from neither."""
        return _gathered(names, tuple(vectors))

    @property
    def width(self) -> int:
        """How many numbers there are for a word."""
        return int(self.rows.shape[1])

    def at(self, text: str, starts: Sequence[int]) -> Floats:
        """For characters of a text the numbers of the words that they are in; zeros outside of words."""
        place_at = np.full(len(text) + 1, len(self.words), np.int64)
        for word in WORD.finditer(text):
            place_at[word.start() : word.end()] = self._places.get(word.group(), len(self.words))
        return self.rows[place_at[np.minimum(starts, len(text))]].astype(np.float32)

    def mean(self, text: str) -> Floats:
        """The mean of the numbers of the words that are known; zeros if none is."""
        places = [self._places[word] for word in WORD.findall(text) if word in self._places]
        return self.rows[places or [-1]].astype(np.float32).mean(0)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What :meth:`from_arrays` takes."""
        text = "\n".join(self.words).encode()
        return {"words": np.frombuffer(text, np.uint8), "rows": self.rows[:-1]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> WordKnowledge:
        """The same knowledge again."""
        return cls(arrays["words"].tobytes().decode().split("\n"), arrays["rows"])


def opened(source: Source) -> Vectors:
    """Word vectors, or those of a file."""
    return source if isinstance(source, Vectors) else _from_file(os.fspath(source))


@lru_cache(maxsize=2)  # cross-validation asks for the same again and again
def _from_file(path: str) -> Vectors:
    return load(path)


@lru_cache(maxsize=2)
def _gathered(names: bool, sources: tuple[Vectors, ...]) -> WordKnowledge | None:
    facts = _name_facts() if names else {}
    known = list(dict.fromkeys([*facts, *(word for source in sources for word in source.words)]))
    if not known:
        return None
    at = _NAME_FACTS if names else 0
    rows = np.zeros((len(known), at + sum(source.dimension for source in sources)), np.float16)
    if names:
        rows[: len(facts), :at] = list(facts.values())
    for source in sources:
        items = [(row, source.exact_row(word)) for row, word in enumerate(known)]
        here = np.array([(row, place) for row, place in items if place is not None], np.int64).reshape(-1, 2)
        rows[here[:, 0], at : at + source.dimension] = _LENGTH * source.matrix[here[:, 1]]
        at += source.dimension
    return WordKnowledge(known, rows)


def _name_facts() -> dict[str, tuple[float, ...]]:
    """Female or male as a given name, how frequent, how frequent as a surname; female or male by meaning."""
    genders, names = gendered_words(), census_names()
    result: dict[str, tuple[float, ...]] = {}
    for word in dict.fromkeys([*names, *genders]):
        name, gender = names.get(word), genders.get(word)
        parts = (0.0, 0.0, 0.0) if name is None else (
            name.lean / 6,
            math.log1p(1000 * (name.female + name.male)) / 6,
            math.log1p(1000 * name.surname) / 6,
        )  # fmt: skip
        result[word] = (*parts, float(gender == "female"), float(gender == "male"))
    return result
