"""Bias against usefulness as a mitigation grows stronger: the curve, its front, and a setting to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.measures.base import amount, amount_name, good, is_bias
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Beside, Inputs
from evenrank.measures.lists import ranked_queries
from evenrank.measures.parse import parse, parse_condition
from evenrank.measures.results import Bootstrap, Options
from evenrank.mitigate.mitigations import Mitigation, mitigation, refuse_unread
from evenrank.mitigate.trained import Retrained, Training
from evenrank.process import refuse_after_fork
from evenrank.show.grid import Drawn
from evenrank.show.numbers import counted

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
    bias
        What is to become less: ``abs(ARaB@10)``, ``abs(DemographicParity@10 - 1)``; or more: ``NFaiRR@10``.
    points
        The unmitigated run first.
    chosen
        The strongest setting with less bias, not beaten by another of this method, up to which no loss of
        utility is significant, or beyond the tolerance; the unmitigated run where there is none. It is chosen
        on `queries`: what it is worth has to be seen on others.
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
        over = counted(len(self.queries), "query", "queries")
        lines = [f"{self.method}: {self.bias} against {self.utility}, {over}"]
        for p in self.points:
            marks = ("front " if p.front else "") + ("chosen" if p is self.chosen else "")
            strength = "none" if p is self.points[0] else f"{p.strength:.4g}"
            lines.append(f"{strength:<8} {p.bias.value:.4f}  {p.utility.value:.4f}  {marks}".rstrip())
        return "\n".join(lines)


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
        Documents, in the place of the tally or for a bias that reads them (LIWC), and what to count in them,
        as for :func:`evenrank.measure`.
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
        Any measure of bias of which a value can be better. Where values near 0 or 1 are good, it is how far
        they are from it: ``abs(ARaB@10)``. ``penalty`` and ``interpolate`` look at single documents: the
        value that the measure gives them or, where it compares groups, whether they show one.
    candidates
        How many documents from the top may move, where a run is re-ranked.
    training
        What is trained on what: :class:`evenrank.mitigate.trained.Training`. Other queries than those ranked.
    tolerance, alpha
        With a tolerance (0.02) the strongest setting is chosen up to which no more than that share of
        utility is lost in the mean; without, up to which no loss is significant at `alpha` (paired t-tests,
        Holm's correction over the settings). No setting is chosen that has as much bias as before, or whose
        loss cannot be tested. Few queries make few losses significant: look at the interval. The choice fits
        the queries that it is made on: choose on dev queries, and measure on others.

    Examples
    --------
    >>> docs = {"a": "he said", "b": "she said", "c": "they said"}
    >>> import evenrank as er
    >>> run = {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"b": 3.0, "a": 2.5, "c": 1.0}}
    >>> found = sweep(run, er.tally(docs), qrels={"q1": {"a": 1}, "q2": {"b": 1}}, strengths=[0.2])
    >>> [round(point.bias.value, 2) for point in found]
    [0.33, 0.19]
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
    refuse_after_fork()
    if len({*map(_name, methods)}) < len(methods):
        raise InputError("a method is given twice")
    progress = given.pop("progress", None)
    inputs = _opened(run, tally, given)
    measure, size, name = bias_measure(how.bias)
    useful = parse(how.utility)
    inputs.check([measure, useful])
    ready, start = _ready(methods, inputs, measure, how)
    wished = [list(method.strengths()) for method in ready]
    made: list[list[tuple[float, pl.DataFrame]]] = []
    done, total = 0, sum(map(len, wished))
    for method, strengths in zip(ready, wished, strict=True):
        made.append([])
        for strength in strengths:
            made[-1].append((strength, tables.run(method.apply(strength))))
            done += 1
            if progress is not None:
                progress(done, total)
    common, values = _measured(made, inputs, start, measure, useful)
    fairer = 1.0 if good(measure) == "high" else -1.0
    curves = []
    for method, runs, found in zip(ready, made, values, strict=True):
        points = [
            _point(strength, frame, *pair, common, size, how)
            for (strength, frame), pair in zip(runs, found, strict=True)
        ]
        points = _compared(points, how.confidence)
        points = [replace(p, front=_undominated(p, points, fairer)) for p in points]
        chosen = _chosen(points, how.alpha, how.tolerance, fairer)
        told = method.name, name, str(useful), tuple(points), chosen, tuple(common), fairer < 0
        curves.append(TradeOff(*told))
    return curves


def _name(method: str | Mitigation) -> str:
    return method if isinstance(method, str) else method.name


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

    def built(method: str | Mitigation, plain: pl.DataFrame | None) -> Mitigation:
        if not isinstance(method, str):
            if how.strengths is not None:
                raise InputError("a mitigation of your own has its own strengths; leave them out")
            return method
        return mitigation(
            method,
            run,
            inputs,
            measure=measure,
            mode=how.mode,
            strengths=how.strengths,
            candidates=how.candidates,
            index=how.index,
            ranker=how.ranker,
            training=training,
            plain=plain,
        )

    ready = [built(method, None) for method in methods]
    refuse_unread(
        [*map(_name, methods), *(["training"] if training is not None else [])],
        run=run is not None,
        mode=how.mode != _Settings.mode,
        candidates=how.candidates != _Settings.candidates,
        index=how.index is not None,
        ranker=how.ranker != _Settings.ranker,
        queries=inputs.queries is not None,
    )
    if training is None:
        return ready, run
    if run is None or inputs.queries is None:
        raise InputError("give the run and the queries that the trained ranker re-ranks")
    _refuse_tokenizer(inputs)
    training.check([each.name for each in ready if isinstance(each, Retrained)], run, inputs.queries)
    plain = tables.run(training.ranked(run, inputs.queries))
    return [built(method, plain) for method in methods], plain


def _refuse_tokenizer(inputs: Inputs) -> None:
    """Refuse words that training does not count: it knows one tokenizer."""
    told = inputs.given.get("tally") is not None or inputs.given.get("tokenizer") is not None
    if told and inputs.tokenizer != "words":
        raise InputError(
            f"training counts the words of the tokenizer words, and bias is counted with {inputs.tokenizer}; "
            "leave the tokenizer out, or tally with words"
        )


def _measured(
    made: Sequence[Sequence[tuple[float, pl.DataFrame]]],
    inputs: Inputs,
    start: pl.DataFrame | None,
    measure: Any,
    useful: Measure,
) -> tuple[list[str], list[list[tuple[dict[str, float], dict[str, float]]]]]:
    """The queries that have a value everywhere, and bias and utility of each query in each run."""
    ranked = [set(ranked_queries(runs[0][1]).to_list()) for runs in made]
    shared = set.intersection(*ranked)
    if not shared:
        raise InputError("the methods rank no query in common; do run, index and queries belong together?")
    behind = inputs.background if inputs.background is not None else start
    behind = made[0][0][1] if behind is None else behind
    values: list[list[tuple[dict[str, float], dict[str, float]]]] = []
    for of_method, runs in zip(ranked, made, strict=True):
        values.append([])
        for _, frame in runs:
            seen = frame if of_method == shared else frame.filter(pl.col("query_id").is_in(list(shared)))
            now = inputs.of_runs({"the run": seen}, background=behind, queries=None)
            found = measured(now, [measure, useful], Options(bootstrap=Bootstrap(None)))
            values[-1].append((found[measure].per_query(), found[useful].per_query()))
    each = [pair for of_method in values for pair in of_method]
    common = [q for q in each[0][0] if all(q in of_bias and q in of_use for of_bias, of_use in each)]
    if not common:
        raise InputError("no query has both a bias and judgments; check that run and qrels belong together")
    return common, values


def one_front(curves: Sequence[TradeOff]) -> list[TradeOff]:
    """The curves with one Pareto front over all their points; they have to share measures and queries."""
    if len({(curve.bias, curve.utility) for curve in curves}) > 1:
        raise InputError("the trade-offs have different measures; they cannot have one front")
    if len({frozenset(curve.queries) for curve in curves}) > 1:
        raise InputError("the trade-offs are over different queries; sweep their methods together")
    together = [point for curve in curves for point in curve.points]
    made = []
    for curve in curves:
        fairer = -1.0 if curve.lower_is_fairer else 1.0
        points = tuple(replace(p, front=_undominated(p, together, fairer)) for p in curve.points)
        made.append(replace(curve, points=points, chosen=points[curve.points.index(curve.chosen)]))
    return made


def bias_measure(text: str) -> tuple[Any, Callable[[np.ndarray], np.ndarray], str]:
    """The bias measure, what of its values counts, and the name of that: their size, where 0 is good."""
    condition = parse_condition(f"{text}<=0")
    if not is_bias(condition.measure):
        raise InputError(f"{text} is not a measure of bias; write for example abs(ARaB@10) or NFaiRR@10")
    measure: Any = condition.measure
    if measure.YARDSTICK:
        raise InputError(f"{measure} has to be compared with {measure.YARDSTICK}; no value of it is better")
    if condition.absolute:
        return measure, np.abs, f"abs({measure})"
    return measure, partial(amount, measure), amount_name(measure)


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


def _chosen(points: Sequence[Point], alpha: float, tolerance: float | None, fairer: float) -> Point:
    """The last point on the front with less bias, before utility falls significantly or beyond the tolerance.

    A loss that cannot be tested counts as one that is significant.
    """
    first = points[0]
    reached, whole = first, first.utility.value or 0.0
    for point in points[1:]:
        lost = 0.0 if point.change is None else -(point.change.difference or 0.0)
        if tolerance is not None:
            kept = lost <= tolerance * whole
        else:
            kept = point.p_holm is not None and (lost <= 0 or point.p_holm >= alpha)
        if not kept:
            break
        if point.front and fairer * ((point.bias.value or 0.0) - (first.bias.value or 0.0)) > 0:
            reached = point
    return reached
