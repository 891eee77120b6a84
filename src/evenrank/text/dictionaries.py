"""Dictionaries of psychological characteristics: the open one, LIWC files, and the names of their categories.

A dictionary is a lexicon with many, overlapping categories. LIWC itself is proprietary and does not ship;
who has a licence gives the path of its ``.dic`` file. The open dictionary is original to this project and
only an approximation: what it finds is not what LIWC would find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from evenrank.data.columns import listing
from evenrank.errors import InputError
from evenrank.text.lexicon import Lexicon, lexicon
from evenrank.text.matcher import Source

OPEN = "open-psychology"

# Process → characteristics, as in the thesis of A. Bigdeli, Section 3.1 (there the categories of LIWC 2015).
TREE: Mapping[str, tuple[str, ...]] = {
    "affect": ("positive", "negative", "anxiety", "anger", "sadness"),
    "cognition": ("insight", "cause", "discrepancy", "tentative", "certainty", "differentiation"),
    "drives": ("affiliation", "achievement", "power", "reward", "risk"),
    "concerns": ("work", "leisure", "home", "money", "religion", "death"),
    "social": ("family", "friends", "female", "male"),
}
PROCESSES = ("affect", "cognition", "drives", "concerns")
# The 22 dimensions by which the thesis compares documents: no totals, nothing of social.
DIMENSIONS = tuple(name for process in PROCESSES for name in TREE[process])
# All characteristics, each process before its parts.
CHARACTERISTICS = tuple(name for process, parts in TREE.items() for name in (process, *parts))

# What LIWC 2007, 2015 and 22 call them.
_SYNONYMS = {
    "posemo": "positive",
    "emo_pos": "positive",
    "negemo": "negative",
    "emo_neg": "negative",
    "anx": "anxiety",
    "emo_anx": "anxiety",
    "emo_anger": "anger",
    "sad": "sadness",
    "emo_sad": "sadness",
    "cogproc": "cognition",
    "cogmech": "cognition",
    "discrep": "discrepancy",
    "tentat": "tentative",
    "certain": "certainty",
    "certitude": "certainty",
    "differ": "differentiation",
    "excl": "differentiation",
    "affil": "affiliation",
    "achieve": "achievement",
    "relig": "religion",
    "friend": "friends",
    "drive": "drives",
}


def characteristic(name: str) -> str:
    """Our name for a category: `posemo` is `positive`; a name that LIWC does not have stays as it is."""
    low = name.strip().lower()
    return _SYNONYMS.get(low, low if low in CHARACTERISTICS else name.strip())


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Each category by our name for it; where two would be called the same, the later keeps its own."""
    taken: dict[str, str] = {}
    for name in names:
        ours = characteristic(name)
        taken[name] = ours if ours not in taken.values() else name
    return taken


def dictionary(source: Source | None = None) -> Lexicon:
    """A dictionary of psychological characteristics, its categories under the names of `CHARACTERISTICS`.

    Parameters
    ----------
    source
        The path of a LIWC-style ``.dic``, or anything :func:`evenrank.lexicon` takes. Without it (or as
        ``"open-psychology"``) the open dictionary that ships with evenrank.

    Examples
    --------
    >>> dictionary().groups["female"][:3]
    ('abbess*', 'actress*', 'airwoman')
    """
    if source is None or source == OPEN:
        return _open()
    found = lexicon(source)
    names = renamed(found.groups)
    return replace(found, groups={names[group]: words for group, words in found.groups.items()})


def female_and_male(source: Source | None = None) -> Lexicon:
    """The two gender categories of a dictionary."""
    found = dictionary(source)
    missing = [name for name in ("female", "male") if name not in found.groups]
    if missing:
        raise InputError(
            f"the dictionary {found.name} has no category {' and no category '.join(missing)}; "
            f"it has: {listing(found.groups)}"
        )
    return found.select(("female", "male"))


@cache
def _open() -> Lexicon:
    return replace(
        lexicon(Path(str(resources.files("evenrank.text"))) / "data" / f"{OPEN}.dic"),
        source="evenrank",
        note="An approximation, original to this project; LIWC would find other words.",
    )
