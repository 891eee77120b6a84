"""A short name for a table's content: equal tables, equal names."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import xxhash

_SLICE = 65_536


def fingerprint(frames: Iterable[pl.DataFrame | None]) -> str:
    """xxh3 (128 bits, hexadecimal) of the columns' names and values, in their order."""
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
                digest.update(column.to_numpy().tobytes())
    return digest.hexdigest()
