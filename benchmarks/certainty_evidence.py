"""Simulations: how often equivalence is claimed wrongly, how often rightly, and whether power is as promised.

Per-query values have odd shapes, so the shapes are real ones: ARaB@10 of BM25 on SQuAD's and TIME's queries,
moved to a known mean; beside them a normal and a half-zero heavy-tailed one. Samples of n queries are drawn
from them with seed 16.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from benchmarks.pages import fill, number, table
from evenrank import stats

_SEED, _SAMPLES, _RESAMPLES = 16, 1000, 400
_SIZES = (10, 30, 100)


def certainty(data: Path) -> dict[str, Any]:
    """For each shape and size of sample: the claims at the edge, at 0, and the power at what is promised."""
    shapes = _shapes(data)
    found: dict[str, Any] = {
        "seed": _SEED,
        "samples": _SAMPLES,
        "resamples": _RESAMPLES,
        "standard deviations": {name: float(values.std()) for name, values in shapes.items()},
        "rows": [],
    }
    for name, values in shapes.items():
        for n in _SIZES:
            found["rows"].append(_row(name, values, n))
    fill("certainty.md", page(found))
    return found


def _shapes(data: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(_SEED)
    shapes = {"normal": rng.normal(size=200_000)}
    shapes["half zero, heavy tails"] = np.where(rng.random(200_000) < 0.5, 0.0, rng.standard_t(3, 200_000))
    for name in ("squad", "time"):
        docs = er.load(data / "data" / name, **({"split": "test"} if name == "squad" else {})).docs
        run = data / "runs" / f"{name}.bm25.run"
        path = run if run.exists() else run.with_suffix(".run.gz")
        shapes[f"ARaB@10 of BM25, {name}"] = er.measure(path, "ARaB@10", docs=docs, confidence=None)[
            "ARaB@10"
        ].values
    return {name: values - values.mean() for name, values in shapes.items()}


def _row(name: str, values: np.ndarray, n: int) -> dict[str, Any]:
    sd = float(values.std())
    delta = sd * 3.6 / np.sqrt(n)  # wide enough that equivalence can be shown at all
    effect = stats.detectable(sd, n)
    assert effect is not None
    rng = np.random.default_rng([_SEED, n, len(name)])
    at_edge = {"bootstrap": 0, "t": 0, "both": 0}
    at_zero, covered, found, false = 0, 0, 0, 0
    for seed in range(_SAMPLES):
        sample = rng.choice(values, n)
        edge = stats.equivalence(sample + delta, delta, resamples=_RESAMPLES, seed=seed)
        if (
            edge.high is not None
            and edge.t_high is not None
            and edge.low is not None
            and edge.t_low is not None
        ):
            boot = max(-edge.low, edge.high) < delta
            t = max(-edge.t_low, edge.t_high) < delta
            at_edge["bootstrap"] += boot
            at_edge["t"] += t
            at_edge["both"] += bool(edge.passed)
            covered += edge.low <= delta <= edge.high
        at_zero += bool(stats.equivalence(sample, delta, resamples=_RESAMPLES, seed=seed).passed)
        found += _rejects(sample + effect)
        false += _rejects(sample)
    share = {key: value / _SAMPLES for key, value in at_edge.items()}
    return {
        "shape": name,
        "n": n,
        "delta in sd": delta / sd,
        "claimed at the edge": share,
        "claimed at zero": at_zero / _SAMPLES,
        "coverage of the 90 % bootstrap interval": covered / _SAMPLES,
        "detectable in sd": effect / sd,
        "power there": found / _SAMPLES,
        "false alarms": false / _SAMPLES,
    }


def _rejects(sample: np.ndarray) -> bool:
    between = stats.mean_interval(sample, method="t")
    return between.low is not None and (between.low > 0 or between.high < 0)  # type: ignore[operator]


def page(found: dict[str, Any]) -> str:
    """The table of docs/certainty.md."""
    heads = [
        "values",
        "queries",
        "wrongly small: bootstrap",
        "t",
        "both",
        "rightly small",
        "90% interval covers",
    ]
    heads += ["power where 80% is promised", "false alarms"]
    rows = [
        [
            row["shape"],
            str(row["n"]),
            *(number(row["claimed at the edge"][key], ".1%") for key in ("bootstrap", "t", "both")),
            number(row["claimed at zero"], ".0%"),
            number(row["coverage of the 90 % bootstrap interval"], ".1%"),
            number(row["power there"], ".1%"),
            number(row["false alarms"], ".1%"),
        ]
        for row in found["rows"]
    ]
    lead = (
        f"{found['samples']:,} samples of each size (seed {found['seed']}). *Wrongly small*: how often a "
        "mean of exactly δ is called smaller than δ; it should be at most 5 %. *Rightly small*: how often a "
        "mean of 0 is called smaller than δ, for δ = 3.6 standard errors. *False alarms*: how often a "
        "t-test at 5 % finds a lean "
        "where there is none."
    )
    known = "A simulated share of 5 % is known to ± 1.4 points. Numbers: [evidence](evidence/certainty.json)."
    return f"{lead}\n\n{table(heads, rows)}\n{known}\n"
