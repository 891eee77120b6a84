"""Saved models: a folder of plain arrays and a JSON header with their checksums. Never a pickle."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from evenrank.data.files import check_names, checksum, reading, restored, sync_to_disk, writing_folder
from evenrank.errors import InputError

HEADER = "model.json"
VERSION = 2
"""Of the layout; a model of another version is refused."""
_KEYS = {"version", "kind", "facts", "files", "checksum"}


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds: its kind, plain facts, and the files that belong to it."""

    path: Path
    kind: str
    facts: Mapping[str, Any]
    files: Mapping[str, bytes]

    def arrays(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays of an ``.npz`` among the files."""
        try:
            with np.load(io.BytesIO(self.files[name]), allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
        except (KeyError, ValueError, OSError, EOFError, BadZipFile, MemoryError) as error:
            raise InputError(f"the arrays of {name} cannot be read: {error}", path=self.path) from error
        for key, array in arrays.items():
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                problem = f"{key} in {name} holds numbers that are not finite"
                raise InputError(f"{problem}, so every answer would be void; train again", path=self.path)
        return arrays


def write_model(
    path: str | os.PathLike[str], kind: str, facts: Mapping[str, Any], files: Mapping[str, bytes]
) -> None:
    """Write a model folder, whole or not at all; an older model there is replaced, anything else is not.

    Parameters
    ----------
    path
        The folder.
    kind
        What can load it: ``static``, ``lexicon``, ``transformer``, or a ranker.
    facts
        Settings and provenance, as plain JSON values.
    files
        Name to content; the header keeps a checksum of each. A name may lead into a folder: ``a/b.json``.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (target / HEADER).is_file():
        raise InputError("exists and is not a model; choose another name", path=path)
    header: dict[str, Any] = {
        "version": VERSION,
        "kind": kind,
        "facts": dict(facts),
        "files": {name: checksum(content) for name, content in sorted(files.items())},
    }
    header["checksum"] = checksum(header)
    text = json.dumps(header, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    with writing_folder(target) as folder:
        for name, content in {**files, HEADER: text.encode()}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("xb") as file:
                file.write(content)
                sync_to_disk(file)


def read_model(path: str | os.PathLike[str], kind: str | None = None) -> SavedModel:
    """Open a model folder after checking every byte against the header.

    Raises
    ------
    InputError
        No model, a later version, another ``kind`` than asked for, or a file that is missing or changed.
    """
    for _ in range(3):
        try:
            return _read(Path(path), kind)
        except InputError:  # it may have been replaced while it was read
            time.sleep(0.01)
    return _read(Path(path), kind)


def _read(folder: Path, kind: str | None) -> SavedModel:
    header = _header(folder)
    actual = str(header["kind"])
    if kind is not None and actual != kind:
        raise InputError(f"this is a {actual} model, not a {kind} one", path=folder)
    check_names(header["files"], folder, folder=folder)
    files: dict[str, bytes] = {}
    for name, expected in header["files"].items():
        with reading(folder / name):
            files[name] = (folder / name).read_bytes()
        if checksum(files[name]) != expected:
            problem = "the file was changed after the model was saved; train again"
            raise InputError(problem, path=folder / name)
    return SavedModel(folder, actual, header["facts"], files)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with the header of a model in it; what it holds is not looked at."""
    try:
        return (restored(path) / HEADER).is_file()
    except (OSError, ValueError):  # a text that cannot be a path
        return False


def model_kind(path: str | os.PathLike[str]) -> str:
    """Which kind of model a folder holds."""
    return str(_header(Path(path))["kind"])


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of a compressed ``.npz``; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: arrays[name] for name in sorted(arrays)})  # type: ignore[arg-type]
    return buffer.getvalue()


def _header(folder: Path) -> dict[str, Any]:
    if not (folder.is_dir() or restored(folder).is_dir()):
        raise InputError("no such model; name the folder of a saved model", path=folder)
    path = folder / HEADER
    with reading(path):
        text = path.read_bytes()
    try:
        header = json.loads(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", path=path) from None
    if not isinstance(header, dict) or set(header) != _KEYS or not isinstance(header["files"], dict):
        raise InputError("not the header of a model; train again", path=path)
    if header["version"] != VERSION:
        problem = f"version {header['version']} of the model format; this evenrank reads {VERSION}"
        raise InputError(f"{problem}, so install another or train again", path=path)
    expected = header.pop("checksum")
    if checksum(header) != expected:
        raise InputError("the header was changed after the model was saved; train again", path=path)
    return header
