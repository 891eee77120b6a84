"""Words that studies of gender have used: pairs that define it, pairs that mirror it, stereotypes."""

from __future__ import annotations

from typing import NamedTuple

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
