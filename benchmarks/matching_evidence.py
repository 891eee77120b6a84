"""Query matching on the published association scores: matching and bins side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import evenrank as er

_SETTINGS: dict[str, dict[str, Any]] = {
    "matching": {},
    "matching, caliper 0.1": {"caliper": 0.1},
    "bins": {"method": "bins"},
    "bins over the male range": {"method": "bins", "range": "male"},
    "100 bins": {"method": "bins", "bins": 100},
}


def matching(data: Path) -> dict[str, Any]:
    """How many queries stay, and how far apart the two distributions of scores are then."""
    sides = [
        pl.read_csv(data / "data" / "association" / f"{gender}.tsv.gz", separator="\t").with_columns(
            gender=pl.lit(gender)
        )
        for gender in ("female", "male")
    ]
    scores = pl.concat(sides)
    genders = scores.select("query_id", "gender").unique()
    found: dict[str, Any] = {}
    for name, settings in _SETTINGS.items():
        even = er.balance(scores.drop("gender"), genders, **settings)
        found.setdefault("before", short(even.before))
        found[name] = {
            "kept": {gender: {"before": even.before.pairs[gender], "after": count}
                     for gender, count in even.after.pairs.items()},
            "kept_of_smaller_side": even.after.pairs["female"] / min(even.before.pairs.values()),
            "after": short(even.after),
            "provenance": even.provenance,
        }  # fmt: skip
    return found


def short(found: Any) -> dict[str, Any]:
    """Two distributions of scores, without histograms."""
    left_out = ("provenance", "pairs", "edges", "histogram")
    return {key: value for key, value in found.to_dict().items() if key not in left_out}
