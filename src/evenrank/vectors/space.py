"""Word vectors: a list of words and a matrix of unit vectors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import evenrank
from evenrank.errors import InputError

Floats = npt.NDArray[np.float32]
Duplicates = Literal["error", "first"]

_ROWS = 1 << 14  # rows processed at a time, so that no second matrix is needed


class Vectors:
    """Words and their vectors, each of length 1, so that the product of two is their cosine.

    Returned by :func:`evenrank.vectors.load`, :func:`~evenrank.vectors.train` and
    :func:`~evenrank.vectors.distil`. A word is looked up as written, then in lower case: ``Mary`` finds
    ``mary`` where the vectors have no case.

    Parameters
    ----------
    words
        One for each row.
    matrix
        The vectors as rows. They are copied to float32 and scaled to length 1. NaN and infinity are an
        error; a row of zeros has no direction and is left out with a warning.
    provenance
        Where the vectors come from; kept in everything computed from them.
    duplicates
        What to do with a word that occurs twice: ``error``, or keep the ``first``.

    Examples
    --------
    >>> vectors = Vectors(["she", "he"], [[3, 4], [0, 2]])
    >>> vectors["She"].tolist()
    [0.6000000238418579, 0.800000011920929]
    """

    matrix: Floats
    provenance: dict[str, Any]

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.ArrayLike,
        *,
        provenance: Mapping[str, Any] | None = None,
        duplicates: Duplicates = "error",
    ) -> None:
        rows = np.array(matrix, np.float32, order="C")
        vectors = checked(list(words), rows, provenance=provenance, duplicates=duplicates)
        self.__dict__.update(vectors.__dict__)

    @classmethod
    def trusted(
        cls, words: list[str] | pa.Array, matrix: Floats, provenance: Mapping[str, Any] | None = None
    ) -> Vectors:
        """Return vectors without checks or copies; the rows must be sound and of length 1."""
        vectors = cls.__new__(cls)
        vectors.matrix = matrix.view()
        vectors.matrix.flags.writeable = False
        vectors.provenance = {"evenrank": evenrank.__version__, **(provenance or {})}
        vectors.__dict__["words" if isinstance(words, list) else "word_array"] = words
        return vectors

    @cached_property
    def words(self) -> list[str]:
        """The words in the order of the rows, usually the most frequent first."""
        return list(self.word_array.to_pylist())

    @cached_property
    def word_array(self) -> pa.Array:
        """The words as an Arrow array: one buffer of UTF-8 and its offsets."""
        return pa.array(self.words, pa.string())

    @cached_property
    def _places(self) -> dict[str, int]:
        return dict(zip(self.words, range(len(self)), strict=True))

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self.matrix.shape[1])

    def place(self, word: str) -> int | None:
        """The row of a word, as written or else in lower case; None if it has no vector."""
        row = self._places.get(word)
        return self._places.get(word.lower()) if row is None else row

    def exact_place(self, word: str) -> int | None:
        """The row of a word exactly as written."""
        return self._places.get(word)

    def places(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The rows of the words, −1 for those that have none."""
        rows = (self.place(word) for word in words)
        return np.array([-1 if row is None else row for row in rows], np.int64)

    def neighbours(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """The nearest words and their cosines."""
        row = self._row(word)
        cosines = self.matrix @ self.matrix[row]
        cosines[row] = -np.inf
        count = min(count, len(self) - 1)
        best = np.argpartition(-cosines, count - 1)[:count] if count else np.empty(0, np.int64)
        return [(self.words[i], float(cosines[i])) for i in best[np.argsort(-cosines[best], kind="stable")]]

    def _row(self, word: str) -> int:
        row = self.place(word)
        if row is None:
            raise InputError(f"there is no vector for the word {word!r}")
        return row

    def __getitem__(self, word: str) -> Floats:
        return self.matrix[self._row(word)]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.place(word) is not None

    def __len__(self) -> int:
        return len(self.matrix)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.dimension} dimensions)"


def checked(
    words: list[str],
    matrix: Floats,
    *,
    provenance: Mapping[str, Any] | None = None,
    duplicates: Duplicates = "error",
    path: str | os.PathLike[str] | None = None,
    first_line: int | None = None,
) -> Vectors:
    """Check and scale a matrix in place and return it as vectors; errors name the file and line, if any."""
    if duplicates not in ("error", "first"):
        raise InputError(f"unknown choice {duplicates!r} for duplicates; choose one of: error, first")
    if matrix.ndim != 2 or len(words) != len(matrix):
        shape = " × ".join(map(str, matrix.shape))
        raise InputError(f"{len(words):,} words and a matrix of {shape}; give one row per word", path=path)
    if matrix.size == 0:
        raise InputError("there are no vectors", path=path)

    def at(row: int) -> dict[str, Any]:
        return {"path": path, "line": None if first_line is None else first_line + row}

    keep = np.ones(len(words), bool)
    places: dict[str, int] = {}
    for row, word in enumerate(words):
        earlier = places.setdefault(word, row)
        if earlier != row:
            if duplicates == "error":
                raise InputError(
                    f"the word {word!r} has two vectors, number {earlier + 1:,} and number {row + 1:,}; "
                    "remove one, or keep the first: duplicates='first' (--duplicates first)",
                    **at(row),
                )
            keep[row] = False
    for start in range(0, len(matrix), _ROWS):
        block = matrix[start : start + _ROWS]
        lengths = row_lengths(block)
        if not np.isfinite(lengths).all():
            row = start + int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise InputError(f"the vector of {words[row]!r} holds NaN or infinity", **at(row))
        keep[start : start + len(block)] &= lengths > 0
        np.divide(block, np.where(lengths > 0, lengths, 1)[:, None], out=block, casting="same_kind")
    if not keep.any():
        raise InputError("all vectors are zero", path=path)
    if not keep.all():
        zero = [row for row in np.flatnonzero(~keep).tolist() if places[words[row]] == row]
        if zero:
            warnings.warn(
                f"{len(zero):,} words have a vector of zeros and are left out, the first is "
                f"{words[zero[0]]!r}",
                stacklevel=3,
            )
        words = [words[row] for row in np.flatnonzero(keep).tolist()]
        matrix = matrix[keep]
    return Vectors.trusted(words, matrix, provenance)


def numbers(array: pa.Array, kind: type[np.generic] = np.float32) -> npt.NDArray[Any]:
    """View an Arrow array without nulls as numpy. (``to_numpy`` would import pandas.)"""
    buffer = array.buffers()[1]
    values = np.empty(0, kind) if buffer is None else np.frombuffer(buffer, kind)
    return values[array.offset : array.offset + len(array)]


def row_lengths(block: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The Euclidean length of each row, in double precision."""
    wide = block.astype(np.float64)
    return np.sqrt(np.einsum("ij,ij->i", wide, wide))
