"""The settings of a mitigation that a sweep goes through, each with the run it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.base import good
from evenrank.measures.evaluate import measure as measured
from evenrank.mitigate.constrain.reranking import constrain
from evenrank.mitigate.interpolate import interpolate

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
