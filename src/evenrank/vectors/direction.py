"""The direction that tells the first words of some pairs from the second: gender, or anything else."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.vectors.space import Floats, Vectors
from evenrank.vectors.words import DEFINITION, Pair, check_pairs, read_pairs

_FEWEST = 3
_ROWS = 1 << 14

Pairs = Iterable[Iterable[str]] | str | os.PathLike[str]


@dataclass(frozen=True)
class Direction:
    """A direction in the space of the vectors; the first words of the pairs lie on its positive side.

    Attributes
    ----------
    vector
        Of length 1, in double precision.
    explained
        The share of the variance within the pairs that each principal component explains, the largest
        first: how far one direction is enough.
    pairs
        The pairs that were used, as they were given.
    left_out
        The pairs of which a word has no vector.
    """

    vector: npt.NDArray[np.float64]
    explained: npt.NDArray[np.float64]
    pairs: tuple[Pair, ...]
    left_out: tuple[Pair, ...] = ()

    def of(self, matrix: npt.NDArray[Any]) -> Floats:
        """The cosine of each row, of length 1, with the direction."""
        found = np.empty(len(matrix), np.float32)
        for start in range(0, len(matrix), _ROWS):
            found[start : start + _ROWS] = matrix[start : start + _ROWS] @ self.vector
        return found

    def to_dict(self) -> dict[str, Any]:
        """What made the direction, as plain values."""
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "left_out": [list(pair) for pair in self.left_out],
            "explained": [float(share) for share in self.explained],
        }


def find_direction(vectors: Vectors, pairs: Pairs | None = None) -> Direction:
    """The direction along which the words of the pairs differ most (Bolukbasi et al. 2016).

    From both words of each pair the pair's centre is taken away; the first principal component of what
    remains, of all pairs together, is the direction. It is turned so that the first word of the first
    usable pair lies above the second: with the default pairs, *she* above *he*.

    Parameters
    ----------
    vectors
        The word vectors.
    pairs
        Pairs of words or a file of them (:func:`~evenrank.vectors.read_pairs`); the ten that
        define gender if not given. Each is looked up as written, then in lower case.

    Raises
    ------
    InputError
        Fewer than three pairs have vectors for both words; or they do not differ at all.

    Warns
    -----
    UserWarning
        Names the pairs that are left out because a word has no vector.
    """
    wanted = _wanted(pairs)
    places = {pair: vectors.places(pair) for pair in wanted}
    used = tuple(pair for pair in wanted if places[pair].min() >= 0)
    left_out = tuple(pair for pair in wanted if pair not in used)
    if len(used) < _FEWEST:
        missing = ", ".join(sorted({word for pair in left_out for word in pair if word not in vectors}))
        raise InputError(
            f"only {len(used)} of {len(wanted)} pairs have vectors for both words, {_FEWEST} are needed; "
            f"without a vector: {missing or 'none'}"
        )
    if left_out:
        names = ", ".join(f"{first}–{second}" for first, second in left_out)
        warnings.warn(f"pairs left out, because a word has no vector: {names}", stacklevel=2)
    ends = np.array([vectors.matrix[places[pair]] for pair in used], np.float64)
    # The two rows of a pair, minus its centre, mirror each other: one of them says everything.
    halves = (ends[:, 0] - ends[:, 1]) / 2
    _, singular, components = np.linalg.svd(halves, full_matrices=False)
    variance = singular**2
    if not variance[0] > 1e-12:
        raise InputError("the words of the pairs do not differ; no direction follows from them")
    first = components[0] / np.linalg.norm(components[0])
    side = halves[0] @ first or (halves @ first).sum()
    return Direction(-first if side < 0 else first, variance / variance.sum(), used, left_out)


def _wanted(pairs: Pairs | None) -> tuple[Pair, ...]:
    if pairs is None:
        return DEFINITION
    return read_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else check_pairs(pairs)
