"""A collection as blocks: promises of a few thousand documents that any thread can keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
ROWS = 8192
"""Documents per block where the input is rows and not bytes."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a collection: ``read()`` parses it, in whatever thread calls; ``size`` is for progress.

    ``size`` is the number of bytes of the input, as stored, that were read to get it: the sizes of all
    blocks add up to the size of a file.
    """

    read: Callable[[], pa.RecordBatch]
    size: int

    def __call__(self) -> pa.RecordBatch:
        return self.read()


def batch_of(ids: pa.Array, texts: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([ids, texts], schema=SCHEMA)


def join_fields(fields: Sequence[pa.Array]) -> pa.Array:
    """The fields of each document joined with one space; a missing or empty one leaves no trace."""
    first, *others = (pc.fill_null(field, "") for field in fields)
    for other in others:
        # Not null_handling="skip": Arrow drops rows in which all fields are null.
        joined = pc.binary_join_element_wise(first, other, " ")
        joined = pc.if_else(pc.equal(pc.binary_length(other), 0), first, joined)
        first = pc.if_else(pc.equal(pc.binary_length(first), 0), other, joined)
    return first
