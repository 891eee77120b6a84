"""Association tests: whether vectors contain a stereotype.

Two sets of words are compared by a permutation test: could chance have put their mean genderedness so far
apart? (Fabris, Purpura, Silvello & Susto: Gender stereotype reinforcement. IP&M 57(6), 2020, §3.2.1.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from evenrank.errors import InputError
from evenrank.stats import permutation
from evenrank.vectors.gendered import Genderedness, Pairs, genderedness
from evenrank.vectors.space import Doubles

DRAWS = 100_000


class Stereotype(NamedTuple):
    """Two sets of words: by the stereotype the first is male and the second female."""

    name: str
    male: Sequence[str]
    female: Sequence[str]
    published: float | None = None
    """One-sided p with Google-News vectors (Fabris et al. 2020, §3.2.1); 0 where the paper prints 0."""


STEREOTYPES = (
    Stereotype(
        "agency–communion",
        "aggressive ambitious arrogant confident courageous critical decisive demanding hardworking "
        "independent possessive proud selfish strong stubborn".split(),
        "affectionate compassionate emotional generous honest nurturing outgoing patient polite romantic "
        "sensitive unselfish".split(),
        2.2e-2,
    ),
    Stereotype(
        "science–arts",
        "astronomy chemistry Einstein experiment NASA physics science technology".split(),
        "art dance drama literature novel poetry Shakespeare symphony".split(),
        1.8e-3,
    ),
    Stereotype(
        "career–family",
        "business career corporation executive management office professional salary".split(),
        "children cousin family home marriage parents relatives wedding".split(),
        5.5e-4,
    ),
    Stereotype(
        "jobs",
        "stonemason roofer electrician plumber carpenter firefighter millwright welder machinist "
        "driver".split(),
        "hygienist secretary hairdresser dietician paralegal receptionist phlebotomist maid nurse "
        "typist".split(),
        0.0,
    ),
)
"""Tables A.4–A.7 of Fabris et al. (IP&M 57(6), 2020), where "courageous" is printed "corageous"."""


@dataclass(frozen=True)
class Association:
    """How much more female the second set of words is than the first.

    Attributes
    ----------
    name
        The stereotype that is tested.
    male, female
        Mean g of the stereotypically male words, and of the stereotypically female ones.
    difference, low, high
        ``female − male`` and its confidence interval; positive: the stereotype is in the vectors.
    p
        One-sided: the share of all divisions of these words into sets of these sizes whose means differ at
        least as much. All divisions up to a million, else 100,000 seeded draws with p = (b + 1) / (n + 1).
    effect
        Hedges' g: the difference in standard deviations.
    words
        How many words of the two sets have vectors.
    missing
        The words that have none, and are left out.
    published
        p with Google-News vectors, if the sets are those of the paper; 0 where the paper prints 0.
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


def association_tests(
    source: Any = None,
    *,
    stereotypes: Iterable[Stereotype] = STEREOTYPES,
    pairs: Pairs | None = None,
    seed: int = 0,
) -> list[Association]:
    """Test whether the second set of words of each stereotype leans more to the positive side than the first.

    Parameters
    ----------
    source
        As for :func:`~evenrank.vectors.genderedness`: nothing for the shipped table, vectors, or a file.
    stereotypes
        Sets of words: the first is expected on the negative (male) side, the second on the positive. Those of
        the paper if not given: agency–communion, science–arts, career–family, jobs.
    pairs
        Other pairs of words for another direction.

    Raises
    ------
    InputError
        A set has no word with a vector, or a word is in both sets.
    """
    table = genderedness(source, pairs=pairs)
    return [_test(stereotype, table, seed) for stereotype in stereotypes]


def _test(stereotype: Stereotype, table: Genderedness, seed: int) -> Association:
    sets = tuple(dict.fromkeys(stereotype.male)), tuple(dict.fromkeys(stereotype.female))
    if both := set(sets[0]) & set(sets[1]):
        raise InputError(f"the word {sorted(both)[0]!r} is in both sets; leave it in one")
    values: list[Doubles] = []
    missing: list[str] = []
    for words in sets:
        g = table.of(words)
        absent = np.isnan(g)
        missing += [word for word, is_absent in zip(words, absent, strict=True) if is_absent]
        if absent.all():
            raise InputError(f"{stereotype.name}: none of the words of a set has a vector")
        values.append(g[~absent])
    test = permutation(values[1], values[0], alternative="greater", draws=DRAWS, seed=seed)
    return Association(
        name=stereotype.name,
        male=float(values[0].mean()),
        female=float(values[1].mean()),
        difference=test.difference,
        low=test.low,
        high=test.high,
        p=test.p,
        effect=test.effect,
        words=(len(values[0]), len(values[1])),
        missing=tuple(missing),
        published=stereotype.published,
    )
