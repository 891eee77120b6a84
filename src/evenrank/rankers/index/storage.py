"""The files of an index: arrays on disk that are mapped into memory, and the manifest that vouches for them.

An index is a folder with a manifest, ``index.json``, and a folder of arrays that it names. The manifest is
written last and replaced in one step, so that there is a whole index or none, whenever a build is killed.
The text of the documents is compressed in frames of some 64 kB that are read one by one.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenrank.data.docs import Docs
from evenrank.data.files import checksum, reading, writing
from evenrank.data.schema import SCHEMA, Block
from evenrank.errors import InputError
from evenrank.text.matcher import strings

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

FORMAT = 2
"""Of the files; an index of another format is refused."""

MANIFEST = "index.json"
_KINDS = {"uint8", "uint16", "uint32", "int64"}


class ArrayFile:
    """An array written piece by piece."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.path = folder / name
        self._file = self.path.open("wb")
        self.length = 0

    def append(self, values: np.ndarray) -> None:
        """Write values behind the others."""
        values = np.ascontiguousarray(values, self.dtype)
        self._file.write(values.tobytes() if len(values) < 1 << 10 else values.data.cast("B"))
        self.length += len(values)

    def close(self) -> None:
        """Make sure that the disk has it: the manifest will say so."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def mapped(path: Path, dtype: Any) -> np.ndarray:
    """A file as a read-only array."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.frombuffer(b"", dtype)  # read-only as the others: kernels are compiled once
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)


def entry(array: ArrayFile) -> dict[str, Any]:
    """What the manifest says about a file."""
    return {
        "dtype": array.dtype.name,
        "length": array.length,
        "checksum": checksum(mapped(array.path, np.uint8)),
    }


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Put the manifest in place: from now on this is the index."""
    with writing(folder / MANIFEST) as file:
        file.write(_serialised(content))
        file.flush()
        os.fsync(file.fileno())


def _serialised(content: Mapping[str, Any]) -> bytes:
    """A manifest as it stands in its file, with the checksum of the content."""
    body = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True).encode()
    return json.dumps({"checksum": checksum(body)})[:-1].encode() + b', "content":\n' + body + b"}\n"


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of an index; an error if there is none, or not one that was written here."""
    folder = Path(path)
    if not folder.exists():
        raise InputError("there is no such index; make one with: evenrank index DOCS -o IDX", path=path)
    file = folder / MANIFEST
    if not folder.is_dir() or not file.exists():
        message = (
            "this is not an index, or its building was interrupted; make it with: evenrank index DOCS -o IDX"
        )
        raise InputError(message, path=path)
    try:
        with reading(file):
            written = file.read_bytes()
        result: dict[str, Any] = json.loads(written)["content"]
        whole = written == _serialised(result) or result["format"] == 1  # whose checksum was another
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise damaged(file)
    if result.get("format") != FORMAT:
        raise InputError(
            f"an index of format {result.get('format')}, and this evenrank reads {FORMAT}; build it again",
            path=path,
        )
    return result


def damaged(path: Path) -> InputError:
    """What to say of a file that is not what was written."""
    return InputError("damaged: not what was written; build the index again", path=path)


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of an index, mapped into memory; each is compared with its checksum at its first use."""

    def __init__(self, folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._folder, self._entries = folder, entries
        self._mapped: dict[str, np.ndarray] = {}
        self._checked: set[str] = set()
        for name, facts in entries.items():
            path = folder / name
            if facts["dtype"] not in _KINDS:
                raise damaged(path)
            try:
                data = mapped(path, np.uint8)
            except (OSError, ValueError):
                raise InputError("cannot be read, or is missing; build the index again", path=path) from None
            if len(data) != facts["length"] * np.dtype(facts["dtype"]).itemsize:
                raise damaged(path)
            self._mapped[name] = data.view(facts["dtype"])

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._mapped[name]
        if name not in self._checked:
            if checksum(array) != self._entries[name]["checksum"]:
                raise damaged(self._folder / name)
            self._checked.add(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapped)

    def __len__(self) -> int:
        return len(self._mapped)

    def __contains__(self, name: object) -> bool:
        return name in self._mapped

    def verify(self) -> None:
        """Compare all files with their checksums now."""
        self._checked.clear()
        for name in self:
            self[name]


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

    def __init__(self, index: Index, arrays: Arrays, described: dict[str, Any]) -> None:
        super().__init__(described["name"], self._all_blocks, path=None, frozen=True)
        self._index = index
        self._arrays = arrays
        self._described = described

    @property
    def _firsts(self) -> np.ndarray:
        """The first document of each frame, int64[frames + 1]."""
        return self._arrays["text-documents"]

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
        result: dict[int, str] = {}
        opened, content, bounds = -1, b"", np.zeros(1, np.int64)
        for place, frame in zip(order.tolist(), frames.tolist(), strict=True):
            if frame != opened:
                opened, (content, bounds) = frame, self._frame(frame)
            row = int(numbers[place] - self._firsts[frame])
            result[place] = content[bounds[row] : bounds[row + 1]].decode()
        return {ids[place]: result[place] for place in sorted(result)}

    def _frame(self, number: int) -> tuple[bytes, np.ndarray]:
        """One frame, and where its texts begin."""
        sizes = self._arrays["text-sizes"][self._firsts[number] : self._firsts[number + 1]]
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        ends = self._arrays["text-frames"]
        stored = self._arrays["text"][ends[number] : ends[number + 1]]
        try:
            size = int(bounds[-1])
            content = pa.Codec("zstd").decompress(stored.data, size, asbytes=True) if size else b""
        except OSError:
            content = b""
        if len(content) != bounds[-1]:
            raise damaged(Path(self._index.path) / "text")
        return content, bounds

    def _all_blocks(self) -> Iterator[Block]:
        for number, size in enumerate(np.diff(self._arrays["text-frames"]).tolist()):
            yield Block(partial(self._read, number), size)

    def _read(self, number: int) -> pa.RecordBatch:
        content, bounds = self._frame(number)
        texts = pa.StringArray.from_buffers(
            len(bounds) - 1, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(content)
        )
        span = np.arange(self._firsts[number], self._firsts[number + 1])
        ids = pa.array(self._index.doc_ids(span), pa.string())
        return pa.RecordBatch.from_arrays([ids, texts], schema=SCHEMA)
