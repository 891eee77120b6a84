"""Vectors in the binary format of word2vec: a header, then each word, a space, and its float32 numbers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from evenrank.data.files import reading
from evenrank.errors import InputError
from evenrank.vectors.textual import Parsed, header

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
