"""The words and names that have a mirror image in the other gender, as they are shipped."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from evenrank.errors import InputError
from evenrank.text.lexicon import Lexicon

SURNAME = 0.005
"""Per cent of people with a surname from which on a given name may be one: Thomas, James, Henry."""
_RARE = 0.001


class Mirrors(NamedTuple):
    """Each word and its mirror image, in lower case, by the gender of the word."""

    female: dict[str, str]
    male: dict[str, str]

    def of(self, word: str) -> str | None:
        return self.female.get(word) or self.male.get(word)


class Names(NamedTuple):
    """Given names and their mirror images, in lower case, by the gender of the name."""

    clear: Mirrors  # names and nothing else
    wordlike: Mirrors  # ordinary words too: Rose, Frank
    surnames: frozenset[str]  # names (with their mirror images) that may stand as surnames


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    """The shipped lists of words."""
    text = (resources.files("evenrank.mitigate") / "data" / "swap.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def word_sets() -> dict[str, frozenset[str]]:
    """The lists that decide by the words around: by the name of the list."""
    lists = {**data()["after"], **data()["names"]}
    return {name: frozenset(words.split()) for name, words in lists.items()}


def pairs(text: str) -> dict[str, str]:
    """``she he, woman man`` as a mapping from the first word of each pair to the second."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        first, second = pair.split()
        found[first] = second
    return found


def titles() -> Mirrors:
    """Titles before a name: Ms, Mrs, Miss, Mr; Lady, Sir."""
    shipped = data()["titles"]
    both = pairs(shipped["pairs"])
    return Mirrors(both | pairs(shipped["female_only"]), {male: female for female, male in both.items()})


def words(lexicon: Lexicon | None) -> Mirrors:
    """Words and their mirror images, such that those of the lexicon have theirs in its other group.

    Without a lexicon each word has the mirror image that a speaker would choose. Some lists count a word
    and not its natural mirror image, *grandmothers* and not *grandfathers*: then a word outside the list
    never becomes one of it, and for lists that the package knows, a word of the list becomes the nearest
    one that it counts.
    """
    shipped = data()
    both = pairs(shipped["pairs"])
    female = both | pairs(shipped["female_only"])
    male = {man: woman for woman, man in both.items()} | pairs(shipped["male_only"])
    if lexicon is None:
        return Mirrors(female, male)
    if not {"female", "male"} <= set(lexicon.groups):
        found = ", ".join(lexicon.groups)
        raise InputError(f"swap needs a lexicon with the groups female and male; {lexicon.name} has: {found}")
    women, men = set(lexicon.groups["female"]), set(lexicon.groups["male"])
    special = shipped.get(lexicon.name, {})
    for word, mirror in pairs(special["others"]).items() if special else ():
        (male if word in male else female)[word] = mirror
    if special:
        female |= pairs(special["female"])
        male |= pairs(special["male"])
    return Mirrors(_kept(female, women, men, women | men), _kept(male, men, women, women | men))


def _kept(mirrors: dict[str, str], own: set[str], other: set[str], listed: set[str]) -> dict[str, str]:
    """Without the words outside of the lexicon whose mirror image is in it, or in the wrong group."""
    return {
        word: mirror
        for word, mirror in mirrors.items()
        if (word in own and mirror not in own) or (word not in listed and mirror not in listed)
        if word not in other
    }


@lru_cache(maxsize=1)
def names() -> Names:
    """Given names of the US census of 1990 and those of the same rank of the other gender.

    Names are ranked by the share of people who bear them, less the share of those who have them as a
    surname. Names of both genders, names that are surnames rather, and places are left out. Those beyond the
    shorter list have no mirror image.
    """
    from evenrank.queries.words import CLEAR, census_names, clear_names, gendered_words
    from evenrank.vectors.texts import COMMON_WORDS, stop_words

    census, sets = census_names(), word_sets()
    left_out = sets["places"] | sets["others"] | sets["verbs"] | gendered_words().keys() | stop_words()

    def ranked(candidates: list[str], fewest: float) -> Mirrors:
        sides: dict[bool, list[tuple[float, str]]] = {True: [], False: []}
        for name in candidates:
            facts = census[name]
            share = max(facts.female, facts.male) - facts.surname
            if share > fewest and name not in left_out:
                sides[facts.female > facts.male].append((-share, name))
        both = [(a, b) for (_, a), (_, b) in zip(sorted(sides[True]), sorted(sides[False]), strict=False)]
        return Mirrors(dict(both), {b: a for a, b in both})

    wordlike = [
        name
        for name in sorted(COMMON_WORDS & census.keys())
        if census[name].given
        and max(census[name].female, census[name].male) >= CLEAR * (census[name].female + census[name].male)
    ]
    clear = ranked(list(clear_names()), 0.0)
    surnames = {
        name
        for woman, man in clear.female.items()
        if max(census[woman].surname, census[man].surname) >= SURNAME
        for name in (woman, man)
    }
    return Names(clear, ranked(wordlike, 0.01), frozenset(surnames))


@lru_cache(maxsize=1)
def family_names() -> frozenset[str]:
    """Surnames that can stand behind a given name, and are no ordinary words."""
    from evenrank.queries.words import census_names
    from evenrank.vectors.texts import COMMON_WORDS

    ordinary = word_sets()["ordinary_surnames"] | COMMON_WORDS
    return frozenset(n for n, facts in census_names().items() if facts.surname >= _RARE and n not in ordinary)
