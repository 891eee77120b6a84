"""Samples as arrays: checked at the door, and compared within rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import InputError

Floats = NDArray[np.float64]

CELLS = 2**16  # resampled numbers at a time: what stays in the cache is twice as quick
ROUNDING = 1e-12  # what sums of the same numbers in another order may differ by, relatively


def finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} must be one number per query, found an array of {array.ndim} dimensions")
    if undefined := int((~np.isfinite(array)).sum()):
        raise InputError(
            f"{name} holds {undefined} undefined numbers; leave those queries out and count them"
        )
    return array


def largest(*arrays: Floats) -> float:
    return max((float(np.abs(a).max()) for a in arrays if len(a)), default=0.0)


def constant(x: Floats, scale: float | None = None) -> bool:
    """No spread beyond the rounding of numbers as large as ``scale``."""
    return len(x) > 0 and float(np.ptp(x)) <= ROUNDING * (largest(x) if scale is None else scale)


def one_of(choice: str, *legal: str) -> None:
    if choice not in legal:
        raise InputError(f"unknown choice {choice!r}; choose one of {', '.join(legal)}")
