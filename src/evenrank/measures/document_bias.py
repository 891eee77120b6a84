"""How one-sided a single document is: the value that a measure gives it, without its sign.

Mitigations that work on documents one by one ask here: bias-aware negatives, losses that look at bias, and
the penalty on scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ir_measures.measures import Measure

from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures.base import LinearMeasure, Param, preferred_direction
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.parse import parse
from evenrank.measures.rank_bias import RaB, rab_weights
from evenrank.text.tally import MAGNITUDES

KINDS = (*MAGNITUDES, "liwc", "label")
"""What can be named beside a measure."""


class _Labelled(LinearMeasure):
    """The share of the top t documents that show a group, by their labels."""

    __name__ = NAME = "label"
    PREFERRED = "low"
    NEEDS = frozenset({"groups"})
    SUPPORTED_PARAMS = {"cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold")}  # noqa: RUF012
    weights = staticmethod(rab_weights)

    def values(self, lists: RankedLists) -> Floats:
        return np.asarray(lists.counts().sum(axis=1) > 0, np.float64)


def bias_by(measure: Any) -> Any:
    """What to call one-sided where this measure judges: itself, if it is a sum over documents; ``label``, if
    it compares groups; None, if it says nothing of single documents."""
    if isinstance(measure, LinearMeasure):
        return measure
    return "label" if isinstance(measure, GroupMeasure) else None


def document_measure(bias: Any) -> LinearMeasure:
    """The measure whose document values are meant.

    `bias` is a magnitude (tf, count, boolean, …: the difference of two groups), ``liwc`` (male % − female %
    by the dictionary), ``label`` (1 for a document that shows a group), or a measure that is a sum over
    documents, such as ``FaiRR@10`` or one of your own.
    """
    if isinstance(bias, LinearMeasure):
        return bias
    name = str(bias).lower()  # of these the values of documents do not depend on the cut-off
    if name in MAGNITUDES:
        return RaB(magnitude=name) @ 1
    if name == "label":
        return _Labelled() @ 1  # type: ignore[return-value]
    if name == "liwc":
        from evenrank.measures.dictionary import LIWC

        return LIWC(signed=True) @ 1
    try:
        measure = parse(bias) if isinstance(bias, str | Measure) else None
    except InputError:
        measure = None
    if measure is None:
        raise InputError(
            f"bias is {bias!r}; choose one of {', '.join(KINDS)}, or a measure that is a sum over documents, "
            "as in FaiRR@10"
        )
    if not isinstance(measure, LinearMeasure):
        raise InputError(f"{measure} is not a sum over documents, so a single document has no bias")
    return measure


def document_bias(run: Any, bias: Any = "tf", **given: Any) -> Floats:
    """How one-sided each document of a run is, in the order of the run's rows; 0 is not at all.

    The size of the value that a measure gives the document. Where high values are good (FaiRR), it is how
    far the document stays below the best one of the run.

    Parameters
    ----------
    run
        Anything :func:`evenrank.data.runs.read_run` takes.
    bias
        As in :func:`document_measure`.
    given
        What the measure looks at, as for :func:`evenrank.measure`: tally, docs, lexicon, labels, dictionary.
    """
    frame = read_run(run)
    if frame.is_empty():
        return np.zeros(0)
    return run_bias(Inputs.open({"run": frame}, **given), bias)


def run_bias(inputs: Inputs, bias: Any = "tf") -> Floats:
    """As :func:`document_bias`, of the one run of inputs that are open."""
    measure = document_measure(bias)
    (frame,) = inputs.runs.values()
    if inputs.missing == "skip":
        raise InputError("missing 'skip' is for measuring; choose error or zero")
    inputs.check([measure])
    deepest = int(frame["rank"].max() or 1)  # type: ignore[arg-type]
    values = measure.each_value(inputs.lists(frame, [measure], depth=deepest))
    way = preferred_direction(measure)
    if way == "high":
        return np.asarray(values.max() - values)
    return np.abs(values - 1) if way == "one" else np.abs(values)
