"""What a measure says, in one sentence, and which way is better."""

from __future__ import annotations

from typing import Literal

from ir_measures.measures import Measure

from evenrank.measures.base import BiasMeasure
from evenrank.measures.rank_bias import RankBias

Better = Literal["zero", "high", "low", "one"]

_HIGH = {"FaiRR", "NFaiRR", "AWRF", "FAIR"}
_ONE = {"DemographicParity", "DisparateTreatment"}
_MEANING = {
    "RaB": "How much more {of} than {against} words the top {k} documents hold.",
    "ARaB": "RaB averaged over the ranks 1 to {k}, so that the first results weigh most.",
    "NFaiRR": "How neutral the top {k} documents are, against the most neutral order of the same documents.",
    "FaiRR": "How much neutral content the top {k} documents give; the first results weigh most.",
    "GSR": "Whether results speak the gendered language that their queries suggest: the slope of one on the "
    "other. A perfect engine is not at 0: compare with it.",
    "LIWC": "How far the top {k} documents lean to female or male words, either way, in percent of words.",
    "AWRF": "How near the groups' shares of attention are to the target.",
    "NDKL": "How far the groups' shares in the top ranks are from the target.",
    "rKL": "How far a group's share in the top ranks is from its share in the whole list.",
    "MB": "The share of the top {k} that shows a group, minus the share that should.",
    "nDCG": "How well the most relevant documents stand at the top {k}.",
    "RR": "One over the rank of the first relevant document.",
    "AP": "How early relevant documents come, over the whole list.",
}


def better(measure: Measure) -> Better:
    """Where good values lie: near 0, near 1, high or low."""
    if not isinstance(measure, BiasMeasure):
        return "high"
    if measure.NAME in _ONE:
        return "one"
    if measure.NAME in _HIGH:
        return "high"
    return "zero" if measure.SIGNED else "low"


def is_bias(measure: Measure) -> bool:
    return isinstance(measure, BiasMeasure)


def meaning(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """What the number says."""
    text = _MEANING.get(measure.NAME or "") or getattr(measure, "SHORT_DESC", "") or ""
    of, against = "one group's", "the other's"
    if isinstance(measure, RankBias) and len(groups) >= 2:
        of, against = measure.pair(groups)
    text = text.format(of=of, against=against, k=measure.params.get("cutoff", "k"))
    magnitude = measure.params.get("magnitude")
    if magnitude == "boolean":
        text += " Here a document either holds such words or not."
    return text


def direction(measure: Measure, groups: tuple[str, ...] = ()) -> str:
    """How to read sign and size, in a few words."""
    if isinstance(measure, RankBias) and len(groups) >= 2:
        of, against = measure.pair(groups)
        return f"above 0 leans {of}, below 0 {against}"
    which = {
        "zero": "0 is balance",
        "high": "higher is better",
        "low": "lower is fairer",
        "one": "1 is parity",
    }
    if measure.NAME in _HIGH:
        return "higher is fairer"
    if measure.NAME == "GSR":
        return "above 0 follows the stereotype"
    return which[better(measure)]


def short(measure: Measure) -> str:
    """A name that fits a column: the cut-off, then other parameters by their values.

    >>> from evenrank.measures.rank_bias import ARaB
    >>> short(ARaB(magnitude="boolean") @ 10)
    'ARaB@10 boolean'
    """
    params = dict(measure.params)
    at = params.pop(measure.AT_PARAM, None) if measure.AT_PARAM else None
    more = " ".join(str(value) for value in params.values())
    return f"{measure.NAME}{'' if at is None else f'@{at}'}{f' {more}' if more else ''}"
