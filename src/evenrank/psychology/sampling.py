"""Which queries are compared, and balanced samples: as many of each gender as the smallest class has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError

GENDERS = ("female", "male", "neutral")


def balanced(labels: pl.DataFrame, *, genders: Sequence[str] = GENDERS, seed: int = 0) -> pl.DataFrame:
    """Of the queries (``query_id``, ``gender``) equally many of each gender, drawn without replacement.

    A gender that has no query at all does not count. The same queries and seed give the same sample,
    whatever their order; the rows stay in the order given.
    """
    counts = [int((labels["gender"] == gender).sum()) for gender in genders]
    size = min((count for count in counts if count), default=0)
    kept: list[str] = []
    for number, gender in enumerate(genders):
        ids = labels.filter(pl.col("gender") == gender)["query_id"].sort()
        if len(ids):
            drawn = np.random.default_rng([seed, number]).choice(len(ids), size, replace=False)
            kept += ids.gather(drawn).to_list()
    return labels.filter(pl.col("query_id").is_in(kept))


def sample(
    values: pl.DataFrame, labels: pl.DataFrame, *, exclude: Any = None, balance: bool = True, seed: int = 0
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The queries to compare, with their gender, and how many were left out for which reason."""
    left_out: dict[str, int] = {}

    def keep(table: pl.DataFrame, kept: pl.DataFrame, reason: str) -> pl.DataFrame:
        if gone := len(table) - len(kept):
            left_out[reason] = gone
        return kept

    scored = set(values["query_id"].to_list())
    known = keep(labels, labels.filter(pl.col("query_id").is_in(scored)), "labelled, but no scored document")
    if without := len(scored) - len(known):
        left_out["no gender label"] = without
    known = keep(known, known.filter(pl.col("gender").is_in(GENDERS)), "labelled other")
    if exclude is not None:
        known = keep(known, known.filter(~pl.col("query_id").is_in(_ids(exclude))), "excluded")
    if balance:
        known = keep(known, balanced(known, seed=seed), "not drawn into the balanced sample")
    held = sizes(known)
    for gender in ("female", "male"):
        if gender not in held:
            raise InputError(f"no {gender} query is left to compare; check the gender labels")
    return known.join(values, on="query_id", how="left", maintain_order="left"), left_out


def sizes(values: pl.DataFrame) -> dict[str, int]:
    """How many queries there are of each gender."""
    return {g: n for g in GENDERS if (n := int((values["gender"] == g).sum()))}


def _ids(exclude: Any) -> list[str]:
    if isinstance(exclude, str | PathLike) or hasattr(exclude, "columns"):
        return tables.genders(exclude)["query_id"].to_list()
    if isinstance(exclude, Iterable):
        return [str(query) for query in exclude]
    raise InputError(f"exclude takes query ids or a file, not {type(exclude).__name__}")
