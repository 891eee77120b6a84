"""Files, read as blocks of whole lines and written whole or not at all; and the folders of models."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import io
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from evenrank.errors import InputError

BLOCK = 1 << 21
LONGEST = (1 << 31) - (1 << 24)
"""Arrow strings have 32-bit offsets, so no line and no block may be longer."""
WHOLE = 1 << 30
"""The most that is read of a file which has to be in memory whole."""
BOMB, RATIO = 1 << 28, 200
"""A file that unpacks to more bytes than this, and to so many times its size, is no text that people pack."""
BOM = b"\xef\xbb\xbf"
LONGEST_NAME = 255
"""Bytes of the name of a file; common file systems allow no more."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after one byte, in the frames that parallel zstd writers put first
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}

Part = tuple[int, int]
"""A piece of a file that is read by itself: its first byte (in Parquet, its first group of rows), and the one
behind its last."""


@contextmanager
def reading(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Turn what the operating system, zlib, zstd or Arrow say about a file into one clear line."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError("no such file", path=path) from error
    except IsADirectoryError as error:
        raise InputError("this is a folder; name a file", path=path) from error
    except (OSError, EOFError, MemoryError, UnicodeError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise InputError(f"cannot be read: {reason}", path=path) from error


def one_line(error: BaseException, most: int = 300) -> str:
    """What another library says, fit for a one-line message; what is longer ends with three dots."""
    words = " ".join(str(error).split())
    said = "".join(c if c.isprintable() else "?" for c in words) or type(error).__name__
    return said if len(said) <= most else f"{said[: most - 2].rstrip()} …"


def format_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that tells the format: ``.tsv`` for ``docs.tsv.gz``."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path).suffix.lower()


def magic(path: str | os.PathLike[str], length: int = 4) -> bytes:
    """The first bytes of a file, as stored."""
    with reading(path), open(path, "rb") as file:  # noqa: PTH123 (Path.open is slower, and path may be a str)
        return file.read(length)


# --- Lines -----------------------------------------------------------------------------------------------


class RawBlock(NamedTuple):
    """Whole lines of a file, the last with its newline."""

    data: bytes
    line: int
    """The number of the first line."""
    stored: int
    """Bytes of the file as stored that were read for the block."""


def unpacking(file: BufferedReader, path: str | os.PathLike[str]) -> Any:
    """The text of an open file, whether it is packed or not."""
    head = file.peek(10)
    if head.startswith(_GZIP):
        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "gzip")
    if head.startswith(_ZSTD) or head[1:4] == _SKIPPABLE:
        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    return file


def line_parts(path: str | os.PathLike[str], size: int) -> list[Part]:
    """A plain file in parts of about `size` bytes, each of which begins with a line; a packed one in one."""
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        end = os.fstat(file.fileno()).st_size
        cuts = [0]
        while unpacking(file, path) is file and cuts[-1] + size < end:
            file.seek(cuts[-1] + size)
            file.readline()
            line = next((line for line in file if line.strip()), b"")  # no part has blank lines only
            if not line:
                break
            cuts.append(file.tell() - len(line))
        return list(zip(cuts, [*cuts[1:], end], strict=True))


def raw_blocks(
    path: str | os.PathLike[str], *, block: int = BLOCK, part: Part | None = None
) -> Iterator[RawBlock]:
    """The file in pieces of about `block` bytes, cut at line ends; a longer line makes a longer piece.

    The last line gets a newline if it has none. Blank lines at the end of the file are left out; blank lines
    elsewhere stay, so that whoever parses the block can name them. Of a plain file, one of its
    :func:`line_parts` can be read alone; unless it is the first, its lines are counted from 2.
    """
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        stream = unpacking(file, path)
        start, stop = part or (0, math.inf)
        if start:
            file.seek(start)
        left = stop - start if stream is file else math.inf
        line, size, consumed = (2 if start else 1), 0, start
        rest = b"" if start else stream.read(min(3, left))
        left -= len(rest)
        rest = rest.removeprefix(BOM)
        is_end = False
        while not is_end:
            if len(rest) > LONGEST // 2:
                raise InputError("a line is longer than 1 GB", path=path, line=line)
            wanted = min(max(block, len(rest)), left)
            piece = stream.read(wanted)
            left -= len(piece)
            is_end = len(piece) < wanted or not left
            if is_end and (rest or piece) and not piece.endswith(b"\n"):
                piece += b"\n"
            if not (end := _last_line_end(piece)):  # a long line, or blank lines
                rest, piece = b"", rest + piece
                end = _last_line_end(piece)
            data, rest = b"".join((rest, memoryview(piece)[:end])), piece[end:]
            if not data:
                continue
            size += len(data)
            position = file.tell() if file.seekable() else start + size
            if size > max(BOMB, RATIO * position):
                problem = f"unpacks to more than {RATIO} times its size"
                raise InputError(f"{problem}; if that is meant, unpack it first", path=path)
            yield RawBlock(data, line, position - consumed)
            consumed = position
            line += int(np.count_nonzero(np.frombuffer(data, np.uint8) == 10))


def _last_line_end(text: bytes) -> int:
    """One past the newline of the last line that is not blank; 0 if there is none."""
    cut = text.rfind(b"\n") + 1
    for window in (1 << 10, cut):
        start = max(0, cut - window)
        if content := len(text[start:cut].rstrip(b" \t\r\n")):
            return text.index(b"\n", start + content) + 1
    return 0


def whole(path: str | os.PathLike[str], *, limit: int = WHOLE) -> bytes:
    """A text in UTF-8 that fits in memory; one that unpacks to more than `limit` bytes is refused."""
    parts: list[bytes] = []
    size = 0
    for raw in raw_blocks(path):
        check_utf8(raw, path)
        parts.append(raw.data)
        size += len(raw.data)
        if size > limit:
            problem = f"more than {limit >> 20:,} MB of text, too much for a table; split the file"
            raise InputError(problem, path=path)
    if not parts:
        raise InputError("the file is empty", path=path)
    return b"".join(parts)


def check_utf8(raw: RawBlock, path: str | os.PathLike[str]) -> None:
    """Refuse a block with bytes that are not UTF-8."""
    try:
        raw.data.decode()
    except UnicodeDecodeError as error:
        line = raw.line + raw.data.count(b"\n", 0, error.start)
        problem = "bytes that are not UTF-8; give UTF-8 text, plain or as gzip or zstd"
        raise InputError(problem, path=path, line=line) from None


# --- Checks and checksums ----------------------------------------------------------------------------------


def require_regular(path: str | os.PathLike[str]) -> int:
    """The size of a file that has to be read more than once, so cannot be a pipe."""
    with reading(path):
        if Path(path).is_dir():
            raise IsADirectoryError
        size = os.stat(path).st_size  # noqa: PTH116
    if not Path(path).is_file():
        raise InputError("this is not a regular file; write it to one first", path=path)
    return size


def refuse_input(
    path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None, what: str = "the output"
) -> None:
    """Refuse to write where an input is; inputs that are no files, such as ``irds:ID``, are passed over."""
    for each in inputs:
        is_same = False
        with suppress(OSError):
            is_same = each is not None and os.path.samefile(path, each)  # noqa: PTH121
        if is_same:
            raise InputError(f"this is the input itself; give {what} another name", path=path)


def fingerprint(path: str | os.PathLike[str]) -> str:
    """XXH3-128 of the file as stored: equal for equal files, wherever they lie."""
    with reading(path), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()


def checksum(*contents: Any) -> str:
    """A checksum (XXH3-64) over buffers and JSON-ready values: it detects damage, not attacks."""
    digest = xxhash.xxh3_64()
    for content in contents:
        if isinstance(content, (dict, list, str, int)):
            content = json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        digest.update(content)
    return digest.hexdigest()


def check_names(
    names: Iterable[str], path: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None
) -> None:
    """Refuse names of an archive, a manifest or a model that could lead out of the folder they belong in.

    Such are absolute names, ``..`` and the like, names that are there twice, or as a file and as a folder;
    and, with a `folder`, names that are links to something outside it. To be called before a name touches
    the disk; `path` is what the error speaks of.
    """
    seen: set[str] = set()
    for name in names:
        if "\\" in name or not name.isprintable() or {"", ".", ".."} & {*name.split("/")}:
            raise InputError(f"it names a file that may lie outside its folder: {name!r}", path=path)
        if any(len(os.fsencode(part)) > LONGEST_NAME for part in name.split("/")):
            raise InputError(f"it names a file with a name that is too long: {name[:40]!r}…", path=path)
        if name in seen:
            raise InputError(f"it names {name!r} twice", path=path)
        seen.add(name)
    for name in seen:
        if seen & {*map(str, Path(name).parents)}:
            raise InputError(f"it names a folder of {name!r} as a file too", path=path)
        if folder is not None and not Path(folder, name).resolve().is_relative_to(Path(folder).resolve()):
            raise InputError(f"{name!r} is a link that leads outside its folder", path=path)


# --- Writing ---------------------------------------------------------------------------------------------


@contextmanager
def _writes(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when it is complete.

    ``.gz`` and ``.zst`` are compressed, without a time stamp: the same content gives the same bytes.
    """
    target = Path(os.path.realpath(path))
    with _writes(path):
        if target.exists() and not target.is_file():  # /dev/stdout must not be replaced, and may be a pipe
            with Path(path).open("wb") as file, _compressing(file, path) as out:
                yield out
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                with _compressing(file, path) as out:
                    yield out
                sync_to_disk(file)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _compressing(file: IO[bytes], path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    kind = _COMPRESSED.get(Path(path).suffix.lower())
    if kind is None:
        yield file
        return
    # The stream closes what it writes to, which is still needed: give it another handle.
    target = pa.PythonFile(os.fdopen(os.dup(file.fileno()), "wb"), mode="w")
    with pa.CompressedOutputStream(target, kind) as out:
        yield out


def sync_to_disk(file: IO[bytes]) -> None:
    """On the disk, not on its way there: a name must never come to stand for a file that is half written."""
    file.flush()
    os.fsync(file.fileno())


def make_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that is there, or is made with those around it."""
    folder = Path(path)
    with _writes(path):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError("this is not a folder; choose another place", path=path) from error
    return folder


def _set_aside(target: Path) -> list[Path]:
    """What replacements of a folder, killed half way, have left aside; the newest last."""
    left = target.parent.glob(f".{glob.escape(target.name)}.*.old")
    return sorted(left, key=lambda folder: folder.stat().st_mtime)


def restored(path: str | os.PathLike[str]) -> Path:
    """The folder; if its replacement was interrupted and it is missing, the old one is put back first."""
    target = Path(os.path.realpath(path))
    with suppress(OSError, ValueError):
        if not target.exists() and (left := _set_aside(target)):
            left[-1].replace(target)
    return Path(path)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes have left of a folder: whoever writes one has it locked."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        with suppress(OSError), _folder_lock(part, is_required=True):
            shutil.rmtree(part)


@contextmanager
def _folder_lock(folder: Path, *, is_required: bool) -> Iterator[None]:
    """Lock a folder, or raise OSError if another process has; the lock ends with the process."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if is_required or isinstance(error, BlockingIOError):
                raise  # else a file system without locks
        yield
    finally:
        os.close(lock)


@contextmanager
def writing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder that appears under its name only when it is complete; one that exists is replaced.

    The old folder is renamed first and removed last. If anything fails it is put back: now, or, if the
    process is killed, when the folder is opened next (:func:`restored`). What a killed process has left of
    the new one is removed when the folder is written next.
    """
    target = Path(os.path.realpath(path))
    part, aside = (target.with_name(f".{target.name}.{secrets.token_hex(4)}.{end}") for end in ("tmp", "old"))
    with _writes(path):
        _remove_abandoned(target)
        part.mkdir(parents=True)
        try:
            with _folder_lock(part, is_required=False):
                yield part
            while part.exists():
                shutil.rmtree(aside, ignore_errors=True)
                with suppress(FileNotFoundError):
                    if target.is_dir():
                        target.replace(aside)
                try:
                    part.replace(target)
                except OSError as error:  # another process may have taken the name in between
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
        finally:
            restored(target)
            for folder in (part, *(_set_aside(target) if target.exists() else ())):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """One process at a time, others wait; the system lets go of the lock when a process dies, however."""
    with _writes(path):
        file = path.open("ab")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache_dir() -> Path:
    """The folder of evenrank's caches: `EVENRANK_CACHE`, else `evenrank` in the user's cache folder."""
    if chosen := os.environ.get("EVENRANK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenrank"


# --- Models: a folder of plain arrays and a JSON header with their checksums, never a pickle ----------------

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
                arrays = dict(stored)
        except (KeyError, ValueError, OSError, EOFError, BadZipFile, MemoryError) as error:
            raise InputError(f"the arrays of {name} cannot be read: {error}", path=self.path) from error
        for key, array in arrays.items():
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                problem = f"{key} in {name} holds numbers that are not finite"
                raise InputError(f"{problem}, so every answer would be void; train again", path=self.path)
        return arrays


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of a compressed ``.npz``; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: arrays[name] for name in sorted(arrays)})  # type: ignore[arg-type]
    return buffer.getvalue()


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

    No model, another version, another `kind` than named, a file that is missing or changed: InputError.
    """
    for _ in range(3):
        try:
            return _read_model(Path(path), kind)
        except InputError:  # it may have been replaced while it was read
            time.sleep(0.01)
    return _read_model(Path(path), kind)


def _read_model(folder: Path, kind: str | None) -> SavedModel:
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


def _header(folder: Path) -> dict[str, Any]:
    if not restored(folder).is_dir():
        raise InputError("no such model; name the folder of a saved model", path=folder)
    path = folder / HEADER
    with reading(path):
        text = path.read_bytes()
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict) or not header.keys() >= _KEYS or not isinstance(header["files"], dict):
        raise InputError("not the header of a model; train again", path=path)
    if header["version"] != VERSION:
        problem = f"version {header['version']} of the model format; this evenrank reads {VERSION}"
        raise InputError(f"{problem}, so install another or train again", path=path)
    if header.pop("checksum") != checksum(header):
        raise InputError("the header was changed after the model was saved; train again", path=path)
    return header


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with the header of a model in it; what it holds is not looked at."""
    try:
        return (restored(path) / HEADER).is_file()
    except (OSError, ValueError):  # a text that cannot be a path
        return False


def model_kind(path: str | os.PathLike[str]) -> str:
    """Which kind of model a folder holds."""
    return str(_header(Path(path))["kind"])
