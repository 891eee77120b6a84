"""The files of an index: arrays on disk that are mapped into memory, and the manifest that vouches for them.

An index is a folder with a manifest, ``index.json``, and a folder of arrays that it names. The manifest is
written last and replaced in one step, so that there is a whole index or none, whenever a build is killed.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from evenrank.data.files import reading, writing
from evenrank.errors import InputError

FORMAT = 1
"""Of the files; an index of another format is refused."""

MANIFEST = "index.json"
_SAMPLE = 1 << 16
_SAMPLES = 8  # places in a large file whose bytes are compared when it is opened
_STRETCH = 1 << 22
WHOLE = 1 << 30
"""Bytes of an index up to which every one is compared when it is opened."""

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
        "sample": _sampled(mapped(array.path, np.uint8)),
        "hash": hashed(mapped(array.path, np.uint8)),
    }


def _sampled(data: np.ndarray) -> str:
    """A hash of a few places in a file: enough to tell it from another, soon enough for any size."""
    digest = xxhash.xxh3_64()
    for first in np.linspace(0, max(len(data) - _SAMPLE, 0), _SAMPLES).astype(np.int64).tolist():
        digest.update(data[first : first + _SAMPLE].data)
    return digest.hexdigest()


def hashed(data: np.ndarray) -> str:
    """A hash of every byte, by stretches: of a mapped file no more than one need be in memory."""
    digest = xxhash.xxh3_128()
    for first in range(0, len(data), _STRETCH):
        digest.update(data[first : first + _STRETCH].data)
    return digest.hexdigest()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Put the manifest in place: from now on this is the index."""
    with writing(folder / MANIFEST) as file:
        file.write(_serialised(content))
        file.flush()
        os.fsync(file.fileno())


def _serialised(content: Mapping[str, Any]) -> bytes:
    """A manifest as it stands in its file, with the checksum of the content."""
    body = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True).encode()
    checksum = xxhash.xxh3_128(body).hexdigest()
    return json.dumps({"checksum": checksum})[:-1].encode() + b', "content":\n' + body + b"}\n"


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of an index; an error if there is none, or not one that was written here."""
    folder = Path(path)
    if not folder.exists():
        raise InputError("there is no such index; make one with: evenrank index DOCS -o IDX", path=path)
    file = folder / MANIFEST
    if not folder.is_dir() or not file.exists():
        message = "this is no index, or its building was cut short; make it with: evenrank index DOCS -o IDX"
        raise InputError(message, path=path)
    try:
        with reading(file):
            written = file.read_bytes()
        found: dict[str, Any] = json.loads(written)["content"]
        whole = written == _serialised(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise damaged(file)
    if found.get("format") != FORMAT:
        raise InputError(
            f"an index of format {found.get('format')}, and this evenrank reads {FORMAT}; build it again",
            path=path,
        )
    return found


def damaged(path: Path) -> InputError:
    """What to say of a file that is not what was written."""
    return InputError("damaged: not what was written; build the index again", path=path)


def open_arrays(
    folder: Path, entries: Mapping[str, Mapping[str, Any]], *, verify: bool | None = None
) -> dict[str, np.ndarray]:
    """All arrays of an index, mapped and compared with the manifest.

    Every byte is compared if `verify` is true, or not given and there are no more than :data:`WHOLE`;
    otherwise the sizes and samples of the content.
    """
    for name, facts in entries.items():
        if facts["dtype"] not in _KINDS:
            raise damaged(folder / name)
    if verify is None:
        sizes = (facts["length"] * np.dtype(facts["dtype"]).itemsize for facts in entries.values())
        verify = sum(sizes) <= WHOLE
    arrays: dict[str, np.ndarray] = {}
    for name, facts in entries.items():
        path = folder / name
        dtype = np.dtype(facts["dtype"])
        try:
            data = mapped(path, np.uint8)
        except (OSError, ValueError):
            raise InputError("cannot be read, or is missing; build the index again", path=path) from None
        same = len(data) == facts["length"] * dtype.itemsize
        if not same or (hashed(data) != facts["hash"] if verify else _sampled(data) != facts["sample"]):
            raise damaged(path)
        arrays[name] = data.view(dtype)
    return arrays
