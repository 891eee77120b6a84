"""Representation bias of image search, and the two findings of Kay, Matuszek and Munson (CHI 2015) checked.

They found that results under-represent women on the whole, and exaggerate the majority of an occupation
slightly. The second shows as a slope above 1 when the log-odds of a woman in the results are regressed on
those of a woman in the occupation; the first as a predicted share below one half where half are women.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from evenrank import stats

_RESAMPLES = 2000


def image_search(data: Path) -> dict[str, Any]:
    """MB, SB and MAB at 10 and 20 of both genders, and the two findings at 10, 20 and over whole lists."""
    folder = data / "data" / "image-search"
    results, targets = folder / "results.tsv", folder / "targets.tsv"
    found: dict[str, Any] = {"source": "Kay, Matuszek and Munson 2015, CC BY 4.0", "occupations": 33}
    for at in (10, 20):
        for name, target in (("occupation", targets), ("full list", "full")):
            measured = er.represent(results, target, at=at)
            row = {f: _with_interval(measured, f) for f in measured.features}
            row |= {"short lists": measured.short, "unknown": measured.unknown, "labels": measured.labels}
            row["queries by bias (female)"] = {
                f"{bias:+.2f}": n for bias, n in measured.histogram("female").items() if n
            }
            found[f"at {at}, target {name}"] = row
    found["findings"] = {
        depth: _findings(results, targets, cut)
        for depth, cut in (("top 10", 10), ("top 20", 20), ("whole lists", None))
    }
    return found


def _with_interval(measured: Any, feature: str) -> dict[str, Any]:
    interval = stats.mean_interval(measured.of(feature)["bias"].to_numpy())
    return measured.summary(feature) | {"MB low": interval.low, "MB high": interval.high}


def _findings(results: Path, targets: Path, cut: int | None) -> dict[str, Any]:
    shown = pl.read_csv(results, separator="\t")
    top = shown.sort("rank").group_by("query", maintain_order=True).head(cut or shown.height)
    counts = top.group_by("query").agg(women=(pl.col("gender") == "female").sum(), n=pl.len())
    table = counts.join(pl.read_csv(targets, separator="\t"), on="query").sort("query")
    women, n, share = (table[name].to_numpy().astype(float) for name in ("women", "n", "female"))
    gap = women / n - share
    interval = stats.mean_interval(gap)
    slope, intercept = _fit(women, n, share)
    random = np.random.default_rng(0)
    draws = [random.integers(0, len(n), len(n)) for _ in range(_RESAMPLES)]
    again = np.array([_fit(women[d], n[d], share[d]) for d in draws])
    slopes = np.quantile(again[:, 0], [0.025, 0.975])
    halves = np.quantile(_expit(again[:, 1]), [0.025, 0.975])
    return {
        "images": int(n.sum()),
        "share of women shown minus share in the occupation": {
            "mean": float(gap.mean()),
            "low": interval.low,
            "high": interval.high,
        },
        "slope of log-odds (above 1: exaggerated)": {
            "value": float(slope),
            "low": float(slopes[0]),
            "high": float(slopes[1]),
        },
        "women shown where half are women (below 0.5: under-represented)": {
            "value": float(_expit(intercept)),
            "low": float(halves[0]),
            "high": float(halves[1]),
        },
        "mean gap where most are men": float(gap[share < 0.5].mean()),
        "mean gap where most are women": float(gap[share >= 0.5].mean()),
    }


def _fit(women: np.ndarray, n: np.ndarray, share: np.ndarray) -> tuple[float, float]:
    """Logistic regression of the results on the log-odds of the occupation: slope, intercept (Newton)."""
    x = np.column_stack([np.log(share / (1 - share)), np.ones(len(n))])
    weights = np.zeros(2)
    for _ in range(50):
        p = _expit(x @ weights)
        step = np.linalg.solve((x * (n * p * (1 - p))[:, None]).T @ x, x.T @ (women - n * p))
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])


def _expit(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))
