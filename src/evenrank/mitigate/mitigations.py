"""Mitigations: each knows its strengths, and the run that each of them makes. A sweep asks nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, runtime_checkable

import numpy as np
import polars as pl

from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_choice, check_number, check_whole, is_number
from evenrank.measures.base import is_sum, preferred_direction
from evenrank.measures.document_bias import bias_by, document_bias, run_bias
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats
from evenrank.measures.rank_bias import ARaB
from evenrank.measures.results import Options
from evenrank.mitigate.constrain import constrained, reordered_run
from evenrank.mitigate.limits import parse_limits
from evenrank.mitigate.rebalancing import REBALANCERS, Rebalancing, Wished, from_nothing
from evenrank.stats.rounding import level_ties

if TYPE_CHECKING:
    from evenrank.mitigate.trained import Training

METHODS = ("constrain", "interpolate", "penalty", "feedback", *REBALANCERS)
"""What needs no training; :func:`evenrank.mitigate.trained.methods` names the rest."""
_RERANKERS = ("constrain", "interpolate", "penalty", *REBALANCERS)
_READERS = {
    "run": (*_RERANKERS, "training"),
    "mode": ("constrain",),
    "candidates": _RERANKERS,
    "index": ("feedback",),
    "ranker": ("feedback",),
    "queries": ("feedback", "training"),
}
"""Who reads what a sweep may be given."""
_UNREAD = ("queries", "qrels", "background", "vectors", "pairs", "targets", "genders", "ties", "order")
"""What other commands look at, and a penalty does not."""
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
_LAMBDAS = tuple(step / 10 for step in range(1, 11))


@runtime_checkable
class Mitigation(Protocol):
    """A way to less bias that can be weak or strong.

    Attributes
    ----------
    name
        What it is called in tables and charts.
    """

    @property
    def name(self) -> str: ...

    def strengths(self) -> Sequence[float]:
        """From none, which comes first, to the strongest."""
        ...

    def apply(self, strength: float) -> pl.DataFrame:
        """The run at one of the strengths; at the first, the run as it was."""
        ...


def mitigation(
    method: str,
    run: Any,
    inputs: Inputs,
    *,
    measure: Any,
    mode: str,
    strengths: Sequence[float] | None,
    candidates: int,
    index: Any,
    ranker: str,
    training: Training | None = None,
    plain: pl.DataFrame | None = None,
) -> Mitigation:
    """The mitigation of this name, on a run, for feedback on an index, or by training.

    `plain` is the run of plain training, where there is one: what is re-ranked in the place of `run`.
    """
    if method not in METHODS:
        from evenrank.mitigate.trained import Retrained, methods

        check_choice("method", method, (*METHODS, *methods()))
        if training is None or run is None or inputs.queries is None:
            raise InputError(f"{method} trains a ranker: give training, and the run and queries to re-rank")
        return Retrained(method, training, run, inputs.queries, strengths, plain)
    if strengths is not None and method != "constrain":  # whose strengths are bounds on any measure
        check_strengths(method, strengths, most=math.inf if method == "penalty" else 1)
    given = None if strengths is None else sorted({*map(float, strengths)})
    if method == "feedback":
        if index is None or inputs.queries is None:
            raise InputError("feedback searches again: give an index and queries")
        tally = inputs.tally if inputs.has_tally else None
        return Feedback(index, inputs.queries, ranker, measure, given, tally)
    if run is None:
        raise InputError(f"{method} re-ranks a run: give one")
    frame = run if plain is None else plain
    if method in REBALANCERS:
        known = measure.SUPPORTED_PARAMS
        target = measure["target"] if "target" in known else None
        at = (measure["cutoff"] if "cutoff" in known else None) or 10
        group = measure["group"] if method == "fair" and "group" in known else None
        wished = Wished(method, at=at, target=target, group=group, candidates=candidates)
        return Rebalancing(frame, inputs, wished, given)
    if method == "constrain":
        return Bounds(frame, inputs, measure, given, candidates, mode)
    bias = bias_by(measure)
    if bias is None:
        refuse_bias(method, measure)
    built = Interpolation if method == "interpolate" else Penalty
    return built(frame, inputs, bias, given, candidates)


def refuse_bias(method: str, measure: Any) -> NoReturn:
    """Refuse a method that looks at single documents, where the measure says nothing of them."""
    raise InputError(f"{method} needs the bias of single documents, and {measure} says none")


def name_of(method: str | Mitigation) -> str:
    """What a method is called: by its name, or as a mitigation of your own calls itself."""
    return method if isinstance(method, str) else method.name


def refuse_unread(methods: Sequence[str | Mitigation], *, training: bool = False, **is_given: bool) -> None:
    """Refuse what is given though none of the methods reads it; a mitigation of your own reads nothing.

    What is trained is read by methods that re-rank it and by those that train; it reads run and queries.
    """
    known = {method for method in methods if isinstance(method, str)}
    reading = {method if method in METHODS else "training" for method in known}
    others = ", ".join(map(name_of, methods))
    if training:
        if not reading & {*_RERANKERS, "training"}:
            raise InputError(
                f"training is for methods that re-rank a run or train a ranker, not for {others}; leave the "
                "training out"
            )
        reading.add("training")
    for name, there in is_given.items():
        readers = _READERS[name]
        if there and not reading & {*readers}:
            raise InputError(f"{name} is for {', '.join(readers)}, not for {others}; leave it out")


def check_finite(strengths: Sequence[float]) -> None:
    """Refuse what is no list of strengths, none at all, and one that is not a finite number."""
    try:
        count = len(strengths)
    except TypeError:
        raise InputError(
            f"strengths is {strengths!r}; it must be a list of numbers, from weak to strong"
        ) from None
    if count == 0:
        raise InputError("name at least one strength")
    if not all(map(is_number, strengths)):
        raise InputError("a strength is not a finite number")


def check_strengths(method: str, strengths: Sequence[float], *, most: float = math.inf) -> None:
    """Refuse strengths that a method cannot have; asked before anything is done."""
    check_finite(strengths)
    for each in strengths:
        if not 0 <= each <= most:
            wanted = "from 0 on" if most == math.inf else f"from 0 to {most:g}"
            raise InputError(f"strength {each:g} of {method}: it must be {wanted}")


@dataclass(frozen=True, eq=False)
class Bounds:
    """Constrained re-ranking: strengths are bounds on the measure, from loose to tight."""

    run: pl.DataFrame
    inputs: Inputs
    measure: Any
    given: list[float] | None
    candidates: int
    mode: str

    @property
    def name(self) -> str:
        return f"constrain ({self.mode})"

    def __post_init__(self) -> None:
        if not is_sum(self.measure):
            raise InputError(f"{self.measure} cannot be bounded here; RaB, ARaB, FaiRR, NFaiRR and LIWC can")
        if self._way == "one":
            raise InputError(f"{self.measure} cannot be bounded here; values near 1 are good, on both sides")
        if self.given is None and self._way == "high" and self.measure.BEST is None:
            raise InputError(f"name the strengths: bounds on {self.measure}, from weak to strong")

    @property
    def _way(self) -> str:
        return preferred_direction(self.measure)

    @cached_property
    def _seen(self) -> Inputs:
        return self.inputs.of_runs({"the run": self.run}, background=self.inputs.background)

    @property
    def _none(self) -> float:
        """The bound that bounds nothing."""
        return 0.0 if self._way == "high" else np.inf

    def strengths(self) -> list[float]:
        """Those given, or bounds that leave nine tenths to one twentieth of the bias there is."""
        high = self._way == "high"
        if self.given is not None:
            return [self._none, *sorted(self.given, reverse=not high)]
        result = measured(self._seen, [self.measure], Options(confidence=None))[self.measure]
        if not high:
            size = (result.abs if self.measure.SIGNED else result.value) or 0.0
            return [self._none, *(float(f"{share * size:.6g}") for share in _SHARES)]
        best, value = self.measure.BEST, result.value or 0.0
        return [self._none, *(float(f"{best - share * (best - value):.6g}") for share in _SHARES)]

    def apply(self, strength: float) -> pl.DataFrame:
        """The most useful ranking within the bound."""
        if strength == self._none:
            return self.run
        form = {"zero": "abs({})<={!r}", "low": "{}<={!r}", "high": "{}>={!r}"}[self._way]
        limits = parse_limits(form.format(self.measure, strength))
        return pl.DataFrame(constrained(self._seen, limits, mode=self.mode, candidates=self.candidates))


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Scores mixed with bias: strengths are λ; see :func:`interpolate`.

    Attributes
    ----------
    bias
        What makes a document one-sided: a measure that is a sum over documents, or ``label``.
    """

    run: pl.DataFrame
    inputs: Inputs
    bias: Any
    given: list[float] | None
    candidates: int
    name = "interpolate"

    def strengths(self) -> list[float]:
        """Those given, or λ by tenths."""
        return from_nothing(self.given or _LAMBDAS)

    @cached_property
    def _sizes(self) -> Floats:
        return _run_bias(self.inputs, self.run, self.bias, self.candidates)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, re-ranked by a document's bias as the measure sees it."""
        if strength == 0:
            return self.run
        return _mixed(self.run, self._sizes, strength, self.candidates)


@dataclass(frozen=True, eq=False)
class Penalty:
    """Score − w · bias: strengths are w; see :func:`penalise`.

    Attributes
    ----------
    bias
        What makes a document one-sided: a measure that is a sum over documents, or ``label``.
    """

    run: pl.DataFrame
    inputs: Inputs
    bias: Any
    given: list[float] | None
    candidates: int
    name = "penalty"

    def strengths(self) -> list[float]:
        """Those given, or a tenth to five times the spread of the scores within a list, on average."""
        if self.given is not None:
            return from_nothing(self.given)
        spread = self.run.group_by("query_id").agg(pl.col("score").std())["score"].mean()
        spread = float(spread or 1.0)  # type: ignore[arg-type]
        return [0.0, *(float(f"{each * spread:.3g}") for each in _WEIGHTS)]

    @cached_property
    def _sizes(self) -> Floats:
        return _run_bias(self.inputs, self.run, self.bias, self.candidates)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, each score of a candidate lowered by its bias as the measure sees it."""
        if strength == 0:
            return self.run
        scores = self.run.filter(pl.col("rank") <= self.candidates)["score"].to_numpy()
        return _resorted(self.run, _lowered(scores, self._sizes, strength), self.candidates)


def _run_bias(inputs: Inputs, run: pl.DataFrame, bias: Any, candidates: int) -> Floats:
    """How one-sided each candidate of a run is, in the order of its rows."""
    top = run.filter(pl.col("rank") <= candidates)
    return run_bias(inputs.of_runs({"the run": top}, background=inputs.background), bias)


@dataclass(frozen=True, eq=False)
class Feedback:
    """Bias-aware RM3, which searches anew: strengths are λ; see :func:`evenrank.feedback`."""

    index: Any
    queries: Any
    ranker: str
    measure: Any
    given: list[float] | None
    tally: Any
    name = "feedback"

    def strengths(self) -> list[float]:
        """Those given, or λ by tenths."""
        return from_nothing(self.given or _LAMBDAS)

    def apply(self, strength: float) -> pl.DataFrame:
        """What the expanded queries find."""
        from evenrank.rankers.registry import search

        name = f"{self.ranker.removesuffix('+rm3')}+rm3"
        if strength == 0:
            return search(self.index, self.queries, ranker=name)
        magnitude = self.measure["magnitude"] if "magnitude" in self.measure.SUPPORTED_PARAMS else "tf"
        given = {"bias_lambda": strength, "magnitude": magnitude, "tally": self.tally}
        return search(self.index, self.queries, ranker=name, **given)


def interpolate(
    run: Any,
    tally: Any,
    strength: float = 0.5,
    *,
    magnitude: str = "tf",
    of: str | None = None,
    against: str | None = None,
    candidates: int = 100,
    missing: Literal["error", "zero"] = "error",
) -> pl.DataFrame:
    """Re-rank by (1 − λ) · score − λ · |bias|, both from 0 to 1 within the query's candidates.

    λ = 0 keeps the run, λ = 1 sorts by bias alone, the given order deciding among equals. Each document is
    judged by itself: a male document cannot balance a female one, as in :func:`constrain`. This is how
    bias-aware feedback chooses its documents (Bigdeli, thesis, Section 4.1), used on the ranking itself.

    Parameters
    ----------
    run, tally
        The run to re-rank, and the word counts of the collection.
    strength
        λ, from 0 to 1.
    magnitude, of, against
        What makes a document biased: the difference of two groups' magnitudes, as in RaB.
    candidates
        How many documents from the top are re-ranked; the others stay below them.
    """
    check_number("strength", strength, most=1)
    check_whole("candidates", candidates)
    check_choice("missing", missing, ("error", "zero"))
    frame = read_run(run)
    bias: Any = ARaB(magnitude=magnitude, of=of, against=against) @ 1
    top = frame.filter(pl.col("rank") <= candidates)
    sizes = document_bias(top, bias, tally=tally, missing=missing)
    return _mixed(frame, sizes, strength, candidates)


def _mixed(frame: pl.DataFrame, sizes: Floats, strength: float, candidates: int) -> pl.DataFrame:
    """The candidates by (1 − λ) · score − λ · bias, both from 0 to 1 within a query."""
    top = frame.filter(pl.col("rank") <= candidates)
    scores, lengths = top["score"].to_numpy(), top["query_id"].rle().struct.field("len").to_list()
    worth, start = np.zeros(len(top)), 0
    for n in lengths:
        part = slice(start, start + n)
        worth[part] = (1 - strength) * _unit(scores[part]) - strength * _unit(sizes[part])
        start += n
    return _resorted(frame, worth, candidates)


def _resorted(frame: pl.DataFrame, worth: Floats, candidates: int) -> pl.DataFrame:
    """The candidates of each query by what they are worth, highest first and equals in their order."""
    rank = frame["rank"].to_numpy()
    top = np.flatnonzero(rank <= candidates)
    order = np.arange(frame.height)
    order[top] = top[np.lexsort((-worth, np.cumsum(rank == 1)[top]))]
    return reordered_run(frame, order)


def penalise(
    run: Any,
    tally: Any = None,
    strength: float = 1.0,
    *,
    bias: Any = "tf",
    **given: Any,
) -> pl.DataFrame:
    """Re-rank by score − w · bias of the document: the simplest way to less bias, and a hard one to beat.

    w = 0 keeps the order. Unlike :func:`interpolate` it does not rescale within a query: w is in units of the
    ranker's scores for a document of bias 1, and a document without bias keeps its score.

    Parameters
    ----------
    run, tally
        The run to re-rank, and the word counts of the collection.
    strength
        w, from 0 on.
    bias
        What makes a document one-sided, as for :func:`evenrank.negatives`.
    given
        What that needs else: docs, lexicon, tokenizer, labels, dictionary, missing.

    Examples
    --------
    >>> import evenrank as er
    >>> tally = er.tally({"a": "he said", "b": "rain", "c": "sun"})
    >>> penalise({"q": {"a": 2.0, "b": 1.5, "c": 1.0}}, tally, 1.0)["doc_id"].to_list()
    ['b', 'a', 'c']
    """
    check_number("strength", strength)
    for name in _UNREAD:
        if name in given:
            raise InputError(f"penalise takes no {name}; leave it out")
    frame = read_run(run)
    if tally is not None:
        given["tally"] = tally
    sizes = document_bias(frame, bias, **given)
    lowered = _lowered(frame["score"].to_numpy(), sizes, strength)
    lowered = level_ties(lowered, np.cumsum(frame["rank"].to_numpy() == 1))
    return read_run(frame.select("query_id", "doc_id", score=pl.Series(lowered)))


def _lowered(scores: Floats, sizes: Floats, strength: float) -> Floats:
    """Score − w · bias of each document."""
    with np.errstate(over="ignore"):
        lowered = scores - strength * sizes
    if not np.isfinite(lowered).all():
        raise InputError(
            f"strength is {strength:g}: scores less that much are no numbers; choose a smaller one"
        )
    return lowered


def _unit(values: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; all 0 where they are equal."""
    low, spread = values.min(), np.ptp(values)
    return (values - low) / spread if spread > 0 else np.zeros(len(values))
