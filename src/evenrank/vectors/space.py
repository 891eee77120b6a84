"""Word vectors: a list of words and a matrix of unit vectors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import evenrank
from evenrank.errors import InputError, InputWarning

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS = 1 << 14
"""Rows processed at a time, so that no second matrix is needed."""


class Vectors:
    """Words and their vectors, each of length 1, so that the product of two is their cosine.

    Returned by :func:`evenrank.vectors.load`, :func:`~evenrank.vectors.train` and
    :func:`~evenrank.vectors.distil`. A word is looked up as written, then in lower case: ``Mary`` finds
    ``mary`` where the vectors have no case.

    Parameters
    ----------
    words
        One for each row, usually the most frequent first.
    matrix
        The vectors as rows. They are copied to float32 and scaled to length 1. NaN and infinity are an
        error; a row of zeros has no direction and is left out with a warning.
    provenance
        Where the vectors come from; kept in everything computed from them.

    Examples
    --------
    >>> vectors = Vectors(["she", "he"], [[3, 4], [0, 2]])
    >>> vectors["She"].tolist()
    [0.6000000238418579, 0.800000011920929]
    """

    words: list[str]
    matrix: Floats
    provenance: dict[str, Any]

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.ArrayLike,
        *,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        rows = np.array(matrix, np.float32, order="C")
        self._set(*normalised(list(words), rows), provenance)

    @classmethod
    def trusted(
        cls, words: list[str], matrix: Floats, provenance: Mapping[str, Any] | None = None
    ) -> Vectors:
        """Return vectors without checks or copies; the rows must be sound and of length 1."""
        vectors = cls.__new__(cls)
        vectors._set(words, matrix, provenance)
        return vectors

    def _set(self, words: list[str], matrix: Floats, provenance: Mapping[str, Any] | None) -> None:
        self.words = words
        self.matrix = matrix.view()
        self.matrix.flags.writeable = False
        self.provenance = {"evenrank": evenrank.__version__, **(provenance or {})}

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self.matrix.shape[1])

    def row(self, word: str) -> int | None:
        """The row of a word, as written or else in lower case; None if it has no vector."""
        row = self._row_of.get(word)
        return self._row_of.get(word.lower()) if row is None else row

    def exact_row(self, word: str) -> int | None:
        """The row of a word exactly as written."""
        return self._row_of.get(word)

    def rows(self, words: Iterable[str]) -> Ints:
        """The rows of the words, −1 for those that have none."""
        rows = (self.row(word) for word in words)
        return np.array([-1 if row is None else row for row in rows], np.int64)

    def __getitem__(self, word: str) -> Floats:
        row = self.row(word)
        if row is None:
            raise InputError(f"there is no vector for the word {word!r}")
        return self.matrix[row]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.row(word) is not None

    def __len__(self) -> int:
        return len(self.matrix)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.dimension} dimensions)"


def normalised(
    words: list[str],
    matrix: Floats,
    *,
    path: str | os.PathLike[str] | None = None,
    first_line: int | None = None,
) -> tuple[list[str], Floats]:
    """Check words and matrix and scale the rows in place; errors name the file and line, if any."""
    if matrix.ndim != 2 or len(words) != len(matrix):
        shape = " × ".join(map(str, matrix.shape))
        raise InputError(f"{len(words):,} words and a matrix of {shape}; give one row per word", path=path)
    if matrix.size == 0:
        raise InputError("there are no vectors", path=path)

    def error(message: str, row: int) -> InputError:
        return InputError(message, path=path, line=None if first_line is None else first_line + row)

    first_rows: dict[str, int] = {}
    for row, word in enumerate(words):
        earlier = first_rows.setdefault(word, row)
        if earlier != row:
            numbers = f"number {earlier + 1:,} and number {row + 1:,}"
            raise error(f"the word {word!r} has two vectors, {numbers}; remove one", row)
    lengths = row_lengths(matrix)
    if not np.isfinite(lengths).all():
        row = int(np.flatnonzero(~np.isfinite(lengths))[0])
        raise error(f"the vector of {words[row]!r} holds NaN or infinity", row)
    keep = lengths > 0
    if not keep.any():
        raise InputError("all vectors are zero", path=path)
    zero = [word for word, row in first_rows.items() if not keep[row]]
    if zero:
        warnings.warn(
            f"{len(zero):,} words have a vector of zeros and are left out, the first is {zero[0]!r}",
            InputWarning,
            stacklevel=3,
        )
    np.divide(matrix, np.where(keep, lengths, 1)[:, None], out=matrix, casting="same_kind")
    if zero:
        words, matrix = [word for word, row in first_rows.items() if keep[row]], matrix[keep]
    return words, matrix


def row_lengths(rows: npt.NDArray[Any]) -> Doubles:
    """The Euclidean length of each row, in double precision."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
