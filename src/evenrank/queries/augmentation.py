"""More to learn from: each gendered query with its gender swapped, and the gendered words by themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from evenrank.queries.word_lists import census_names, clear_names, gendered_words
from evenrank.vectors.words import DEFINITION, MIRRORED

_WORD = re.compile(r"[^\W_]+")
_OTHER = {"female": "male", "male": "female"}
# Beyond the mirrored pairs of Bolukbasi et al. (2016): female first.
_PAIRS = """
    her him, hers his, actress actor, actresses actors, wife husband, girlfriend boyfriend, bride groom,
    mrs mr, waitress waiter, goddess god, empress emperor, duchess duke, heroine hero, widow widower,
    mommy daddy, mama papa, nun monk, hostess host, stepmother stepfather, stepdaughter stepson,
    girlfriends boyfriends, brides grooms, nieces nephews, aunts uncles, hen rooster, cow bull
"""
_PRONOUNS = frozenset("he she him her his hers himself herself".split())
_FRAMES = ("{query} for {word}", "{word} {query}")
_PRONOUN_FRAMES = ("{query} {word}", "{word} {query}")


def swapped(texts: Sequence[str], labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Counterfactual queries: those about a woman now about a man, and the reverse; the label flips.

    Words are swapped with their mirror image, given names with the name of the same place on the other
    list. A query without such a word, and a neutral one, has no counterfactual.
    """
    table = _mirror()
    found: list[str] = []
    flipped: list[str] = []
    for text, label in zip(texts, labels, strict=True):
        if label not in _OTHER:
            continue
        turned = _WORD.sub(lambda match: table.get(match.group(), match.group()), text)
        if turned != text:
            found.append(turned)
            flipped.append(_OTHER[label])
    return found, flipped


def lexicon_samples(
    texts: Sequence[str] = (), labels: Sequence[str] = (), *, times: int = 1
) -> tuple[list[str], list[str]]:
    """Each gendered word of the published lists as a query of its own, and as a part of neutral queries.

    The annotated queries were chosen to hold no such word (Rekabsaz and Schedl 2020), so a classifier cannot
    learn from them that *best shoes for men* is about men. Bigdeli (thesis, §3.1.1.1) adds the words alone.
    Alone they do not tell what a word is worth beside others, so each is also put into `times` queries that
    were neutral before it came.
    """
    words = gendered_words()
    found, genders = list(words), list(words.values())
    neutral = [text for text, label in zip(texts, labels, strict=True) if label == "neutral"]
    if not neutral:
        return found, genders
    chosen = np.random.default_rng(len(neutral)).permutation(len(neutral))
    for at, (word, gender) in enumerate(times * list(words.items())):
        frames = _PRONOUN_FRAMES if word in _PRONOUNS else _FRAMES
        frame = frames[at % len(words) % len(frames)]
        found.append(frame.format(query=neutral[chosen[at % len(neutral)]], word=word))
        genders.append(gender)
    return found, genders


@lru_cache(maxsize=1)
def _mirror() -> dict[str, str]:
    table: dict[str, str] = {}
    pairs = [pair for pair in (*MIRRORED, *DEFINITION) if pair[0].islower()]
    pairs += [(a, b) for a, b in (pair.split() for pair in _PAIRS.split(","))]
    for female, male in pairs:
        table.setdefault(female, male)
        table.setdefault(male, female)
    clear, names = clear_names(), census_names()
    women = sorted((n for n, lean in clear.items() if lean > 0), key=lambda n: (-names[n].female, n))
    men = sorted((n for n, lean in clear.items() if lean < 0), key=lambda n: (-names[n].male, n))
    for place, name in enumerate(women):
        table.setdefault(name, men[place % len(men)])
    for place, name in enumerate(men):
        table.setdefault(name, women[place % len(women)])
    return table
