"""Scores rounded to significant digits: last digits depend on the processor, and must not decide an order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

DIGITS = 9
"""Significant digits by which scores are ranked."""
CLOSE = 10.0 ** (1 - DIGITS)
"""Scores that are farther apart than this share of one of them are not equal to `DIGITS` digits."""


def round_significant(x: Any, digits: int = DIGITS) -> Any:
    """Return numbers rounded to so many significant digits; numba compiles it for a single number.

    The last digits of a score depend on the processor. Ranked by what is before them, documents have the
    same order everywhere.
    """
    size = np.minimum(np.maximum(np.abs(x), 1e-100), 1e100)
    scale = 10.0 ** (digits - 1.0 - np.floor(np.log10(size)))
    return np.rint(x * scale) / scale


def level_ties(scores: npt.NDArray[Any], lists: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Give scores of one list that are equal to nine significant digits the same value, the largest of them.

    Then the scores say the order by which we rank, also where a run is read back from a file.
    """
    order = np.lexsort((scores, lists))
    ordered, owner = scores[order], lists[order]
    apart = np.diff(ordered)
    same_list = owner[1:] == owner[:-1]
    if not (same_list & (apart > 0) & (apart <= CLOSE * np.abs(ordered[1:]))).any():
        return scores
    rounded = round_significant(ordered)
    first = np.concatenate([[True], ~same_list | (rounded[1:] != rounded[:-1])])
    levelled = np.empty(len(scores), np.float64)
    levelled[order] = np.maximum.reduceat(ordered, np.flatnonzero(first))[np.cumsum(first) - 1]
    return levelled
