"""Files as streams of whole lines: plain, gzip or zstd; and files that are written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import glob
import gzip
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from evenrank.errors import InputError

Bytes = npt.NDArray[np.uint8]

BLOCK = 1 << 21
LONGEST = (1 << 31) - (1 << 24)
"""Arrow strings have 32-bit offsets, so no line and no block may be longer."""
WHOLE = 1 << 30
"""The most that is read of a file which has to be in memory whole."""
LONGEST_NAME = 255
"""Bytes of the name of a file; common file systems allow no more."""
BOMB, RATIO = 1 << 28, 200
"""A file that unpacks to more bytes than this, and to so many times its size, is no text that people pack."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after one byte, in the frames that parallel zstd writers put first
_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zX": "xz",
    b"PK\x03\x04": "a zip archive",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}

Part = tuple[int, int]
"""A piece of a file that is read by itself: its first byte (in Parquet, its first group of rows), and the one
behind its last."""


class RawBlock(NamedTuple):
    """Whole lines of a file: ``size`` bytes, the last of them a newline."""

    data: Bytes
    size: int
    start: int  # where the block begins in the uncompressed file (after the byte order mark)
    stored: int  # how many bytes of the file as stored were read for it

    def tobytes(self) -> bytes:
        return self.data.tobytes()


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
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def allocate(size: int) -> Bytes:
    """Uninitialised bytes from Arrow's pool, which hands out warm pages where numpy's would fault."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def magic(path: str | os.PathLike[str], length: int = 4) -> bytes:
    """The first bytes of a file, as stored."""
    with reading(path), open(path, "rb") as file:  # noqa: PTH123 (Path.open is slower, and path may be a str)
        return file.read(length)


def unpacking(file: BufferedReader, path: str | os.PathLike[str]) -> Any:
    """The text of an open file, whether it is packed or not."""
    head = file.peek(10)
    if head.startswith(_GZIP):
        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "gzip")
    if head.startswith(_ZSTD) or head[1:4] == _SKIPPABLE:
        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    for start, what in _FOREIGN.items():
        if head.startswith(start):
            raise InputError(f"this is {what}; give UTF-8 text, plain or as gzip or zstd", path=path)
    return file


def line_parts(path: str | os.PathLike[str], size: int) -> list[Part]:
    """A plain file in parts of about ``size`` bytes, cut at line ends; a packed one in a single part.

    Blank lines at the end of the file are in the last part, whatever its size.
    """
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        end = os.fstat(file.fileno()).st_size
        if unpacking(file, path) is not file:
            return [(0, end)]
        cuts = [0]
        while cuts[-1] + size < end:
            file.seek(cuts[-1] + size)
            file.readline()
            cuts.append(file.tell())
        while len(cuts) > 1 and not _has_content(file, cuts[-1]):
            cuts.pop()
        return list(zip(cuts, [*cuts[1:], end], strict=True))


def _has_content(file: IO[bytes], start: int) -> bool:
    file.seek(start)
    return any(line.strip(b"\r\n") for line in file)


def raw_blocks(
    path: str | os.PathLike[str], *, block: int = BLOCK, part: Part | None = None
) -> Iterator[RawBlock]:
    """The file in pieces of about ``block`` bytes, cut at line ends; a longer line makes a longer piece.

    The last line gets a newline if it has none. Blank lines at the end of the file are left out;
    blank lines elsewhere stay, so that whoever parses the block can name them. Of a plain file, one of
    its :func:`line_parts` can be read alone.
    """
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        stream = unpacking(file, path)
        start, consumed, left, is_last = 0, 0, None, True
        if part is not None and stream is file:
            marked = file.peek(3).startswith(_BOM)
            start, consumed, left = part[0] - 3 * marked if part[0] else 0, part[0], part[1] - part[0]
            is_last = part[1] >= os.fstat(file.fileno()).st_size
            file.seek(part[0])
        rest = np.empty(0, np.uint8)  # read but not yet given out
        if start == 0:
            mark = stream.read(3 if left is None else min(3, left))
            left = None if left is None else left - len(mark)
            rest = np.frombuffer(mark.removeprefix(_BOM), np.uint8)
        is_end = False
        while not is_end:
            if len(rest) > LONGEST // 2:
                raise InputError("a line is longer than 1 GB", path=path, line=line_at(path, start))
            wanted = max(block, len(rest)) if left is None else min(max(block, len(rest)), left)
            data = allocate(len(rest) + wanted + 1)
            data[: len(rest)] = rest
            end = len(rest) + _fill(stream, memoryview(data.data)[len(rest) : -1])
            left = None if left is None else left - (end - len(rest))
            is_end = end < len(data) - 1 or left == 0
            if is_end and end and data[end - 1] != 10:
                data[end] = 10
                end += 1
            size = _last_line_end(data, end, keep_blank=is_end and not is_last)
            rest = data[size:end]
            if size:
                position = file.tell() if file.seekable() else start + size
                if start + size > max(BOMB, RATIO * position):
                    problem = f"unpacks to more than {RATIO} times its size"
                    raise InputError(f"{problem}; if that is meant, unpack it first", path=path)
                yield RawBlock(data[:size], size, start, position - consumed)
                start, consumed = start + size, position


def _fill(stream: Any, buffer: memoryview) -> int:
    """Read until the buffer is full or the stream ends; returns how many bytes there are."""
    filled = 0
    while filled < len(buffer) and (count := stream.readinto(buffer[filled:])):
        filled += count
    return filled


def _last_line_end(data: Bytes, end: int, *, keep_blank: bool) -> int:
    """One past the last newline, or (without ``keep_blank``) past that of the last line that is not blank."""
    window = 1 << 10
    while True:
        begin = max(0, end - window)
        tail = data[begin:end].tobytes()
        tail = tail[: tail.rfind(b"\n") + 1]
        content = len(tail) if keep_blank else len(tail.rstrip(b"\r\n"))
        if content:
            return begin + (content if keep_blank else tail.index(b"\n", content) + 1)
        if not begin:
            return 0
        window *= 8


def line_at(path: str | os.PathLike[str], offset: int) -> int:
    """The number of the line that holds the byte at ``offset`` of the uncompressed file, from 1.

    Reads the file up to there: only for error messages.
    """
    lines = 1
    for raw in raw_blocks(path) if offset else ():
        lines += int(np.count_nonzero(raw.data[: offset - raw.start] == 10))
        if raw.start + raw.size >= offset:
            break
    return lines


def whole(path: str | os.PathLike[str], *, limit: int = WHOLE) -> RawBlock:
    """A text that fits in memory, as one block; one that unpacks to more than ``limit`` is refused."""
    parts: list[RawBlock] = []
    size = 0
    for part in raw_blocks(path):
        parts.append(part)
        size += part.size
        if size > limit:
            raise InputError(
                f"more than {limit >> 20:,} MB of text, too much for a table; split the file", path=path
            )
    if not parts:
        raise InputError("the file is empty", path=path)
    data = np.concatenate([part.data for part in parts])
    block = RawBlock(data, size, 0, sum(part.stored for part in parts))
    check_utf8(block, path)
    return block


def check_utf8(raw: RawBlock, path: str | os.PathLike[str], *, line: int | None = None) -> None:
    """Refuse a block with bytes that are not UTF-8; ``line`` is the block's first line, if known."""
    offsets = np.array([0, raw.size], np.int32)
    text = pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(raw.data))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        try:
            raw.tobytes().decode()
        except UnicodeDecodeError as error:
            line = line_at(path, raw.start) if line is None else line
            line += int(np.count_nonzero(raw.data[: error.start] == 10))
            raise InputError("bytes that are not UTF-8", path=path, line=line) from None


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
    with reading(path):
        same = any(
            each is not None
            and os.path.exists(each)  # noqa: PTH110 (each may be a name, not a path)
            and os.path.exists(path)  # noqa: PTH110
            and os.path.samefile(path, each)  # noqa: PTH121
            for each in inputs
        )
    if same:
        raise InputError(f"this is the input itself; give {what} another name", path=path)


def refuse_beneath_file(path: str | os.PathLike[str]) -> None:
    """Refuse a name inside what is no folder, before any work is done for it."""
    for above in Path(path).parents:
        if above.exists():
            if not above.is_dir():
                raise InputError(
                    f"cannot be written: {above} is not a folder; choose another place", path=path
                )
            return


def fingerprint(path: str | os.PathLike[str]) -> str:
    """XXH3-128 of the file as stored: equal for equal files, wherever they lie."""
    digest = xxhash.xxh3_128()
    with reading(path), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        buffer = bytearray(BLOCK)
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
    return digest.hexdigest()


def checksum(*contents: Any) -> str:
    """A checksum (XXH3-64) over buffers and JSON-ready values: it detects damage, not attacks."""
    digest = xxhash.xxh3_64()
    for content in contents:
        if isinstance(content, (dict, list, str, int)):
            content = json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        digest.update(content)
    return digest.hexdigest()


def sync_to_disk(file: IO[bytes]) -> None:
    """On the disk, not on its way there: a name must never come to stand for a file that is half written."""
    file.flush()
    os.fsync(file.fileno())


def make_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that is there, or is made with those around it."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", path=path) from error
    return folder


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
        parts = name.split("/")
        unfit = "\\" in name or any(ord(each) < 32 or ord(each) == 127 for each in name)
        if unfit or {"", ".", ".."} & {*parts}:
            raise InputError(f"it names a file that may lie outside its folder: {name!r}", path=path)
        if any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
            raise InputError(f"it names a file with a name that is too long: {name[:40]!r}…", path=path)
        if name in seen:
            raise InputError(f"it names {name!r} twice", path=path)
        seen.add(name)
    for name in seen:
        parts = name.split("/")
        if above := next((a for n in range(1, len(parts)) if (a := "/".join(parts[:n])) in seen), None):
            raise InputError(f"it names {above!r} as a file and as a folder", path=path)
        if folder is not None and not Path(folder, name).resolve().is_relative_to(Path(folder).resolve()):
            raise InputError(f"{name!r} is a link that leads outside its folder", path=path)


def _replaced(target: Path) -> list[Path]:
    """What replacements of a folder, killed half way, have left aside; the newest last."""
    left = target.parent.glob(f".{glob.escape(target.name)}.*.old")
    return sorted(left, key=lambda folder: folder.stat().st_mtime)


def restored(path: str | os.PathLike[str]) -> Path:
    """The folder; if its replacement was interrupted and it is missing, the old one is put back first."""
    target = Path(os.path.realpath(path))
    with suppress(OSError, ValueError):
        if not target.exists() and (left := _replaced(target)):
            left[-1].replace(target)
    return Path(path)


@contextmanager
def writing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder that appears under its name only when it is complete; one that exists is replaced.

    The old folder is renamed first and removed last. If anything fails it is put back: now, or, if the
    process is killed, when the folder is opened next (:func:`restored`).
    """
    target = Path(os.path.realpath(path))
    part, aside = (target.with_name(f".{target.name}.{secrets.token_hex(4)}.{end}") for end in ("tmp", "old"))
    try:
        restored(target)
        part.mkdir(parents=True)
        try:
            yield part
            while not _put(part, target, aside):
                pass
        finally:
            if not target.exists():
                restored(target)
            for folder in (part, *(_replaced(target) if target.exists() else ())):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


def _put(part: Path, target: Path, aside: Path) -> bool:
    """Give a finished folder its name; False if another folder took the name in between."""
    with suppress(FileNotFoundError):
        if target.is_dir():
            shutil.rmtree(aside, ignore_errors=True)
            target.replace(aside)
    try:
        part.replace(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """One process at a time, others wait; the system lets go of the lock when a process dies, however."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache_dir() -> Path:
    """The folder of evenrank's caches: `EVENRANK_CACHE`, else `evenrank` in the user's cache folder."""
    if chosen := os.environ.get("EVENRANK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenrank"


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when it is complete.

    ``.gz`` and ``.zst`` are compressed, without a time stamp: the same content gives the same bytes.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    try:
        if given.exists() and not given.is_file():  # /dev/stdout must not be replaced, and may be a pipe
            with given.open("wb") as file, _compressing(file, path) as out:
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
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


@contextmanager
def _compressing(file: IO[bytes], path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    kind = _COMPRESSED.get(Path(path).suffix.lower())
    if kind == "gzip":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
            yield out  # type: ignore[misc]
    elif kind == "zstd":
        # The stream closes what it writes to, which is still needed: give it another handle.
        target = pa.PythonFile(os.fdopen(os.dup(file.fileno()), "wb"), mode="w")
        with pa.CompressedOutputStream(target, "zstd") as out:
            yield out
    else:
        yield file
