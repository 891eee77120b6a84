"""More to learn from: each gendered query with its gender swapped, and the gendered words by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evenrank.queries.classifier import clean
from evenrank.queries.words import (
    census_names,
    clear_names,
    gendered_words,
    plain_queries,
    term_groups,
    whole_terms,
)
from evenrank.vectors import DEFINITION, MIRRORED

_WORD = re.compile(r"[^\W_]+")
_OTHER = {"female": "male", "male": "female"}
# Beyond the mirrored pairs of Bolukbasi et al. (2016): female first.
_PAIRS = """
    her him, hers his, actress actor, actresses actors, wife husband, girlfriend boyfriend, bride groom,
    mrs mr, waitress waiter, goddess god, empress emperor, duchess duke, heroine hero, widow widower,
    mommy daddy, mama papa, nun monk, hostess host, stepmother stepfather, stepdaughter stepson,
    girlfriends boyfriends, brides grooms, nieces nephews, aunts uncles, hen rooster, cow bull
"""
_PEOPLE, _PLACES, _WORKS, _LONG = 500, 400, 600, 400  # samples of each kind
_PRONOUNS = frozenset("he she him her his hers himself herself".split())
_FRAMES = ("{query} for {word}", "{word} {query}")
_PRONOUN_FRAMES = ("{query} {word}", "{word} {query}")


class Samples(NamedTuple):
    """Queries to learn from, and the label of each."""

    texts: list[str]
    labels: list[str]

    def add(self, text: str, label: str) -> None:
        """One more."""
        self.texts.append(text)
        self.labels.append(label)

    def some(self, places: Sequence[int]) -> Samples:
        """Those at these places."""
        return Samples([self.texts[i] for i in places], [self.labels[i] for i in places])

    def picked(self, count: int) -> Samples:
        """So many of them, evenly spread."""
        size = len(self.texts)
        return self if size <= count else self.some([i * size // count for i in range(count)])


class More(NamedTuple):
    """What a classifier learns from beside the labelled queries it is measured on.

    Attributes
    ----------
    labelled
        Queries of other collections, with their labels.
    neutral
        Texts of other collections that name nobody (:func:`names_nobody`): neutral.
    unlabelled
        Queries like the labelled ones, without labels; the static classifier has them guessed, but for those
        that name nobody: whom one thinks of there is a stereotype.
    """

    labelled: Samples = Samples([], [])
    neutral: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()

    def describe(self) -> dict[str, int]:
        """How many there are."""
        result = {"labelled queries": len(self.labelled.texts), "neutral texts": len(self.neutral)}
        return result | ({"queries without labels": len(self.unlabelled)} if self.unlabelled else {})


def in_order(texts: Sequence[str], labels: Sequence[str]) -> Samples:
    """Cleaned queries, sorted: what is learned does not depend on the order of the rows."""
    pairs = sorted((clean(text), label) for text, label in zip(texts, labels, strict=True))
    return Samples([text for text, _ in pairs], [label for _, label in pairs])


def swapped(texts: Sequence[str], labels: Sequence[str]) -> Samples:
    """Counterfactual queries: those about a woman now about a man, and the reverse; the label flips.

    Words are swapped with their mirror image, given names with the name of the same place on the other
    list. A query without such a word, and a neutral one, has no counterfactual.
    """
    table = _mirror()
    names: list[str] = []
    flipped: list[str] = []
    for text, label in zip(texts, labels, strict=True):
        if label not in _OTHER:
            continue
        turned = _WORD.sub(lambda match: table.get(match.group(), match.group()), text)
        if turned != text:
            names.append(turned)
            flipped.append(_OTHER[label])
    return Samples(names, flipped)


def lexicon_samples(texts: Sequence[str] = (), labels: Sequence[str] = (), *, times: int = 1) -> Samples:
    """Each gendered word of the published lists and of ours: as a query of its own, and within neutral ones.

    The annotated queries were chosen to hold no such word (Rekabsaz and Schedl 2020), so a classifier cannot
    learn from them that *best shoes for men* is about men. Bigdeli (thesis, §3.1.1.1) adds the words alone.
    Alone they do not tell what a word is worth beside others, so each is also put into `times` queries that
    were neutral before it came.
    """
    words = gendered_words() | whole_terms()
    result, genders = list(words), list(words.values())
    neutral = [text for text, label in zip(texts, labels, strict=True) if label == "neutral"]
    if not neutral:
        return Samples(result, genders)
    chosen = np.random.default_rng(len(neutral)).permutation(len(neutral))
    for at, (word, gender) in enumerate(times * list(words.items())):
        frames = _PRONOUN_FRAMES if word in _PRONOUNS else _FRAMES
        frame = frames[at % len(words) % len(frames)]
        result.append(frame.format(query=neutral[chosen[at % len(neutral)]], word=word))
        genders.append(gender)
    return Samples(result, genders)


def plain_samples(seed: int = 0) -> Samples:
    """Queries made of our own lists: what names no gender, and the same words for women and for men.

    Every job, hobby, product and field stands in some sentences without a gender and in one for each; every
    place, work or dog that bears a name stands for nobody; names of women and of men stand in the same
    sentences, before the same surnames. So nothing but the gendered word or name tells the two apart.
    """
    lists, random = plain_queries(), np.random.default_rng(seed)
    sentences = lists["sentences"]
    built = Samples([], [])
    for things, plain, told, times in (
        ("jobs", "jobs", "told_jobs", 2),
        ("hobbies", "fields", "told_things", 3),
        ("things", "things", "told_things", 3),
        ("fields", "fields", "told_things", 3),
    ):
        for thing in lists[things]:
            built.add(thing, "neutral")
            built.add(thing, "neutral")  # twice: gendered words are learned alone, too
            for sentence in _some(sentences[plain], times, random):
                built.add(_said(sentence, x=thing), "neutral")
            for sentence in _some(sentences[told], 1, random):
                place = int(random.integers(1 << 16))
                for gender, words in lists["words"].items():
                    chosen = {part: options[place % len(options)] for part, options in words.items()}
                    built.add(_said(sentence, x=thing, **chosen), gender)
    works = [*lists["works"], *_titles(_WORKS, random)]
    for work in (*lists["works"], *works):
        for sentence in _some(sentences["works"], 1, random):
            built.add(sentence.format(x=work), "neutral")
    places = [*lists["named_after"], *(3 * lists["compounds"]), *_places(_PLACES, random)]
    for place_name in places:
        for sentence in _some(sentences["places"], 1, random):
            built.add(sentence.format(p=place_name), "neutral")
    for women, men in _mirrored_people(_PEOPLE, random):
        for sentence in _some(sentences["people"], 1, random):
            built.add(sentence.format(n=women), "female")
            built.add(sentence.format(n=men), "male")
    for women, men in _mirrored_people(_PEOPLE // 2, random):
        for sentence in _some(sentences["people_in_works"], 1, random):
            work = works[int(random.integers(len(works)))]
            built.add(sentence.format(n=women, x=work), "female")
            built.add(sentence.format(n=men, x=work), "male")
    return built


def long_samples(neutral: Sequence[str], told: Samples, seed: int = 0) -> Samples:
    """Long texts: neutral queries one after another, and the same with a gendered one among them.

    A text is not about a man because it is long, and a long one that names a woman is still about her.
    """
    built = Samples([], [])
    random = np.random.default_rng(seed)
    gendered = [pair for pair in zip(told.texts, told.labels, strict=True) if pair[1] != "neutral"]
    for _ in range(_LONG if neutral else 0):
        parts = [neutral[i] for i in random.integers(len(neutral), size=int(random.integers(2, 9)))]
        built.add(" ".join(parts), "neutral")
        if gendered:
            text, label = gendered[int(random.integers(len(gendered)))]
            parts[int(random.integers(len(parts)))] = text
            built.add(" ".join(parts), label)
    return built


def names_nobody(text: str) -> bool:
    """Whether a text holds no word of our lists, no given name, and nothing that may be one.

    Such texts, of any collection, are learned as neutral.
    """
    tokens = _WORD.findall(text)
    return not (
        any(token in gendered_words() or token in clear_names() for token in tokens) or term_groups(tokens)
    )


def _said(sentence: str, **words: str) -> str:
    text = sentence.format(**words)
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def _some(sentences: Sequence[str], times: int, random: np.random.Generator) -> list[str]:
    return [sentences[i] for i in random.choice(len(sentences), size=times, replace=False)]


def _titles(count: int, random: np.random.Generator) -> Iterator[str]:
    """Titles of works with a name or a gendered word: *the last king*, *finding mary*, *john smith*."""
    lists = plain_queries()
    (women, men), surnames = _known_names()
    shapes, plain, told = lists["sentences"]["titles"], lists["title_words"], lists["words"]
    for number in range(count):
        mine, other = (("female", "male"), ("male", "female"))[number % 2]
        names = (women, men) if mine == "female" else (men, women)
        first, second = (names[i][int(min(random.exponential(100), 900))] for i in (0, 1))
        words = {part: options[int(random.integers(len(options)))] for part, options in plain.items()}
        words |= {part: told[mine][part][0] for part in ("noun", "pro")}
        words["kin"] = [*told[mine]["spouse"], *told[mine]["parent"]][int(random.integers(8))]
        words |= {"noun2": told[other]["noun"][1], "name": first, "name2": second}
        words["surname"] = surnames[int(random.integers(len(surnames)))]
        yield shapes[int(random.integers(len(shapes)))].format(**words)


def _places(count: int, random: np.random.Generator) -> Iterator[str]:
    """Places and institutions with the name of a person: *mary creek*, *john smith bridge*, *fort wayne*."""
    lists = plain_queries()
    given, surnames = _known_names()
    every = [name for names in given for name in names]
    for number in range(count):
        name = every[int(random.integers(len(every)))]
        noun = lists["place_nouns"][int(random.integers(len(lists["place_nouns"])))]
        front = lists["place_fronts"][int(random.integers(len(lists["place_fronts"])))]
        surname = surnames[int(random.integers(len(surnames)))]
        yield (f"{name} {noun}", f"{name} {surname} {noun}", f"{front} {name}", f"{surname} {noun}")[
            number % 4
        ]


def _mirrored_people(count: int, random: np.random.Generator) -> Iterator[tuple[str, str]]:
    """A woman and a man of the same surname, or of none; names as often as people bear them."""
    (women, men), surnames = _known_names()
    for number in range(count):
        place = int(min(random.exponential(150), min(len(women), len(men)) - 1))
        surname = "" if number % 4 == 0 else " " + surnames[int(random.integers(len(surnames)))]
        yield women[place] + surname, men[place] + surname


@lru_cache(maxsize=1)
def _known_names() -> tuple[tuple[list[str], list[str]], list[str]]:
    """Given names of women and of men that tell a gender, and surnames, the most frequent first."""
    clear, names = clear_names(), census_names()
    women = sorted((n for n, lean in clear.items() if lean > 0), key=lambda n: (-names[n].female, n))
    men = sorted((n for n, lean in clear.items() if lean < 0), key=lambda n: (-names[n].male, n))
    surnames = sorted((n for n in names if names[n].surname), key=lambda n: (-names[n].surname, n))
    return (women, men), surnames[:2000]


@lru_cache(maxsize=1)
def _mirror() -> dict[str, str]:
    table: dict[str, str] = {}
    pairs = [pair for pair in (*MIRRORED, *DEFINITION) if pair[0].islower()]
    pairs += [(a, b) for a, b in (pair.split() for pair in _PAIRS.split(","))]
    for female, male in pairs:
        table.setdefault(female, male)
        table.setdefault(male, female)
    (women, men), _ = _known_names()
    for place, name in enumerate(women):
        table.setdefault(name, men[place % len(men)])
    for place, name in enumerate(men):
        table.setdefault(name, women[place % len(women)])
    return table
