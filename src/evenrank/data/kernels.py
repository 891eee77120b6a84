"""The kernels of reading: raw lines taken apart, and which of many ids may repeat.

One takes ``id<TAB>text`` apart, one columns in general. Ids go by their hashes, and are not all sorted.

Import this module inside functions only: it brings in numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from evenrank.data.files import PADDING, Bytes, allocate
from evenrank.data.lines import BLANK, COLUMNS, GOOD, MORE_TABS, NO_ID, NO_TAB

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_CHUNK = ir.VectorType(ir.IntType(8), 64)


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def _copy(typing: Any, target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    """memcpy: numba's own loops and slices copy texts of some hundred bytes at half the speed."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        of = cgutils.create_struct_proxy(signature.args[2])(context, builder, args[2]).data
        cgutils.raw_memcpy(builder, builder.gep(to, [args[1]]), builder.gep(of, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def _separators(typing: Any, address: Any) -> Any:
    """Which of 64 bytes are a tab or a newline, bit i for byte i; the vectors are LLVM's own."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = builder.load(builder.inttoptr(args[0], _CHUNK.as_pointer()), align=1)
        tab, newline = (
            builder.icmp_unsigned("==", chunk, ir.Constant(_CHUNK, [byte] * 64)) for byte in (_TAB, _NEWLINE)
        )
        return builder.bitcast(builder.or_(tab, newline), ir.IntType(64))

    return types.uint64(types.int64), generate


@njit(nogil=True, cache=True)
def _pairs(raw: Any, size: Any, ids: Any, id_ends: Any, texts: Any, text_ends: Any) -> Any:
    row, id_end, text_end, start, in_text = 0, 0, 0, 0, False
    id_ends[0] = text_ends[0] = 0
    address = np.int64(raw.ctypes.data)
    for group in range((size + 63) // 64):
        mask: Any = _separators(address + 64 * group)  # type: ignore[call-arg, unused-ignore]
        while mask != np.uint64(0):
            at = group * 64 + np.int64(_trailing_zeros(mask))  # type: ignore[call-arg, unused-ignore]
            mask &= mask - np.uint64(1)
            if at >= size:
                break
            count = at - start
            if raw[at] == _TAB:
                if in_text:
                    return MORE_TABS, row, id_end, text_end
                if count == 0:
                    return NO_ID, row, id_end, text_end
                _copy(ids, id_end, raw, start, count)
                id_end += count
            else:
                if count > 0 and raw[at - 1] == _RETURN:
                    count -= 1
                if not in_text:
                    return BLANK if count == 0 else NO_TAB, row, id_end, text_end
                _copy(texts, text_end, raw, start, count)
                text_end += count
                row += 1
                id_ends[row] = id_end
                text_ends[row] = text_end
            in_text = not in_text
            start = at + 1
    return GOOD, row, id_end, text_end


def strings(data: Bytes, offsets: np.ndarray[Any, np.dtype[np.int32]]) -> pa.StringArray:
    """An Arrow array over these bytes, without a copy."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def split_pairs(raw: Bytes, size: int) -> tuple[int, pa.StringArray, pa.StringArray]:
    """Lines of ``id<TAB>text``: what is wrong (GOOD if nothing), and the ids and texts up to there."""
    rows = size // 3 + 2  # the shortest line has an id of one byte and no text
    ids, texts = allocate(size), allocate(size + PADDING)
    id_ends, text_ends = allocate(4 * rows).view(np.int32), allocate(4 * rows).view(np.int32)
    code, row, id_end, text_end = _pairs(raw, size, ids, id_ends, texts, text_ends)
    # Only the texts fill their buffer: keep the other three no larger than they have to be.
    return (
        code,
        strings(ids[:id_end].copy(), id_ends[: row + 1].copy()),
        strings(texts[:text_end], text_ends[: row + 1].copy()),
    )


@njit(nogil=True, cache=True)
def _lines(raw: Any, size: Any) -> Any:
    count = 0
    for i in range(size):
        count += raw[i] == _NEWLINE
    return count


@njit(nogil=True, cache=True)
def _cells(raw: Any, size: Any, spaces: Any, columns: Any, starts: Any, ends: Any) -> Any:
    """Starts and ends of all cells. ``spaces``: runs of blanks and tabs separate, else each tab does."""
    row, column, line, inside = 0, 0, 0, False
    for at in range(size):
        byte = raw[at]
        if byte == _NEWLINE:
            end = at - 1 if at > line and raw[at - 1] == _RETURN else at
            if spaces:
                if inside and column <= columns:
                    ends[row, column - 1] = at
            elif end > line:
                if column < columns:
                    ends[row, column] = end
                column += 1
            if column != columns:
                return BLANK if column == 0 else COLUMNS, row, column
            row, column, line, inside = row + 1, 0, at + 1, False
            if not spaces:
                starts[row, 0] = line
        elif spaces:
            if byte in (_SPACE, _TAB) or (byte == _RETURN and raw[at + 1] == _NEWLINE):
                if inside and column <= columns:
                    ends[row, column - 1] = at
                inside = False
            elif not inside:
                inside = True
                if column < columns:
                    starts[row, column] = at
                column += 1
        elif byte == _TAB:
            if column < columns:
                ends[row, column] = at
            column += 1
            if column < columns:
                starts[row, column] = at + 1
    return GOOD, row, 0


@njit(nogil=True, cache=True)
def _gather(raw: Any, starts: Any, ends: Any, column: Any, rows: Any, offsets: Any, out: Any) -> Any:
    end = 0
    offsets[0] = 0
    for row in range(rows):
        count = ends[row, column] - starts[row, column]
        _copy(out, end, raw, starts[row, column], count)  # type: ignore[call-arg, unused-ignore]
        end += count
        offsets[row + 1] = end
    return end


def split_columns(
    raw: Bytes, size: int, columns: int, wanted: tuple[int, ...], *, spaces: bool
) -> tuple[int, int, int, list[pa.StringArray]]:
    """Lines of ``columns`` cells, separated by each tab, or by runs of spaces and tabs.

    Returns what is wrong (GOOD if nothing), the number of good rows before it, the number of columns
    found in the bad line, and the wanted columns of the good rows.
    """
    rows = _lines(raw, size)
    starts, ends = (np.empty((rows + 1, columns), np.int32) for _ in range(2))
    starts[0, 0] = 0
    code, good, found = _cells(raw, size, spaces, columns, starts, ends)
    arrays = []
    for column in wanted:
        offsets, out = np.empty(good + 1, np.int32), allocate(size)
        end = _gather(raw, starts, ends, column, good, offsets, out)
        arrays.append(strings(out[:end].copy(), offsets))
    return code, good, found, arrays


_ONE, _SIX = np.uint64(1), np.uint64(6)


@njit(nogil=True, cache=True)
def may_repeat(hashes: Any) -> Any:
    """Those that share a place with another, of sixteen or more places for each: few, unless they repeat."""
    words = 64
    while 4 * words < len(hashes):
        words *= 2
    once, twice = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for each in hashes:
        word, bit = (each >> _SIX) & np.uint64(words - 1), _ONE << (each & np.uint64(63))
        twice[word] |= once[word] & bit
        once[word] |= bit
    found: Any = np.empty_like(hashes)
    kept: Any = 0
    for each in hashes:
        word = (each >> _SIX) & np.uint64(words - 1)
        found[kept] = each
        kept += np.int64((twice[word] >> (each & np.uint64(63))) & _ONE)
    return found[:kept].copy()
