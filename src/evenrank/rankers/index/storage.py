"""The files of an index: arrays on disk that are mapped into memory, and the manifest that vouches for them.

An index is a folder with a manifest, ``index.json``, and a folder of arrays that it names. The manifest is
written last and replaced in one step, so that there is a whole index or none, whenever a build is killed.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Mapping
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
_SAMPLES = 8  # places in a file whose bytes are compared when it is opened
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
        "hash": _hashed(array.path),
    }


def _sampled(data: np.ndarray) -> str:
    """A hash of a few places in a file: enough to tell it from another, soon enough for any size."""
    digest = xxhash.xxh3_64()
    for first in np.linspace(0, max(len(data) - _SAMPLE, 0), _SAMPLES).astype(np.int64).tolist():
        digest.update(data[first : first + _SAMPLE].data)
    return digest.hexdigest()


def _hashed(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while part := file.read(1 << 22):
            digest.update(part)
    return digest.hexdigest()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Put the manifest in place: from now on this is the index."""
    with writing(folder / MANIFEST) as file:
        body = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
        file.write(json.dumps({"checksum": _checksum(body)})[:-1].encode() + b', "content":\n')
        file.write(body.encode() + b"}\n")
        file.flush()
        os.fsync(file.fileno())


def _checksum(body: str) -> str:
    return xxhash.xxh3_128(body.encode()).hexdigest()


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
            content = json.loads(file.read_bytes())
        found: dict[str, Any] = content["content"]
        body = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
        whole = content["checksum"] == _checksum(body)
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


def open_arrays(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """All arrays of an index, mapped; sizes and samples are compared with the manifest."""
    arrays: dict[str, np.ndarray] = {}
    for name, facts in entries.items():
        path = folder / name
        if facts["dtype"] not in _KINDS:
            raise damaged(path)
        dtype = np.dtype(facts["dtype"])
        try:
            data = mapped(path, np.uint8)
        except (OSError, ValueError):
            raise InputError("cannot be read, or is missing; build the index again", path=path) from None
        if len(data) != facts["length"] * dtype.itemsize or _sampled(data) != facts["sample"]:
            raise damaged(path)
        arrays[name] = data.view(dtype)
    return arrays


def verify(
    folder: Path, entries: Mapping[str, Mapping[str, Any]], names: Iterable[str] | None = None
) -> None:
    """Compare every byte with the manifest."""
    for name in names or entries:
        if _hashed(folder / name) != entries[name]["hash"]:
            raise damaged(folder / name)
