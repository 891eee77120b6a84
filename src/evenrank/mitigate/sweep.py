"""Bias against usefulness as a mitigation grows stronger: every strength applied and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
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
from evenrank.measures.lists import ranked_queries
from evenrank.measures.parse import parse, parse_condition
from evenrank.measures.results import Options
from evenrank.mitigate.base import Mitigation, check_strengths
from evenrank.mitigate.constrain import ConstrainSweep
from evenrank.mitigate.feedback import Feedback
from evenrank.mitigate.rebalance import REBALANCERS, RebalanceConfig, Rebalancing
from evenrank.mitigate.rescoring import Rescoring
from evenrank.mitigate.tradeoff import (
    Point,
    TradeOff,
    chosen_of,
    compared,
    is_significant,
    one_front,
    undominated,
)
from evenrank.mitigate.trained import Retrained, Training, methods_of_training, refuse_bias

METHODS = ("constrain", "interpolate", "penalty", "feedback", *REBALANCERS)
"""What needs no training."""
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class _Settings:
    """What a sweep is told; see :func:`sweep`."""

    mode: str = "mean"
    strengths: Sequence[float] | None = None
    bias: str = "abs(ARaB@10)"
    utility: str | Measure = "nDCG@10"
    candidates: int = 100
    index: Any = None
    ranker: str = "bm25"
    training: Training | None = None
    tolerance: float | None = None
    alpha: float = 0.05
    confidence: float = 0.95
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, ("each", "mean"))
        check_whole("candidates", self.candidates)
        if self.strengths is not None:
            check_strengths("the method", self.strengths, least=-math.inf)
        if self.tolerance is not None:
            check_number("tolerance", self.tolerance, most=1)
        check_number("alpha", self.alpha, most=1)
        check_number("confidence", self.confidence, most=1)
        check_whole("resamples", self.resamples)
        check_whole("seed", self.seed, least=0)


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
    training: Training | None = None,
    tolerance: float | None = None,
    alpha: float = 0.05,
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
        What is trained on what: :class:`evenrank.mitigate.trained.Training`. Other queries than those ranked.
        Rankers are trained by the bias that is measured; the first point is that of plain training, not the
        run as it is given.
    tolerance, alpha
        With a tolerance (0.02) the strongest setting is chosen up to which no more than that share of
        utility is lost in the mean; without, up to which no loss is significant at `alpha` (paired t-tests,
        Holm's correction over the settings). No setting is chosen that has as much bias as before, or whose
        loss cannot be tested. Whether bias fell by more than chance is tested too, in the same way, and said
        where it did not. Few queries make few losses significant: look at the interval. The choice fits
        the queries that it is made on: choose on dev queries, and measure on others.

    Examples
    --------
    >>> docs = {"a": "he said", "b": "she said", "c": "they said"}
    >>> import evenrank as er
    >>> run = {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}}
    >>> found = sweep(run, er.tally(docs), qrels={"q1": {"a": 1}, "q2": {"b": 1}}, strengths=[0.2])
    >>> [round(point.bias.value, 2) for point in found]
    [0.29, 0.17]
    """
    how = _Settings(
        mode=mode,
        strengths=strengths,
        bias=bias,
        utility=utility,
        candidates=candidates,
        index=index,
        ranker=ranker,
        training=training,
        tolerance=tolerance,
        alpha=alpha,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    (curve,) = _curves([method], run, tally, how, dict(given))
    return curve


def sweeps(
    methods: Sequence[str | Mitigation],
    run: Any = None,
    tally: Any = None,
    **settings: Any,
) -> list[TradeOff]:
    """Several mitigations in one comparison: the points of all of them have one Pareto front.

    All are measured on the queries that each of them ranks and, where a measure compares with a background,
    with the same one: the run that is re-ranked unless another is given.

    With `training`, a ranker is trained plainly first. Its run is what the methods that train begin with, at
    strength 0, and what the others re-rank.

    Parameters
    ----------
    methods
        As `method` of :func:`sweep`.
    settings
        Those of :func:`sweep`.
    """
    own = {each.name for each in fields(_Settings)} & settings.keys()
    how = _Settings(**{name: settings.pop(name) for name in own})
    return one_front(_curves(methods, run, tally, how, settings))


def _curves(
    methods: Sequence[str | Mitigation], run: Any, tally: Any, how: _Settings, given: dict[str, Any]
) -> list[TradeOff]:
    """A curve for each method, all over the same queries."""
    if not methods:
        raise InputError("name at least one method")
    names = [method if isinstance(method, str) else method.name for method in methods]
    if len({*names}) < len(names):
        raise InputError("a method is given twice")
    progress = given.pop("progress", None)
    inputs = _opened(run, tally, given)
    measure, size, name = bias_measure(how.bias)
    useful = parse(how.utility)
    if is_bias(useful):
        raise InputError(
            f"{useful} is not a measure of effectiveness; write for example nDCG@10, RR@10 or AP as utility"
        )
    inputs.check([measure, useful])
    ready, start = _ready(methods, inputs, measure, how)
    strengths_of = [list(method.strengths()) for method in ready]
    rows: list[list[tuple[float, pl.DataFrame]]] = []
    done, total = 0, sum(map(len, strengths_of))
    for method, strengths in zip(ready, strengths_of, strict=True):
        rows.append([])
        for strength in strengths:
            rows[-1].append((strength, read_run(method.apply(strength))))
            done += 1
            if progress is not None:
                progress(done, total)
    common, values = _measured(rows, inputs, start, measure, useful)
    fairer = 1.0 if preferred_direction(measure) == "high" else -1.0
    curves = []
    for method, runs, result in zip(ready, rows, values, strict=True):
        points = [
            _point(strength, frame, *pair, common, size, how)
            for (strength, frame), pair in zip(runs, result, strict=True)
        ]
        points = compared(points, how.confidence)
        points = [replace(p, front=undominated(p, points, fairer)) for p in points]
        chosen = chosen_of(points, how.alpha, how.tolerance, fairer)
        trained = None if how.training is None else how.training.kind
        curves.append(
            TradeOff(
                method.name,
                name,
                str(useful),
                tuple(points),
                chosen,
                tuple(common),
                lower_is_fairer=fairer < 0,
                less_bias_significant=is_significant(chosen, how.alpha),
                trained=trained if start is not None and runs[0][1].equals(start) else None,
                confidence=how.confidence,
            )
        )
    return curves


def _opened(run: Any, tally: Any, given: dict[str, Any]) -> Inputs:
    for name in ("vectors", "pairs", "genders", "ties"):
        if name in given:
            raise InputError(f"sweep takes no {name}")
    runs = None if run is None else {"the run": run}
    inputs = Inputs.open(runs, tally=tally, **given)
    if inputs.qrels is None:
        raise InputError("judgments tell the usefulness; give qrels")
    return inputs


def _ready(
    methods: Sequence[str | Mitigation], inputs: Inputs, measure: Any, how: _Settings
) -> tuple[list[Mitigation], pl.DataFrame | None]:
    """The mitigations, and the run that they re-rank; what cannot be swept is refused before training."""
    run, training = inputs.runs.get("the run"), how.training
    ready = [_mitigation(method, run, inputs, measure, how) for method in methods]
    if training is None:
        return ready, run
    if run is None or inputs.queries is None:
        raise InputError("give the run and the queries that the trained ranker re-ranks")
    if not any(isinstance(each, Retrained | ConstrainSweep | Rebalancing | Rescoring) for each in ready):
        others = ", ".join(each.name for each in ready)
        raise InputError(
            f"training is for methods that re-rank a run or train a ranker, not for {others}; leave the "
            "training out"
        )
    wanted = [each.name for each in ready if isinstance(each, Retrained)]
    training = training.aligned(measure, inputs, wanted)
    training.check(wanted, run, inputs.queries)
    plain = read_run(training.ranked(run, inputs.queries))
    how = replace(how, training=training)
    return [_mitigation(method, run, inputs, measure, how, plain) for method in methods], plain


def _mitigation(
    method: str | Mitigation,
    run: pl.DataFrame | None,
    inputs: Inputs,
    measure: Any,
    how: _Settings,
    plain: pl.DataFrame | None = None,
) -> Mitigation:
    """The mitigation of this name; `plain`, the run of plain training, is re-ranked in the place of `run`."""
    given = how.strengths
    if not isinstance(method, str):
        if given is not None:
            raise InputError("a mitigation of your own has its own strengths; leave them out")
        return method
    if method not in METHODS:
        check_choice("method", method, (*METHODS, *methods_of_training()))
        if how.training is None or run is None or inputs.queries is None:
            raise InputError(f"{method} trains a ranker: give training, and the run and queries to re-rank")
        return Retrained(method, how.training, run, inputs.queries, given, plain)
    if given is not None:
        given = sorted({*map(float, given)})
        if method != "constrain":  # whose strengths are bounds on any measure
            check_strengths(method, given, most=math.inf if method == "penalty" else 1)
    known = measure.SUPPORTED_PARAMS
    if method == "feedback":
        if how.index is None or inputs.queries is None:
            raise InputError("feedback searches again: give an index and queries")
        magnitude = measure["magnitude"] if "magnitude" in known else "tf"
        settings = {"magnitude": magnitude, "tally": inputs.tally if inputs.has_tally else None}
        return Feedback(how.index, inputs.queries, how.ranker, settings, given)
    if run is None:
        raise InputError(f"{method} re-ranks a run: give one")
    frame = run if plain is None else plain
    if method == "constrain":
        return ConstrainSweep(frame, inputs, measure, given, how.candidates, how.mode)
    if method in REBALANCERS:
        config = RebalanceConfig(
            method,
            at=(measure["cutoff"] if "cutoff" in known else None) or 10,
            target=measure["target"] if "target" in known else None,
            group=measure["group"] if method == "fair" and "group" in known else None,
            candidates=how.candidates,
        )
        return Rebalancing(frame, inputs, config, given)
    bias = bias_by(measure)
    if bias is None:
        refuse_bias(method, measure)
    return Rescoring(method, frame, inputs, bias, given, how.candidates)  # type: ignore[arg-type]


def _measured(
    built: Sequence[Sequence[tuple[float, pl.DataFrame]]],
    inputs: Inputs,
    start: pl.DataFrame | None,
    measure: Any,
    useful: Measure,
) -> tuple[list[str], list[list[tuple[dict[str, float], dict[str, float]]]]]:
    """The queries that have a value everywhere, and bias and utility of each query in each run."""
    ranked = [set(ranked_queries(runs[0][1]).to_list()) for runs in built]
    shared = set.intersection(*ranked)
    if not shared:
        raise InputError("the methods rank no query in common; do run, index and queries belong together?")
    behind = inputs.background if inputs.background is not None else start
    behind = built[0][0][1] if behind is None else behind
    values: list[list[tuple[dict[str, float], dict[str, float]]]] = []
    for of_method, runs in zip(ranked, built, strict=True):
        values.append([])
        for _, frame in runs:
            seen = frame if of_method == shared else frame.filter(pl.col("query_id").is_in(list(shared)))
            now = inputs.of_runs({"the run": seen}, background=behind, queries=None)
            result = measured(now, [measure, useful], Options(confidence=None))
            values[-1].append((result[measure].per_query(), result[useful].per_query()))
    each = [pair for of_method in values for pair in of_method]
    common = [q for q in each[0][0] if all(q in of_bias and q in of_use for of_bias, of_use in each)]
    if not common:
        raise InputError("no query has both a bias and judgments; check that run and qrels belong together")
    return common, values


def bias_measure(text: str) -> tuple[Any, Callable[[np.ndarray], np.ndarray], str]:
    """The bias measure, what of its values counts, and the name of that: their size, where 0 is good."""
    condition = parse_condition(f"{text}<=0")
    if not is_bias(condition.measure):
        raise InputError(f"{text} is not a measure of bias; write for example abs(ARaB@10) or NFaiRR@10")
    measure: Any = condition.measure
    if measure.REFERENCE:
        raise InputError(f"{measure} has to be compared with {measure.REFERENCE}; no value of it is better")
    if condition.absolute:
        return measure, np.abs, f"abs({measure})"
    return measure, partial(distance_from_ideal, measure), distance_name(measure)


def _point(
    strength: float,
    run: pl.DataFrame,
    biases: dict[str, float],
    utilities: dict[str, float],
    common: Sequence[str],
    size: Callable[[np.ndarray], np.ndarray],
    how: _Settings,
) -> Point:
    of_bias = size(np.array([biases[query] for query in common]))
    of_use = np.array([utilities[query] for query in common])
    given: dict[str, Any] = {"confidence": how.confidence, "resamples": how.resamples, "seed": how.seed}
    return Point(
        strength,
        stats.mean_interval(of_bias, **given),
        stats.mean_interval(of_use, **given),
        of_bias,
        of_use,
        run,
    )
