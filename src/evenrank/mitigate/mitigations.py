"""The settings of a mitigation that a sweep goes through, each with the run it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.base import good
from evenrank.measures.evaluate import measure as measured
from evenrank.measures.lists import Floats, ranked_lists
from evenrank.measures.rank_bias import ARaB
from evenrank.mitigate.constrain.reranking import constrain, reordered_run
from evenrank.text.tally import Tally

METHODS = ("constrain", "interpolate", "feedback")
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
_LAMBDAS = tuple(step / 10 for step in range(1, 11))


def settings_of(
    method: str,
    run: Any,
    tally: Any,
    *,
    measure: Any,
    mode: str,
    strengths: Sequence[float] | None,
    candidates: int,
    index: Any,
    queries: Any,
    ranker: str,
    background: Any,
) -> Iterator[tuple[float, pl.DataFrame]]:
    """Strength and run, the unmitigated one first (0 for λ, infinite for bounds on bias)."""
    if method == "feedback":
        if index is None or queries is None:
            raise InputError("feedback searches anew: give an index and queries")
        yield from _feedback(index, queries, ranker, measure, strengths, tally)
        return
    if run is None:
        raise InputError(f"{method} re-ranks a run: give one")
    if tally is None:
        raise InputError(f"{method} needs a tally")
    frame = tables.run(run)
    if method == "interpolate":
        yield 0.0, frame
        for strength in _sorted(strengths, _LAMBDAS):
            yield strength, interpolate(frame, tally, strength, candidates=candidates, **_words(measure))
        return
    if not measure.LINEAR:
        raise InputError(f"{measure} cannot be bounded here; RaB, ARaB, FaiRR and NFaiRR can")
    way = good(measure)
    if way == "one":
        raise InputError(f"{measure} cannot be bounded here; values near 1 are good, on both sides")
    yield (0.0 if way == "high" else np.inf), frame
    for bound in _bounds(frame, tally, measure, strengths, background):
        limit = {"zero": f"abs({measure})<=", "low": f"{measure}<=", "high": f"{measure}>="}[way] + repr(
            bound
        )
        fair = constrain(
            frame, tally, limit=limit, mode=mode, candidates=candidates, background=background  # type: ignore[arg-type]
        )  # fmt: skip
        yield bound, pl.DataFrame(fair)


def _sorted(strengths: Sequence[float] | None, default: Sequence[float]) -> list[float]:
    given = sorted({float(strength) for strength in (default if strengths is None else strengths)})
    if not given:
        raise InputError("name at least one strength")
    return [strength for strength in given if strength > 0]


def _words(measure: Any) -> dict[str, Any]:
    """What makes a document biased, as the measure sees it."""
    names = [name for name in ("magnitude", "of", "against") if name in measure.SUPPORTED_PARAMS]
    return {name: measure[name] for name in names}


def _bounds(
    run: pl.DataFrame, tally: Any, measure: Any, strengths: Sequence[float] | None, background: Any
) -> list[float]:
    """Bounds from weak to strong."""
    if strengths is not None:
        given = sorted({float(strength) for strength in strengths}, reverse=good(measure) != "high")
        if not given:
            raise InputError("name at least one strength")
        return given
    found = measured(run, measure, tally=tally, background=background, confidence=None)[measure]
    if good(measure) != "high":
        size = (found.summary.abs if measure.SIGNED else found.value) or 0.0
        return [float(f"{share * size:.6g}") for share in _SHARES]
    if measure.BEST is not None:
        value = found.value or 0.0
        return [float(f"{measure.BEST - share * (measure.BEST - value):.6g}") for share in _SHARES]
    raise InputError(f"name the strengths: bounds on {measure}, from weak to strong")


def _feedback(
    index: Any, queries: Any, ranker: str, measure: Any, strengths: Sequence[float] | None, tally: Any
) -> Iterator[tuple[float, pl.DataFrame]]:
    from evenrank.rankers.catalogue import search

    magnitude = measure["magnitude"] if "magnitude" in measure.SUPPORTED_PARAMS else "tf"
    name = f"{ranker.removesuffix('+rm3')}+rm3"
    yield 0.0, search(index, queries, ranker=name)
    for strength in _sorted(strengths, _LAMBDAS):
        given = {"bias_lambda": strength, "magnitude": magnitude, "tally": tally}
        yield strength, search(index, queries, ranker=name, **given)


# INTERPOLATE: Interpolation: the simple way to a less biased ranking, and the yardstick for others.


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
