"""Where things lie in memory: the texts of a column, a compiled lexicon, the working memory of a thread."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenrank.data.columns import strings as as_strings

PADDING = 64  # bytes that may be read beyond the end of a text
TOKEN_END = 0xFF  # never a byte of UTF-8
LONG = 31  # prefixes of this length and more share a bit
TOKENS = 1024  # of a document, looked at together
LANES = 64  # documents that are read, and whose sums are handed over, together
CHOSEN = 8 * TOKENS  # tokens of these documents that may be entries
MEMO = 8192  # tokens that are remembered, each in one of two places

# Columns of `slots` and `prefixes`, open-addressing hash tables of folded tokens; size 0 is a free slot.
KEY, SIZE, OFFSET, ENTRY, FIRST_PHRASE, LAST_PHRASE = range(6)
# Columns of `phrases`: the further tokens of a phrase in `pool`, their number, a prefix at the end?
P_OFFSET, P_SIZE, P_TOKENS, P_OPEN, P_ENTRY = range(5)
# Columns of `memo`: the first and the second eight bytes of a token, its size, and its entry (or how many
# there are, if it has none), or GOES_ON if the token may begin a phrase.
M_KEY, M_REST, M_SIZE, M_ENTRY = range(4)
NONE, GOES_ON = -1, -2
# What `state` holds between calls.
TOUCHED, HITS, PHRASE_END = range(3)
# … and of a text that was not yet read to its end: is there one, how far, its tokens so far, and more.
OPEN, POSITION, TOKENS_OF, HELD, HIGH, CARRIED, QUOTED, BASE = range(3, 11)


class Table(NamedTuple):
    """A compiled lexicon."""

    words: bool  # tokenizer `words`, else `whitespace`
    bits: np.ndarray  # uint64, at most 2**12: one bit for the hash of a slot's first eight bytes
    salt: np.uint64  # odd; what keys are multiplied by to hash them
    stems: np.ndarray  # uint64, the same: for the first five bytes of a prefix
    corners: np.ndarray  # uint64[2**14]: one bit for the first four letters of shorter prefixes; or one row
    slots: np.ndarray  # int64[·, 6]: words, and first tokens of phrases
    phrases: np.ndarray  # int64[·, 5]: those of one first token together, the longest first
    lengths: np.ndarray  # uint32[2**15]: by the first three letters, the lengths of prefixes to try
    prefixes: np.ndarray  # int64[·, 4]: one row if there is no prefix
    pool: np.ndarray  # uint8: all folded tokens
    kind: np.ndarray  # uint8, by code point: see tokenizer.Unicode
    fold: np.ndarray  # uint32, by code point
    pairs: np.ndarray  # int64[·, 2]: letter << 21 | mark, and what they make


class Scratch(NamedTuple):
    """Working memory of one thread."""

    edges: np.ndarray  # int32: where tokens of a document begin and end, in turns
    pairs: np.ndarray  # int64: the same memory, beginning and end together
    chosen: np.ndarray  # int64: those that may be entries; end before beginning if beyond ASCII
    entries: np.ndarray  # int32: their entries
    bounds: np.ndarray  # int64[LANES + 1]: chosen[bounds[n]:bounds[n + 1]] are of the n-th document
    tokens: np.ndarray  # int64[LANES]: how many each has
    token: np.ndarray  # uint8: one folded token, as much of it as any entry has
    ahead: np.ndarray  # uint8: the folded tokens behind one that may begin a phrase
    marks: np.ndarray  # int64[·, 2]: where each of those ends in `ahead`, and in the document
    memo: np.ndarray  # int64[MEMO, 4]: the entries of tokens met before
    seen: np.ndarray  # int32[entries + 1]: hits in this document; the last place is for no entry
    touched: np.ndarray  # int32[entries + 2]: the entries that have any, in the order of their first
    counts: np.ndarray  # int64[groups + 1, LANES]: hits of each group in a few documents …
    logwords: np.ndarray  # float64[groups + 1, LANES]: … and logarithms; the last place is for no group
    state: np.ndarray  # int64[11]
    spans: np.ndarray  # int64[·, 4]: row, entry, start, end of each hit; no rows when not wanted


def scratch(
    *, entries: int, longest: int, groups: int = 0, ahead: int = 0, spans: np.ndarray | None = None
) -> Scratch:
    """Working memory for a table of so many entries, whose longest token and longest phrase are known."""
    room = longest + 4  # a token cut to this is longer than any entry's
    pairs = np.zeros(TOKENS, np.int64)
    return Scratch(
        edges=pairs.view(np.int32),
        pairs=pairs,
        chosen=np.zeros(CHOSEN, np.int64),
        entries=np.zeros(CHOSEN, np.int32),
        bounds=np.zeros(LANES + 1, np.int64),
        tokens=np.zeros(LANES, np.int64),
        token=np.zeros(room, np.uint8),
        ahead=np.zeros(ahead * (room + 1) + 1, np.uint8),
        marks=np.zeros((ahead + 1, 2), np.int64),
        memo=_in_lines((MEMO, 4)),
        seen=np.zeros(entries + 1, np.int32),
        touched=np.zeros(entries + 2, np.int32),
        counts=_in_lines((groups + 1, LANES)),
        logwords=_in_lines((groups + 1, LANES)).view(np.float64),
        state=np.zeros(11, np.int64),
        spans=np.zeros((0, 4), np.int64) if spans is None else spans,
    )


def _in_lines(shape: tuple[int, int]) -> np.ndarray:
    """Zeros that begin where a cache line of 64 bytes does."""
    size = shape[0] * shape[1]
    room = np.zeros(size + 8, np.int64)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + size].reshape(shape)


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
    array = texts if isinstance(texts, pa.Array) else as_strings(texts)
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


def arrow_numbers(values: np.ndarray) -> pa.Array:
    """Numbers as an Arrow array, without a copy; `pa.array` would load pandas to ask whether they are its."""
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
