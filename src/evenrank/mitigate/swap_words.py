"""Words and names that have a mirror image in the other gender, and what the words around them say.

Is *her* him or his, is *James* a given name, is *Miss* a title?
"""

from __future__ import annotations

import re
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
    result: dict[str, str] = {}
    for pair in text.split(","):
        first, second = pair.split()
        result[first] = second
    return result


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
        result = ", ".join(lexicon.groups)
        raise InputError(
            f"swap needs a lexicon with the groups female and male; {lexicon.name} has: {result}"
        )
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


_WINDOW = 48  # bytes looked at on either side
_BACKWARDS = re.compile(r"(\W*)(\w*)")  # of text turned round, since a search for the end is slow
_AFTER = re.compile(r"([^\w]*)(\w*)([^\w]*)(\w*)")
_OPENING = re.compile(r"\s+([\"'“‘`«(\[$£€#]+\s?|/ )$")
_APOSTROPHES = ("'", "’", "ʼ", "‘")
_ADJACENT = frozenset((" ", ". ", " . ", "."))


class Around(NamedTuple):
    """A word's neighbours, and what stands between; empty where the text ends."""

    before: str
    gap_before: str
    gap: str
    after: str
    gap_after: str
    second: str

    @property
    def next_is_capitalised(self) -> bool:
        return self.gap in _ADJACENT and self.after[:1].isupper()


def around(data: bytes, first: int, start: int, end: int, last: int) -> Around:
    """The neighbours of the word at start:end, in the text at first:last."""
    left = data[max(first, start - _WINDOW) : start].decode("utf-8", "ignore")
    right = data[end : min(last, end + _WINDOW)].decode("utf-8", "ignore")
    gap, before = _parts(_BACKWARDS, left[::-1])
    return Around(before[::-1], gap[::-1], *_parts(_AFTER, right))


def _parts(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    result = pattern.match(text)
    return () if result is None else result.groups()  # every part may be empty, so there always is a match


def _stands_alone(near: Around, sets: dict[str, frozenset[str]]) -> bool:
    """Does no noun that belongs to the pronoun follow?"""
    if not near.after:
        return True
    if near.gap == "/":
        return False
    if near.gap.strip() and near.gap != "-" and not _OPENING.match(near.gap):
        return True
    word = near.after.lower()
    if word in sets["nouns"]:  # "his back", "her No. 2"
        return False
    if word in sets["either"] or (word.endswith("ly") and word not in sets["no_adverbs"]):
        second = near.second.lower()
        follows = second not in sets["object"] or second in sets["either"]
        return not second or bool(near.gap_after.strip(" -")) or not follows
    return word in sets["object"]


def her(near: Around) -> str:
    """*him* where *her* is an object, *his* where a noun follows that it belongs to."""
    sets = word_sets()
    before, word = near.before.lower(), near.after.lower()
    if word == "own":
        return "his"
    if near.gap == " ":
        if word == "or" and near.second.lower() == "his":
            return "his"
        if word in ("last", "next") and near.second.lower() in sets["times"]:
            verb = before and before not in sets["object"] and before not in sets["spends"]
            return "him" if verb else "his"
        if word in sets["nouns"] and before in sets["returns"]:
            return "him"
        if before in sets["gives"] and word in sets["gifts"]:
            return "him"
        if before in sets["keeps"] and word.endswith("ed") and len(word) > 3:
            return "him"
        if before in sets["makes"] and word in sets["plain_verbs"]:
            return "him"
        if before in sets["finds"] and word.endswith("ing") and word not in sets["no_verbs"]:
            return "him"
    elif before in sets["calls"] and _OPENING.match(near.gap):
        return "him"
    return "him" if _stands_alone(near, sets) else "his"


def his(near: Around) -> str:
    """*hers* where *his* stands alone, *her* where a noun follows that it belongs to."""
    word, second = near.after.lower(), near.second.lower()
    if near.gap == " " and word in ("and", "or") and second in ("her", "their", "my", "your", "our"):
        return "her"
    if near.before.lower() == "of" and word in word_sets()["verbs_alone"]:
        return "hers"
    return "hers" if _stands_alone(near, word_sets()) else "her"


def is_title(word: str, surface: str, near: Around) -> bool:
    """Is this a title before a name? In capitals throughout, and in lower case, one has to be careful."""
    word_after = near.after
    if word in ("lady", "sir"):
        known = names().clear.of(word_after.lower()) is not None
        if near.gap != " " or near.before.lower() in ("first", "dear"):
            return False
        capital = surface[:1].isupper() and word_after[:1].isupper()
        return capital and (known if surface.isupper() else True)
    if surface.islower():  # "ms" is a unit of time too, "miss" a verb
        return word in ("mr", "mrs") and near.gap.strip() == "." and bool(word_after)
    if surface.isupper():
        return near.gap in _ADJACENT and len(word_after) > 1 and word_after.isupper()
    return near.next_is_capitalised


def is_given_name(word: str, surface: str, near: Around, known: Names) -> bool:
    """Is this word a given name here? Lower-case words never are; a surname is not one."""
    capitals = surface.isupper() and len(surface) > 1
    if not surface[:1].isupper() or (surface[1:] != surface[1:].lower() and not capitals):
        return False
    if near.gap in _APOSTROPHES and near.after.lower() == "t":  # Don't
        return False
    sets = word_sets()
    before = near.before.lower() if near.gap_before in _ADJACENT else ""
    if before in sets["before_places"]:
        return False
    if "-" in (near.gap_before, near.gap):  # a double name: one half alone would make a strange pair
        return False
    if known.wordlike.of(word) is not None:
        return (
            not capitals
            and near.gap == " "
            and near.after[:1].isupper()
            and not near.after.isupper()
            and near.after.lower() in family_names()
        )
    if not before or word not in known.surnames:
        return True
    named = near.before[:1].isupper() and (
        len(before) == 1
        or known.clear.of(before) is not None
        or known.wordlike.of(before) is not None
        or before in sets["titles"]
    )
    if not named:
        return True
    return not capitals and near.gap == " " and near.after[:1].isupper()


def is_surname(surface: str, near: Around, known: Names) -> bool:
    """Does a role such as *King* stand as a surname, right behind a given name?"""
    if not surface[:1].isupper() or near.gap_before != " ":
        return False
    return near.before[:1].isupper() and known.clear.of(near.before.lower()) is not None
