"""evenrank: measure, explain and re-balance gender bias in search results.

>>> import evenrank as er
>>> from evenrank import ARaB, NFaiRR, nDCG
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenrank import parallel

__version__ = "0.1.0"

parallel.set_numba_cache_dir()
parallel.watch_forks()

# Where each public name lives; it is imported when first used, so that `import evenrank` costs nothing.
_HOME = {
    "InputError": "errors",
    "audit": "auditing",
    "Audit": "auditing",
    "load": "data.docs",
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
    "bind": "measures.bind",
    "parse": "measures.parse",
    "RaB": "measures.rank_bias",
    "ARaB": "measures.rank_bias",
    "FaiRR": "measures.neutrality",
    "NFaiRR": "measures.neutrality",
    "GSR": "measures.gsr.measure",
    "LIWC": "measures.dictionary",
    "disparity": "measures.disparity",
    "association": "measures.association",
    "audit_judgments": "psychology",
    "audit_rankings": "psychology",
    **dict.fromkeys(("rND", "rKL", "rRD"), "measures.parity"),
    **dict.fromkeys(("Skew", "MinSkew", "MaxSkew", "NDKL"), "measures.skew"),
    **dict.fromkeys(
        ("Exposure", "ExposureGap", "DemographicParity", "DisparateTreatment", "AWRF"), "measures.exposure"
    ),
    **dict.fromkeys(("EEL", "EED", "EER"), "measures.expected_exposure"),
    "nDCGxAWRF": "measures.exposure",
    "FAIR": "measures.parity",
    "MB": "measures.representation",
    **dict.fromkeys(("VarRaB", "VarARaB", "VarNDRaB"), "measures.variants"),
    "constrain": "mitigate.constrain",
    "interpolate": "mitigate.mitigations",
    "penalise": "mitigate.mitigations",
    "rebalance": "mitigate.rebalancing",
    "negatives": "mitigate.negatives",
    "sweep": "mitigate.tradeoff",
    "swap": "mitigate.swapping",
    "counterfactual": "mitigate.counterfactuals",
    "balance": "mitigate.matching",
    "fill": "mitigate.filling",
    "even_judgments": "mitigate.judgments",
    "classify": "queries.classify",
    "variants": "queries.variants",
    "compare_variants": "auditing.black_box",
    "generate": "queries.generate",
    "filter_generated": "queries.generated",
    "closeness": "queries.generated",
    "plan": "auditing.certainty",
    "trace": "auditing.stages",
    "preference": "mitigate.preferences",
    "fit_projection": "mitigate.projection",
    "pool": "queries.pooling",
    "vote": "queries.pooling",
    "feedback": "mitigate.feedback_sweep",
    "gendered_terms": "mitigate.feedback_effects",
}

# Effectiveness measures, straight from ir_measures, so that one import serves a mixed list.
_EFFECTIVENESS = (
    "AP", "Bpref", "ERR", "Judged", "P", "R", "RR", "Rprec", "Success", "infAP", "nDCG",
)  # fmt: skip

__all__ = ["__version__", *_HOME, *_EFFECTIVENESS]

if TYPE_CHECKING:  # `as`, so that strict type checkers know these names for public
    from ir_measures import AP as AP
    from ir_measures import ERR as ERR
    from ir_measures import RR as RR
    from ir_measures import Bpref as Bpref
    from ir_measures import Judged as Judged
    from ir_measures import P as P
    from ir_measures import R as R
    from ir_measures import Rprec as Rprec
    from ir_measures import Success as Success
    from ir_measures import infAP as infAP
    from ir_measures import nDCG as nDCG

    from evenrank.auditing import Audit as Audit
    from evenrank.auditing import audit as audit
    from evenrank.auditing.black_box import compare_variants as compare_variants
    from evenrank.auditing.certainty import plan as plan
    from evenrank.auditing.stages import trace as trace
    from evenrank.data.docs import load as load
    from evenrank.errors import InputError as InputError
    from evenrank.measures.association import association as association
    from evenrank.measures.bind import bind as bind
    from evenrank.measures.dictionary import LIWC as LIWC
    from evenrank.measures.disparity import disparity as disparity
    from evenrank.measures.evaluate import measure as measure
    from evenrank.measures.expected_exposure import EED as EED
    from evenrank.measures.expected_exposure import EEL as EEL
    from evenrank.measures.expected_exposure import EER as EER
    from evenrank.measures.exposure import AWRF as AWRF
    from evenrank.measures.exposure import DemographicParity as DemographicParity
    from evenrank.measures.exposure import DisparateTreatment as DisparateTreatment
    from evenrank.measures.exposure import Exposure as Exposure
    from evenrank.measures.exposure import ExposureGap as ExposureGap
    from evenrank.measures.exposure import nDCGxAWRF as nDCGxAWRF
    from evenrank.measures.gsr.measure import GSR as GSR
    from evenrank.measures.labelled_lists import represent as represent
    from evenrank.measures.neutrality import FaiRR as FaiRR
    from evenrank.measures.neutrality import NFaiRR as NFaiRR
    from evenrank.measures.parity import FAIR as FAIR
    from evenrank.measures.parity import rKL as rKL
    from evenrank.measures.parity import rND as rND
    from evenrank.measures.parity import rRD as rRD
    from evenrank.measures.parse import parse as parse
    from evenrank.measures.rank_bias import ARaB as ARaB
    from evenrank.measures.rank_bias import RaB as RaB
    from evenrank.measures.representation import MB as MB
    from evenrank.measures.skew import NDKL as NDKL
    from evenrank.measures.skew import MaxSkew as MaxSkew
    from evenrank.measures.skew import MinSkew as MinSkew
    from evenrank.measures.skew import Skew as Skew
    from evenrank.measures.variants import VarARaB as VarARaB
    from evenrank.measures.variants import VarNDRaB as VarNDRaB
    from evenrank.measures.variants import VarRaB as VarRaB
    from evenrank.mitigate.constrain.reranking import constrain as constrain
    from evenrank.mitigate.counterfactuals import counterfactual as counterfactual
    from evenrank.mitigate.feedback_effects import gendered_terms as gendered_terms
    from evenrank.mitigate.feedback_sweep import feedback as feedback
    from evenrank.mitigate.filling import fill as fill
    from evenrank.mitigate.judgments import even_judgments as even_judgments
    from evenrank.mitigate.matching import balance as balance
    from evenrank.mitigate.mitigations import interpolate as interpolate
    from evenrank.mitigate.mitigations import penalise as penalise
    from evenrank.mitigate.negatives import negatives as negatives
    from evenrank.mitigate.preferences import preference as preference
    from evenrank.mitigate.projection import fit_projection as fit_projection
    from evenrank.mitigate.rebalancing import rebalance as rebalance
    from evenrank.mitigate.swapping import swap as swap
    from evenrank.mitigate.tradeoff import sweep as sweep
    from evenrank.psychology import audit_judgments as audit_judgments
    from evenrank.psychology import audit_rankings as audit_rankings
    from evenrank.queries.classify import classify as classify
    from evenrank.queries.generate import generate as generate
    from evenrank.queries.generated import closeness as closeness
    from evenrank.queries.generated import filter_generated as filter_generated
    from evenrank.queries.pooling import pool as pool
    from evenrank.queries.pooling import vote as vote
    from evenrank.queries.variants import variants as variants
    from evenrank.rankers.catalogue import search as search
    from evenrank.rankers.index import Index as Index
    from evenrank.rankers.index.building import index as index
    from evenrank.rankers.neural.reranking import rerank as rerank
    from evenrank.spark import tally_batches as tally_batches
    from evenrank.spark import tally_schema as tally_schema
    from evenrank.text.lexicon import Lexicon as Lexicon
    from evenrank.text.lexicon import lexicon as lexicon
    from evenrank.text.tally import Tally as Tally
    from evenrank.text.tally import tally as tally


# What takes `genders="predict"`. Measures do not know the classifier, which is built upon them.
_PREDICTING = ("measure", "audit", "trace", "plan")


def _with_classifier(name: str, function: Any) -> Any:
    """The function, with the shipped classifier of queries where genders are to be predicted."""

    @wraps(function)
    def with_classifier(*args: Any, **given: Any) -> Any:
        if isinstance(given.get("genders"), str) and given["genders"] == "predict":
            given.setdefault("classify", import_module("evenrank.queries.classify").predicted_genders)
        return function(*args, **given)

    with_classifier.__module__, with_classifier.__qualname__ = __name__, name  # for other processes
    return with_classifier


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"evenrank.{_HOME[name]}"), name)
        if name in _PREDICTING:
            value = _with_classifier(name, value)
    elif name in _EFFECTIVENESS:
        value = getattr(import_module("ir_measures"), name)
    else:
        raise AttributeError(f"module 'evenrank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
