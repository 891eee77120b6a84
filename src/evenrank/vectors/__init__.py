"""Word vectors: opening and making them, the gender direction in them, and taking it out."""

from evenrank.vectors.associations import Association, association_test, association_tests
from evenrank.vectors.debias import debiased
from evenrank.vectors.direction import Direction, find_direction
from evenrank.vectors.distilling import distil
from evenrank.vectors.encoders import find_model, minilm
from evenrank.vectors.loading import load
from evenrank.vectors.recovery import Recoverability, recoverability
from evenrank.vectors.saving import save
from evenrank.vectors.space import Vectors
from evenrank.vectors.specific import grow_specific, ordinary_places, specific_words
from evenrank.vectors.table import Genderedness, genderedness, leaning
from evenrank.vectors.training import train, vocabulary
from evenrank.vectors.wordfiles import read_pairs, read_words
from evenrank.vectors.wordsets import DEFINITION, MIRRORED, STEREOTYPES, Stereotype

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
