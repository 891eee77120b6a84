"""evenrank: measure, explain and re-balance gender bias in search results.

>>> import evenrank as er
>>> from evenrank import ARaB, NFaiRR, nDCG
"""

from __future__ import annotations

from functools import partial, update_wrapper
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
    "index": "rankers.indexing",
    "Index": "rankers.index",
    "search": "rankers.catalogue",
    "rerank": "rankers.neural.reranking",
    "Tally": "text.tally",
    "measure": "measures.evaluate",
    "represent": "measures.representation",
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
    **dict.fromkeys(("nDCGxAWRF", "EEL", "EED", "EER"), "measures.exposure"),
    "FAIR": "measures.parity",
    "MB": "measures.representation",
    **dict.fromkeys(("VarRaB", "VarARaB", "VarNDRaB"), "measures.variants"),
    "constrain": "mitigate.constrain",
    "interpolate": "mitigate.rescoring",
    "penalise": "mitigate.rescoring",
    "rebalance": "mitigate.rebalance",
    "negatives": "mitigate.negatives",
    "sweep": "mitigate.sweep",
    "swap": "mitigate.swapping",
    "balance": "mitigate.balance",
    "fill": "mitigate.balance",
    "even_judgments": "mitigate.judgments",
    "classify": "queries.classifier",
    "variants": "queries.rewriting",
    "compare_variants": "auditing.black_box",
    "generate": "queries.generation.generating",
    "filter_generated": "queries.generation.filtering",
    "closeness": "queries.generation.closeness",
    "plan": "auditing.certainty",
    "trace": "auditing.stages",
    "mirror": "mitigate.mirror",
    "fit_projection": "mitigate.projection",
    "pool": "queries.pooling",
    "vote": "queries.pooling",
    "feedback": "mitigate.feedback",
    "gendered_terms": "mitigate.feedback",
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
    from evenrank.measures.exposure import AWRF as AWRF
    from evenrank.measures.exposure import EED as EED
    from evenrank.measures.exposure import EEL as EEL
    from evenrank.measures.exposure import EER as EER
    from evenrank.measures.exposure import DemographicParity as DemographicParity
    from evenrank.measures.exposure import DisparateTreatment as DisparateTreatment
    from evenrank.measures.exposure import Exposure as Exposure
    from evenrank.measures.exposure import ExposureGap as ExposureGap
    from evenrank.measures.exposure import nDCGxAWRF as nDCGxAWRF
    from evenrank.measures.gsr.measure import GSR as GSR
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
    from evenrank.measures.representation import represent as represent
    from evenrank.measures.skew import NDKL as NDKL
    from evenrank.measures.skew import MaxSkew as MaxSkew
    from evenrank.measures.skew import MinSkew as MinSkew
    from evenrank.measures.skew import Skew as Skew
    from evenrank.measures.variants import VarARaB as VarARaB
    from evenrank.measures.variants import VarNDRaB as VarNDRaB
    from evenrank.measures.variants import VarRaB as VarRaB
    from evenrank.mitigate.balance import balance as balance
    from evenrank.mitigate.balance import fill as fill
    from evenrank.mitigate.constrain import constrain as constrain
    from evenrank.mitigate.feedback import feedback as feedback
    from evenrank.mitigate.feedback import gendered_terms as gendered_terms
    from evenrank.mitigate.judgments import even_judgments as even_judgments
    from evenrank.mitigate.mirror import mirror as mirror
    from evenrank.mitigate.negatives import negatives as negatives
    from evenrank.mitigate.projection import fit_projection as fit_projection
    from evenrank.mitigate.rebalance import rebalance as rebalance
    from evenrank.mitigate.rescoring import interpolate as interpolate
    from evenrank.mitigate.rescoring import penalise as penalise
    from evenrank.mitigate.swapping import swap as swap
    from evenrank.mitigate.sweep import sweep as sweep
    from evenrank.psychology import audit_judgments as audit_judgments
    from evenrank.psychology import audit_rankings as audit_rankings
    from evenrank.queries.classifier import classify as classify
    from evenrank.queries.generation.closeness import closeness as closeness
    from evenrank.queries.generation.filtering import filter_generated as filter_generated
    from evenrank.queries.generation.generating import generate as generate
    from evenrank.queries.pooling import pool as pool
    from evenrank.queries.pooling import vote as vote
    from evenrank.queries.rewriting import variants as variants
    from evenrank.rankers.catalogue import search as search
    from evenrank.rankers.index import Index as Index
    from evenrank.rankers.indexing import index as index
    from evenrank.rankers.neural.reranking import rerank as rerank
    from evenrank.spark import tally_batches as tally_batches
    from evenrank.spark import tally_schema as tally_schema
    from evenrank.text.lexicon import Lexicon as Lexicon
    from evenrank.text.lexicon import lexicon as lexicon
    from evenrank.text.tally import Tally as Tally
    from evenrank.text.tally import tally as tally


# What takes `genders="predict"`. Measures do not know the classifier, which is built upon them.
_PREDICTING = ("measure", "audit", "trace", "plan")


def _classify(queries: Any) -> Any:
    """What the shipped classifier says of queries."""
    return import_module("evenrank.queries.classifier").predicted_genders(queries)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"evenrank.{_HOME[name]}"), name)
        if name in _PREDICTING:
            value = update_wrapper(partial(value, classify=_classify), value)
    elif name in _EFFECTIVENESS:
        value = getattr(import_module("ir_measures"), name)
    else:
        raise AttributeError(f"module 'evenrank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
