"""Word vectors in files: text (word2vec, GloVe, fastText) and word2vec's binary format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from evenrank.data.files import (
    fingerprint,
    format_suffix,
    magic,
    raw_blocks,
    reading,
    require_regular,
    unpacking,
    writing,
)
from evenrank.errors import InputError
from evenrank.vectors.space import ROWS, Floats, Vectors, normalised

_HEAD_BYTES = 1 << 13
_BLOCK_BYTES = 1 << 24
_MAX_DIMENSION = 1 << 16
_MAX_WORD_BYTES = 1 << 12
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f\v") | {127}
Parsed = tuple[list[str], Floats, int | None]
"""The words, their vectors as rows, and the line of the first vector if the file has lines."""


def load(source: Vectors | Mapping[str, Any] | str | os.PathLike[str] | Any) -> Vectors:
    """Open word vectors in any format.

    Parameters
    ----------
    source
        A file: word2vec binary or text, GloVe text, fastText ``.vec``, all of these also as gzip or zstd.
        Or gensim's ``KeyedVectors`` or a model in memory, or a mapping from word to vector.

    Raises
    ------
    InputError
        With file and line or word: cut off, wrong dimension, a header that promises something else, a
        word twice, NaN, no vectors at all.

    Notes
    -----
    The rows are scaled to length 1. The matrix is the only large thing in memory while loading.

    Examples
    --------
    >>> load({"she": [3, 4], "he": [0, 1]})
    Vectors(2 words, 2 dimensions)
    """
    if isinstance(source, Vectors):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _load_file(source)
    if isinstance(source, Mapping):
        return Vectors(list(source), list(source.values()))
    keyed_vectors = getattr(source, "wv", source)
    if hasattr(keyed_vectors, "index_to_key") and hasattr(keyed_vectors, "vectors"):
        return Vectors(keyed_vectors.index_to_key, keyed_vectors.vectors)
    raise InputError(f"vectors are a file, a gensim object or a mapping, not {type(source).__name__}")


def _load_file(path: str | os.PathLike[str]) -> Vectors:
    if not require_regular(path):
        raise InputError("the file is empty", path=path)
    if magic(path).startswith(b"\x80"):
        raise InputError(
            "this looks like a pickle, as gensim saves, and pickles are not read; "
            "load it with gensim and write it by save_word2vec_format(…, binary=True)",
            path=path,
        )
    binary = _is_binary(path)
    words, matrix, first_line = _read_binary(path) if binary else _read_text(path)
    kind = "word2vec binary" if binary else "text"
    facts = {"input": {"name": Path(path).name, "format": kind, "fingerprint": fingerprint(path)}}
    words, matrix = normalised(words, matrix, path=path, first_line=first_line)
    return Vectors.trusted(words, matrix, facts)


def _is_binary(path: str | os.PathLike[str]) -> bool:
    """Whether the first bytes of a file are word2vec's binary format; refuse what is not text either."""
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        head: bytes = unpacking(file, path).read(_HEAD_BYTES)
    if not head:
        raise InputError("the file is empty", path=path)
    first, _, rest = head.partition(b"\n")
    if header := _header(first, path):
        line, ended, _ = rest.partition(b"\n")
        fields = line.rsplit(None, header[1])[1:]
        is_cut = not ended and len(head) == _HEAD_BYTES
        return bool(_CONTROL & set(rest)) or not _are_numbers(fields[:-1] if is_cut else fields)
    if _CONTROL & set(head):
        raise InputError("neither text nor a known format of word vectors", path=path)
    return False


def _header(line: bytes, path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Rows and dimension, if the first line is the header of a word2vec file."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    rows, dimension = int(fields[0]), int(fields[1])
    if not rows or not 0 < dimension <= _MAX_DIMENSION:
        raise InputError(
            f"the header promises {rows:,} vectors of {dimension:,} dimensions", path=path, line=1
        )
    return rows, dimension


def _read_text(path: str | os.PathLike[str]) -> Parsed:
    """Read vectors as text, with or without a header.

    A word may contain spaces: the numbers are counted from the end of the line. Arrow parses; a block that
    it cannot parse is read again line by line, which succeeds or names the line.
    """
    words: list[str] = []
    matrix = np.empty((0, 0), np.float32)
    promised: int | None = None
    dimension, first_line = 0, 1
    for raw in raw_blocks(path, block=_BLOCK_BYTES):
        block = raw.data
        if not dimension:
            first = block.split(b"\n", 1)[0]
            if header := _header(first, path):
                promised, dimension = header
                first_line, block = 2, block[len(first) + 1 :]
            else:
                dimension = len(first.split()) - 1
            if dimension < 1:
                raise InputError("expected a word and its numbers", path=path, line=1)
        if not block:
            continue
        more, rows = _parse_block(block, dimension, path, first_line + len(words))
        total = len(words) + len(more)
        if promised is not None and total > promised:
            raise InputError(f"the header promises {promised:,} vectors, but there are more", path=path)
        if total > len(matrix):  # grows in place: no second matrix is needed
            matrix.resize((max(2 * len(matrix), total), dimension), refcheck=False)
        matrix[len(words) : total] = rows
        words += more
    if promised is not None and len(words) < promised:
        raise InputError(
            f"the header promises {promised:,} vectors, the file ends after {len(words):,}: is it cut off?",
            path=path,
        )
    matrix.resize((len(words), dimension), refcheck=False)
    return words, matrix, first_line


def _parse_block(
    block: bytes, dimension: int, path: str | os.PathLike[str], line: int
) -> tuple[list[str], Floats]:
    """Words and vectors of a block of lines, of which the first has the number `line`."""
    first = block[: block.index(b"\n")].removesuffix(b"\r")
    delimiter = "\t" if b"\t" in first else " "
    names = ["word", *map(str, range(dimension))]
    ends_with_delimiter = first.endswith(delimiter.encode())  # as fastText writes
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(column_names=[*names, "rest"] if ends_with_delimiter else names),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                column_types={"word": pa.string(), **dict.fromkeys(names[1:], pa.float32())},
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return _parse_lines(block, dimension, path, line)
    words = table.column("word").to_pylist()
    if "" in words:
        return _parse_lines(block, dimension, path, line)
    rows = np.empty((len(table), dimension), np.float32)
    for number, column in enumerate(table.combine_chunks().columns[1:]):
        values = column.chunk(0)
        rows[:, number] = np.frombuffer(values.buffers()[1], np.float32)[values.offset :][: len(rows)]
    return words, rows


def _parse_lines(
    block: bytes, dimension: int, path: str | os.PathLike[str], line: int
) -> tuple[list[str], Floats]:
    """The same in plain Python: name the first bad line."""
    lines = block.removesuffix(b"\n").split(b"\n")
    words: list[str] = []
    rows = np.empty((len(lines), dimension), np.float32)
    for row, content in enumerate(lines):
        where: dict[str, Any] = {"path": path, "line": line + row}
        fields = content.rsplit(None, dimension)
        if len(fields) <= dimension or _are_numbers(fields[0].split()[1:]):
            count = max(0, len(content.split()) - 1)
            message = f"expected a word and {dimension} numbers, found {count} behind the word"
            raise InputError(message, **where)
        try:
            words.append(fields[0].decode())
            rows[row] = [float(field) for field in fields[1:]]
        except UnicodeDecodeError:
            raise InputError("a word in bytes that are not UTF-8", **where) from None
        except ValueError as error:
            raise InputError(f"expected {dimension} numbers: {error}", **where) from None
    return words, rows


def _are_numbers(pieces: list[bytes]) -> bool:
    """Whether these are numbers, at least one."""
    try:
        return bool([float(piece) for piece in pieces])
    except ValueError:
        return False


def _read_binary(path: str | os.PathLike[str]) -> Parsed:
    """Read word2vec's binary format; beyond the result, one block of it is held in memory."""
    with reading(path), open(path, "rb") as file:  # noqa: PTH123
        stream = unpacking(file, path)
        buffer: bytes = stream.read(_BLOCK_BYTES)
        first = buffer.partition(b"\n")[0]
        header = _header(first, path)
        if header is None:
            raise InputError("no word2vec file: the first line is not a count and a dimension", path=path)
        count, dimension = header
        matrix = np.empty((count, dimension), np.float32)
        width = 4 * dimension
        words: list[str] = []
        position, ended = len(first) + 1, False
        for row in range(count):
            if not ended and len(buffer) - position < width + _MAX_WORD_BYTES:
                more: bytes = stream.read(_BLOCK_BYTES)
                ended = not more
                buffer, position = buffer[position:] + more, 0
            space = buffer.find(b" ", position, position + _MAX_WORD_BYTES)
            if (space < 0 and ended) or len(buffer) < space + 1 + width:
                raise InputError(
                    f"the header promises {count:,} vectors, the file ends after {row:,}: is it cut off?",
                    path=path,
                )
            words.append(_binary_word(buffer[position:space] if space >= 0 else b"", row, dimension, path))
            matrix[row] = np.frombuffer(buffer, "<f4", dimension, space + 1)
            position = space + 1 + width
        if buffer[position:].strip(b"\n") or (not ended and stream.read(1)):
            raise InputError(
                f"the header promises {count:,} vectors of {dimension} dimensions, but the file goes on "
                "behind them",
                path=path,
            )
    return words, matrix, None


def _binary_word(content: bytes, row: int, dimension: int, path: str | os.PathLike[str]) -> str:
    """Decode a word; the C program ends each vector with a newline, gensim does not."""
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


def save(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Write vectors; the ending of the name decides the format.

    ``.bin`` is word2vec binary, ``.txt`` and ``.vec`` are word2vec (fastText) text with a header; each may be
    followed by ``.gz`` or ``.zst``. The file appears when it is complete.
    """
    suffix = format_suffix(path)
    if suffix not in (".bin", ".txt", ".vec"):
        raise InputError(
            "the ending says how vectors are written: .bin (word2vec), .txt or .vec (text with a header)",
            path=path,
        )
    for word in vectors.words:
        if word.encode().split() != [word.encode()]:
            raise InputError(f"a word in this format cannot be {word!r}; leave it out", path=path)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.dimension}\n".encode())
        for start in range(0, len(vectors), ROWS):
            block = vectors.matrix[start : start + ROWS]
            if suffix == ".bin":
                rows = [row.astype("<f4").tobytes() for row in block]
            else:
                digits = pa.array(block.ravel()).cast(pa.string())
                ends = pa.array(np.arange(0, block.size + 1, vectors.dimension, dtype=np.int32))
                lines = pc.binary_join(pa.ListArray.from_arrays(ends, digits), " ").to_pylist()
                rows = [f"{line}\n".encode() for line in lines]
            words = vectors.words[start : start + ROWS]
            file.write(b"".join(word.encode() + b" " + row for word, row in zip(words, rows, strict=True)))
