"""Interpolation: the simple way to a less biased ranking, and the yardstick for others."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.lists import Floats, ranked_lists
from evenrank.measures.rank_bias import ARaB
from evenrank.mitigate.constrain.constrained import reordered_run
from evenrank.text.tally import Tally


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
        The run to re-rank, and the coloured collection.
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


def _unit(values: Floats) -> Floats:
    """From 0 for the lowest to 1 for the highest; all 0 where they are equal."""
    low, spread = values.min(), np.ptp(values)
    return (values - low) / spread if spread > 0 else np.zeros(len(values))
