"""Measures of bias in ranked lists: one small file for each family; CONTRIBUTING says how to add one."""

# Importing a family registers its measures by name.
from evenrank.measures.bind import bind
from evenrank.measures.dictionary import LIWC
from evenrank.measures.evaluate import measure
from evenrank.measures.explain import Attribution
from evenrank.measures.exposure import (
    AWRF,
    EED,
    EEL,
    EER,
    DemographicParity,
    DisparateTreatment,
    Exposure,
    ExposureGap,
    nDCGxAWRF,
)
from evenrank.measures.gsr.measure import GSR, Reinforcement
from evenrank.measures.neutrality import FaiRR, NFaiRR
from evenrank.measures.parity import FAIR, rKL, rND, rRD
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.rank_bias import ARaB, RaB
from evenrank.measures.representation import MB, Representation, represent
from evenrank.measures.results import Measurement, Measurements
from evenrank.measures.skew import NDKL, MaxSkew, MinSkew, Skew
from evenrank.measures.variants import VarARaB, VarNDRaB, VarRaB

__all__ = [
    "AWRF",
    "EED",
    "EEL",
    "EER",
    "FAIR",
    "GSR",
    "LIWC",
    "MB",
    "NDKL",
    "ARaB",
    "Attribution",
    "Condition",
    "DemographicParity",
    "DisparateTreatment",
    "Exposure",
    "ExposureGap",
    "FaiRR",
    "MaxSkew",
    "Measurement",
    "Measurements",
    "MinSkew",
    "NFaiRR",
    "RaB",
    "Reinforcement",
    "Representation",
    "Skew",
    "VarARaB",
    "VarNDRaB",
    "VarRaB",
    "bind",
    "measure",
    "nDCGxAWRF",
    "parse_condition",
    "rKL",
    "rND",
    "rRD",
    "represent",
]
