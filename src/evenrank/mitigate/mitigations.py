"""Mitigations: each knows its strengths, and the run that each of them makes. A sweep asks nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError, check_choice
from evenrank.measures.base import good
from evenrank.measures.document_bias import document_bias
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats, ranked_lists
from evenrank.measures.rank_bias import ARaB
from evenrank.measures.results import Bootstrap, Options
from evenrank.mitigate.constrain.limits import parse_limits
from evenrank.mitigate.constrain.reranking import constrained, reordered_run
from evenrank.mitigate.rebalancing import REBALANCERS, Rebalancing, Wished, from_nothing
from evenrank.text.tally import Tally

if TYPE_CHECKING:
    from evenrank.mitigate.trained import Training

METHODS = ("constrain", "interpolate", "penalty", "feedback", *REBALANCERS)
"""What needs no training; :func:`evenrank.mitigate.trained.methods` names the rest."""
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
) -> Mitigation:
    """The mitigation of this name, on a run, for feedback on an index, or by training."""
    given = None if strengths is None else _numbers(strengths)
    if method not in METHODS:
        from evenrank.mitigate.trained import Retrained, methods

        check_choice("method", method, (*METHODS, *methods()))
        if training is None or run is None or inputs.queries is None:
            raise InputError(f"{method} trains a ranker: give training, and the run and queries to re-rank")
        return Retrained(method, training, tables.run(run), inputs.queries, given)
    if method == "feedback":
        if index is None or inputs.queries is None:
            raise InputError("feedback searches again: give an index and queries")
        tally = inputs.tally if inputs.countable else None
        return Feedback(index, inputs.queries, ranker, measure, given, tally)
    if run is None:
        raise InputError(f"{method} re-ranks a run: give one")
    frame = tables.run(run, order=inputs.order)  # type: ignore[arg-type]  # checked when opened
    if method in REBALANCERS:
        known = measure.SUPPORTED_PARAMS
        target = measure["target"] if "target" in known else None
        at = (measure["cutoff"] if "cutoff" in known else None) or 10
        group = measure["group"] if method == "fair" and "group" in known else None
        wished = Wished(method, at=at, target=target, group=group, candidates=candidates)
        return Rebalancing(frame, inputs, wished, given)
    if not inputs.countable:
        raise InputError(f"{method} needs a tally")
    if method == "interpolate":
        return Interpolation(frame, inputs.tally, measure, given, candidates)
    if method == "penalty":
        return Penalty(frame, inputs.tally, measure, given)
    return Bounds(frame, inputs, measure, given, candidates, mode)


def check_finite(strengths: Sequence[float]) -> None:
    """Refuse no strength at all, and one that is not a finite number."""
    if len(strengths) == 0:
        raise InputError("name at least one strength")
    if not all(map(math.isfinite, strengths)):
        raise InputError("a strength is not a finite number")


def _numbers(strengths: Sequence[float]) -> list[float]:
    """Each strength once, rising."""
    given = sorted({float(strength) for strength in strengths})
    check_finite(given)
    return given


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

    @cached_property
    def _way(self) -> str:
        if not self.measure.LINEAR:
            raise InputError(f"{self.measure} cannot be bounded here; RaB, ARaB, FaiRR and NFaiRR can")
        way = good(self.measure)
        if way == "one":
            raise InputError(f"{self.measure} cannot be bounded here; values near 1 are good, on both sides")
        return way

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
        found = measured(self._seen, [self.measure], Options(bootstrap=Bootstrap(None)))[self.measure]
        if not high:
            size = (found.summary.abs if self.measure.SIGNED else found.value) or 0.0
            return [self._none, *(float(f"{share * size:.6g}") for share in _SHARES)]
        best = self.measure.BEST
        if best is None:
            raise InputError(f"name the strengths: bounds on {self.measure}, from weak to strong")
        value = found.value or 0.0
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
    """Scores mixed with bias: strengths are λ; see :func:`interpolate`."""

    run: pl.DataFrame
    tally: Any
    measure: Any
    given: list[float] | None
    candidates: int
    name = "interpolate"

    def strengths(self) -> list[float]:
        """Those given, or λ by tenths."""
        return from_nothing(self.given or _LAMBDAS)

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, re-ranked by a document's bias as the measure sees it."""
        if strength == 0:
            return self.run
        known = self.measure.SUPPORTED_PARAMS
        words = {name: self.measure[name] for name in ("magnitude", "of", "against") if name in known}
        return interpolate(self.run, self.tally, strength, candidates=self.candidates, **words)


@dataclass(frozen=True, eq=False)
class Penalty:
    """Score − w · bias: strengths are w; see :func:`penalise`."""

    run: pl.DataFrame
    tally: Any
    measure: Any
    given: list[float] | None
    name = "penalty"

    def strengths(self) -> list[float]:
        """Those given, or a tenth to five times the spread of the scores within a list, on average."""
        if self.given is not None:
            return from_nothing(self.given)
        spread = self.run.group_by("query_id").agg(pl.col("score").std())["score"].mean()
        spread = float(spread or 1.0)  # type: ignore[arg-type]
        return [0.0, *(float(f"{each * spread:.3g}") for each in _WEIGHTS)]

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, each score lowered by the document's bias as the measure sees it."""
        if strength == 0:
            return self.run
        bias = self.measure if getattr(self.measure, "LINEAR", False) else "tf"
        return penalise(self.run, self.tally, strength, bias=bias)


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
        from evenrank.rankers.catalogue import search

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
    if not 0 <= strength <= 1:
        raise InputError(f"strength is {strength!r}, but must be between 0 and 1")
    if candidates < 1:
        raise InputError(f"candidates is {candidates!r}, but must be at least 1")
    frame, coloured = tables.run(run), Tally.of(tally)
    measure: Any = ARaB(magnitude=magnitude, of=of, against=against) @ 1
    of, against = measure.pair(coloured.groups)
    lists = ranked_lists(frame, coloured.frame, coloured.groups, depth=candidates, missing=missing)
    bias = np.abs(lists.magnitude(magnitude, of) - lists.magnitude(magnitude, against))
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    scores = frame["score"].to_numpy()
    order = np.arange(frame.height)
    for at, start, n in zip(first.tolist(), lists.starts.tolist(), lists.lengths.tolist(), strict=True):
        score = _unit(scores[at : at + n])
        mixed = (1 - strength) * score - strength * _unit(bias[start : start + n])
        order[at : at + n] = at + np.argsort(-mixed, kind="stable")
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
        What that needs else: docs, lexicon, labels, dictionary, missing.

    Examples
    --------
    >>> import evenrank as er
    >>> tally = er.tally({"a": "he said", "b": "rain", "c": "sun"})
    >>> penalise({"q": {"a": 2.0, "b": 1.5, "c": 1.0}}, tally, 1.0)["doc_id"].to_list()
    ['b', 'a', 'c']
    """
    if not (math.isfinite(strength) and strength >= 0):
        raise InputError(f"strength is {strength!r}, but must be a number from 0 on")
    frame = tables.run(run)
    if tally is not None:
        given["tally"] = tally
    size = document_bias(frame, bias, **given)
    lowered = frame.select("query_id", "doc_id", score=pl.col("score") - strength * pl.Series(size))
    return tables.run(lowered)


def _unit(values: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; all 0 where they are equal."""
    low, spread = values.min(), np.ptp(values)
    return (values - low) / spread if spread > 0 else np.zeros(len(values))
