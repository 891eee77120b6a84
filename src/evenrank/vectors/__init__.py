"""Word vectors: opening and making them, the gender direction in them, and taking it out."""

from evenrank.vectors.debias import Recoverability, debiased, recoverability
from evenrank.vectors.encoders import find_model, minilm
from evenrank.vectors.files import load, save
from evenrank.vectors.gendered import (
    Association,
    Direction,
    Genderedness,
    association_test,
    association_tests,
    find_direction,
    genderedness,
    leaning,
)
from evenrank.vectors.space import Vectors
from evenrank.vectors.training import distil, train, vocabulary
from evenrank.vectors.words import (
    DEFINITION,
    MIRRORED,
    STEREOTYPES,
    Stereotype,
    grow_specific,
    ordinary_places,
    read_pairs,
    read_words,
    specific_words,
)

__all__ = [
    "DEFINITION",
    "MIRRORED",
    "STEREOTYPES",
    "Association",
    "Direction",
    "Genderedness",
    "Recoverability",
    "Stereotype",
    "Vectors",
    "association_test",
    "association_tests",
    "debiased",
    "distil",
    "find_direction",
    "find_model",
    "genderedness",
    "grow_specific",
    "leaning",
    "load",
    "minilm",
    "ordinary_places",
    "read_pairs",
    "read_words",
    "recoverability",
    "save",
    "specific_words",
    "train",
    "vocabulary",
]
