"""The words and names that tell a gender: all the lexicon classifier knows, where the static one starts."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from evenrank.measures.given_names import COMMON_WORDS
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.vectors.texts import stop_words

LISTS = ("rekabsaz2020", "fabris2020")
"""Published words that are female or male by meaning."""
FEWEST = 0.002
"""Per cent of people; added to both shares of a name, so that a rare name on one list only is not certain."""
AMBIGUOUS = frozenset(("ma", "pa", "ms", "bachelor", "bachelors"))
"""On the published lists, but in queries mostly states, a disease or software, and degrees."""
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
    found: dict[str, str] = {}
    for source in LISTS:
        for group, words in lexicon(source).groups.items():
            found |= {word: group for word in words if word.isalnum() and word not in AMBIGUOUS}
    return found


@lru_cache(maxsize=1)
def gender_terms() -> Lexicon:
    """Our own list beyond the published ones: bodies, births, titles, roles, animals."""
    return lexicon(data() / "gender-terms.toml")


def term_groups(words: Iterable[str]) -> dict[str, str]:
    """The group of each of these words that stands, or begins as an entry, in :func:`gender_terms`."""
    whole: dict[str, str] = {}
    starts: dict[str, str] = {}
    for group, entries in gender_terms().groups.items():
        for entry in entries:
            (starts if entry.endswith("*") else whole)[entry.rstrip("*")] = group
    longest = max(map(len, starts))
    found = {}
    for word in words:
        said = whole.get(word)
        for length in range(2, min(longest, len(word)) + 1):
            said = said or starts.get(word[:length])
        if said:
            found[word] = said
    return found


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
