"""Measures of bias in ranked lists: one small file for each family; `base.py` says how to add one.

=================  =======================================================================
base.py            what a measure is: `BiasMeasure`, `LinearMeasure`; which way is better
lists.py           ranked lists as arrays, and what their documents are looked up in
inputs.py          everything that is measured, opened once
evaluate.py        `measure`: runs × measures → values with intervals
results.py         what measuring gives
explain.py         which words, documents and queries make up a value
parse.py           measures and conditions as text; measures from outside the package
bind.py            `bind`: our measures inside ir_measures and PyTerrier
rank_bias.py       RaB and ARaB: which group the top of a ranking favours
neutrality.py      neutrality, FaiRR and NFaiRR: do neutral documents stand at the top
gsr/               GSR: do lists speak the gendered language that their queries suggest
dictionary.py      LIWC: the gender words of a psychological dictionary in the top documents
groups.py          what measures of groups share; document_groups.py: labels, attributes, targets
parity.py          rND, rKL, rRD and FAIR: is a group's share in every prefix what it should be
skew.py            Skew, MinSkew, MaxSkew and NDKL: are groups shown in the shares they should have
exposure.py        Exposure, ExposureGap, DemographicParity, DisparateTreatment, AWRF: who gets attention;
                   nDCGxAWRF: relevant and fair at once; EEL, EED, EER: over several rankings of a query
representation.py  MB, and `represent`: representation bias of labelled lists
variants.py        VarRaB, VarARaB, VarNDRaB: does a neutral query find what its male variant finds
disparity.py       `disparity`: are queries of one gender served better
effectiveness.py   nDCG, RR and the other measures of ir_measures
association.py     `association`: how close queries stand to their own relevant documents
=================  =======================================================================
"""

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
