"""A short name for a table's content: equal tables, equal names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

_SLICE = 65_536


def fingerprint(frames: Iterable[pl.DataFrame | None]) -> str:
    """xxh3 (128 bits, hexadecimal) of the columns' names and values, in their order.

    Text and whole numbers count to the last character. Other numbers count to about ten digits, so that the
    last bit of a score that another machine computed makes no other name.
    """
    digest = xxhash.xxh3_128()
    for frame in frames:
        digest.update(b"\x00frame" if frame is not None else b"\x00none")
        for column in [] if frame is None else frame.get_columns():
            digest.update(f"\x00{column.name}\x00{column.dtype}\x00{len(column)}\x00".encode())
            if column.dtype == pl.String:
                for start in range(0, len(column), _SLICE):
                    joined = column[start : start + _SLICE].fill_null("").str.join("\n").item()
                    digest.update(joined.encode())
            else:
                digest.update(_canonical(column.to_numpy()).tobytes())
    return digest.hexdigest()


def _canonical(values: NDArray[Any]) -> NDArray[Any]:
    """The values; of floating-point numbers sign, exponent and the first 32 bits, rounded."""
    if values.dtype.kind != "f":
        return values
    wide = values.astype(np.float64) + 0.0  # −0 becomes 0
    return (wide.view(np.int64) + (1 << 19)) >> 20
