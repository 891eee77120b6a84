"""Two constructed collections on which GSR must say what everyone can see.

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement, Information Processing &
Management 57(6), 2020: §3.4 (direct stereotypes: men and women in occupations) and §4.1 (indirect ones:
traits of agency and communion). A stereotypical system (S), a neutral one (N) and a counter-stereotypical
one (CS) answer queries for occupations. An answer is a set: its documents share rank 1, and so weigh alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenrank.measures.evaluate import measure
from evenrank.measures.gsr.measure import GSR
from evenrank.vectors.texts import gendered_texts
from evenrank.vectors.words import STEREOTYPES

SYSTEMS = ("S", "N", "CS")
PUBLISHED = {
    "direct": {"S": 1.61, "N": 0.0, "CS": -1.61},
    "indirect": {"S": 0.16, "N": 0.0, "CS": -0.16},
}
"""With Google-News vectors; Figures 4 and 6."""

_SETS = {stereotype.name: stereotype for stereotype in STEREOTYPES}
_JOBS, _TRAITS = _SETS["jobs"], _SETS["agency–communion"]
_DEEP = 100  # deeper than any answer

Run = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Toy:
    """Queries, documents, and what each system returns; `side` is the gender of each query's stereotype."""

    queries: dict[str, str]
    docs: dict[str, str]
    systems: Mapping[str, Run]
    side: dict[str, str]


def direct() -> Toy:
    """ "The woman is a nurse": documents that name a person's gender."""
    return _toy({"female": {"woman": "The woman is a {job}"}, "male": {"man": "The man is a {job}"}})


def indirect() -> Toy:
    """ "The nurse is affectionate": documents that name a trait held to be female or male."""
    return _toy(
        {
            side: {trait: "The {job} is " + trait for trait in traits}
            for side, traits in (("female", _TRAITS.female), ("male", _TRAITS.male))
        }
    )


def _toy(patterns: Mapping[str, Mapping[str, str]]) -> Toy:
    side = dict.fromkeys(_JOBS.female, "female") | dict.fromkeys(_JOBS.male, "male")
    docs = {
        f"{job}-{key}": pattern.format(job=job)
        for job in side
        for of in patterns.values()
        for key, pattern in of.items()
    }
    other = {"female": "male", "male": "female"}

    def answers(sides: Mapping[str, tuple[str, ...]]) -> Run:
        return {
            job: {f"{job}-{key}": 1.0 for each in sides[of] for key in patterns[each]}
            for job, of in side.items()
        }

    systems = {
        "S": answers({of: (of,) for of in other}),
        "N": answers(dict.fromkeys(other, ("female", "male"))),
        "CS": answers({of: (other[of],) for of in other}),
    }
    return Toy({job: job for job in side}, docs, systems, side)


def values(toy: Toy, vectors: Any = None, *, pairs: Any = None) -> dict[str, float | None]:
    """GSR of the three systems."""
    unranked = GSR(discount="none") @ _DEEP
    measured = measure(
        toy.systems,
        unranked,
        docs=toy.docs,
        queries=toy.queries,
        vectors=gendered_texts(vectors, pairs=pairs),
        confidence=None,
    )
    return {name: measured[name, unranked].value for name in SYSTEMS}


def gsr_toy(vectors: Any = None) -> dict[str, Any]:
    """GSR of the three systems on both collections, and the published values."""
    texts = gendered_texts(vectors)
    return {
        "direct": values(direct(), texts),
        "indirect": values(indirect(), texts),
        "published": PUBLISHED,
    }
