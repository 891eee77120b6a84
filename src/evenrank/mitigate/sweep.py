"""Bias against usefulness as a mitigation grows stronger: every strength applied and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.measures.base import distance_from_ideal, distance_name, is_bias, preferred_direction
from evenrank.measures.document_bias import bias_by
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs, MeasureInputs
from evenrank.measures.parse import parse, parse_condition
from evenrank.measures.results import Options
from evenrank.mitigate.base import Mitigation, check_strengths
from evenrank.mitigate.constrain import ConstrainSweep
from evenrank.mitigate.feedback import Feedback
from evenrank.mitigate.rebalance import REBALANCERS, Rebalancing
from evenrank.mitigate.rescoring import Rescoring
from evenrank.mitigate.tradeoff import Point, TradeOff, choose_point, compare_points
from evenrank.mitigate.trained import RetrainSpec, TrainingMitigation, training_methods

METHODS = ("constrain", "interpolate", "penalty", "feedback", *REBALANCERS)
"""The methods that need no training."""


def sweep(
    run: Any = None,
    tally: Any = None,
    *,
    method: str | Mitigation = "constrain",
    mode: str = "mean",
    strengths: Sequence[float] | None = None,
    bias: str = "abs(ARaB@10)",
    utility: str | Measure = "nDCG@10",
    candidates: int = 100,
    index: Any = None,
    ranker: str = "bm25",
    training: RetrainSpec | None = None,
    tolerance: float | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **given: Unpack[MeasureInputs],
) -> TradeOff:
    """A mitigation at growing strength: how far does bias fall, and what does it cost?

    Parameters
    ----------
    run, tally, qrels
        The run to mitigate, the word counts of the collection, and judgments to measure usefulness.
    docs, lexicon, tokenizer
        Documents, in the place of the tally or for a bias that reads them (LIWC), and what to count in them,
        as for :func:`evenrank.measure`.
    background, labels, targets, dictionary, missing, order
        What else the bias looks at and how runs are read, as for :func:`evenrank.measure`.
    method
        ``constrain``: strengths are bounds on `bias`. ``interpolate``: λ from 0 to 1. ``penalty``: w, see
        :func:`penalise`. ``feedback``: λ of bias-aware RM3, which searches again and needs `index` and
        `queries` instead of a run. ``detgreedy``, ``detcons``, ``detrelaxed``, ``detconstsort``, ``fair``:
        how far shares go from those of the list to the target of `bias`, see :func:`rebalance`.
        ``negatives``, a loss, ``adversary`` or ``consistency``: a ranker is trained at each
        strength, which needs `training` and `queries`, and re-ranks the run. Or a mitigation of your own, any
        object with a `name`, ``strengths()``, none first, and ``apply(strength)``, a run.
    mode
        Of `constrain`: the bound holds for the ``mean`` or for ``each`` query.
    strengths
        From weak to strong; without them nine tenths to one twentieth of the bias there is, or λ by tenths.
    bias
        Any measure of bias of which a value can be better. Where values near 0 or 1 are good, it is how far
        they are from it: ``abs(ARaB@10)``. ``penalty`` and ``interpolate`` look at single documents: the
        value that the measure gives them or, where it compares groups, whether they show one.
    candidates
        How many documents from the top may move, where a run is re-ranked.
    training
        What is trained on what: :class:`evenrank.mitigate.trained.RetrainSpec`, on other queries than those
        ranked. Rankers are trained by the bias that is measured; the first point is that of plain training,
        not the run as it is given.
    tolerance, confidence
        With a tolerance (0.02) the strongest setting is chosen up to which no more than that share of
        utility is lost in the mean; without, up to which no loss is significant at 1 − `confidence` (paired
        t-tests, Holm's correction over the settings). No setting is chosen that has as much bias as before,
        or whose loss cannot be tested. Whether bias fell by more than chance is tested in the same way. Few
        queries make few losses significant: look at the interval. The choice fits the queries that it is
        made on: choose on dev queries, and measure on others.

    Examples
    --------
    >>> docs = {"a": "he said", "b": "she said", "c": "they said"}
    >>> import evenrank as er
    >>> run = {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}}
    >>> curve = sweep(run, er.tally(docs), qrels={"q1": {"a": 1}, "q2": {"b": 1}}, strengths=[0.2])
    >>> [round(point.bias.value, 2) for point in curve]
    [0.29, 0.17]
    """
    check_choice("mode", mode, ("each", "mean"))
    check_whole("candidates", candidates)
    if tolerance is not None:
        check_number("tolerance", tolerance, most=1)
    check_number("confidence", confidence, most=1)
    check_whole("resamples", resamples)
    check_whole("seed", seed, least=0)
    progress = given.pop("progress", None)
    inputs = Inputs.open(None if run is None else {"the run": run}, tally=tally, **given)
    if inputs.qrels is None:
        raise InputError("usefulness is measured with relevance judgments; give qrels")
    measure, size, name = bias_measure(bias)
    useful = parse(utility)
    if is_bias(useful):
        raise InputError(
            f"{useful} is not a measure of effectiveness; write for example nDCG@10, RR@10 or AP as utility"
        )
    inputs.check([measure, useful])
    if isinstance(method, str):
        built = _built_in(
            method,
            inputs,
            measure,
            strengths,
            mode=mode,
            candidates=candidates,
            index=index,
            ranker=ranker,
            training=training,
        )
    elif strengths is not None:
        raise InputError("a mitigation of your own has its own strengths; leave them out")
    else:
        built = method
    if training is not None and not isinstance(built, TrainingMitigation):
        raise InputError(f"{built.name} trains no ranker; leave the training out")
    settings = list(built.strengths())
    runs = []
    for done, strength in enumerate(settings, 1):
        runs.append(read_run(built.apply(strength)))
        if progress is not None:
            progress(done, len(settings))
    common, values = _values_per_query(runs, inputs, measure, useful)
    summarise = partial(stats.mean_interval, confidence=confidence, resamples=resamples, seed=seed)
    points = []
    for strength, frame, (of_bias, of_use) in zip(settings, runs, values, strict=True):
        biases = size(of_bias)
        points.append(Point(strength, summarise(biases), summarise(of_use), biases, of_use, frame))
    fairer = 1.0 if preferred_direction(measure) == "high" else -1.0
    points = compare_points(points, confidence, fairer)
    return TradeOff(
        built.name,
        name,
        str(useful),
        tuple(points),
        choose_point(points, 1 - confidence, tolerance, fairer),
        tuple(common),
        lower_is_fairer=fairer < 0,
        trained=built.spec.kind if isinstance(built, TrainingMitigation) else None,
        confidence=confidence,
    )


def _built_in(
    method: str,
    inputs: Inputs,
    measure: Any,
    strengths: Sequence[float] | None,
    *,
    mode: str,
    candidates: int,
    index: Any,
    ranker: str,
    training: RetrainSpec | None,
) -> Mitigation:
    """The mitigation of this name."""
    if method not in METHODS:
        check_choice("method", method, (*METHODS, *training_methods()))
    if strengths is not None:
        any_bound, any_weight = method == "constrain", method not in METHODS and method != "negatives"
        check_strengths(
            method,
            strengths,
            least=-math.inf if any_bound else 0,
            most=math.inf if any_bound or any_weight or method == "penalty" else 1,
        )
        strengths = sorted({*map(float, strengths)})
    known = measure.SUPPORTED_PARAMS
    if method == "feedback":
        if index is None or inputs.queries is None:
            raise InputError("feedback searches again: give an index and queries")
        magnitude = measure["magnitude"] if "magnitude" in known else "tf"
        settings = {"magnitude": magnitude, "tally": inputs.tally if inputs.has_tally else None}
        return Feedback(index, inputs.queries, ranker, settings, strengths)
    if method not in METHODS:
        if training is None or not inputs.runs or inputs.queries is None:
            raise InputError(f"{method} trains a ranker: give training, and the run and queries to re-rank")
        trained = TrainingMitigation.measured_by(measure, method, training, inputs, strengths)
        trained.check()
        return trained
    if not inputs.runs:
        raise InputError(f"{method} re-ranks a run: give one")
    if method == "constrain":
        return ConstrainSweep(inputs, measure, strengths, candidates, mode)
    if method in REBALANCERS:
        settings = {
            "at": (measure["cutoff"] if "cutoff" in known else None) or 10,
            "target": measure["target"] if "target" in known else None,
            "group": measure["group"] if method == "fair" and "group" in known else None,
            "candidates": candidates,
        }
        return Rebalancing(method, inputs, settings, strengths)
    bias = bias_by(measure)
    if bias is None:
        raise InputError(f"{method} needs the bias of single documents, and {measure} says none")
    return Rescoring(method, inputs, bias, strengths, candidates)  # type: ignore[arg-type]


def _values_per_query(
    runs: Sequence[pl.DataFrame], inputs: Inputs, measure: Any, useful: Measure
) -> tuple[list[str], list[tuple[np.ndarray, np.ndarray]]]:
    """The queries that have both values in every run, and bias and utility of these in each run."""
    background = inputs.background if inputs.background is not None else runs[0]
    values = []
    for frame in runs:
        of_run = inputs.of_runs({"the run": frame}, background=background, queries=None)
        result = measured(of_run, [measure, useful], Options(confidence=None))
        values.append((result[measure].per_query(), result[useful].per_query()))
    common = [q for q in values[0][0] if all(q in each for pair in values for each in pair)]
    if not common:
        raise InputError("no query has both a bias and judgments; check that run and qrels belong together")
    return common, [
        (np.array([biases[q] for q in common]), np.array([utilities[q] for q in common]))
        for biases, utilities in values
    ]


def bias_measure(text: str) -> tuple[Any, Callable[[np.ndarray], np.ndarray], str]:
    """The bias measure, its distance from what is ideal, and the name of that."""
    condition = parse_condition(f"{text}<=0")
    if not is_bias(condition.measure):
        raise InputError(f"{text} is not a measure of bias; write for example abs(ARaB@10) or NFaiRR@10")
    measure: Any = condition.measure
    if measure.REFERENCE:
        raise InputError(f"{measure} has to be compared with {measure.REFERENCE}; no value of it is better")
    if condition.absolute:
        return measure, np.abs, f"abs({measure})"
    return measure, partial(distance_from_ideal, measure), distance_name(measure)
