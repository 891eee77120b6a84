"""Measures of bias in ranked lists: one small file for each family; `base.py` says how to add one.

================ =======================================================================
rank_bias.py     RaB and ARaB: which group the top of a ranking favours
neutrality.py    neutrality, FaiRR and NFaiRR: do neutral documents stand at the top
stereotype.py    GSR: do lists speak the gendered language that their queries suggest
ranked_parity.py rND, rKL and rRD: is a group's share in every prefix that of the whole
skew.py          Skew, MinSkew, MaxSkew and NDKL: are groups shown in the shares they should have
exposure.py      Exposure, DemographicParity, DisparateTreatment, AWRF: who gets the attention
ranked_group_test.py  FAIR: does every prefix hold enough of a group
representation.py     representation bias of labelled result lists; mean_bias.py: MB, the measure
psychology.py    LIWC: the gender words of a psychological dictionary in the top documents
disparities.py   `disparity`: are queries of one gender served better
associating.py   `association`: how close queries stand to their own relevant documents
magnitude.py     the five magnitudes of a group in a document
parse.py         measures and conditions as text
evaluate.py      `measure`: runs × measures → values with intervals
attribution.py   which words, documents and queries make up a value
binding.py       `bind`: our measures inside ir_measures and PyTerrier
================ =======================================================================
"""

# Importing a family registers its measures by name.
from evenrank.measures.attribution import Attribution
from evenrank.measures.binding import bind
from evenrank.measures.evaluate import measure
from evenrank.measures.exposure import AWRF, DemographicParity, DisparateTreatment, Exposure
from evenrank.measures.labelled_lists import represent
from evenrank.measures.mean_bias import MB
from evenrank.measures.measurements import Measurement, Measurements
from evenrank.measures.neutrality import FaiRR, NFaiRR
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.psychology import LIWC
from evenrank.measures.rank_bias import ARaB, RaB
from evenrank.measures.ranked_group_test import FAIR
from evenrank.measures.ranked_parity import rKL, rND, rRD
from evenrank.measures.reinforcement import Reinforcement, compare_reinforcement
from evenrank.measures.representation import Representation
from evenrank.measures.skew import NDKL, MaxSkew, MinSkew, Skew
from evenrank.measures.stereotype import GSR

__all__ = [
    "AWRF",
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
    "bind",
    "compare_reinforcement",
    "measure",
    "parse_condition",
    "rKL",
    "rND",
    "rRD",
    "represent",
]
