"""Bias against usefulness as a mitigation grows stronger: the curve, its front, and a setting to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError, check_choice
from evenrank.measures.base import amount, good, is_bias
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Beside, Inputs
from evenrank.measures.parse import parse, parse_condition
from evenrank.measures.results import Bootstrap, Options
from evenrank.mitigate.mitigations import METHODS, Mitigation, mitigation
from evenrank.mitigate.trained import Retrained, Training, check_strengths
from evenrank.process import refuse_after_fork
from evenrank.show.grid import Drawn

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class Point:
    """One setting: bias (of sizes, for measures with a sign) and utility with intervals, query by query.

    `change` compares utility with the unmitigated run on the same queries, this minus that; `p_holm` is its
    p, corrected for the number of settings. `front`: no other setting has less bias and as much utility, or
    more utility and as little bias.
    """

    strength: float
    bias: stats.Interval
    utility: stats.Interval
    biases: np.ndarray
    utilities: np.ndarray
    run: pl.DataFrame
    change: stats.Comparison | None = None
    p_holm: float | None = None
    front: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Drawn):
    """A mitigation at several strengths, from none to the strongest; iteration goes over the points.

    Attributes
    ----------
    points
        The unmitigated run first.
    chosen
        The strongest setting up to which none lowers utility significantly, or beyond the tolerance.
    queries
        The queries that have both a bias and a utility, over which everything is computed.
    """

    method: str
    bias: str
    utility: str
    points: tuple[Point, ...]
    chosen: Point
    queries: tuple[str, ...]
    lower_is_fairer: bool = True

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def frame(self) -> pl.DataFrame:
        """One row for each setting."""
        return pl.DataFrame(
            [
                {
                    "method": self.method,
                    "strength": point.strength,
                    "bias": point.bias.value,
                    "bias_low": point.bias.low,
                    "bias_high": point.bias.high,
                    "utility": point.utility.value,
                    "utility_low": point.utility.low,
                    "utility_high": point.utility.high,
                    "difference": None if point.change is None else point.change.difference,
                    "difference_low": None if point.change is None else point.change.low,
                    "difference_high": None if point.change is None else point.change.high,
                    "p": None if point.change is None else point.change.p,
                    "p_holm": point.p_holm,
                    "front": point.front,
                    "chosen": point is self.chosen,
                }
                for point in self.points
            ],
            infer_schema_length=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it, without the runs; an infinite bound is none."""
        points = self.frame().drop("method").to_dicts()
        points[0]["strength"] = None
        return {
            "method": self.method,
            "bias": self.bias,
            "utility": self.utility,
            "queries": len(self.queries),
            "points": points,
        }

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.bias} against {self.utility}, {len(self.queries):,} queries"]
        for p in self.points:
            marks = ("front " if p.front else "") + ("chosen" if p is self.chosen else "")
            strength = "none" if p is self.points[0] else f"{p.strength:.4g}"
            lines.append(f"{strength:<8} {p.bias.value:.4f}  {p.utility.value:.4f}  {marks}".rstrip())
        return "\n".join(lines)


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
    **given: Unpack[Beside],
) -> TradeOff:
    """A mitigation at growing strength: how far does bias fall, and what does it cost?

    Parameters
    ----------
    run, tally, qrels
        The run to mitigate, the word counts of the collection, and judgments to measure usefulness.
    docs, lexicon, tokenizer
        Documents instead of the tally, and what to count in them, as for :func:`evenrank.measure`.
    background, labels, targets, dictionary, missing, order
        What else the bias looks at and how runs are read, as for :func:`evenrank.measure`.
    method
        ``constrain``: strengths are bounds on `bias`. ``interpolate``: λ from 0 to 1. ``penalty``: w, see
        :func:`penalise`. ``feedback``: λ of bias-aware RM3, which searches again and needs `index` and
        `queries` instead of a run. ``detgreedy``, ``detcons``, ``detrelaxed``, ``detconstsort``, ``fair``:
        how far shares go from those of the list to the target of `bias`, see :func:`rebalance`.
        ``negatives``, a loss, ``adversary``, ``augment`` or ``consistency``: a ranker is trained at each
        strength, which needs `training` and `queries`, and re-ranks the run. Or a mitigation of your own, any
        object with a `name`, ``strengths()``, none first, and ``apply(strength)``, a run.
    mode
        Of `constrain`: the bound holds for the ``mean`` or for ``each`` query.
    strengths
        From weak to strong; without them nine tenths to one twentieth of the bias there is, or λ by tenths.
    bias
        RaB, ARaB (of sizes, ``abs(ARaB@10)``), FaiRR or NFaiRR (higher is fairer).
    training
        What is trained on what: :class:`evenrank.mitigate.trained.Training`. Other queries than those ranked.
    tolerance, alpha
        With a tolerance (0.02) the strongest setting is chosen up to which no more than that share of
        utility is lost in the mean; without, up to which no loss is significant at `alpha` (paired t-tests,
        Holm's correction over the settings). Few queries make few losses significant: look at the interval.

    Examples
    --------
    >>> docs = {"a": "he said", "b": "she said", "c": "they said"}
    >>> import evenrank as er
    >>> run = {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}}
    >>> found = sweep(run, er.tally(docs), qrels={"q1": {"a": 1}, "q2": {"b": 1}}, strengths=[0.2])
    >>> [round(point.bias.value, 2) for point in found]
    [0.33, 0.19]
    """
    refuse_after_fork()
    check_choice("mode", mode, ("each", "mean"))
    progress = given.pop("progress", None)
    for name in ("vectors", "pairs", "genders", "ties"):
        if name in given:
            raise InputError(f"sweep takes no {name}")
    if tally is not None and given.get("docs") is not None:
        raise InputError("a tally and docs are both given; give one of them")
    inputs = Inputs.open(None, tally=tally, **given)
    if inputs.qrels is None:
        raise InputError("judgments tell the usefulness; give qrels")
    wanted, size = bias_measure(bias)
    useful = parse(utility)
    fairer = 1.0 if good(wanted) == "high" else -1.0
    if isinstance(method, str):
        _check_strengths(method, strengths)
        method = mitigation(
            method,
            run,
            inputs,
            measure=wanted,
            mode=mode,
            strengths=strengths,
            candidates=candidates,
            index=index,
            ranker=ranker,
            training=training,
        )
    elif strengths is not None:
        raise InputError("a mitigation of your own has its own strengths; leave them out")
    runs: list[tuple[float, pl.DataFrame]] = []
    wished = list(method.strengths())
    for strength in wished:
        runs.append((strength, tables.run(method.apply(strength))))
        if progress is not None:
            progress(len(runs), len(wished))
    behind = runs[0][1] if inputs.background is None else inputs.background
    values = []
    for _, made in runs:
        seen = inputs.of_runs({"the run": made}, background=behind, queries=None)
        found = measured(seen, [wanted, useful], Options(bootstrap=Bootstrap(None)))
        values.append((found[wanted].per_query(), found[useful].per_query()))
    common = [q for q in values[0][0] if all(q in of_bias and q in of_use for of_bias, of_use in values)]
    if not common:
        raise InputError("no query has both a bias and judgments; check that run and qrels belong together")
    points = [
        _point(strength, made, *pair, common, size, confidence, resamples, seed)
        for (strength, made), pair in zip(runs, values, strict=True)
    ]
    points = _compared(points, confidence)
    points = [replace(p, front=_undominated(p, points, fairer)) for p in points]
    chosen = _chosen(points, alpha, tolerance)
    return TradeOff(method.name, bias, str(useful), tuple(points), chosen, tuple(common), fairer < 0)


def sweeps(
    methods: Sequence[str | Mitigation],
    run: Any = None,
    tally: Any = None,
    *,
    training: Training | None = None,
    queries: Any = None,
    **settings: Any,
) -> list[TradeOff]:
    """Several mitigations in one comparison: the points of all of them have one Pareto front.

    With `training`, a ranker is trained plainly first. Its run is what the methods that train begin with, at
    strength 0, and what the others re-rank.

    Parameters
    ----------
    methods
        As `method` of :func:`sweep`.
    settings
        Those of :func:`sweep`.
    """
    if len({*map(str, methods)}) < len(methods):
        raise InputError("a method is given twice")
    plain = None
    if training is not None:
        if run is None or queries is None:
            raise InputError("give the run and the queries that the trained ranker re-ranks")
        first, strengths = tables.run(run), settings.get("strengths")
        methods = [_ready(method, training, first, queries, strengths) for method in methods]
        plain = tables.run(training.ranked(first, queries))
    curves = []
    for method in methods:
        own = settings
        if isinstance(method, Retrained):
            method, own = replace(method, plain=plain), {**settings, "strengths": None}
        base = run if plain is None or method == "feedback" else plain
        curves.append(sweep(base, tally, method=method, queries=queries, training=training, **own))
    return one_front(curves)


def _ready(
    method: str | Mitigation,
    training: Training,
    run: pl.DataFrame,
    queries: Any,
    strengths: Sequence[float] | None,
) -> str | Mitigation:
    """A method that trains, made of its name; what cannot be swept is refused before training."""
    if not isinstance(method, str):
        return method
    if method in METHODS:
        _check_strengths(method, strengths)
        return method
    return Retrained(method, training, run, queries, strengths)


def _check_strengths(method: str, strengths: Sequence[float] | None) -> None:
    """Refuse strengths below 0, or λ above 1. Bounds of ``constrain`` and training have their own checks."""
    if strengths is not None and method in METHODS and method != "constrain":
        check_strengths(method, strengths, most=np.inf if method == "penalty" else 1)


def one_front(curves: Sequence[TradeOff]) -> list[TradeOff]:
    """The curves with one Pareto front over all their points; they have to share both measures."""
    if len({(curve.bias, curve.utility) for curve in curves}) > 1:
        raise InputError("the trade-offs have different measures; they cannot have one front")
    together = [point for curve in curves for point in curve.points]
    made = []
    for curve in curves:
        fairer = -1.0 if curve.lower_is_fairer else 1.0
        points = tuple(replace(p, front=_undominated(p, together, fairer)) for p in curve.points)
        made.append(replace(curve, points=points, chosen=points[curve.points.index(curve.chosen)]))
    return made


def bias_measure(text: str) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
    """The bias measure, and what of its values counts: their size, where values near 0 are good."""
    condition = parse_condition(f"{text}<=0")
    if not is_bias(condition.measure):
        raise InputError(f"{text} is not a measure of bias; write for example abs(ARaB@10) or NFaiRR@10")
    measure: Any = condition.measure
    if measure.YARDSTICK:
        raise InputError(f"{measure} has to be compared with {measure.YARDSTICK}; no value of it is better")
    return measure, np.abs if condition.absolute else partial(amount, measure)


def _point(
    strength: float,
    run: pl.DataFrame,
    biases: dict[str, float],
    utilities: dict[str, float],
    common: Sequence[str],
    size: Callable[[np.ndarray], np.ndarray],
    confidence: float,
    resamples: int,
    seed: int,
) -> Point:
    of_bias = size(np.array([biases[query] for query in common]))
    of_use = np.array([utilities[query] for query in common])
    given: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    return Point(
        strength,
        stats.mean_interval(of_bias, **given),
        stats.mean_interval(of_use, **given),
        of_bias,
        of_use,
        run,
    )


def _compared(points: list[Point], confidence: float) -> list[Point]:
    """Each point's utility beside that of the first, with Holm's correction."""
    first = points[0]
    changes = [stats.paired(p.utilities, first.utilities, confidence=confidence) for p in points[1:]]
    adjusted = stats.holm([change.p for change in changes])
    return [
        first,
        *(
            replace(p, change=change, p_holm=p_holm)
            for p, change, p_holm in zip(points[1:], changes, adjusted, strict=True)
        ),
    ]


def _undominated(point: Point, points: Sequence[Point], fairer: float) -> bool:
    def worth(p: Point) -> tuple[float, float]:
        return fairer * (p.bias.value or 0.0), p.utility.value or 0.0

    fair, useful = worth(point)
    return not any(
        f >= fair and u >= useful and (f > fair or u > useful) for f, u in (worth(p) for p in points)
    )


def _chosen(points: Sequence[Point], alpha: float, tolerance: float | None) -> Point:
    """The last point before utility falls significantly, or by more than the tolerance."""
    reached = points[0]
    whole = reached.utility.value or 0.0
    for point in points[1:]:
        lost = 0.0 if point.change is None else -(point.change.difference or 0.0)
        if tolerance is not None:
            if lost > tolerance * whole:
                break
        elif lost > 0 and point.p_holm is not None and point.p_holm < alpha:
            break
        reached = point
    return reached
