"""An audit whose labels err: each mean also as it would be with true labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenrank.errors import InputError
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.results import Bootstrap, Measurements, Options
from evenrank.queries.label_errors import with_adjusted, word_confusion

RESAMPLES = 1000
"""Where the audit itself draws none: an adjusted mean without an interval would look surer than it is."""


def adjust(
    found: Measurements, inputs: Inputs, options: Options, *, confusion: Any = None, true_groups: Any = None
) -> Measurements:
    """The same measurements, with what errors of the labels do to them.

    Parameters
    ----------
    confusion
        How the labels of queries err, see :func:`evenrank.adjusted`; needs these labels.
    true_groups
        doc_id and gender of documents: how often the lexicon misses a group. For magnitude='boolean'.
    """
    if confusion is not None and inputs.genders is None:
        raise InputError("a confusion table says how labels of queries err; give genders too")
    if true_groups is not None and not inputs.countable:
        raise InputError("true groups of documents are compared with their words; give docs or a tally")
    everything = None
    if confusion is not None:
        whole = replace(options, only="all", bootstrap=Bootstrap(None))
        everything = measured(inputs, list(dict.fromkeys(one.measure for one in found)), whole)
    drawn = options.bootstrap
    return with_adjusted(
        found,
        everything,
        inputs.genders,
        confusion,
        documents=None if true_groups is None else word_confusion(true_groups, inputs.tally),
        confidence=drawn.confidence or 0.95,
        resamples=RESAMPLES if drawn.confidence is None else drawn.resamples,
        seed=drawn.seed,
    )
