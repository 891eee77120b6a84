"""What is known about words before any query is read: gendered words, given names, surnames, places."""

from __future__ import annotations

import gzip
import math
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.vectors.texts import COMMON_WORDS, stop_words

EXPLICIT = "rekabsaz2020"
"""The lexicon whose words always name a gender."""
LISTS = (EXPLICIT, "fabris2020")
"""Published words that are female or male by meaning."""
SMOOTHING = 0.002
"""Per cent of people; added to both shares of a name, so that a rare name on one list only is not certain."""
AMBIGUOUS = frozenset(
    """ma pa ms bachelor bachelors actor actors waiter waiters maid maids
    king kings queen queens prince""".split()
)
"""On the published lists, but in queries mostly states, a disease or software, degrees, jobs,
and chess."""
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
        return math.log((self.female + SMOOTHING) / (self.male + SMOOTHING))

    @property
    def clear(self) -> bool:
        """Whether nearly all who have this given name are of one gender."""
        return self.given and max(self.female, self.male) >= CLEAR * (self.female + self.male)


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
def clear_names() -> dict[str, float]:
    """Given names that tell a gender and are no ordinary words, with the log odds of female against male."""
    unclear = stop_words() | COMMON_WORDS | AMBIGUOUS | gendered_words().keys()
    return {
        name: facts.lean
        for name, facts in census_names().items()
        if facts.clear and name not in unclear and len(name) > 1
    }


@lru_cache(maxsize=1)
def explicit_words() -> dict[str, str]:
    """Word to ``female`` or ``male``: those of rekabsaz2020."""
    return {word: group for group, words in lexicon(EXPLICIT).groups.items() for word in words}


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
    """Our lists of jobs, things, fields, places and sentences that training queries are made of."""
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
def _terms() -> tuple[dict[str, str], dict[str, str]]:
    """The entries of :func:`gender_terms`: whole words, and beginnings of words."""
    whole: dict[str, str] = {}
    starts: dict[str, str] = {}
    for group, entries in gender_terms().groups.items():
        for entry in entries:
            (starts if entry.endswith("*") else whole)[entry.rstrip("*")] = group
    return whole, starts


def term_groups(words: Iterable[str]) -> dict[str, str]:
    """The group of each of these words that stands, or begins as an entry, in :func:`gender_terms`."""
    whole, starts = _terms()
    result = {}
    for word in words:
        beginnings = (word[:length] for length in range(2, len(word) + 1))
        group = whole.get(word) or next((starts[each] for each in beginnings if each in starts), None)
        if group:
            result[word] = group
    return result


@lru_cache(maxsize=1)
def mirrored_words() -> dict[str, tuple[str, str]]:
    """Words that :func:`evenrank.swap` mirrors both ways: their gender, and the female word of the pair."""
    from evenrank.mitigate.swap_words import words

    female, male = words(lexicon(EXPLICIT))
    result: dict[str, tuple[str, str]] = {}
    for woman, man in female.items():
        if male.get(man) == woman:
            result |= {woman: ("female", woman), man: ("male", woman)}
    return result


@lru_cache(maxsize=1)
def mirrored_names() -> dict[str, str]:
    """Given names, and the names of the other gender that :func:`evenrank.swap` puts in their places."""
    from evenrank.mitigate.swap_words import names

    return names().clear.female | names().clear.male
