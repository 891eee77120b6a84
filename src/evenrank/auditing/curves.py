"""Bias by cut-off: how far down a list one has to look until it evens out (Rekabsaz & Schedl, Fig. 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.measures.evaluate import measure
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.rank_bias import ARaB, RaB, RankBias

CUTOFFS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40, 50, 70, 100)
_SCHEMA = {
    "run": pl.String,
    "measure": pl.String,
    "cutoff": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def cutoff_curves(
    runs: Mapping[str, pl.DataFrame],
    measures: Iterable[Measure],
    *,
    confidence: float | None = 0.95,
    **given: Any,
) -> pl.DataFrame:
    """RaB, ARaB and NFaiRR at growing cut-offs: run, measure, cutoff, value, low, high.

    Only of families that the audit measures, down to half the depth that half of the lists reach. Intervals
    are Student's: there are many, and curves are read by eye.

    Parameters
    ----------
    given
        What :func:`evenrank.measure` needs: tally, background, genders and so on.
    """
    families = _families(measures)
    lengths = pl.concat(run.group_by("query_id").len()["len"] for run in runs.values())
    depth = int(lengths.median() or 0)  # type: ignore[arg-type]
    # Near the end of the lists NFaiRR goes to 1 of itself: run and background hold the same documents.
    cutoffs = [k for k in CUTOFFS if k <= max(min(depth, 10), depth // 2, 1)]
    if not families:
        return pl.DataFrame(schema=_SCHEMA)
    wanted = {(name, k): family @ k for name, family in families.items() for k in cutoffs}
    measured = measure(runs, wanted.values(), confidence=None, **given)
    rows = []
    for run in runs:
        for (name, k), one in wanted.items():
            m = measured[run, one]
            low = high = None
            if confidence is not None and m.value is not None and len(m.values) > 1:
                interval = stats.mean_interval(m.values, confidence=confidence, method="t")
                low, high = interval.low, interval.high
            rows.append((run, name, k, m.value, low, high))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _families(measures: Iterable[Measure]) -> dict[str, Measure]:
    """One measure without cut-off for each curve, by the name it goes under."""
    given = list(measures)
    found: dict[str, Measure] = {}
    for one in given:
        if isinstance(one, RankBias):
            pair = {key: one.params[key] for key in ("of", "against") if key in one.params}
            if one.params.get("magnitude", "tf") != "tf":
                continue  # one magnitude is enough for curves
            for family in (RaB, ARaB):
                named = family(**pair) if pair else family
                found[str(named)] = named
        elif one.NAME == "NFaiRR" and set(one.params) <= {"cutoff"}:
            found["NFaiRR"] = NFaiRR
    return found
