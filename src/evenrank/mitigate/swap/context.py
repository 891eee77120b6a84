"""What the words around say: is *her* him or his, is *James* a given name, is *Miss* a title?"""

from __future__ import annotations

import re
from typing import NamedTuple

from evenrank.mitigate.swap.words import Names, family_names, names, word_sets

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
    found = pattern.match(text)
    return () if found is None else found.groups()  # every part may be empty, so there always is a match


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
