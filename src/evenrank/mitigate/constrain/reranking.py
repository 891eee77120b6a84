"""Constrained re-ranking: the most useful ranking that keeps to limits on its bias."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.data import tables
from evenrank.errors import InputError, check_choice
from evenrank.measures.inputs import Given, Inputs
from evenrank.measures.parse import Condition
from evenrank.measures.views import views_of
from evenrank.mitigate.constrain.constrained import Constrained, relative, reordered_run, summed_up
from evenrank.mitigate.constrain.limits import Limit, apply_limits, parse_limits, reordered, rows_of
from evenrank.mitigate.constrain.solving import Solved, gains, solve, warm_up

UTILITIES = ("dcg", "order")
Progress = Callable[[int, int | None], None]


def constrain(
    run: Any,
    tally: Any = None,
    *,
    limit: str | Condition | Sequence[str | Condition],
    mode: Literal["each", "mean"] = "each",
    candidates: int = 100,
    exact: bool = False,
    budget: float = 0.05,
    background: Any = None,
    labels: Any = None,
    targets: Any = None,
    docs: Any = None,
    dictionary: Any = None,
    utility: Literal["dcg", "order"] = "dcg",
    missing: Literal["error", "zero"] = "error",
    progress: Progress | None = None,
) -> Constrained:
    """The most useful ranking of each query's candidates that keeps to limits on its bias.

    Usefulness is the discounted gain Σ_i gain(d_i) / log2(i + 1) over the ranks down to the deepest cut-off
    of the limits; a gain is the score, from 0 for the lowest candidate to 1 for the highest. What comes back
    is a run, with a report that says for each query whether it is proved to be the best.

    Parameters
    ----------
    run, tally
        The run to re-rank, and the coloured collection. Limits on groups need only `labels`.
    limit
        Conditions as in ``["abs(ARaB@10)<=0.1", "NFaiRR@10>=0.95"]``, all to be kept at once. RaB, ARaB,
        FaiRR, NFaiRR with any parameters, and any measure of your own that is a sum over documents
        (``LinearMeasure``); Skew, MinSkew, MaxSkew and MB for the shares of groups; LIWC.
    mode
        ``each``: every query keeps to the limits, or is reported as one that cannot and gets its least
        biased ranking. ``mean``: the mean over the queries keeps to them (of sizes with `abs`, else of
        values), which spends usefulness where it buys most; not for limits on groups.
    candidates
        How many documents from the top may move; the others stay below them, in their order.
    exact, budget
        Work allowed for each query, in seconds of an ordinary core; counted in steps, so that the same
        input gives the same ranking anywhere. What is left unproved then is reported with its gap.
        `exact` works until all is proved, which may take long where limits are very tight; only with the
        mode ``each``.
    background
        The run NFaiRR compares with; the run itself unless given. Measure the result with the same one.
    labels, targets
        Groups of documents and wished-for shares, as for :func:`evenrank.measure`.
    docs, dictionary
        The documents, for limits on LIWC or instead of the tally, and the words for LIWC.
    utility
        ``dcg``: gains are scores. ``order``: they are 1/log2(rank + 1), agreement with the given order,
        for runs whose scores mean nothing.
    missing
        Documents that the tally lacks: ``error``, or ``zero``: they have no words.
    progress
        Called with (queries done, queries in all).

    Examples
    --------
    >>> docs = {"a": "he said", "b": "she said", "c": "they said"}
    >>> import evenrank as er
    >>> fair = constrain({"q": {"a": 3.0, "b": 2.9, "c": 1.0}}, er.tally(docs), limit="abs(ARaB@2)<=0.2")
    >>> fair["doc_id"].to_list(), fair.report["status"].to_list()
    (['c', 'a', 'b'], ['optimal'])
    """
    check_choice("mode", mode, ("each", "mean"))
    check_choice("utility", utility, UTILITIES)
    check_choice("missing", missing, ("error", "zero"))
    if candidates < 1:
        raise InputError(f"candidates is {candidates!r}, but must be at least 1")
    if not budget > 0:
        raise InputError(f"budget is {budget!r}, but must be above 0 seconds")
    conditions = parse_limits(limit)
    frame = tables.run(run)
    more: Given = {"labels": labels, "targets": targets, "docs": docs, "dictionary": dictionary}
    inputs = Inputs.open({"the run": frame}, tally=tally, background=background, missing=missing, **more)
    limits = applied(conditions, inputs, candidates)
    lists = limits[0].context.lists
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    lengths = np.diff(first, append=frame.height)
    ranks = max(condition.measure["cutoff"] for condition in conditions)
    scores = frame["score"].to_numpy()
    gain = [gains(scores[s : s + min(n, candidates)], utility) for s, n in zip(first, lengths, strict=True)]
    certificate: dict[str, Any] = {}
    if mode == "mean":
        from evenrank.mitigate.constrain.averages import solve_mean

        for each in limits:
            if not each.linear:
                raise InputError("limits on groups hold for each query; leave out the mode 'mean'")
        if exact:
            raise InputError("exact is for limits on each query; with the mode 'mean' give a larger budget")
        solved, certificate = solve_mean(gain, limits, ranks, budget=budget, progress=progress)
        times = [0.0] * len(solved)
    else:

        def one(query: int) -> tuple[Solved, float]:
            started = time.thread_time()
            rows = rows_of(limits, query)
            found = solve(gain[query], rows, min(ranks, len(gain[query])), budget=budget, exact=exact)
            return found, 1000 * (time.thread_time() - started)

        warm_up()
        rows_of(limits, 0)  # what concerns all queries is computed with the first
        solved, times = _all(one, len(first), progress)
    order = np.arange(frame.height)
    for start, found in zip(first.tolist(), solved, strict=True):
        order[start : start + len(found.order)] = start + found.order
    measured = {each.condition.measure: each for each in limits}  # one may be limited twice
    report = _report(lists.query_ids, solved, times).with_columns(
        column for each in measured.values() for column in _values(each, order, first, lengths)
    )
    summary = summed_up(report, [str(condition) for condition in conditions], mode) | certificate
    return Constrained.of(reordered_run(frame, order), report, summary)


def applied(conditions: Sequence[Condition], inputs: Inputs, candidates: int) -> list[Limit]:
    """The conditions on the lists of a run, each list as deep as they look or documents move."""
    measures: list[Any] = [condition.measure for condition in conditions]
    inputs.check(measures)
    (run,) = inputs.runs.values()
    views = views_of(inputs, measures, depth=candidates)
    return apply_limits(conditions, {kind: view.context(run) for kind, view in views.items()})


def _all(
    one: Callable[[int], tuple[Solved, float]], queries: int, progress: Progress | None
) -> tuple[list[Solved], list[float]]:
    """Every query, several at a time: the compiled loops let go of the interpreter."""
    solved, times = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (found, took) in enumerate(pool.map(one, range(queries)), 1):
            solved.append(found)
            times.append(took)
            if progress is not None:
                progress(done, queries)
    return solved, times


def _report(query_ids: pl.Series, solved: Sequence[Solved], times: Sequence[float]) -> pl.DataFrame:
    before = np.array([each.utility_before for each in solved])
    after = np.array([each.utility for each in solved])
    ceiling = np.array([each.ceiling for each in solved])
    return pl.DataFrame(
        {
            "query_id": query_ids,
            "status": [each.status for each in solved],
            "utility_before": before,
            "utility": after,
            "gap": relative(ceiling - after, before),
            "excess": [each.excess for each in solved],
            "least_excess": [each.least_excess for each in solved],
            "work": [each.work for each in solved],
            "ms": list(times),
        }
    )


def _values(limit: Limit, order: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> list[pl.Series]:
    """The limited measure before and after, as the package itself measures it."""
    measure: Any = limit.condition.measure
    context = limit.context
    lists = context.lists
    kept = np.repeat(first, lists.lengths) + lists.positions - 1  # of each entry of the lists, its row
    row_to_entry = np.full(int(lengths.sum()), -1)
    row_to_entry[kept] = np.arange(len(kept))
    after = replace(context, lists=reordered(lists, row_to_entry[order[kept]]))
    values = [measure.per_query(each).values for each in (context, after)]
    return [
        pl.Series(name, each).fill_nan(None)
        for name, each in zip((f"{measure} before", str(measure)), values, strict=True)
    ]
