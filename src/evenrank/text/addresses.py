"""Where the texts of a column lie in memory, so that the kernel reads them without a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

_INLINE = 12  # a view holds texts of up to 12 bytes itself


class Texts(NamedTuple):
    """Addresses of texts, and what keeps the memory behind them alive."""

    starts: np.ndarray  # int64[n]
    ends: np.ndarray  # int64[n]
    owners: list[Any]


def strings(texts: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> pa.Array:
    """An Arrow array of strings, of whichever of the three layouts."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return array if any(kind(array.type) for kind in kinds) else array.cast(pa.large_string())


def addresses(array: pa.Array, padding: int) -> Texts:
    """The texts of a string array; a null is an empty text.

    Behind each end `padding` bytes can be read: the few texts at the end of a buffer are copied.
    """
    if len(array) == 0:
        return Texts(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
    if pa.types.is_string_view(array.type) and array.null_count:
        array = array.cast(pa.large_string())  # the view of a null may say anything
    views = pa.types.is_string_view(array.type)
    starts, ends, limits = _of_views(array) if views else _of_offsets(array)
    if array.null_count:
        ends = np.where(array.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    owners: list[Any] = [array]
    exposed = np.flatnonzero((ends + padding > limits) & (ends > starts))
    for row in exposed.tolist():
        size = int(ends[row] - starts[row])
        copy = np.zeros(size + padding, np.uint8)
        ctypes.memmove(copy.ctypes.data, int(starts[row]), size)
        starts[row], ends[row] = copy.ctypes.data, copy.ctypes.data + size
        owners.append(copy)
    return Texts(starts, ends, owners)


def _of_offsets(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts one behind the other: the layouts `string` and `large_string`."""
    _, offsets, data = array.buffers()
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    bounds = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    if data is None:
        empty = np.zeros(len(array), np.int64)
        return empty, empty.copy(), empty
    bounds += data.address
    limit = np.array(data.address + data.size, np.int64)
    return bounds[:-1].copy(), bounds[1:].copy(), limit


def _of_views(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts anywhere: 16 bytes each that hold a length and a short text, or say where a long one is."""
    _, views, *buffers = array.buffers()
    fields = np.frombuffer(views, np.int32).reshape(-1, 4)[array.offset : array.offset + len(array)]
    sizes, places = fields[:, 0].astype(np.int64), fields[:, 3].astype(np.int64)
    bases = np.array([buffer.address for buffer in buffers] or [0], np.int64)
    tops = np.array([buffer.address + buffer.size for buffer in buffers] or [0], np.int64)
    short = sizes <= _INLINE
    if not short.any():
        which = fields[:, 2] if len(buffers) > 1 else 0
        starts = places + bases[which]
        return starts, starts + sizes, tops[which]
    which = np.where(short, 0, fields[:, 2])
    own = views.address + 16 * np.arange(array.offset, array.offset + len(array)) + 4
    starts = np.where(short, own, bases[which] + places)
    return starts, starts + sizes, np.where(short, views.address + views.size, tops[which])
