"""Vectors as text: a word and its numbers on each line (GloVe), or so after a header (word2vec, fastText)."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from evenrank.data.files import RawBlock, raw_blocks
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
