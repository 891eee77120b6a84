"""Finding a document that a collection holds twice, in eight bytes a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from evenrank.data.columns import show

if TYPE_CHECKING:
    from evenrank.data.collection import Docs

Hashes = npt.NDArray[np.uint64]


@njit(nogil=True, cache=True)
def _hash(data: Any, offsets: Any, out: Any) -> None:
    """FNV-1a, 64 bits, with the finisher of MurmurHash3: a repeat is confirmed, so speed is enough."""
    for row in range(len(out)):
        state = np.uint64(0xCBF29CE484222325)
        for at in range(offsets[row], offsets[row + 1]):
            state = (state ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        state ^= state >> np.uint64(33)
        state *= np.uint64(0xFF51AFD7ED558CCD)
        out[row] = state ^ (state >> np.uint64(33))


def hashes(ids: pa.StringArray) -> Hashes:
    """A 64-bit hash of each id. Runs without the GIL."""
    out = np.empty(len(ids), np.uint64)
    if len(ids):
        _, offsets, data = ids.buffers()
        ends = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1]
        _hash(np.frombuffer(data, np.uint8), ends, out)
    return out


class DuplicateCheck:
    """Sees all ids of a collection once, and refuses it at the end if one came twice.

    Ids are kept as hashes. If a hash repeats the collection is read again to compare the ids
    themselves, so a collision of hashes is never mistaken for a duplicate.
    """

    def __init__(self) -> None:
        self._seen: list[Hashes] = []

    def add(self, ids: pa.StringArray) -> None:
        """The ids of the next block, in any order of blocks."""
        self._seen.append(hashes(ids))

    def finish(self, docs: Docs) -> None:
        """Raise InputError, naming both places, if two documents share an id."""
        every = np.concatenate(self._seen) if self._seen else np.empty(0, np.uint64)
        self._seen = []
        every.sort()
        repeated = np.unique(every[1:][every[1:] == every[:-1]])
        if not len(repeated):
            return
        first: dict[str, int] = {}
        row = 0
        for batch in docs.batches():
            ids = batch.column("doc_id")
            for at in np.flatnonzero(np.isin(hashes(ids), repeated)):
                doc_id, here = ids[int(at)].as_py(), row + int(at)
                if doc_id in first:
                    raise docs.error(
                        f"doc_id {show(doc_id)} was already used {docs.place(first[doc_id])}", row=here
                    )
                first[doc_id] = here
            row += len(batch)
