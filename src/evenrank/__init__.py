"""evenrank: measure, explain and re-balance gender bias in search results.

>>> import evenrank as er
>>> from evenrank import ARaB, NFaiRR, nDCG
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evenrank import process

__version__ = "0.1.0"

process.settle_cache()
process.watch_forks()

# Where each public name lives; it is imported when first used, so that `import evenrank` costs nothing.
_HOME = {
    "InputError": "errors",
    "audit": "auditing",
    "Audit": "auditing",
    "load": "data.tables",
    "lexicon": "text.lexicon",
    "Lexicon": "text.lexicon",
    "tally": "text.tally",
    "tally_batches": "spark",
    "tally_schema": "spark",
    "index": "rankers.index.building",
    "Index": "rankers.index",
    "search": "rankers.catalogue",
    "rerank": "rankers.neural.reranking",
    "Tally": "text.tally",
    "measure": "measures.evaluate",
    "represent": "measures.labelled_lists",
    "bind": "measures.binding",
    "parse": "measures.parse",
    "RaB": "measures.rank_bias",
    "ARaB": "measures.rank_bias",
    "FaiRR": "measures.neutrality",
    "NFaiRR": "measures.neutrality",
    "GSR": "measures.gsr.measure",
    "LIWC": "measures.dictionary_bias",
    "disparity": "measures.disparities",
    "association": "measures.associating",
    "audit_judgments": "psychology.audits",
    "audit_rankings": "psychology.audits",
    **dict.fromkeys(("rND", "rKL", "rRD"), "measures.ranked_parity"),
    **dict.fromkeys(("Skew", "MinSkew", "MaxSkew", "NDKL"), "measures.skew"),
    **dict.fromkeys(("Exposure", "DemographicParity", "DisparateTreatment", "AWRF"), "measures.exposure"),
    "FAIR": "measures.ranked_parity",
    "MB": "measures.representation",
    **dict.fromkeys(("VarRaB", "VarARaB", "VarNDRaB"), "measures.query_variants"),
    "constrain": "mitigate.constrain",
    "interpolate": "mitigate.mitigations",
    "penalise": "mitigate.mitigations",
    "negatives": "mitigate.negatives",
    "sweep": "mitigate.tradeoff",
    "swap": "mitigate.swap",
    "counterfactual": "mitigate.counterfactuals",
    "balance": "mitigate.matching",
    "fill": "mitigate.filling",
    "even_judgments": "mitigate.judgments",
    "classify": "queries.classifier",
    "variants": "queries.rewriting",
    "compare_variants": "auditing.black_box",
    "generate": "queries.generation.generating",
    "filter_generated": "queries.generation.filtering",
    "closeness": "queries.generation.closeness",
    "pool": "queries.pooling",
    "vote": "queries.pooling",
    "feedback": "mitigate.feedback",
    "gendered_terms": "mitigate.feedback",
}

# Modules that have moved: their old paths go on working for one release.
_MOVED = {
    "evenrank.measures.attribution": "evenrank.measures.explain",
    "evenrank.measures.magnitude": "evenrank.text.tally",
    "evenrank.measures.mean_bias": "evenrank.measures.representation",
    "evenrank.measures.measurements": "evenrank.measures.results",
    "evenrank.measures.psychology": "evenrank.measures.dictionary_bias",
    "evenrank.measures.ranked_group_test": "evenrank.measures.ranked_parity",
    "evenrank.measures.reinforcement": "evenrank.measures.gsr.results",
    "evenrank.measures.slope": "evenrank.measures.gsr.slope",
    "evenrank.measures.stereotype": "evenrank.measures.gsr.measure",
    "evenrank.measures.summary": "evenrank.measures.results",
    "evenrank.mitigate.counterfactual_result": "evenrank.mitigate.counterfactuals",
    "evenrank.mitigate.live": "evenrank.mitigate.constrain",
    "evenrank.psychology.ready": "evenrank.psychology.comparing",
    "evenrank.psychology.sampling": "evenrank.psychology.comparing",
}


class _OldPaths(MetaPathFinder, Loader):
    """Finds a module under the path it had before: what it holds is looked up in the one it is now."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in _MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = _MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is now {new}", DeprecationWarning, stacklevel=2)
        vars(module)["__getattr__"] = partial(getattr, import_module(new))


sys.meta_path.append(_OldPaths())

# Effectiveness measures, straight from ir_measures, so that one import serves a mixed list.
_EFFECTIVENESS = (
    "AP", "Bpref", "ERR", "Judged", "P", "R", "RR", "Rprec", "Success", "infAP", "nDCG",
)  # fmt: skip

__all__ = ["__version__", *_HOME, *_EFFECTIVENESS]

if TYPE_CHECKING:
    from ir_measures import AP, ERR, RR, Bpref, Judged, P, R, Rprec, Success, infAP, nDCG

    from evenrank.auditing import Audit, audit
    from evenrank.auditing.black_box import compare_variants
    from evenrank.data.tables import load
    from evenrank.errors import InputError
    from evenrank.measures.associating import association
    from evenrank.measures.binding import bind
    from evenrank.measures.dictionary_bias import LIWC
    from evenrank.measures.disparities import disparity
    from evenrank.measures.evaluate import measure
    from evenrank.measures.exposure import AWRF, DemographicParity, DisparateTreatment, Exposure
    from evenrank.measures.gsr.measure import GSR
    from evenrank.measures.labelled_lists import represent
    from evenrank.measures.neutrality import FaiRR, NFaiRR
    from evenrank.measures.parse import parse
    from evenrank.measures.query_variants import VarARaB, VarNDRaB, VarRaB
    from evenrank.measures.rank_bias import ARaB, RaB
    from evenrank.measures.ranked_parity import FAIR, rKL, rND, rRD
    from evenrank.measures.representation import MB
    from evenrank.measures.skew import NDKL, MaxSkew, MinSkew, Skew
    from evenrank.mitigate.constrain.reranking import constrain
    from evenrank.mitigate.counterfactuals import counterfactual
    from evenrank.mitigate.feedback.expanded_queries import gendered_terms
    from evenrank.mitigate.feedback.sweeping import feedback
    from evenrank.mitigate.filling import fill
    from evenrank.mitigate.judgments import even_judgments
    from evenrank.mitigate.matching import balance
    from evenrank.mitigate.mitigations import interpolate, penalise
    from evenrank.mitigate.negatives import negatives
    from evenrank.mitigate.swap import swap
    from evenrank.mitigate.tradeoff import sweep
    from evenrank.psychology.audits import audit_judgments, audit_rankings
    from evenrank.queries.classifier import classify
    from evenrank.queries.generation.closeness import closeness
    from evenrank.queries.generation.filtering import filter_generated
    from evenrank.queries.generation.generating import generate
    from evenrank.queries.pooling import pool, vote
    from evenrank.queries.rewriting import variants
    from evenrank.rankers.catalogue import search
    from evenrank.rankers.index import Index
    from evenrank.rankers.index.building import index
    from evenrank.rankers.neural.reranking import rerank
    from evenrank.spark import tally_batches, tally_schema
    from evenrank.text.lexicon import Lexicon, lexicon
    from evenrank.text.tally import Tally, tally


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
