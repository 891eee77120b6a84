"""Re-ranking by the bias of single documents: scores mixed with it, or lowered by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.data.runs import read_run
from evenrank.errors import InputError, check_number, check_whole
from evenrank.measures.document_bias import document_bias, run_bias
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats
from evenrank.mitigate.base import LAMBDAS, from_nothing, reordered_run
from evenrank.stats.rounding import level_ties

_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)


def interpolate(
    run: Any,
    tally: Any = None,
    strength: float = 0.5,
    *,
    bias: Any = "tf",
    candidates: int = 100,
    **given: Any,
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
    bias
        What makes a document one-sided, as for :func:`evenrank.negatives`.
    candidates
        How many documents from the top are re-ranked; the others stay below them.
    given
        What the bias needs else: docs, lexicon, tokenizer, labels, dictionary, missing.
    """
    check_number("strength", strength, most=1)
    check_whole("candidates", candidates)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return Rescoring("interpolate", inputs, bias, None, candidates).apply(strength)


def penalise(
    run: Any, tally: Any = None, strength: float = 1.0, *, bias: Any = "tf", **given: Any
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
    frame = read_run(run)
    lowered = _lowered(frame, document_bias(frame, bias, tally=tally, **given), strength)
    lowered = level_ties(lowered, np.cumsum(frame["rank"].to_numpy() == 1))
    return read_run(frame.select("query_id", "doc_id", score=pl.Series(lowered)))


@dataclass(frozen=True, eq=False)
class Rescoring:
    """:func:`interpolate`, whose strengths are λ, or :func:`penalise` (`penalty`), whose strengths are w.

    Attributes
    ----------
    bias
        What makes a document one-sided: a measure that is a sum over documents, or ``label``.
    """

    name: Literal["interpolate", "penalty"]
    inputs: Inputs
    bias: Any
    given: Sequence[float] | None
    candidates: int

    def strengths(self) -> list[float]:
        """Those given, λ by tenths, or w of a tenth to five times the mean spread of scores within a list."""
        if self.given is not None or self.name == "interpolate":
            return from_nothing(self.given or LAMBDAS)
        spread: Any = (
            self.inputs.runs["the run"].group_by("query_id").agg(pl.col("score").std())["score"].mean()
        )
        return [0.0, *(float(f"{each * (spread or 1.0):.3g}") for each in _WEIGHTS)]

    def apply(self, strength: float) -> pl.DataFrame:
        """The run, its candidates re-ranked by their bias as the measure sees it."""
        run = self.inputs.runs["the run"]
        if strength == 0:
            return run
        top = run.filter(pl.col("rank") <= self.candidates)
        inputs = self.inputs.of_runs({"the run": top}, background=self.inputs.background)
        rescored = _mixed if self.name == "interpolate" else _lowered
        return _resorted(run, rescored(top, run_bias(inputs, self.bias), strength), self.candidates)


def _mixed(top: pl.DataFrame, sizes: Floats, strength: float) -> Floats:
    """(1 − λ) · score − λ · bias of each candidate, both from 0 to 1 within a query."""
    scores, lengths = top["score"].to_numpy(), top["query_id"].rle().struct.field("len").to_list()
    mixed, start = np.zeros(len(top)), 0
    for n in lengths:
        part = slice(start, start + n)
        mixed[part] = (1 - strength) * _unit(scores[part]) - strength * _unit(sizes[part])
        start += n
    return mixed


def _lowered(frame: pl.DataFrame, sizes: Floats, strength: float) -> Floats:
    """Score − w · bias of each document."""
    with np.errstate(over="ignore"):
        lowered: Floats = frame["score"].to_numpy() - strength * sizes
    if not np.isfinite(lowered).all():
        raise InputError(
            f"strength is {strength:g}: scores less that much are no numbers; choose a smaller one"
        )
    return lowered


def _resorted(frame: pl.DataFrame, values: Floats, candidates: int) -> pl.DataFrame:
    """The candidates of each query by these values, highest first and equals in their order."""
    rank = frame["rank"].to_numpy()
    top = np.flatnonzero(rank <= candidates)
    order = np.arange(frame.height)
    order[top] = top[np.lexsort((-values, np.cumsum(rank == 1)[top]))]
    return reordered_run(frame, order)


def _unit(values: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; all 0 where they are equal."""
    low, spread = values.min(), np.ptp(values)
    return (values - low) / spread if spread > 0 else np.zeros(len(values))
