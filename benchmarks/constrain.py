"""Constrained re-ranking on real runs: computing time for a query, what is proved, the largest gap."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from benchmarks.corpus import shared
from benchmarks.timing import Row
from evenrank import demo
from evenrank.data.runs import read_run
from evenrank.measures.inputs import Inputs
from evenrank.mitigate._solver.lists import Solved, gains, solve
from evenrank.mitigate.constrain import applied
from evenrank.mitigate.limits import Row as Bound
from evenrank.mitigate.limits import parse_limits, rows_of

_CANDIDATES, _RANKS, _BUDGET = 100, 10, 0.05
_LIMITS = (
    ["abs(ARaB@10)<=0.1"],
    ["abs(ARaB@10)<=0.01"],
    ["abs(ARaB@10)<=0.1", "NFaiRR@10>=0.9"],
    ["abs(ARaB@10)<=0.1", "abs(RaB@5)<=0.2", "NFaiRR@10>=0.8"],
    ["abs(Skew(target='equal')@10)<=0.3"],
)


def rows() -> Iterator[Row]:
    for name, run, tally in _collections():
        for limits in _LIMITS:
            yield _row(name, run, tally, limits)
    for name, run, tally in _collections():
        yield _against_milp(name, run, tally)


def _collections() -> Iterator[tuple[str, pl.DataFrame, er.Tally]]:
    folder = shared()
    if folder is None:
        data = er.load(demo.folder())
        yield "demo", read_run(demo.folder() / "bm25.run"), er.tally(data.docs)
        return
    for name in ("time", "grepbiasir", "squad"):
        data = er.load(folder / "data" / name, split="test" if name == "squad" else None)
        path = folder / "runs" / f"{name}.bm25.run"
        run = read_run(path if path.exists() else Path(f"{path}.gz"))
        yield name, run, er.tally(data.docs)


def _problems(run: pl.DataFrame, tally: er.Tally, limits: list[str]) -> Iterator[tuple[Any, Any]]:
    applicable = applied(parse_limits(limits), Inputs.open(run, tally=tally), _CANDIDATES)
    starts = np.flatnonzero(run["rank"].to_numpy() == 1)
    lengths = np.diff(starts, append=run.height)
    scores = run["score"].to_numpy()
    for query, (start, n) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        gain = gains(scores[start : start + min(n, _CANDIDATES)], "dcg")
        yield gain, rows_of(applicable, query)


def _load_solver() -> None:
    """Load the compiled loops, which should not count as a query's time."""
    limit = Bound(np.ones(1), np.array([1.0, 0.0]), 0.5)
    solve(np.array([1.0, 0.0]), [[limit]], 1, budget=0.001, exact=False)


def _row(name: str, run: pl.DataFrame, tally: er.Tally, limits: list[str]) -> Row:
    solved: list[Solved] = []
    cpu = []
    _load_solver()
    for gain, alternatives in _problems(run, tally, limits):
        started = time.thread_time()
        deepest = max((len(each.weights) for each in alternatives[0]), default=_RANKS)
        solved.append(solve(gain, alternatives, min(deepest, len(gain)), budget=_BUDGET, exact=False))
        cpu.append(1000 * (time.thread_time() - started))
    status = [each.status for each in solved]
    changed = [ms for ms, each in zip(cpu, status, strict=True) if each != "kept"]
    gaps = [(each.ceiling - each.utility) / each.utility_before for each in solved if each.utility_before > 0]
    details = {
        "queries": len(solved),
        "status": {each: status.count(each) for each in sorted(set(status))},
        "proved": round(sum(each.proved for each in solved) / len(solved), 4),
        "largest_gap": float(f"{max(gaps, default=0.0):.2g}"),
        "excess_gap": float(f"{max(each.excess - each.least_excess for each in solved):.2g}"),
        "ms_of_those_re_ranked": {
            "p50": round(float(np.percentile(changed or [0.0], 50)), 2),
            "p99": round(float(np.percentile(changed or [0.0], 99)), 2),
            "max": round(max(cpu), 2),
        },
    }
    what = f"re-ranking within {' and '.join(limits)}, {name}: slowest query"
    return Row(what, "budget of 50 ms, one core, 100 candidates", 50, round(max(cpu), 1), " ms", details)


def _against_milp(name: str, run: pl.DataFrame, tally: er.Tally, queries: int = 12) -> Row:
    """The same problems, whole, given to HiGHS: ranks × candidates, one binary variable for each pair."""
    problems = [
        (gain, alternatives[0])
        for gain, alternatives in _problems(run, tally, ["abs(ARaB@10)<=0.01"])
        if solve(gain, alternatives, min(_RANKS, len(gain)), budget=_BUDGET, exact=False).status == "optimal"
    ][:queries]
    theirs, ours, furthest = [], [], 0.0
    for gain, limits in problems:
        ranks = min(_RANKS, len(gain))
        started = time.thread_time()
        found = solve(gain, [limits], ranks, budget=_BUDGET, exact=True)
        middle = time.thread_time()
        value = _milp(gain, limits, ranks)
        theirs.append(time.thread_time() - middle)
        ours.append(middle - started)
        furthest = max(furthest, abs(value - found.utility))
    ratio = float(np.median(np.array(theirs) / np.array(ours))) if problems else 0.0
    details = {
        "queries": len(problems),
        "milp_ms": [round(1000 * each, 1) for each in theirs],
        "ms": [round(1000 * each, 2) for each in ours],
        "largest_difference_in_utility": float(f"{furthest:.2g}"),
    }
    return Row(
        f"exact re-ranking within abs(ARaB@10)<=0.01, {name}",
        "scipy.optimize.milp (HiGHS)",
        10,
        round(ratio, 1),
        "×",
        details,
    )


def _milp(gain: Any, limits: Any, ranks: int) -> float:
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = len(gain)
    discount = 1 / np.log2(np.arange(ranks) + 2.0)
    used = np.array([np.outer(row.weights[:ranks], row.values[:n]).ravel() for row in limits])
    found = milp(
        -np.outer(discount, gain).ravel(),
        constraints=[
            LinearConstraint(np.kron(np.eye(ranks), np.ones(n)), 1, 1),
            LinearConstraint(np.kron(np.ones(ranks), np.eye(n)), 0, 1),
            LinearConstraint(used, -np.inf, [row.bound for row in limits]),
        ],
        integrality=np.ones(ranks * n),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return -float(found.fun)


def evidence() -> dict[str, Any]:
    """Everything the pages on constrained re-ranking quote."""
    found: dict[str, Any] = {"budget of 50 ms": {}, "against HiGHS": {}}
    for name, run, tally in _collections():
        found["budget of 50 ms"][name] = {
            " and ".join(limits): _row(name, run, tally, limits).details
            for limits in (*_LIMITS, ["abs(ARaB@20)<=0.1"], ["abs(ARaB@10)<=0"])
        }
        row = _against_milp(name, run, tally)
        found["against HiGHS"][name] = {"median ratio": row.reached, **row.details}
    return found
