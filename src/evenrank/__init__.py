"""evenrank: measure, explain and re-balance gender bias in search results.

>>> import evenrank as er
>>> from evenrank import ARaB, NFaiRR, nDCG
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives; it is imported when first used, so that `import evenrank` costs nothing.
_HOME = {
    "InputError": "errors",
    "load": "tables",
    "lexicon": "words.lexicon",
    "Lexicon": "words.lexicon",
    "tally": "words.tally",
    "Tally": "words.tally",
    "measure": "measures.evaluate",
    "bind": "measures.binding",
    "parse": "measures.parse",
    "RaB": "measures.rank_bias",
    "ARaB": "measures.rank_bias",
    "FaiRR": "measures.neutrality",
    "NFaiRR": "measures.neutrality",
    "pool": "queries.pooling",
    "vote": "queries.pooling",
}

# Effectiveness measures, straight from ir_measures, so that one import serves a mixed list.
_EFFECTIVENESS = (
    "AP", "Bpref", "ERR", "Judged", "P", "R", "RBP", "RR", "Rprec", "Success", "infAP", "nDCG",
)  # fmt: skip

__all__ = ["__version__", *_HOME, *_EFFECTIVENESS]

if TYPE_CHECKING:
    from ir_measures import AP, ERR, RBP, RR, Bpref, Judged, P, R, Rprec, Success, infAP, nDCG

    from evenrank.errors import InputError
    from evenrank.measures.binding import bind
    from evenrank.measures.evaluate import measure
    from evenrank.measures.neutrality import FaiRR, NFaiRR
    from evenrank.measures.parse import parse
    from evenrank.measures.rank_bias import ARaB, RaB
    from evenrank.queries.pooling import pool, vote
    from evenrank.tables import load
    from evenrank.words.lexicon import Lexicon, lexicon
    from evenrank.words.tally import Tally, tally


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"evenrank.{_HOME[name]}"), name)
    elif name in _EFFECTIVENESS:
        value = getattr(import_module("ir_measures"), name)
    else:
        raise AttributeError(f"module 'evenrank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
