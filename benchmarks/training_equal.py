"""Plain training, and what is not trained at all, re-ranked to the bias that a way of training has: what is
RR@10 then?

The weight of the penalty and λ of the interpolation are found by bisection, the bound of `constrain` is the
mean bias itself; none of this looks at judgments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks import kept_units
from benchmarks import training_evidence as evidence
from benchmarks.training_data import tested
from benchmarks.training_evidence import AGAIN, Unit, units
from evenrank.data import tables
from evenrank.measures.rank_bias import arab_weights

HYBRID = "untrained hybrid, penalty"
WAYS = ("penalty", "interpolate", "constrain (mean)", HYBRID)


_BY_PENALTY = ("penalty", HYBRID)


def compute(ways: Sequence[str] = WAYS) -> None:
    """All that can be computed of what has been run."""
    for how in ways:
        for unit in units():
            mine = unit.method not in AGAIN and unit.strength and evidence.known(unit) is not None
            if mine and evidence.run_path(_start(unit, how)).exists():
                reached(unit, how)


def _start(unit: Unit, how: str) -> Unit:
    """What is re-ranked to the bias of a unit."""
    return unit._replace(method="untrained hybrid", strength=0.0, seed=0) if how == HYBRID else unit.plain


def known(unit: Unit, how: str) -> dict[str, Any] | None:
    """What has been computed, or None."""
    return kept_units.kept("training-at-equal-bias", f"{unit.name}/{how}")


def reached(unit: Unit, how: str) -> dict[str, Any]:
    """RR@10 of another run, re-ranked to the bias that this unit has; kept, since runs do not change."""
    there = known(unit, how)
    if there is not None:
        return there
    bias = [*evidence.run_unit(unit)["test"]["ARaB@10"].values()]
    target = float(np.mean(np.abs(bias)))
    made: dict[str, Any]
    if how == "constrain (mean)":
        found = unit.data
        run = tables.run(pl.read_parquet(evidence.run_path(unit.plain)))
        limit = f"abs(ARaB@10)<={target!r}"
        fair = pl.DataFrame(er.constrain(run, found.tally, limit=limit, mode="mean"))
        values = evidence.measured(fair, found.qrels, found.first, found.tally)
        size = float(np.mean(np.abs([*values["ARaB@10"].values()])))
        made = {"strength": target, "|ARaB@10|": size, "RR@10": values["RR@10"]}
    else:
        lists = _lists(_start(unit, how))
        weight = _bisected(lists, how, target)
        rr, after = _after(lists, how, weight)
        by_query = dict(zip(lists["queries"], rr.tolist(), strict=True))
        made = {"strength": weight, "|ARaB@10|": float(np.abs(after).mean()), "RR@10": by_query}
    kept_units.keep("training-at-equal-bias", f"{unit.name}/{how}", made)
    return made


@lru_cache(maxsize=3)
def _lists(unit: Unit) -> dict[str, Any]:
    """Scores, signed bias and relevance of the top 100 of each list, as arrays of queries × documents."""
    train, _, judged = tested(unit.collection, unit.shape)
    run = tables.run(pl.read_parquet(evidence.run_path(unit)))
    tally = er.tally(train.docs).frame.select(
        "doc_id", male=pl.col("male").cast(float), female=pl.col("female").cast(float)
    )
    good = judged.filter(pl.col("relevance") > 0).select("query_id", "doc_id", good=True)
    table = run.join(tally, on="doc_id", how="left", maintain_order="left").join(
        good, on=["query_id", "doc_id"], how="left", maintain_order="left"
    )
    queries = run["query_id"].unique(maintain_order=True).to_list()
    place = table["query_id"].rle_id().to_numpy()
    rank = table["rank"].to_numpy() - 1
    shape = (len(queries), int(rank.max()) + 1)
    scores, bias, relevant = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape, bool)
    scores[place, rank] = table["score"].to_numpy()
    bias[place, rank] = (table["male"].log1p() - table["female"].log1p()).to_numpy()
    relevant[place, rank] = table["good"].fill_null(False).to_numpy()
    return {"queries": queries, "scores": scores, "bias": bias, "relevant": relevant}


def _after(lists: dict[str, Any], how: str, weight: float) -> tuple[Any, Any]:
    """RR@10 and ARaB@10 of each list re-ranked."""
    scores, size = lists["scores"], np.abs(lists["bias"])
    if how in _BY_PENALTY:
        new = scores - weight * size
    else:
        there = np.isfinite(scores)
        low = np.where(there, scores, np.inf).min(1, keepdims=True)
        spread = scores.max(1, keepdims=True) - low
        unit = (scores - low) / np.where(spread > 0, spread, 1)
        worst = size.max(1, keepdims=True)
        new = (1 - weight) * unit - weight * size / np.where(worst > 0, worst, 1)
    order = np.argsort(-new, axis=1, kind="stable")[:, :10]
    good = np.take_along_axis(lists["relevant"], order, 1)
    rr = np.where(good.any(1), 1 / (good.argmax(1) + 1), 0.0)
    return rr, np.take_along_axis(lists["bias"], order, 1) @ arab_weights(10, 10)


def _bisected(lists: dict[str, Any], how: str, target: float) -> float:
    """The weight at which the mean bias comes to the target, or just below it."""
    low, high = 0.0, 1.0
    while how in _BY_PENALTY and np.abs(_after(lists, how, high)[1]).mean() > target and high < 1e6:
        high *= 2
    for _ in range(20):
        middle = (low + high) / 2
        if np.abs(_after(lists, how, middle)[1]).mean() > target:
            low = middle
        else:
            high = middle
    return high
