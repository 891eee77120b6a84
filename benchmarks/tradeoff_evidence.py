"""Bias against usefulness on real runs: both modes of constrained re-ranking, interpolation, feedback."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from evenrank import stats
from evenrank.data.docs import Dataset
from evenrank.data.runs import read_run
from evenrank.mitigate.tradeoff import Point, TradeOff
from evenrank.rankers.indexing import index as build

_COLLECTIONS = {"time": None, "squad": "test"}
_BIAS, _UTILITY = er.ARaB @ 10, er.nDCG @ 10
_RESAMPLES = 1000
_WIDEST = 16.0  # no list leans more than this


def trade_off(data: Path) -> dict[str, Any]:
    """The curves, and at equal mean |ARaB@10| whose nDCG@10 is higher, with intervals."""
    found: dict[str, Any] = {}
    for collection, split in _COLLECTIONS.items():
        dataset = er.load(data / "data" / collection, split=split)
        assert dataset.qrels is not None
        path = data / "runs" / f"{collection}.bm25.run"
        judged = dataset.qrels["query_id"].unique().implode()
        run = read_run(path if path.exists() else Path(f"{path}.gz"))
        run = run.filter(pl.col("query_id").is_in(judged))
        found[collection] = _collection(dataset, run)
    return found


def _collection(dataset: Dataset, run: pl.DataFrame) -> dict[str, Any]:
    tally = er.tally(dataset.docs)
    given: dict[str, Any] = {"qrels": dataset.qrels, "resamples": _RESAMPLES}
    curves = {
        "constrain (mean)": er.sweep(run, tally, mode="mean", **given),
        "constrain (each)": er.sweep(run, tally, mode="each", **given),
        "interpolate": er.sweep(run, tally, method="interpolate", **given),
    }
    with tempfile.TemporaryDirectory() as folder:
        index = build(dataset.docs, Path(folder) / "index")
        asked = dataset.queries.filter(pl.col("query_id").is_in(run["query_id"].unique().implode()))
        curves["feedback"] = er.sweep(None, tally, method="feedback", index=index, queries=asked, **given)
    return {
        "queries": len(curves["interpolate"].queries),
        "curves": {name: curve.to_dict()["points"] for name, curve in curves.items()},
        "at equal bias": {
            # Each is compared on the run it started from: BM25, or RM3 without debiasing.
            name: [_beside(point, curves[name], tally, dataset.qrels) for point in _worth(curves[name])]
            for name in ("interpolate", "feedback")
        },
    }


def _worth(curve: TradeOff) -> list[Point]:
    """Settings that lower bias and keep at least half of the utility."""
    bias, utility = (each.value or 0.0 for each in (curve.points[0].bias, curve.points[0].utility))
    return [
        point
        for point in curve.points[1:]
        if (point.bias.value or 0.0) < 0.99 * bias and (point.utility.value or 0.0) > 0.5 * utility
    ]


def _beside(point: Point, curve: TradeOff, tally: er.Tally, qrels: Any) -> dict[str, Any]:
    level = point.bias.value or 0.0
    start = curve.points[0].run.filter(pl.col("query_id").is_in(list(curve.queries)))
    ours = {
        "mean": er.constrain(start, tally, limit=f"abs({_BIAS})<={level!r}", mode="mean"),
        "each": _each_at(start, tally, level),
    }
    row: dict[str, Any] = {
        "strength": point.strength,
        "bias": level,
        "utility": point.utility.value,
    }
    for name, run in ours.items():
        measured = er.measure(run, [_BIAS, _UTILITY], tally=tally, qrels=qrels, confidence=None)
        utility = measured[_UTILITY].per_query()
        change = stats.paired([utility[query] for query in curve.queries], point.utilities)
        row[name] = {
            "bias": measured[_BIAS].abs,
            "utility": sum(utility[query] for query in curve.queries) / len(curve.queries),
            "difference": change.difference,
            "low": change.low,
            "high": change.high,
            "p": change.p,
        }
    return row


def _each_at(run: pl.DataFrame, tally: er.Tally, level: float, steps: int = 6) -> pl.DataFrame:
    """The bound on each query under which the mean comes to this level, by bisection from the safe side."""

    def bounded(bound: float) -> tuple[pl.DataFrame, bool]:
        made = er.constrain(run, tally, limit=f"abs({_BIAS})<={bound!r}")
        return made, float(np.abs(made.report[str(_BIAS)].to_numpy()).mean()) <= level

    low, high = level, 4 * level
    kept, _ = bounded(low)
    while (found := bounded(high))[1] and 0 < high < _WIDEST:
        low, high, kept = high, 2 * high, found[0]
    for _ in range(steps):
        middle = (low + high) / 2
        made, within = bounded(middle)
        if within:
            low, kept = middle, made
        else:
            high = middle
    return kept
