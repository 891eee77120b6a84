"""Machine operations that numba has no name for, as LLVM IR: loads from an address, and bit scans.

The masks look at 64 bytes at once and answer with a 64-bit integer, bit *i* for byte *i*. The vectors are
LLVM's own, so the same lines become AVX on a server and NEON on a laptop. Addresses, not arrays, because
the texts of one column may lie in many buffers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
_WIDTH = 64
_BYTES = ir.VectorType(ir.IntType(8), _WIDTH)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _every(value: int) -> Any:
    return ir.Constant(_BYTES, [value] * _WIDTH)


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
        return builder.bitcast(builder.or_(builder.or_(letter, digit), high), _I64)

    return types.uint64(types.int64), generate


@intrinsic
def pieces_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes are not a space."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        return builder.bitcast(builder.icmp_unsigned("!=", chunk, _every(0x20)), _I64)

    return types.uint64(types.int64), generate


@intrinsic
def high_mask(typing: Any, address: Any) -> Any:
    """Which of 64 bytes belong to characters beyond ASCII."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _load(builder, args[0], _BYTES)
        return builder.bitcast(builder.icmp_signed("<", chunk, _every(0)), _I64)

    return types.uint64(types.int64), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The position of the lowest set bit; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate
