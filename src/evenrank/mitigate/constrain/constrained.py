"""What constrained re-ranking gives: a run, and for each query what was changed and what is proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from evenrank.data.trec import falling
from evenrank.measures.lists import Floats
from evenrank.mitigate.constrain.solving import GAP, INFEASIBLE, KEPT, MOVED, OPTIMAL, UNRESOLVED


class Constrained(pl.DataFrame):
    """A run (query_id, doc_id, score, rank) that knows how it was made; use it wherever a run is taken.

    Attributes
    ----------
    report
        One row for each query: `status`, `utility_before`, `utility`, `gap` (what may be missing to the
        best, as a share of `utility_before`), `excess` and `least_excess` where limits cannot be kept,
        `work` (pairs of rank and document tried), `ms` (computing time), and each limited measure before
        and after. What a Polars operation makes of the run is an ordinary frame without it.
    certificate
        Over all queries: limits, mode, how many queries have each status, the share that is proved, the
        largest gap, the mean loss of utility; with mode `mean` also the multipliers.
    """

    report: pl.DataFrame
    certificate: Mapping[str, Any]

    @classmethod
    def of(cls, run: pl.DataFrame, report: pl.DataFrame, certificate: Mapping[str, Any]) -> Constrained:
        made = cls(run)
        made.report, made.certificate = report, certificate
        return made

    def to_report(self) -> dict[str, Any]:
        """The certificate and the report as JSON knows them, without times: equal input, equal bytes."""
        return {**self.certificate, "queries": self.report.drop("ms").to_dicts()}


def reordered_run(run: pl.DataFrame, order: np.ndarray) -> pl.DataFrame:
    """The rows' documents in another order (within queries), under scores that fall strictly.

    The document at a rank takes the score that stood there. A query with ties, even only in single
    precision, gets scores that differ as little as they must.
    """
    made = run.with_columns(run["doc_id"].gather(order))
    score, rank = made["score"].to_numpy(), made["rank"].to_numpy()
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    level = np.zeros(len(made), bool)
    level[1:] = (rank[1:] > 1) & ~(single[1:] < single[:-1])
    level |= ~np.isfinite(single)
    if level.any():
        heads = np.flatnonzero(rank == 1)
        tied = np.logical_or.reduceat(level, heads)[np.cumsum(rank == 1) - 1]
        made = made.with_columns(score=np.where(tied, falling(made).cast(pl.Float64).to_numpy(), score))
    return made


def summed_up(report: pl.DataFrame, limits: list[str], mode: str) -> dict[str, Any]:
    """The report over all queries."""
    status = report["status"]
    names = (KEPT, OPTIMAL, GAP, INFEASIBLE, UNRESOLVED) if mode == "each" else (KEPT, MOVED)
    counts = {name: int((status == name).sum()) for name in names}
    before = report["utility_before"].to_numpy()
    proved = status.is_in([KEPT, OPTIMAL]) | (
        (status == INFEASIBLE) & (report["excess"] <= report["least_excess"])
    )
    return {
        "limits": limits,
        "mode": mode,
        "status": counts,
        "proved": float(proved.mean() or 0.0),  # type: ignore[arg-type]
        "largest_gap": float(report["gap"].max() or 0.0),  # type: ignore[arg-type]
        "mean_loss": float(np.mean(relative(before - report["utility"].to_numpy(), before))),
    }


def relative(part: Floats, whole: Floats) -> Floats:
    """A share, 0 where there is nothing to share."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
