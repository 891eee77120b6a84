"""Word vectors: load, train, distil; the gender direction, genderedness, stereotypes and debiasing."""

from evenrank.vectors.associations import STEREOTYPES, Association, Stereotype, association_tests
from evenrank.vectors.debias import Recoverability, debiased, grow_specific, recoverability
from evenrank.vectors.encoders import find_model
from evenrank.vectors.formats import load, save
from evenrank.vectors.gendered import (
    DEFINITION,
    MIRRORED,
    Direction,
    Genderedness,
    find_direction,
    genderedness,
    leaning,
    ordinary_rows,
    read_pairs,
    read_words,
    specific_words,
)
from evenrank.vectors.space import Vectors
from evenrank.vectors.training import distil, train, vocabulary

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
    "association_tests",
    "debiased",
    "distil",
    "find_direction",
    "find_model",
    "genderedness",
    "grow_specific",
    "leaning",
    "load",
    "ordinary_rows",
    "read_pairs",
    "read_words",
    "recoverability",
    "save",
    "specific_words",
    "train",
    "vocabulary",
]
