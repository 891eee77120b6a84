"""Vectors of the documents, kept beside the index: made once, mapped into memory ever after.

They lie in ``INDEX/vectors/KEY``, the key being a hash of all that decides them: the collection, the model,
how it is used. Until they are complete the folder has another name, so a killed run leaves nothing that would
be taken for whole; it is gone on with from its last full chunk. Hashes are kept of all files, and what is
found damaged is made again: every byte is compared up to a gigabyte, beyond if the index was opened so.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from evenrank.data.files import reading, writing
from evenrank.errors import InputError
from evenrank.rankers.index import storage
from evenrank.text import cache

if TYPE_CHECKING:
    from evenrank.rankers.index import Index

_VERSION = 2
_VECTORS, _FACTS, _DONE = "vectors.npy", "facts.json", "done.json"


class Stored(NamedTuple):
    """Vectors of all documents of an index, in its order, and what was noted when they were made."""

    folder: Path
    vectors: npt.NDArray[Any]
    notes: dict[str, Any]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Another array that was kept with the vectors."""
        return _mapped(self.folder / f"{name}.npy")


class Making:
    """Vectors in the making: `rows` to be filled from row `start` on."""

    def __init__(self, folder: Path, rows: npt.NDArray[Any], start: int) -> None:
        self._folder = folder
        self.rows = rows
        self.start = start
        self.notes: dict[str, Any] = {}
        self.kept = [_VECTORS]

    def keep(self, name: str, array: npt.NDArray[Any]) -> None:
        """Keep another array with the vectors."""
        with writing(self._folder / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
        self.kept.append(f"{name}.npy")

    def reached(self, row: int) -> None:
        """All rows before this one are filled; whoever goes on later begins here."""
        self.rows.flush()  # type: ignore[attr-defined]
        _write(self._folder / _DONE, {"rows": row})


def stored(
    index: Index,
    facts: Mapping[str, Any],
    *,
    dimension: int,
    kind: type[np.floating[Any]],
    fill: Callable[[Making], None],
) -> Stored:
    """The vectors that the facts describe: those beside the index, or else made now.

    Parameters
    ----------
    index
        What the documents are in.
    facts
        All that decides the vectors, besides the documents: plain values.
    dimension, kind
        Their shape and type.
    fill
        Fills the rows, if they are not there yet.
    """
    known = {"version": _VERSION, "collection": index.docs.describe(), **facts}
    known |= {"documents": index.documents, "dimension": dimension, "type": np.dtype(kind).name}
    key = xxhash.xxh3_128_hexdigest(json.dumps(known, sort_keys=True).encode())
    home = _home(index)
    folder = home / key
    if (found := _opened(folder, known, index.verified)) is not None:
        return found
    with _alone(home / f".{key}.lock"):
        if (found := _opened(folder, known, index.verified)) is not None:  # another process was quicker
            return found
        part = home / f".{key}.part"
        making = _begun(part, (index.documents, dimension), kind)
        fill(making)
        making.rows.flush()  # type: ignore[attr-defined]
        hashes = {name: storage.hashed(storage.mapped(part / name, np.uint8)) for name in making.kept}
        content = {"facts": known, "notes": making.notes, "hashes": hashes}
        _write(part / _FACTS, {**content, "checksum": _checksum(content)})
        (part / _DONE).unlink(missing_ok=True)
        try:
            shutil.rmtree(folder, ignore_errors=True)  # damaged, if it is there
            part.rename(folder)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", path=folder) from error
    (home / f".{key}.lock").unlink(missing_ok=True)
    if (found := _opened(folder, known, index.verified)) is None:
        raise InputError("the vectors that were written cannot be read back", path=folder)
    return found


def _home(index: Index) -> Path:
    """The folder for vectors beside the index; in the cache, if the index may not be written to."""
    beside = Path(index.path) / "vectors"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
        if os.access(beside, os.W_OK):
            return beside
    elsewhere = cache.root() / "vectors" / str(index.fingerprint)
    try:
        elsewhere.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=beside) from error
    return elsewhere


def _opened(folder: Path, known: Mapping[str, Any], verify: bool | None) -> Stored | None:
    """The finished vectors in a folder; None if there are none, they are of something else or damaged."""
    try:
        content = json.loads((folder / _FACTS).read_bytes())
        checksum = content.pop("checksum")
        if content["facts"] != known or checksum != _checksum(content):
            return None
        for name, expected in content["hashes"].items():
            data = storage.mapped(folder / name, np.uint8)
            small = len(data) <= storage.WHOLE if verify is None else verify
            if small and storage.hashed(data) != expected:
                return None
        vectors = _mapped(folder / _VECTORS)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
        return None
    if vectors.shape != (known["documents"], known["dimension"]) or vectors.dtype.name != known["type"]:
        return None
    return Stored(folder, vectors, dict(content["notes"]))


def _begun(part: Path, shape: tuple[int, int], kind: type[np.floating[Any]]) -> Making:
    """A folder to work in: a new one, or one that a killed run has left."""
    try:
        part.mkdir(exist_ok=True)
        start = 0
        with suppress(OSError, ValueError, KeyError, TypeError):
            start = int(json.loads((part / _DONE).read_bytes())["rows"])
            rows = np.lib.format.open_memmap(part / _VECTORS, mode="r+")
            if rows.shape == shape and rows.dtype == kind and 0 <= start <= shape[0]:
                return Making(part, rows, start)
        return Making(part, np.lib.format.open_memmap(part / _VECTORS, mode="w+", dtype=kind, shape=shape), 0)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=part) from error


def _checksum(content: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())


def _mapped(path: Path) -> npt.NDArray[Any]:
    with reading(path):
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with writing(path) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; the system lets go of the lock when a process dies, however it dies."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
