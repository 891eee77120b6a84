"""Writing vectors in the formats that other programs read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenrank.data.files import format_suffix, writing
from evenrank.errors import InputError
from evenrank.vectors.space import Vectors
from evenrank.vectors.store import write_store

_ROWS = 1 << 13
_SPACES = set(" \t\n\r\v\f")
_KNOWN = ".arrow (opens at once), .bin (word2vec), .txt or .vec (text with a header), .npz"


def save(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Write vectors; the ending of the name decides the format.

    ``.arrow`` is our own store, which is mapped into memory and opens in milliseconds; it alone keeps the
    provenance. ``.bin`` is word2vec binary, ``.txt`` and ``.vec`` are word2vec (fastText) text with a
    header, ``.npz`` holds the arrays ``words`` and ``vectors``. The text and binary formats may be
    followed by ``.gz`` or ``.zst``. The file appears when it is complete.
    """
    suffix = format_suffix(path)
    compressed = Path(path).suffix.lower() != suffix
    if suffix == ".bin":
        _write_binary(vectors, path)
    elif suffix in (".txt", ".vec"):
        _write_text(vectors, path)
    elif suffix == ".arrow" and not compressed:
        write_store(vectors, path)
    elif suffix == ".npz" and not compressed:
        with writing(path) as file:
            np.savez_compressed(file, words=np.array(vectors.words, dtype=np.str_), vectors=vectors.matrix)
    else:
        raise InputError(f"the ending says how vectors are written: {_KNOWN}", path=path)


def _write_binary(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    _refuse_spaces(vectors, path)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.dimension}\n".encode())
        for start in range(0, len(vectors), _ROWS):
            rows = zip(
                vectors.words[start : start + _ROWS], vectors.matrix[start : start + _ROWS], strict=True
            )
            file.write(b"".join(word.encode() + b" " + row.astype("<f4").tobytes() for word, row in rows))


def _write_text(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """The shortest digits that give the same float32 again."""
    _refuse_spaces(vectors, path)
    with writing(path) as file:
        file.write(f"{len(vectors)} {vectors.dimension}\n".encode())
        for start in range(0, len(vectors), _ROWS):
            block = vectors.matrix[start : start + _ROWS]
            digits = pa.array(block.ravel()).cast(pa.string())
            ends = pa.array(np.arange(0, block.size + 1, vectors.dimension, dtype=np.int32))
            numbers = pc.binary_join(pa.ListArray.from_arrays(ends, digits), " ")
            words = vectors.word_array.slice(start, _ROWS)
            lines = pc.binary_join_element_wise(words, numbers, " ")
            file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _refuse_spaces(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    for word in vectors.words:
        if not word or _SPACES & set(word):
            raise InputError(f"a word in this format cannot be {word!r}; use .arrow or .npz", path=path)
