"""Do the vectors hold stereotypes? Two sets of words, and whether chance could have parted them so far.

Fabris, Purpura, Silvello & Susto: Gender stereotype reinforcement. IP&M 57(6), 2020, §3.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.stats import permutation
from evenrank.vectors.gendered import Genderedness, Pairs, genderedness
from evenrank.vectors.words import STEREOTYPES, Stereotype

DRAWS = 100_000


@dataclass(frozen=True)
class Association:
    """How much more female the second set of words is than the first.

    Attributes
    ----------
    name
        What is tested.
    male, female
        Mean g of the words that are held to be male, and of those held to be female.
    difference, low, high
        ``female − male`` and its confidence interval; positive: the stereotype is in the vectors.
    p
        One-sided: the share of ways to deal the same words into sets of these sizes that part the means
        at least as far. All ways up to a million, else 100,000 seeded draws with p = (b + 1) / (n + 1).
    effect
        Hedges' g: the difference in standard deviations.
    words
        How many words of the two sets have vectors.
    missing
        The words that have none, and are left out.
    published
        p with Google-News vectors, if the sets are those of the paper; printed as 0 where none was found.
    """

    name: str
    male: float
    female: float
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    effect: float | None
    words: tuple[int, int]
    missing: tuple[str, ...]
    published: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def association_test(
    male: Iterable[str],
    female: Iterable[str],
    source: Genderedness | Any = None,
    *,
    name: str = "",
    pairs: Pairs | None = None,
    seed: int = 0,
    published: float | None = None,
) -> Association:
    """Whether the second set of words leans more to the positive side than the first.

    Parameters
    ----------
    male, female
        The sets: the first is expected on the negative (male) side, the second on the positive.
    source
        What :func:`~evenrank.vectors.genderedness` takes: nothing for the shipped table,
        vectors, or a file.
    pairs
        Other pairs of words for another direction.

    Raises
    ------
    InputError
        A set has no word with a vector, or a word is in both sets.
    """
    table = genderedness(source, pairs=pairs)
    sets = tuple(dict.fromkeys(male)), tuple(dict.fromkeys(female))
    if both := set(sets[0]) & set(sets[1]):
        raise InputError(f"the word {sorted(both)[0]!r} is in both sets; leave it in one")
    values = [table.of(words) for words in sets]
    missing = tuple(
        word
        for words, found in zip(sets, values, strict=True)
        for word, unknown in zip(words, np.isnan(found), strict=True)
        if unknown
    )
    low_side, high_side = (_present(found, name) for found in values)
    test = permutation(high_side, low_side, alternative="greater", draws=DRAWS, seed=seed)
    return Association(
        name,
        float(low_side.mean()),
        float(high_side.mean()),
        test.difference,
        test.low,
        test.high,
        test.p,
        test.effect,
        (len(low_side), len(high_side)),
        missing,
        published,
    )


def association_tests(
    source: Genderedness | Any = None,
    *,
    stereotypes: Iterable[Stereotype] = STEREOTYPES,
    pairs: Pairs | None = None,
    seed: int = 0,
) -> list[Association]:
    """The stereotype association tests: agency–communion, science–arts, career–family, jobs."""
    table = genderedness(source, pairs=pairs)
    return [
        association_test(s.male, s.female, table, name=s.name, seed=seed, published=s.published)
        for s in stereotypes
    ]


def _present(values: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
    found = values[~np.isnan(values)]
    if not len(found):
        raise InputError(f"{name or 'the test'}: none of the words of a set has a vector")
    return found
