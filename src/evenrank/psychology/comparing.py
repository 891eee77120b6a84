"""One characteristic, female against male queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from evenrank import stats
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.psychology.scoring import categories
from evenrank.stats import Comparison
from evenrank.text.dictionaries import CHARACTERISTICS, TREE

LEVEL = 0.05  # below it a difference is called one


@dataclass(frozen=True)
class Characteristic:
    """How strongly a characteristic shows in texts for female and male queries.

    Attributes
    ----------
    process
        Which process it is part of (`affect` for `anger`), itself if it is one, else empty.
    means
        Mean percent over the queries of each gender.
    welch, rank_sum
        Female − male, so that positive values mean more of it for female queries: difference,
        interval, p (uncorrected), effect (Hedges' g; Cliff's delta).
    p_holm, rank_sum_p_holm
        The two p-values, corrected over all characteristics that were compared.
    """

    name: str
    process: str
    means: Mapping[str, float]
    welch: Comparison
    rank_sum: Comparison
    p_holm: float | None = None
    rank_sum_p_holm: float | None = None

    @property
    def difference(self) -> float | None:
        return self.welch.difference

    @property
    def higher(self) -> str | None:
        """`female` or `male`, whichever mean is higher; None if neither is."""
        if not self.difference:
            return None
        return "female" if self.difference > 0 else "male"

    @property
    def verdict(self) -> str:
        """What Welch's test bears out: a difference, one before correction only, or none."""
        if self.welch.p is None or self.welch.p >= LEVEL:
            return "no difference"
        corrected = self.p_holm is not None and self.p_holm < LEVEL
        return f"higher for {self.higher}" + ("" if corrected else " (uncorrected only)")

    def to_dict(self) -> dict[str, Any]:
        return {
            "characteristic": self.name,
            "process": self.process,
            **self.means,
            "difference": self.difference,
            "low": self.welch.low,
            "high": self.welch.high,
            "p": self.welch.p,
            "p_holm": self.p_holm,
            "g": self.welch.effect,
            "rank_sum_p": self.rank_sum.p,
            "rank_sum_p_holm": self.rank_sum_p_holm,
            "cliffs_delta": self.rank_sum.effect,
            "verdict": self.verdict,
        }


def process_of(name: str) -> str:
    """The process that a characteristic is part of; empty for a category outside the tree."""
    if name in TREE:
        return name
    return next((process for process, parts in TREE.items() if name in parts), "")


def in_order(names: Sequence[str]) -> list[str]:
    """The characteristics of the tree among these names, in its order."""
    return [name for name in CHARACTERISTICS if name in names]


def chosen(table: pl.DataFrame, wanted: Sequence[str] | None) -> list[str]:
    """The characteristics to compare: those asked for, or all of the tree that the table has."""
    held = categories(table)
    if wanted is None:
        found = in_order(held)
        if not found:
            raise InputError(f"none of the categories is known ({', '.join(held[:8])}); name characteristics")
        return found
    for name in wanted:
        if name not in held:
            raise InputError(f"there is no category {name!r}; there are: {', '.join(held)}")
    return list(wanted)


def compare(
    table: pl.DataFrame, names: Sequence[str], *, confidence: float = 0.95, seed: int = 0
) -> tuple[Characteristic, ...]:
    """Each characteristic over queries (``gender`` and a column for each name), p corrected over all."""
    sides = {str(gender): part for (gender,), part in table.group_by(["gender"], maintain_order=True)}
    female, male = sides["female"], sides["male"]
    order = [gender for gender in ("female", "male", "neutral", "other") if gender in sides]
    found = []
    for name in names:
        a, b = female[name].to_numpy(), male[name].to_numpy()
        found.append(
            Characteristic(
                name=name,
                process=process_of(name),
                means={gender: float(sides[gender][name].mean()) for gender in order},  # type: ignore[arg-type]
                welch=stats.welch(a, b, confidence=confidence),
                rank_sum=stats.rank_sum(a, b, confidence=confidence, seed=seed),
            )
        )
    welch = stats.holm([one.welch.p for one in found])
    ranks = stats.holm([one.rank_sum.p for one in found])
    return tuple(
        replace(one, p_holm=p, rank_sum_p_holm=q) for one, p, q in zip(found, welch, ranks, strict=True)
    )


def bars(found: Sequence[Characteristic]) -> pl.DataFrame:
    """One row for each bar of the grouped bars: process, characteristic, gender, percent."""
    return pl.DataFrame(
        [
            {"process": one.process, "characteristic": one.name, "gender": gender, "percent": mean}
            for one in found
            for gender, mean in one.means.items()
        ],
        schema={
            "process": pl.String,
            "characteristic": pl.String,
            "gender": pl.String,
            "percent": pl.Float64,
        },
    )


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
