"""Measures of bias in ranked lists: one small file for each family; `base.py` says how to add one.

================ =======================================================================
rank_bias.py     RaB and ARaB: which group the top of a ranking favours
neutrality.py    neutrality, FaiRR and NFaiRR: do neutral documents stand at the top
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
from evenrank.measures.measurements import Measurement, Measurements
from evenrank.measures.neutrality import FaiRR, NFaiRR
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.rank_bias import ARaB, RaB

__all__ = [
    "ARaB",
    "Attribution",
    "Condition",
    "FaiRR",
    "Measurement",
    "Measurements",
    "NFaiRR",
    "RaB",
    "bind",
    "measure",
    "parse_condition",
]
