"""The text of the documents in an index: compressed in frames of some 64 kB that are read one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenrank.data.columns import SCHEMA, Block
from evenrank.data.docs import Docs
from evenrank.text.layout import strings

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

_FRAME = 1 << 16
_LEVEL = -1  # zstd: as fast as the rest of the build, and still half the size


def packed(texts: pa.Array) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Texts as compressed frames, the documents in each, and the bytes of each text."""
    array = strings(texts)
    array = array if pa.types.is_large_string(array.type) else array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = memoryview(data) if data is not None else memoryview(b"")
    compressor = pa.Codec("zstd", _LEVEL)
    frames: list[bytes] = []
    counts: list[int] = []
    first = 0
    while first < len(array):
        last = int(np.searchsorted(bounds, bounds[first] + _FRAME, side="right")) - 1
        last = min(max(last, first + 1), len(array))
        frames.append(compressor.compress(content[int(bounds[first]) : int(bounds[last])], asbytes=True))
        counts.append(last - first)
        first = last
    return frames, np.array(counts, np.int64), np.diff(bounds)


class StoredDocs(Docs):
    """The documents of an index, from its stored text: any of them can be read without the others."""

    def __init__(self, index: Index, frames: dict[str, np.ndarray], described: dict[str, Any]) -> None:
        super().__init__(described["name"], self._all_blocks, path=None, frozen=True)
        self._index = index
        self._content = frames["text"]
        self._ends = frames["text-frames"]  # int64[frames + 1]
        self._firsts = frames["text-documents"]  # int64[frames + 1]
        self._sizes = frames["text-sizes"]  # uint32[documents]
        self._described = described

    def fingerprint(self) -> str:
        """That of the collection the index was built from."""
        return str(self._described["fingerprint"])

    def describe(self) -> dict[str, Any]:
        """What was indexed."""
        return dict(self._described)

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of these documents; ids that the collection does not have are left out."""
        ids = list(dict.fromkeys(ids))
        numbers = self._index.numbers(ids)
        known = np.flatnonzero(numbers >= 0)
        order = known[np.argsort(numbers[known], kind="stable")]
        frames = np.searchsorted(self._firsts, numbers[order], side="right") - 1
        found: dict[int, str] = {}
        opened, content, bounds = -1, b"", np.zeros(1, np.int64)
        for place, frame in zip(order.tolist(), frames.tolist(), strict=True):
            if frame != opened:
                opened, (content, bounds) = frame, self._frame(frame)
            row = int(numbers[place] - self._firsts[frame])
            found[place] = content[bounds[row] : bounds[row + 1]].decode()
        return {ids[place]: found[place] for place in sorted(found)}

    def _frame(self, number: int) -> tuple[bytes, np.ndarray]:
        """One frame, and where its texts begin."""
        sizes = self._sizes[self._firsts[number] : self._firsts[number + 1]]
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        stored = self._content[self._ends[number] : self._ends[number + 1]]
        try:
            size = int(bounds[-1])
            content = pa.Codec("zstd").decompress(stored.data, size, asbytes=True) if size else b""
        except OSError:
            content = b""
        if len(content) != bounds[-1]:
            from evenrank.rankers.index.storage import damaged

            raise damaged(Path(self._index.path) / "text")
        return content, bounds

    def _all_blocks(self) -> Iterator[Block]:
        for number in range(len(self._firsts) - 1):
            size = int(self._ends[number + 1] - self._ends[number])
            yield Block(partial(self._read, number), size)

    def _read(self, number: int) -> pa.RecordBatch:
        content, bounds = self._frame(number)
        texts = pa.StringArray.from_buffers(
            len(bounds) - 1, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(content)
        )
        span = np.arange(self._firsts[number], self._firsts[number + 1])
        ids = pa.array(self._index.doc_ids(span), pa.string())
        return pa.RecordBatch.from_arrays([ids, texts], schema=SCHEMA)
