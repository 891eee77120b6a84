"""Constrained re-ranking: the most useful ranking that keeps to limits on its bias, in a run or one list."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, Unpack

import numpy as np
import polars as pl

from evenrank.errors import InputError, check_choice
from evenrank.measures.base import is_sum, preferred_direction
from evenrank.measures.evaluate import measured
from evenrank.measures.groups import Groups, listed_groups, normal_groups, read_targets
from evenrank.measures.inputs import Inputs, MeasureInputs
from evenrank.measures.lists import Floats, RankedLists, Words, views_of
from evenrank.measures.parse import Condition
from evenrank.measures.results import Options
from evenrank.mitigate._solver.lists import (
    GAP,
    INFEASIBLE,
    KEPT,
    MOVED,
    OPTIMAL,
    UNRESOLVED,
    Solved,
    gains,
    solve,
    warm_up,
)
from evenrank.mitigate._solver.mean import solve_mean
from evenrank.mitigate.base import reordered_run
from evenrank.mitigate.limits import Limit, apply_limits, parse_limits, rows_of

_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
BUDGET = 0.05
"""Seconds of an ordinary core for a query."""
LIST = "results"
"""What the query of one list is called."""
Progress = Callable[[int, int | None], None]


def constrain(
    run: Any,
    tally: Any = None,
    *,
    limit: str | Condition | Sequence[str | Condition],
    mode: Literal["each", "mean"] = "each",
    candidates: int = 100,
    exact: bool = False,
    budget: float = BUDGET,
    utility: Literal["dcg", "order"] = "dcg",
    **given: Unpack[MeasureInputs],
) -> Constrained:
    """The most useful ranking of each query's candidates within limits on its bias.

    Usefulness is the discounted gain Σ_i gain(d_i) / log2(i + 1) over the ranks down to the deepest cut-off
    of the limits; a gain is the score, from 0 for the lowest candidate to 1 for the highest. What comes back
    is a run, with a report that says for each query whether it is proved to be the best.

    Parameters
    ----------
    run, tally
        The run to re-rank, and the word counts of the collection. Limits on groups need only `labels`.
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
        Groups of documents and target shares, as for :func:`evenrank.measure`.
    docs, lexicon, tokenizer, dictionary
        The documents, for limits on LIWC or instead of the tally; what to count in them then, as for
        :func:`evenrank.measure`; and the words for LIWC.
    utility
        ``dcg``: gains are scores. ``order``: they are 1/log2(rank + 1), agreement with the given order,
        for runs whose scores mean nothing.
    missing
        Documents that the tally lacks: ``error``, or ``zero``: they have no words.
    order
        ``score``: ranks follow the scores. ``rank``: the run's rank column is trusted.
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
    check_choice("utility", utility, ("dcg", "order"))
    progress = given.pop("progress", None)
    for name in ("queries", "qrels", "vectors", "pairs", "genders", "ties"):
        if name in given:
            raise InputError(f"constrain takes no {name}: it looks at the run and its documents")
    check_choice("missing", given.get("missing", "error"), ("error", "zero"))
    _check_search(candidates, budget)
    conditions = parse_limits(limit)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return constrained(
        inputs,
        conditions,
        mode=mode,
        candidates=candidates,
        exact=exact,
        budget=budget,
        utility=utility,
        progress=progress,
    )


def constrained(
    inputs: Inputs,
    conditions: Sequence[Condition],
    *,
    mode: str = "each",
    candidates: int = 100,
    exact: bool = False,
    budget: float = BUDGET,
    utility: str = "dcg",
    progress: Progress | None = None,
) -> Constrained:
    """As :func:`constrain`, of the one run of inputs that are open."""
    (frame,) = inputs.runs.values()
    limits = applied(conditions, inputs, candidates)
    lists = limits[0].lists
    first = np.flatnonzero(frame["rank"].to_numpy() == 1)
    lengths = np.diff(first, append=frame.height)
    ranks = max(condition.measure["cutoff"] for condition in conditions)
    scores = frame["score"].to_numpy()
    gain = [gains(scores[s : s + min(n, candidates)], utility) for s, n in zip(first, lengths, strict=True)]
    certificate: dict[str, Any] = {}
    if mode == "mean":
        for each in limits:
            if not is_sum(each.measure):
                raise InputError("limits on groups hold for each query; leave out the mode 'mean'")
        if exact:
            raise InputError("exact is for limits on each query; with the mode 'mean' give a larger budget")
        solved, certificate = solve_mean(gain, limits, ranks, budget=budget, progress=progress)
        times = [0.0] * len(solved)
    else:

        def one(query: int) -> tuple[Solved, float]:
            started = time.thread_time()
            rows = rows_of(limits, query)
            result = solve(gain[query], rows, min(ranks, len(gain[query])), budget=budget, exact=exact)
            return result, 1000 * (time.thread_time() - started)

        warm_up()
        rows_of(limits, 0)  # what concerns all queries is computed with the first
        solved, times = [], []
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiled loops let go of the interpreter
            for done, (result, took) in enumerate(pool.map(one, range(len(first))), 1):
                solved.append(result)
                times.append(took)
                if progress is not None:
                    progress(done, len(first))
    order = np.arange(frame.height)
    for start, result in zip(first.tolist(), solved, strict=True):
        order[start : start + len(result.order)] = start + result.order
    limited = {each.condition.measure: each for each in limits}  # one may be limited twice
    report = _report(lists.query_ids, solved, times).with_columns(
        column for each in limited.values() for column in _values(each, order, first, lengths)
    )
    summary = summed_up(report, [str(condition) for condition in conditions], mode) | certificate
    return Constrained.of(reordered_run(frame, order), report, summary)


def _check_search(candidates: int, budget: float) -> None:
    if candidates < 1:
        raise InputError(f"candidates is {candidates!r}, but must be at least 1")
    if not budget > 0:
        raise InputError(f"budget is {budget!r}, but must be above 0 seconds")


def applied(conditions: Sequence[Condition], inputs: Inputs, candidates: int) -> list[Limit]:
    """The conditions on the lists of a run, each list as deep as they look or documents move."""
    measures: list[Any] = [condition.measure for condition in conditions]
    inputs.check(measures)
    (run,) = inputs.runs.values()
    views = views_of(inputs, measures, depth=candidates)
    return apply_limits(conditions, {kind: view.lists(run) for kind, view in views.items()})


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
    lists = limit.lists
    kept = np.repeat(first, lists.lengths) + lists.positions - 1  # of each entry of the lists, its row
    row_to_entry = np.full(int(lengths.sum()), -1)
    row_to_entry[kept] = np.arange(len(kept))
    after = reordered(lists, row_to_entry[order[kept]])
    values = [measure.per_query(each).values for each in (lists, after)]
    return [
        pl.Series(name, each).fill_nan(None)
        for name, each in zip((f"{measure} before", str(measure)), values, strict=True)
    ]


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
        built = cls(run)
        built.report, built.certificate = report, certificate
        return built

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        page: str = import_module("evenrank.show.notebook").page(self)
        return page

    def chart(self) -> Any:
        """Each limited measure before and after, a tick for each query: an Altair object."""
        return import_module("evenrank.show.notebook").chart(self)

    def to_report(self) -> dict[str, Any]:
        """The certificate and the report as JSON knows them, without times: equal input, equal bytes."""
        return {**self.certificate, "queries": self.report.drop("ms").to_dicts()}


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


@dataclass(frozen=True, eq=False)
class ConstrainSweep:
    """Constrained re-ranking: strengths are bounds on the measure, from loose to tight."""

    inputs: Inputs
    measure: Any
    given: Sequence[float] | None
    candidates: int
    mode: str

    @property
    def name(self) -> str:
        return f"constrain ({self.mode})"

    def __post_init__(self) -> None:
        if not is_sum(self.measure):
            raise InputError(f"{self.measure} cannot be bounded here; RaB, ARaB, FaiRR, NFaiRR and LIWC can")
        if self._way == "one":
            raise InputError(f"{self.measure} cannot be bounded here; values near 1 are good, on both sides")
        if self.given is None and self._way == "high" and self.measure.BEST is None:
            raise InputError(f"name the strengths: bounds on {self.measure}, from weak to strong")

    @property
    def _way(self) -> str:
        return preferred_direction(self.measure)

    @property
    def _none(self) -> float:
        """The bound that bounds nothing."""
        return 0.0 if self._way == "high" else np.inf

    def strengths(self) -> list[float]:
        """Those given, or bounds that leave nine tenths to one twentieth of the bias there is."""
        high = self._way == "high"
        if self.given is not None:
            return [self._none, *sorted(self.given, reverse=not high)]
        result = measured(self.inputs, [self.measure], Options(confidence=None))[self.measure]
        if not high:
            size = (result.abs if self.measure.SIGNED else result.value) or 0.0
            return [self._none, *(float(f"{share * size:.6g}") for share in _SHARES)]
        best, value = self.measure.BEST, result.value or 0.0
        return [self._none, *(float(f"{best - share * (best - value):.6g}") for share in _SHARES)]

    def apply(self, strength: float) -> pl.DataFrame:
        """The most useful ranking within the bound."""
        if strength == self._none:
            return self.inputs.runs["the run"]
        form = {"zero": "abs({})<={!r}", "low": "{}<={!r}", "high": "{}>={!r}"}[self._way]
        limits = parse_limits(form.format(self.measure, strength))
        return pl.DataFrame(constrained(self.inputs, limits, mode=self.mode, candidates=self.candidates))


@dataclass(frozen=True)
class Reranked:
    """One list re-ranked.

    Attributes
    ----------
    order
        For each rank the number of the result that now stands there, counted from 0 as they were given.
    status
        `kept`, `optimal`, `gap`, `infeasible` or `unresolved`: as :class:`Constrained` has them.
    loss, gap
        Usefulness given up, and what at most could be saved by a better ranking, as shares of that before.
    before, after
        Each limited measure; None where it is undefined.
    """

    order: list[int]
    status: str
    loss: float
    gap: float
    before: dict[str, float | None]
    after: dict[str, float | None]


def rerank(
    scores: Sequence[float],
    counts: Mapping[str, Sequence[float]] | None = None,
    *,
    limit: str | Condition | Sequence[str | Condition],
    labels: Sequence[str | None] | None = None,
    targets: Mapping[str, float] | None = None,
    candidates: int = 100,
    exact: bool = False,
    budget: float = BUDGET,
    utility: Literal["dcg", "order"] = "dcg",
) -> Reranked:
    """The most useful order of one result list within limits on its bias: :func:`constrain` for a search box.

    Parameters
    ----------
    scores
        One for each result, highest best; among equal ones the first given comes first.
    counts
        For each group how often its words occur in each result, as in a tally: ``{"female": [0, 2],
        "male": [3, 0]}``; with ``tokens`` and ``female_logwords`` … where a magnitude asks for them.
    labels, targets
        The group that each result shows, and the share that each group should have.
    limit, candidates, exact, budget, utility
        As for :func:`constrain`. NFaiRR compares with the results themselves.

    Examples
    --------
    >>> counts = {"female": [0, 0, 2], "male": [3, 1, 0]}
    >>> rerank([9.0, 8.0, 7.0], counts, limit="abs(RaB@2)<=0.2").order
    [1, 2, 0]
    """
    check_choice("utility", utility, ("dcg", "order"))
    _check_search(candidates, budget)
    conditions = parse_limits(limit)
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or len(given) == 0 or not np.isfinite(given).all():
        raise InputError("scores must be finite numbers, one for each result")
    by = np.argsort(-given, kind="stable")
    lists_of: dict[Hashable, RankedLists] = {}
    if counts is not None:
        lists_of[Words] = replace(_lists(counts, given, by), background=_lists(counts, given, by))
    if labels is None and any(getattr(c.measure, "VIEW", None) is Groups for c in conditions):
        raise InputError("limits on groups need labels, one for each result")
    if labels is not None:
        shown = listed_groups(pl.Series(range(len(labels))), normal_groups(labels))
        lists = _lists(shown.frame.drop("doc_id").to_dict(as_series=False), given, by)
        shares = None
        if targets is not None:
            shares = read_targets({LIST: targets}, shown.groups).of(lists.query_ids, shown.groups)
        lists_of[Groups] = replace(lists, labels=shown, targets=shares)
    limits = apply_limits(conditions, lists_of)
    gain = gains(given[by][:candidates], utility)
    ranks = min(len(gain), max(condition.measure["cutoff"] for condition in conditions))
    result = solve(gain, rows_of(limits, 0), ranks, budget=budget, exact=exact)
    order = np.concatenate([result.order, np.arange(len(gain), len(given))])
    before, after = {}, {}
    for each in limits:
        measure, seen = each.condition.measure, each.lists
        before[str(measure)] = _value(measure, seen)
        after[str(measure)] = _value(measure, reordered(seen, order))
    whole = result.utility_before or 1.0
    loss, gap = (result.utility_before - result.utility) / whole, (result.ceiling - result.utility) / whole
    return Reranked(by[order].tolist(), result.status, loss, gap, before, after)


def reordered(lists: RankedLists, order: np.ndarray) -> RankedLists:
    """The same lists with their entries in another order."""
    return replace(lists, rows=lists.rows[order], doc_ids=lists.doc_ids.gather(order))


def _lists(columns: Mapping[str, Sequence[float]], scores: Any, by: Any) -> RankedLists:
    """One ranked list whose documents are rows of these columns."""
    frame = pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})
    if len(frame) != len(scores):
        raise InputError(f"there are {len(scores)} scores, but {len(frame)} results are described")
    groups = tuple(name for name in columns if name != "tokens" and not name.endswith("_logwords"))
    length = np.array([len(by)])
    ids = pl.Series([str(row) for row in by.tolist()], dtype=pl.String)
    return RankedLists(pl.Series([LIST]), length, ids, by, frame, groups, scores[by], length)


def _value(measure: Any, lists: RankedLists) -> float | None:
    value = float(measure.per_query(lists).values[0])
    return None if np.isnan(value) else value
