"""What a mitigation is: strengths from none to the strongest, and a run for each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from evenrank.data.runs import falling
from evenrank.errors import InputError, is_number

LAMBDAS = tuple(step / 10 for step in range(1, 11))
"""The strengths of a mitigation that goes from 0 to 1, unless others are given."""


@runtime_checkable
class Mitigation(Protocol):
    """A way to less bias that can be weak or strong. A sweep needs nothing else.

    Attributes
    ----------
    name
        What it is called in tables and charts.
    """

    @property
    def name(self) -> str: ...

    def strengths(self) -> Sequence[float]:
        """From none, which comes first, to the strongest."""
        ...

    def apply(self, strength: float) -> pl.DataFrame:
        """The run at one of the strengths; at the first, the run as it was."""
        ...


def from_nothing(strengths: Iterable[float]) -> list[float]:
    """The strength that changes nothing, and those above it."""
    return [0.0, *(each for each in strengths if each > 0)]


def check_strengths(
    method: str, strengths: Sequence[float], *, least: float = 0, most: float = math.inf
) -> None:
    """Refuse strengths that a method cannot have, before anything is done."""
    if not isinstance(strengths, Iterable):
        raise InputError(f"strengths is {strengths!r}; it must be a list of numbers, from weak to strong")
    if not len(strengths):
        raise InputError("name at least one strength")
    if not all(map(is_number, strengths)):
        raise InputError("a strength is not a finite number")
    for each in strengths:
        if not least <= each <= most:
            wanted = "from 0 on" if most == math.inf else f"from 0 to {most:g}"
            raise InputError(f"strength {each:g} of {method}: it must be {wanted}")


def reordered_run(run: pl.DataFrame, order: np.ndarray) -> pl.DataFrame:
    """The rows' documents in another order (within queries), under scores that fall strictly.

    The document at a rank takes the score that stood there. A query with ties, even only in single
    precision, gets scores that differ as little as they must.
    """
    built = run.with_columns(run["doc_id"].gather(order))
    score, rank = built["score"].to_numpy(), built["rank"].to_numpy()
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    level = np.zeros(len(built), bool)
    level[1:] = (rank[1:] > 1) & ~(single[1:] < single[:-1])
    level |= ~np.isfinite(single)
    if level.any():
        heads = np.flatnonzero(rank == 1)
        tied = np.logical_or.reduceat(level, heads)[np.cumsum(rank == 1) - 1]
        built = built.with_columns(score=np.where(tied, falling(built).cast(pl.Float64).to_numpy(), score))
    return built
