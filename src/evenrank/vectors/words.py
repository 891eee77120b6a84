"""The words that define a gender: pairs and lists from the papers, or from a user's files; specific words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenrank.data import door
from evenrank.data.columns import show
from evenrank.errors import InputError
from evenrank.text.lexicon import lexicon
from evenrank.vectors.space import Vectors

Pair = tuple[str, str]

DEFINITION: tuple[Pair, ...] = (
    ("she", "he"),
    ("her", "his"),
    ("woman", "man"),
    ("Mary", "John"),
    ("herself", "himself"),
    ("daughter", "son"),
    ("mother", "father"),
    ("gal", "guy"),
    ("girl", "boy"),
    ("female", "male"),
)
"""What defines the gender direction (Bolukbasi et al., NIPS 2016): female first."""

_MIRRORED = """
    convent monastery, spokeswoman spokesman, mom dad, women men, councilwoman councilman, grandma grandpa,
    granddaughters grandsons, estrogen testosterone, aunt uncle, wives husbands, mother father, girl boy,
    girls boys, sister brother, sisters brothers, businesswoman businessman, chairwoman chairman, filly colt,
    congresswoman congressman, moms dads, gals dudes, motherhood fatherhood, mothers fathers, granny fella,
    sorority fraternity, mare gelding, lady gentleman, ladies gentlemen, grandmother grandfather,
    granddaughter grandson, she he, herself himself, her his, queen king, queens kings, female male,
    females males, woman man, niece nephew, princess prince, schoolgirl schoolboy, daughter son,
    daughters sons
"""


def _pairs(text: str) -> tuple[Pair, ...]:
    return tuple((first, second) for first, second in (pair.split() for pair in text.split(",")))


MIRRORED: tuple[Pair, ...] = _pairs(_MIRRORED)
"""Pairs that hard debiasing equalises: the list released by Bolukbasi et al. (2016), single words only."""


class Stereotype(NamedTuple):
    """Two sets of words of which the first is held to be male and the second to be female."""

    name: str
    male: tuple[str, ...]
    female: tuple[str, ...]
    published: float
    """One-sided p with Google-News vectors (Fabris et al. 2020, §3.2.1); 0 as printed."""


def _stereotype(name: str, male: str, female: str, published: float) -> Stereotype:
    return Stereotype(name, tuple(male.split()), tuple(female.split()), published)


STEREOTYPES: tuple[Stereotype, ...] = (
    _stereotype(
        "agency–communion",
        "aggressive ambitious arrogant confident courageous critical decisive demanding hardworking "
        "independent possessive proud selfish strong stubborn",
        "affectionate compassionate emotional generous honest nurturing outgoing patient polite romantic "
        "sensitive unselfish",
        2.2e-2,
    ),
    _stereotype(
        "science–arts",
        "astronomy chemistry Einstein experiment NASA physics science technology",
        "art dance drama literature novel poetry Shakespeare symphony",
        1.8e-3,
    ),
    _stereotype(
        "career–family",
        "business career corporation executive management office professional salary",
        "children cousin family home marriage parents relatives wedding",
        5.5e-4,
    ),
    _stereotype(
        "jobs",
        "stonemason roofer electrician plumber carpenter firefighter millwright welder machinist driver",
        "hygienist secretary hairdresser dietician paralegal receptionist phlebotomist maid nurse typist",
        0.0,
    ),
)
"""Tables A.4–A.7 of Fabris et al. (IP&M 57(6), 2020), where "courageous" is printed "corageous"."""


Source = str | os.PathLike[str]


def read_words(path: Source) -> list[str]:
    """Words from a file: one on each line, where ``#`` begins a remark; or a JSON list."""
    text = door.text(path)
    if text.lstrip().startswith("["):
        words = _json(text, path)
        if not all(isinstance(word, str) and word for word in words):
            raise InputError("expected a list of words", path=path)
    else:
        words = [line for _, line in door.lines(path)]
    if not words:
        raise InputError("there are no words in it", path=path)
    return words


def read_pairs(path: Source) -> tuple[Pair, ...]:
    """Pairs of words from a file: two on each line (between them a tab, a comma or spaces), or JSON.

    Lines that begin with ``#`` are remarks.
    """
    text = door.text(path)
    if text.lstrip().startswith("["):
        return check_pairs(_json(text, path), path=path)
    pairs: list[Pair] = []
    for number, line in door.lines(path):
        separator = "\t" if "\t" in line else "," if "," in line else None
        words = [word.strip() for word in line.split(separator)]
        if len(words) != 2 or not all(words):
            raise InputError(f"expected two words, found {show(line)}", path=path, line=number)
        pairs.append((words[0], words[1]))
    return check_pairs(pairs, path=path)


def check_pairs(pairs: Iterable[Any], *, path: Source | None = None) -> tuple[Pair, ...]:
    """The pairs as tuples, each once; an error if something among them is not two words."""
    found: dict[Pair, None] = {}
    for pair in pairs:
        words = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
        if len(words) != 2 or not all(isinstance(word, str) and word for word in words):
            raise InputError(f"expected pairs of two words, found {show(pair)}", path=path)
        found[words[0], words[1]] = None
    if not found:
        raise InputError("there are no pairs of words", path=path)
    return tuple(found)


def _json(text: str, path: Source) -> list[Any]:
    try:
        return list(json.loads(text))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not readable as JSON: {error}", path=path, line=line) from None


Doubles = npt.NDArray[np.float64]

LEXICONS = ("rekabsaz2020", "fabris2020")
_FREQUENT = 50_000
_FOLDS = 5


def specific_words(source: Iterable[str] | str | os.PathLike[str] | None = None) -> frozenset[str]:
    """Gender-specific words in lower case: given, from a file with one on each line, or the default set.

    The default set holds the shipped lexicons rekabsaz2020 and fabris2020 and the pairs that define and
    mirror gender.
    """
    if source is None:
        words = {w for name in LEXICONS for group in lexicon(name).groups.values() for w in group}
        return frozenset(words | {word.lower() for pair in (*DEFINITION, *MIRRORED) for word in pair})
    if isinstance(source, (str, os.PathLike)):
        source = read_words(source)
    found = frozenset(word.lower() for word in source)
    if not found:
        raise InputError("there are no gender-specific words")
    return found


def ordinary_places(vectors: Vectors, specific: frozenset[str]) -> npt.NDArray[np.int64]:
    """Rows of ordinary words: frequent, of 2 to 20 letters in lower case, not gender-specific.

    After Gonen & Goldberg (NAACL 2019). Files of vectors hold the most frequent words first; the first
    50,000 rows count as frequent.
    """
    found = (row for row, word in enumerate(vectors.words[:_FREQUENT]) if _ordinary(word, specific))
    return np.fromiter(found, np.int64)


def _ordinary(word: str, specific: frozenset[str]) -> bool:
    return 2 <= len(word) <= 20 and word.isalpha() and word == word.lower() and word not in specific


class Grown(NamedTuple):
    """Gender-specific words with those that a classifier added, and how well it does: F1 on unseen words."""

    words: frozenset[str]
    added: tuple[str, ...]
    f1: float


def grow_specific(vectors: Vectors, seed_words: frozenset[str], *, seed: int = 0) -> Grown:
    """Add words that look gender-specific to a linear SVM trained on the ones given.

    As Bolukbasi et al. (2016) did: the frequent words are the examples, the given ones positive. The
    threshold is the one with the best F1 in five-fold cross-validation. Look at ``f1`` and ``added``
    before trusting them: small vectors give few words, and not all of them good.
    """
    rows = np.append(
        ordinary_places(vectors, seed_words),
        [row for row, word in enumerate(vectors.words[:_FREQUENT]) if word in seed_words],
    ).astype(np.int64)
    y = np.array([1.0 if vectors.words[row] in seed_words else -1.0 for row in rows])
    if (y > 0).sum() < 2 * _FOLDS or (y < 0).sum() < 2 * _FOLDS:
        raise InputError("too few of the gender-specific words have vectors to learn more from them")
    x = np.column_stack([vectors.matrix[rows], np.ones(len(rows))]).astype(np.float64)
    fold = np.random.default_rng(seed).permutation(len(y)) % _FOLDS
    unseen = np.empty(len(y))
    for number in range(_FOLDS):
        here = fold == number
        unseen[here] = x[here] @ _svm(x[~here], y[~here])
    order = np.argsort(-unseen, kind="stable")
    hits = np.cumsum(y[order] > 0)
    f1 = 2 * hits / (np.arange(1, len(y) + 1) + hits[-1])
    best = int(np.argmax(f1))
    scores = x @ _svm(x, y)
    chosen = [i for i in np.argsort(-scores, kind="stable") if y[i] < 0 and scores[i] >= unseen[order[best]]]
    added = tuple(vectors.words[rows[i]] for i in chosen)
    return Grown(seed_words | set(added), added, float(f1[best]))


def _svm(x: Doubles, y: Doubles) -> Doubles:
    """Weights of a linear SVM with squared hinge loss and C = 1, by Newton's method in the primal.

    Chapelle (Neural Computation 2007): given which examples lie within the margin, the weights are a
    ridge regression on these; a few rounds settle which they are.
    """

    def loss(weights: Doubles) -> tuple[float, npt.NDArray[np.bool_]]:
        slack = np.maximum(0, 1 - y * (x @ weights))
        return float(0.5 * weights @ weights + slack @ slack), slack > 0

    weights = np.zeros(x.shape[1])
    value, within = loss(weights)
    for _ in range(100):
        inner = x[within]
        target = np.linalg.solve(np.eye(len(weights)) + 2 * inner.T @ inner, 2 * inner.T @ y[within])
        step = 1.0
        while step > 1e-6 and loss(weights + step * (target - weights))[0] > value:
            step /= 2
        before = within
        weights = weights + step * (target - weights)
        value, within = loss(weights)
        if np.array_equal(before, within) or step <= 1e-6:
            break
    return weights
