"""What the kernels do to bytes: loads and masks as LLVM IR, and the tokenizers one code point at a time.

The masks look at 64 bytes at once and answer with a 64-bit integer, bit *i* for byte *i*. The vectors are
LLVM's own, so the same lines become AVX on a server and NEON on a laptop. Addresses, not arrays, because
the texts of one column may lie in many buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from evenrank.process import refuse_without_jit
from evenrank.text.tokens import APOSTROPHE, LETTER, MARK

refuse_without_jit()

_I64 = ir.IntType(64)
_WIDTH = 64
_BYTES = ir.VectorType(ir.IntType(8), _WIDTH)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _every(value: int) -> Any:
    return ir.Constant(_BYTES, [value] * _WIDTH)


def _bits_of(builder: Any, flags: Any) -> Any:
    """64 flags as the bits of an integer.

    The empty instruction keeps LLVM from choosing between two vectors of flags where the code chooses between
    two integers: without AVX-512 it would take them apart bit by bit.
    """
    kind = ir.FunctionType(_I64, [_I64])
    return builder.asm(kind, "", "=r,0", [builder.bitcast(flags, _I64)], False)


@intrinsic
def byte_at(typing: Any, address: Any) -> Any:
    """One byte."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, args[0], ir.IntType(8))

    return types.uint8(types.int64), generate


@intrinsic
def load8(typing: Any, address: Any) -> Any:
    """Eight bytes, aligned or not, as a little-endian integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, args[0], _I64)

    return types.uint64(types.int64), generate


@intrinsic
def words_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes are ASCII letters, digits, or part of a character beyond ASCII."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        lower = builder.or_(chunk, _every(0x20))
        letter = builder.icmp_unsigned("<", builder.sub(lower, _every(ord("a"))), _every(26))
        digit = builder.icmp_unsigned("<", builder.sub(chunk, _every(ord("0"))), _every(10))
        high = builder.icmp_signed("<", chunk, _every(0))
        return _bits_of(builder, builder.or_(builder.or_(letter, digit), high))

    return types.uint64(types.int64), generate


@intrinsic
def pieces_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes are not a space."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        return _bits_of(builder, builder.icmp_unsigned("!=", chunk, _every(0x20)))

    return types.uint64(types.int64), generate


@intrinsic
def high_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes belong to characters beyond ASCII."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        return _bits_of(builder, builder.icmp_signed("<", chunk, _every(0)))

    return types.uint64(types.int64), generate


@intrinsic
def apostrophes_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes are an ASCII apostrophe."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        return _bits_of(builder, builder.icmp_unsigned("==", chunk, _every(0x27)))

    return types.uint64(types.int64), generate


@intrinsic
def _bits_set(typing: Any, bits: Any) -> Any:
    """How many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


_AT_ONCE = 24


@intrinsic
def _put(typing: Any, address: Any, base: Any, bits: Any) -> Any:
    """Store base + the positions of the lowest 24 set bits, 32 bits each; the other bits.

    Where there are fewer, what is stored behind them means nothing: to write it costs less than to ask.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, base, bits = args
        small = ir.IntType(32)
        place = builder.inttoptr(address, small.as_pointer())
        for i in range(_AT_ONCE):
            at = builder.add(base, builder.cttz(bits, ir.Constant(ir.IntType(1), 0)))
            builder.store(builder.trunc(at, small), builder.gep(place, [ir.Constant(_I64, i)]))
            bits = builder.and_(bits, builder.sub(bits, ir.Constant(_I64, 1)))
        return bits

    return types.uint64(types.int64, types.int64, types.uint64), generate


_NUMBERS = ir.VectorType(_I64, 8)


@intrinsic
def hand_over(typing: Any, to: Any, of: Any) -> Any:
    """Move eight numbers of 64 bits from one address to another; zeros stay behind.

    Past the caches: a line that is written whole need not be read first. `handed_over` ends it.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, of = (builder.inttoptr(address, _NUMBERS.as_pointer()) for address in args)
        past = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        builder.store(builder.load(of, align=64), to, align=64).set_metadata("nontemporal", past)
        builder.store(ir.Constant(_NUMBERS, [0] * 8), of, align=64)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def handed_over(typing: Any) -> Any:
    """From here on every thread sees what was handed over."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


# Without reference counts: nothing here allocates, and counting would cost more than the search.
compiled = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
# Where a call would cost more than the work: arrays are handed over by copying all that is known of them.
inlined = njit(nogil=True, cache=True, _nrt=False, forceinline=True)  # type: ignore[call-overload]


_ONE, _ZERO, _LAST = np.uint64(1), np.uint64(0), np.uint64(63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ROOM = 3 * _AT_ONCE  # places that the edges of 64 bytes may take


@compiled
def _is_token_byte(byte):
    return 0x30 <= byte <= 0x39 or 0x41 <= (byte & 0xDF) <= 0x5A or byte >= 0x80


@compiled
def _without_lone_letters(mask, inside, position, end, carried, quoted):
    """A mask of `words` without the single ASCII letters that stand beside an apostrophe inside the text."""
    quotes = apostrophes_mask(position) & inside
    follows = np.int64(byte_at(position + 64)) if position + 64 < end else np.int64(0)
    behind = (mask >> _ONE) | (np.uint64(_is_token_byte(follows)) << _LAST)
    lone = mask & ~((mask << _ONE) | carried) & ~behind
    beside = (quotes << _ONE) | quoted | (quotes >> _ONE) | (np.uint64(follows == 0x27) << _LAST)
    return mask & ~(lone & beside), quotes >> _LAST


@inlined
def find_edges(words, start, position, end, places, held, carried, quoted):
    """Where the tokens of a text begin and end, from a position on: a beginning, an end, a beginning, …

    They go into `places`, behind the first `held`, as bytes from the start. Characters beyond ASCII are all
    taken for letters. Returns how many there are then, the position reached, which is before the end only if
    there is no more room, whether the byte before it was of a token, or an apostrophe, and whether any was
    beyond ASCII.
    """
    beyond, address = _ZERO, places.ctypes.data
    while (position < end or carried != _ZERO) and held + _ROOM <= len(places):
        mask = words_mask(position) if words else pieces_mask(position)
        inside = _ALL
        if end - position < 64:
            inside = (_ONE << np.uint64(end - position)) - _ONE
        mask &= inside
        beyond |= high_mask(position) & inside
        if words:
            mask, quoted = _without_lone_letters(mask, inside, position, end, carried, quoted)
        turns = mask ^ ((mask << _ONE) | carried)
        carried = mask >> _LAST
        count = _bits_set(turns)
        base, place = position - start, address + 4 * held
        rest = _put(place, base, turns)
        if count > 24:
            rest = _put(place + 96, base, rest)
            if count > 48:
                _put(place + 192, base, rest)
        held += count
        position += 64
    return held, min(position, end), carried, quoted, beyond != _ZERO


_FIRST_IDEOGRAPH, _LAST_IDEOGRAPH = 0x20000, 0x323AF


@compiled
def _decode(position, end):
    """The code point at a position and the bytes it takes; a broken one counts as a separator."""
    first = np.int64(byte_at(position))
    if first < 0x80:
        return first, 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC0 or position + size > end:
        return np.int64(0), 1
    code = first & (0x7F >> size)
    for i in range(1, size):
        code = code << 6 | (np.int64(byte_at(position + i)) & 0x3F)
    return code, size


@compiled
def _encode(code, token, size):
    """Append a code point to a token; what does not fit in its buffer only adds to the size."""
    length = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if size + length <= len(token):
        for i in range(length - 1, 0, -1):
            token[size + i] = 0x80 | (code & 0x3F)
            code >>= 6
        token[size] = code if length == 1 else ((0xF00 >> length) & 0xFF) | code
    return size + length


@compiled
def _kind(kinds, code):
    if code < len(kinds):
        return np.int64(kinds[code])
    return np.int64(_FIRST_IDEOGRAPH <= code <= _LAST_IDEOGRAPH)  # a letter, else a separator


@compiled
def _folded(fold, code):
    return np.int64(fold[code]) if code < len(fold) else code


@compiled
def _composed(pairs, letter, mark):
    """The one letter that a letter and a combining mark make, or -1."""
    pair = letter << 21 | mark
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) // 2
        if pairs[middle, 0] < pair:
            low = middle + 1
        else:
            high = middle
    if low < len(pairs) and pairs[low, 0] == pair:
        return pairs[low, 1]
    return np.int64(-1)


@compiled
def _beside_apostrophe(kinds, start, first, last, end):
    """Does an apostrophe stand directly before or behind byte_at(first:last)?"""
    if last < end and _kind(kinds, _decode(last, end)[0]) == APOSTROPHE:
        return True
    back = first - 1
    while back > start and back > first - 4 and byte_at(back) & 0xC0 == 0x80:
        back -= 1
    return back >= start and _kind(kinds, _decode(back, first)[0]) == APOSTROPHE


@compiled
def next_word(kinds, fold, pairs, start, position, stop, end, token):
    """The next token of `words` in byte_at(position:stop): (start, end, folded size); start is -1 if none."""
    while position < stop:
        code, width = _decode(position, end)
        if _kind(kinds, code) != LETTER:
            position += width
            continue
        first, letters, size = position, 0, 0
        letter, before = np.int64(-1), 0  # the last character, and the token's size before it
        while position < stop:
            code, width = _decode(position, end)
            kind = _kind(kinds, code)
            if kind == LETTER:
                letters += 1
                letter, before = _folded(fold, code), size
            elif kind == MARK:
                joined = _composed(pairs, letter, code)
                if joined >= 0:
                    letter, size = joined, before
                else:
                    letter, before = code, size
            else:
                break
            size = _encode(letter, token, size)
            position += width
        if letters > 1 or not _beside_apostrophe(kinds, start, first, position, end):
            return first, position, size
    return -1, stop, 0


@compiled
def next_piece(fold, position, stop, token):
    """The next token of `whitespace`."""
    while position < stop and byte_at(position) == 0x20:
        position += 1
    if position >= stop:
        return -1, stop, 0
    first, size = position, 0
    while position < stop and byte_at(position) != 0x20:
        code, width = _decode(position, stop)
        size = _encode(_folded(fold, code), token, size)
        position += width
    return first, position, size
