"""Corrections for many tests at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from evenrank.errors import InputError
from evenrank.stats.intervals import Floats


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p-values made larger, so that any false alarm in the whole family is as rare as each p says.

    Holm (1979), in the order given; undefined values (None, NaN) stay ``None`` and do not count.
    """

    def adjust(p: Floats) -> Floats:
        order = np.argsort(p, kind="stable")
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        return np.minimum(steps, 1.0)[np.argsort(order, kind="stable")]

    return _adjust(p, adjust)


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """p-values made larger, so that p bounds the expected share of false alarms among the findings.

    Benjamini & Hochberg (1995), in the order given; undefined values (None, NaN) stay ``None`` and
    do not count.
    """
    from scipy.stats import false_discovery_control

    return _adjust(p, false_discovery_control)


def _adjust(p: Sequence[float | None], method: Callable[[Floats], Floats]) -> list[float | None]:
    adjusted = np.array([math.nan if x is None else x for x in p], dtype=np.float64)
    known = ~np.isnan(adjusted)
    if ((adjusted[known] < 0) | (adjusted[known] > 1)).any():
        raise InputError("p-values must lie between 0 and 1")
    if known.any():
        adjusted[known] = method(adjusted[known])
    return [None if math.isnan(x) else x for x in adjusted.tolist()]
