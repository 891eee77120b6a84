"""Training queries written from our own lists: what names no gender, and the same words with a gender."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evenrank.queries.features import clean
from evenrank.queries.words import census_names, clear_names, gendered_words, plain_queries, term_groups

_WORD = re.compile(r"[^\W_]+")
_PEOPLE, _PLACES, _WORKS, _LONG = 500, 400, 600, 400  # samples of each kind
_SURNAMES = 2_000


class Samples(NamedTuple):
    """Cleaned queries to learn from, and the label of each."""

    texts: list[str]
    labels: list[str]

    def add(self, text: str, label: str) -> None:
        self.texts.append(text)
        self.labels.append(label)

    def some(self, places: Sequence[int]) -> Samples:
        return Samples([self.texts[i] for i in places], [self.labels[i] for i in places])


def in_order(texts: Sequence[str], labels: Sequence[str]) -> Samples:
    """Cleaned queries, sorted: what is learned does not depend on the order of the rows."""
    pairs = sorted((clean(text), label) for text, label in zip(texts, labels, strict=True))
    return Samples([text for text, _ in pairs], [label for _, label in pairs])


def names_nobody(text: str) -> bool:
    """Whether a text holds no gendered word and no given name."""
    tokens = _WORD.findall(text)
    return not (
        any(token in gendered_words() or token in clear_names() for token in tokens) or term_groups(tokens)
    )


def plain_samples(seed: int = 0) -> Samples:
    """Queries made of our own lists: what names no gender, and the same words for women and for men.

    Every job, hobby, product and field stands in some sentences without a gender and in one for each; every
    place, work or dog that bears a name stands for nobody; names of women and of men stand in the same
    sentences, before the same surnames. So nothing but the gendered word or name tells the two apart.
    """
    lists, random = plain_queries(), np.random.default_rng(seed)
    sentences = lists["sentences"]
    built = Samples([], [])
    for things, plain, gendered, times in (
        ("jobs", "jobs", "told_jobs", 2),
        ("hobbies", "fields", "told_things", 3),
        ("things", "things", "told_things", 3),
        ("fields", "fields", "told_things", 3),
    ):
        for thing in lists[things]:
            built.add(thing, "neutral")
            built.add(thing, "neutral")
            for sentence in _some(sentences[plain], times, random):
                built.add(_filled(sentence, x=thing), "neutral")
            for sentence in _some(sentences[gendered], 1, random):
                place = int(random.integers(1 << 16))
                for gender, words in lists["words"].items():
                    chosen = {part: options[place % len(options)] for part, options in words.items()}
                    built.add(_filled(sentence, x=thing, **chosen), gender)
    for sentence in 5 * sentences["jobs"]:
        for job in ("actor", "waiter"):  # the only jobs with a word for women
            built.add(_filled(sentence, x=job), "neutral")
    works = [*lists["works"], *_titles(_WORKS, random)]
    for work in (*lists["works"], *works):
        for sentence in _some(sentences["works"], 1, random):
            built.add(sentence.format(x=work), "neutral")
    for place_name in [*lists["named_after"], *(3 * lists["compounds"]), *_places(_PLACES, random)]:
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


def long_samples(neutral: Sequence[str], plain: Samples, seed: int = 0) -> Samples:
    """Long texts: neutral queries one after another, and the same with a gendered one among them.

    A text is not about a man because it is long, and a long one that names a woman is still about her.
    """
    built = Samples([], [])
    random = np.random.default_rng(seed)
    gendered = [pair for pair in zip(plain.texts, plain.labels, strict=True) if pair[1] != "neutral"]
    for _ in range(_LONG if neutral else 0):
        parts = [neutral[i] for i in random.integers(len(neutral), size=int(random.integers(2, 9)))]
        built.add(" ".join(parts), "neutral")
        text, label = gendered[int(random.integers(len(gendered)))]
        parts[int(random.integers(len(parts)))] = text
        built.add(" ".join(parts), label)
    return built


def _filled(sentence: str, **words: str) -> str:
    return re.sub(r"\ba (?=[aeiou])", "an ", sentence.format(**words))


def _some(sentences: Sequence[str], times: int, random: np.random.Generator) -> list[str]:
    return [sentences[i] for i in random.choice(len(sentences), size=times, replace=False)]


def _titles(count: int, random: np.random.Generator) -> Iterator[str]:
    """Titles of works with a name or a gendered word: *the last king*, *finding mary*, *john smith*."""
    lists = plain_queries()
    (women, men), surnames = _ranked_names()
    shapes, plain, gendered = lists["sentences"]["titles"], lists["title_words"], lists["words"]
    for number in range(count):
        mine, other = (("female", "male"), ("male", "female"))[number % 2]
        names = (women, men) if mine == "female" else (men, women)
        first, second = (names[i][int(min(random.exponential(100), 900))] for i in (0, 1))
        words = {part: options[int(random.integers(len(options)))] for part, options in plain.items()}
        words |= {part: gendered[mine][part][0] for part in ("noun", "pro")}
        words["kin"] = [*gendered[mine]["spouse"], *gendered[mine]["parent"]][int(random.integers(8))]
        words |= {"noun2": gendered[other]["noun"][1], "name": first, "name2": second}
        words["surname"] = surnames[int(random.integers(len(surnames)))]
        yield shapes[int(random.integers(len(shapes)))].format(**words)


def _places(count: int, random: np.random.Generator) -> Iterator[str]:
    """Places and institutions with the name of a person: *mary creek*, *john smith bridge*, *fort wayne*."""
    lists = plain_queries()
    given, surnames = _ranked_names()
    every = [name for names in given for name in names]
    for number in range(count):
        name = every[int(random.integers(len(every)))]
        noun = lists["place_nouns"][int(random.integers(len(lists["place_nouns"])))]
        front = lists["place_fronts"][int(random.integers(len(lists["place_fronts"])))]
        surname = surnames[int(random.integers(len(surnames)))]
        shapes = (f"{name} {noun}", f"{name} {surname} {noun}", f"{front} {name}", f"{surname} {noun}")
        yield shapes[number % 4]


def _mirrored_people(count: int, random: np.random.Generator) -> Iterator[tuple[str, str]]:
    """A woman and a man of the same surname, or of none; names as often as people bear them."""
    (women, men), surnames = _ranked_names()
    for number in range(count):
        place = int(min(random.exponential(150), min(len(women), len(men)) - 1))
        surname = "" if number % 4 == 0 else " " + surnames[int(random.integers(len(surnames)))]
        yield women[place] + surname, men[place] + surname


@lru_cache(maxsize=1)
def _ranked_names() -> tuple[tuple[list[str], list[str]], list[str]]:
    """Given names of women and of men that tell a gender, and surnames, the most frequent first."""
    clear, names = clear_names(), census_names()
    women = sorted((n for n, lean in clear.items() if lean > 0), key=lambda n: (-names[n].female, n))
    men = sorted((n for n, lean in clear.items() if lean < 0), key=lambda n: (-names[n].male, n))
    surnames = sorted((n for n in names if names[n].surname), key=lambda n: (-names[n].surname, n))
    return (women, men), surnames[:_SURNAMES]
