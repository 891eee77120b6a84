"""The formats of vector files: text (word2vec, GloVe, fastText), word2vec's binary, and gensim's own."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from evenrank.data.files import RawBlock, raw_blocks, reading
from evenrank.errors import InputError
from evenrank.vectors.space import Floats, numbers

_BLOCK = 1 << 24
_LARGEST = 1 << 16  # dimensions; a larger number in a header is no dimension


class Parsed(NamedTuple):
    """Words and numbers as they stand in a file, and the line of the first vector where there are lines."""

    words: list[str]
    matrix: Floats
    first_line: int | None = None


class Header(NamedTuple):
    """What the first line of a word2vec file promises."""

    rows: int
    dimension: int


def header(line: bytes, path: str | os.PathLike[str]) -> Header | None:
    """The header that a first line is, if it is one."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    found = Header(int(fields[0]), int(fields[1]))
    if not found.rows or not 0 < found.dimension <= _LARGEST:
        raise InputError(
            f"the header promises {found.rows:,} vectors of {found.dimension:,} dimensions",
            path=path,
            line=1,
        )
    return found


def read_text(path: str | os.PathLike[str]) -> Parsed:
    """Read vectors as text, plain or compressed, with or without a header.

    A word may hold spaces: the numbers are counted from the end of the line. Arrow parses; a block that
    it cannot parse is read again line by line, which succeeds or names the line.
    """
    words: list[str] = []
    matrix = np.empty((0, 0), np.float32)
    promised: Header | None = None
    first_line = 1
    for raw in raw_blocks(path, block=_BLOCK):
        if not raw.start:
            first = raw.tobytes().split(b"\n", 1)[0]
            promised = header(first, path)
            if promised:
                first_line = 2
                raw = _behind(raw, len(first) + 1)
            dimension = promised.dimension if promised else len(first.split()) - 1
            if dimension < 1:
                raise InputError("expected a word and its numbers", path=path, line=1)
            matrix = np.empty((1 << 12, dimension), np.float32)
        found, rows = _parse(raw, matrix.shape[1], path, first_line + len(words))
        if promised and len(words) + len(found) > promised.rows:
            raise InputError(f"the header promises {promised.rows:,} vectors, but there are more", path=path)
        if len(words) + len(found) > len(matrix):  # grows in place: no second matrix is needed
            matrix.resize((max(2 * len(matrix), len(words) + len(found)), matrix.shape[1]), refcheck=False)
        matrix[len(words) : len(words) + len(found)] = rows
        words += found
    if promised and len(words) < promised.rows:
        raise InputError(
            f"the header promises {promised.rows:,} vectors, the file ends after {len(words):,}: "
            "is it cut off?",
            path=path,
        )
    matrix.resize((len(words), matrix.shape[1]), refcheck=False)
    return Parsed(words, matrix, first_line)


def _behind(raw: RawBlock, start: int) -> RawBlock:
    return RawBlock(raw.data[start:], raw.size - start, raw.start + start, raw.stored)


def _parse(
    raw: RawBlock, dimension: int, path: str | os.PathLike[str], line: int
) -> tuple[list[str], Floats]:
    if not raw.size:
        return [], np.empty((0, dimension), np.float32)
    data = raw.data[: raw.size]
    first = data[: int(np.argmax(data == 10))].tobytes().removesuffix(b"\r")
    delimiter = "\t" if b"\t" in first else " "
    names = ["word", *map(str, range(dimension))]
    ends_with_delimiter = first.endswith(delimiter.encode())  # fastText writes it so
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            read_options=csv.ReadOptions(column_names=[*names, "rest"] if ends_with_delimiter else names),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                column_types={"word": pa.string(), **dict.fromkeys(names[1:], pa.float32())},
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return _parse_lines(data.tobytes(), dimension, path, line)
    words = table.column("word").to_pylist()
    if "" in words:
        return _parse_lines(data.tobytes(), dimension, path, line)
    rows = np.empty((len(table), dimension), np.float32)
    for number, column in enumerate(table.columns[1:]):
        start = 0
        for chunk in column.chunks:
            rows[start : start + len(chunk), number] = numbers(chunk)
            start += len(chunk)
    return words, rows


def _parse_lines(
    data: bytes, dimension: int, path: str | os.PathLike[str], line: int
) -> tuple[list[str], Floats]:
    """The strict way: every line is looked at, and the first bad one named."""
    lines = data.removesuffix(b"\n").split(b"\n")
    words: list[str] = []
    rows = np.empty((len(lines), dimension), np.float32)
    for row, content in enumerate(lines):
        fields = content.rsplit(None, dimension)
        try:
            if len(fields) <= dimension or _numbers(fields[0].split()[1:]):
                found = max(0, len(content.split()) - 1)
                raise InputError(
                    f"expected a word and {dimension} numbers, found {found} behind the word",
                    path=path,
                    line=line + row,
                )
            rows[row] = [float(field) for field in fields[1:]]
            words.append(fields[0].decode())
        except UnicodeDecodeError:
            raise InputError("a word in bytes that are not UTF-8", path=path, line=line + row) from None
        except InputError:
            raise
        except ValueError as error:
            message = f"expected {dimension} numbers: {error}"
            raise InputError(message, path=path, line=line + row) from None
    return words, rows


def _numbers(pieces: list[bytes]) -> bool:
    """Whether these pieces of a word with spaces are numbers: then the line has too many."""
    try:
        return bool([float(piece) for piece in pieces])
    except ValueError:
        return False


_CHUNK = 1 << 24
_LONGEST = 1 << 12  # bytes of a word


def read_binary(stream: Any, path: str | os.PathLike[str]) -> Parsed:
    """Read vectors from an uncompressed stream; beyond the result, one chunk of it is held in memory."""
    with reading(path):
        buffer: bytes = stream.read(_CHUNK)
        first, newline, _ = buffer.partition(b"\n")
        promised = header(first, path) if newline else None
        if promised is None:
            raise InputError("no word2vec file: the first line is not a count and a dimension", path=path)
        matrix = np.empty((promised.rows, promised.dimension), np.float32)
        width = 4 * promised.dimension
        words: list[str] = []
        position, ended = len(first) + 1, False
        for row in range(promised.rows):
            if not ended and len(buffer) - position < width + _LONGEST:
                more: bytes = stream.read(_CHUNK)
                ended = not more
                buffer, position = buffer[position:] + more, 0
            space = buffer.find(b" ", position, position + _LONGEST)
            if (space < 0 and ended) or len(buffer) < space + 1 + width:
                raise InputError(
                    f"the header promises {promised.rows:,} vectors, the file ends after {row:,}: "
                    "is it cut off?",
                    path=path,
                )
            words.append(_word(buffer[position:space] if space >= 0 else b"", row, promised.dimension, path))
            matrix[row] = np.frombuffer(buffer, "<f4", promised.dimension, space + 1)
            position = space + 1 + width
        if buffer[position:].strip(b"\n") or (not ended and stream.read(1)):
            raise InputError(
                f"the header promises {promised.rows:,} vectors of {promised.dimension} dimensions, "
                "but the file goes on behind them",
                path=path,
            )
    return Parsed(words, matrix)


def _word(content: bytes, row: int, dimension: int, path: str | os.PathLike[str]) -> str:
    """The word; the C program ends each vector with a newline, gensim does not."""
    word = content.lstrip(b"\n")
    try:
        if word:
            return word.decode()
        problem = "there is no word"
    except UnicodeDecodeError:
        problem = "the word is not UTF-8"
    raise InputError(
        f"{problem} before vector number {row + 1:,}; are there {dimension} dimensions, as the header says?",
        path=path,
    )


_WORDS = ("index_to_key", "index2word", "index2entity")
_MATRIX = ("vectors", "syn0")
_HOW = "load it with gensim and write it by save_word2vec_format(…, binary=True)"


class _Record:
    """Stands for any class or function that a pickle names: keeps what it was given and does nothing."""

    given: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given = given

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __call__(self, *given: Any, **named: Any) -> _Record:
        return _Record(*given)

    def _ignore(self, *given: Any) -> None:
        pass

    __setitem__ = append = extend = add = _ignore


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Record

    def persistent_load(self, identifier: Any) -> Any:
        return None


_PlainUnpickler: Any = pickle._Unpickler


class _CarefulReader(_PlainUnpickler):
    """The same in plain Python, slower: no instruction makes it reserve more memory than the file has."""

    find_class = _Reader.find_class
    persistent_load = _Reader.persistent_load
    dispatch: ClassVar = dict(_PlainUnpickler.dispatch)
    size = 0

    def load_bytearray8(self) -> None:
        (length,) = struct.unpack("<Q", self.read(8))
        if length > self.size:
            raise pickle.UnpicklingError("cut off")
        self.append(bytearray(self.read(length)))

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8


def _is_greedy(content: bytes) -> bool:
    """Might an instruction ask for a place, or a number of bytes, far beyond the file?

    Two instructions of pickle reserve memory by a number in the file before they look whether it is there:
    a far place of the memo, and a byte array. Their codes also occur in words and numbers.
    """
    data = np.frombuffer(content, np.uint8)
    for code, width in ((pickle.LONG_BINPUT[0], 4), (pickle.BYTEARRAY8[0], 8)):
        at = np.flatnonzero(data[: max(0, len(data) - width)] == code)
        asked = np.zeros(len(at))
        for byte in range(width):
            asked += data[at + 1 + byte] * 256.0**byte
        if (asked > len(content)).any():
            return True
    return re.search(rb"p\d{8,}\n", content) is not None  # a place of the memo, in digits


def _unpickled(content: bytes) -> Any:
    if not _is_greedy(content):
        return _Reader(io.BytesIO(content)).load()
    reader = _CarefulReader(io.BytesIO(content))
    reader.size = len(content)
    return reader.load()


def read_gensim(path: str | os.PathLike[str]) -> Parsed:
    """The words and vectors of a KeyedVectors file, or of a model that holds one.

    Large matrices lie beside the file (``x.kv.vectors.npy``) and are mapped into memory.
    """
    with reading(path):
        content = Path(path).read_bytes()
    try:
        whole = _unpickled(content)
    except Exception as error:
        raise InputError(
            f"damaged, or not a file of gensim ({type(error).__name__}); {_HOW}", path=path
        ) from None
    state = getattr(whole, "state", None)
    inner = state.get("wv") if isinstance(state, dict) else None
    prefix = ""
    if inner is not None:
        state, prefix = getattr(inner, "state", None), "wv."
    words = _first(state, _WORDS)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"no words and vectors of gensim are found in it; {_HOW}", path=path)
    matrix = _array(_first(state, _MATRIX))
    if matrix is None:
        matrix = _beside(Path(path), prefix)
    return Parsed(words, np.array(matrix, np.float32, order="C"))


def _first(state: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(state, dict):
        return None
    return next((state[name] for name in names if state.get(name) is not None), None)


def _array(record: Any) -> npt.NDArray[Any] | None:
    """A matrix from what numpy put into the pickle: (version, shape, type, order, bytes)."""
    state = getattr(record, "state", None)
    if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[4], bytes):
        return None
    _, shape, kind, fortran, data = state
    code = kind.given[0] if isinstance(kind, _Record) and kind.given else None
    order = kind.state[1] if isinstance(getattr(kind, "state", None), tuple) else None
    if code not in ("f2", "f4", "f8") or order not in ("<", ">"):
        return None
    values = np.frombuffer(data, f"{order}{code}")
    if not isinstance(shape, tuple) or len(shape) != 2 or values.size != shape[0] * shape[1]:
        return None
    return values.reshape(shape, order="F" if fortran else "C")


def _beside(path: Path, prefix: str) -> npt.NDArray[Any]:
    for name in _MATRIX:
        beside = path.with_name(f"{path.name}.{prefix}{name}.npy")
        if beside.exists():
            try:
                with reading(beside):
                    return np.asarray(np.load(beside, mmap_mode="r", allow_pickle=False))
            except ValueError as error:
                raise InputError(f"cannot be read: {error}", path=beside) from None
    raise InputError(
        f"the matrix is not beside it as {path.name}.{prefix}vectors.npy "
        f"(gensim leaves it out of FastText files); {_HOW}",
        path=path,
    )
