"""How a measure is summed up over queries, and the choices behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import stats
from evenrank.measures.lists import Floats

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made; no intervals when `confidence` is None."""

    confidence: float | None = 0.95
    resamples: int = 2000
    seed: int = 0

    def interval(self, values: Floats) -> tuple[float | None, float | None]:
        if self.confidence is None or len(values) < 2:
            return None, None
        found = stats.mean_interval(
            values, confidence=self.confidence, resamples=self.resamples, seed=self.seed
        )
        return found.low, found.high


class Change(NamedTuple):
    """One run against another: the comparison, and the difference of each query, if there is one."""

    comparison: stats.Comparison
    query_ids: pl.Series
    changes: Floats


@dataclass(frozen=True)
class Options:
    """How runs are measured: see `measure`."""

    missing: str = "error"
    ties: str = "order"
    order: str = "score"
    only: str | None = None
    explain: bool = False
    bootstrap: Bootstrap = Bootstrap()


@dataclass(frozen=True)
class Summary:
    """A measure over a set of queries. None stands for undefined, never NaN."""

    value: float | None
    low: float | None
    high: float | None
    queries: int
    parts: dict[str, float]
    abs: float | None
    spread: float | None
    quantiles: dict[str, float]

    @classmethod
    def over(
        cls,
        values: Floats,
        parts: Mapping[str, Floats],
        chosen: NDArray[np.bool_],
        *,
        signed: bool,
        bootstrap: Bootstrap,
    ) -> Summary:
        """Summary of the chosen queries that have a value."""
        chosen = chosen & ~np.isnan(values)
        taken = values[chosen]
        if len(taken) == 0:
            return cls(None, None, None, 0, {}, None, None, {})
        low, high = bootstrap.interval(taken)
        return cls(
            value=float(taken.mean()),
            low=low,
            high=high,
            queries=len(taken),
            parts={name: float(part[chosen].mean()) for name, part in parts.items()},
            abs=float(np.abs(taken).mean()) if signed else None,
            spread=float(taken.std(ddof=1)) if len(taken) > 1 else None,
            quantiles={
                str(p): float(q) for p, q in zip(QUANTILES, np.quantile(taken, QUANTILES), strict=True)
            },
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "queries": self.queries,
            "parts": self.parts,
        }
