"""Constrained re-ranking: the most useful ranking that keeps to limits on its bias, in a run or one list."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, Unpack

import numpy as np
import polars as pl

from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.measures.base import is_sum, preferred_direction
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs, MeasureInputs, sharing_tables
from evenrank.measures.lists import Floats, RankedLists
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
)
from evenrank.mitigate._solver.mean import solve_mean
from evenrank.mitigate.base import reordered_run
from evenrank.mitigate.limits import Limit, apply_limits, parse_limits, rows_of

_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
BUDGET = 0.05
"""Seconds of an ordinary core for a query."""
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
    check_choice("missing", given.get("missing", "error"), ("error", "zero"))
    check_whole("candidates", candidates)
    check_number("budget", budget)
    conditions = parse_limits(limit)
    inputs = Inputs.open({"the run": run}, tally=tally, **given)
    return constrain_inputs(
        inputs,
        conditions,
        mode=mode,
        candidates=candidates,
        exact=exact,
        budget=budget,
        utility=utility,
        progress=progress,
    )


def constrain_inputs(
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
    """As :func:`constrain`, for the one run of opened inputs."""
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
    else:

        def solve_query(query: int) -> Solved:
            n = min(ranks, len(gain[query]))
            return solve(gain[query], rows_of(limits, query), n, budget=budget, exact=exact)

        rows_of(limits, 0)  # what concerns all queries is computed with the first
        solved = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiled loops let go of the interpreter
            for result in pool.map(solve_query, range(len(first))):
                solved.append(result)
                if progress is not None:
                    progress(len(solved), len(first))
    order = np.arange(frame.height)
    for start, result in zip(first.tolist(), solved, strict=True):
        order[start : start + len(result.order)] = start + result.order
    limited = {each.condition.measure: each for each in limits}  # one may be limited twice
    report = _report(lists.query_ids, solved).with_columns(
        column for each in limited.values() for column in _values(each, order, first, lengths)
    )
    summary = _certificate(report, [str(condition) for condition in conditions], mode) | certificate
    return Constrained.of(reordered_run(frame, order), report, summary)


def applied(conditions: Sequence[Condition], inputs: Inputs, candidates: int) -> list[Limit]:
    """The conditions on the lists of a run, each list as deep as they look or documents move."""
    measures: list[Any] = [condition.measure for condition in conditions]
    inputs.check(measures)
    (run,) = inputs.runs.values()
    lists_of: dict[Any, RankedLists] = {}
    for some in sharing_tables(measures):
        lists_of |= dict.fromkeys(some, inputs.lists(run, some, depth=candidates))
    return apply_limits(conditions, lists_of.__getitem__)


def _report(query_ids: pl.Series, solved: Sequence[Solved]) -> pl.DataFrame:
    before = np.array([each.utility_before for each in solved])
    after = np.array([each.utility for each in solved])
    ceiling = np.array([each.ceiling for each in solved])
    return pl.DataFrame(
        {
            "query_id": query_ids,
            "status": [each.status for each in solved],
            "utility_before": before,
            "utility": after,
            "gap": _share(ceiling - after, before),
            "excess": [each.excess for each in solved],
            "least_excess": [each.least_excess for each in solved],
            "work": [each.work for each in solved],
        }
    )


def _values(limit: Limit, order: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> list[pl.Series]:
    """The limited measure before and after, as the package itself measures it."""
    measure: Any = limit.condition.measure
    lists = limit.lists
    kept = np.repeat(first, lists.lengths) + lists.positions - 1  # of each entry of the lists, its row
    row_to_entry = np.full(int(lengths.sum()), -1)
    row_to_entry[kept] = np.arange(len(kept))
    after = _reordered(lists, row_to_entry[order[kept]])
    values = [measure.per_query(each).values for each in (lists, after)]
    return [
        pl.Series(name, each).fill_nan(None)
        for name, each in zip((f"{measure} before", str(measure)), values, strict=True)
    ]


def _reordered(lists: RankedLists, order: np.ndarray) -> RankedLists:
    """The same lists with their entries in another order."""
    return replace(lists, rows=lists.rows[order], doc_ids=lists.doc_ids.gather(order))


class Constrained(pl.DataFrame):
    """A run (query_id, doc_id, score, rank) that knows how it was made; use it wherever a run is taken.

    Attributes
    ----------
    report
        One row for each query: `status`, `utility_before`, `utility`, `gap` (what may be missing to the
        best, as a share of `utility_before`), `excess` and `least_excess` where limits cannot be kept,
        `work` (pairs of rank and document tried), and each limited measure before and after. What a Polars
        operation makes of the run is an ordinary frame without it.
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
        """JSON-ready dict of the certificate and the report."""
        return {**self.certificate, "queries": self.report.to_dicts()}


def _certificate(report: pl.DataFrame, limits: list[str], mode: str) -> dict[str, Any]:
    """The summary over all queries."""
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
        "mean_loss": float(np.mean(_share(before - report["utility"].to_numpy(), before))),
    }


def _share(part: Floats, whole: Floats) -> Floats:
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
        if not is_sum(self.measure) or self._way == "one":
            raise InputError(f"{self.measure} cannot be bounded here; RaB, ARaB, FaiRR, NFaiRR and LIWC can")
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
        high, given = self._way == "high", self.given
        if given is None:
            result = measured(self.inputs, [self.measure], Options(confidence=None))[self.measure]
            size = (result.abs if self.measure.SIGNED else result.value) or 0.0
            best = self.measure.BEST if high else 0.0
            given = [float(f"{best + share * (size - best):.6g}") for share in _SHARES]
        return [self._none, *sorted(given, reverse=not high)]

    def apply(self, strength: float) -> pl.DataFrame:
        """The most useful ranking within the bound."""
        if strength == self._none:
            return self.inputs.runs["the run"]
        form = {"zero": "abs({})<={!r}", "low": "{}<={!r}", "high": "{}>={!r}"}[self._way]
        limits = parse_limits(form.format(self.measure, strength))
        return pl.DataFrame(constrain_inputs(self.inputs, limits, mode=self.mode, candidates=self.candidates))


@dataclass(frozen=True)
class Reranked:
    """One list re-ranked.

    Attributes
    ----------
    order
        For each rank the number of the result that now stands there, counted from 0 as they were given.
    status
        `kept`, `optimal`, `gap`, `infeasible` or `unresolved`: as :class:`Constrained` has them.
    loss
        Usefulness given up, as a share of that before.
    before, after
        Each limited measure; None where it is undefined.
    """

    order: list[int]
    status: str
    loss: float
    before: dict[str, float | None]
    after: dict[str, float | None]


def rerank(
    scores: Sequence[float],
    counts: Mapping[str, Sequence[float]],
    *,
    limit: str | Condition | Sequence[str | Condition],
    candidates: int = 100,
    utility: Literal["dcg", "order"] = "dcg",
) -> Reranked:
    """The most useful order of one result list within limits on its bias: :func:`constrain` for a search box.

    Parameters
    ----------
    scores
        One for each result, highest best; among equal ones the first given comes first.
    counts
        For each group how often its words occur in each result, as in a tally: ``{"female": [0, 2],
        "male": [3, 0]}``; with ``tokens`` and ``female_logwords`` … where a magnitude needs them.
    limit, candidates, utility
        As for :func:`constrain`. NFaiRR compares with the results themselves.

    Examples
    --------
    >>> counts = {"female": [0, 0, 2], "male": [3, 1, 0]}
    >>> rerank([9.0, 8.0, 7.0], counts, limit="abs(RaB@2)<=0.2").order
    [1, 2, 0]
    """
    check_whole("candidates", candidates)
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or len(given) == 0 or not np.isfinite(given).all():
        raise InputError("scores must be finite numbers, one for each result")
    frame = pl.DataFrame({name: np.asarray(values) for name, values in counts.items()})
    if len(frame) != len(given):
        raise InputError(f"there are {len(given)} scores, but {len(frame)} results are described")
    by_score = np.argsort(-given, kind="stable")
    groups = tuple(name for name in counts if name != "tokens" and not name.endswith("_logwords"))
    length = np.array([len(given)])
    ids = pl.Series(map(str, by_score.tolist()), dtype=pl.String)
    lists = RankedLists(pl.Series(["results"]), length, ids, by_score, frame, groups, given[by_score], length)
    conditions = parse_limits(limit)
    for condition in conditions:
        if "tally" not in condition.measure.NEEDS:  # type: ignore[attr-defined]
            raise InputError(f"{condition} needs labels or texts; of counts, limits on words can be kept")
    with_background = replace(lists, background=lists)
    limits = apply_limits(conditions, lambda _: with_background)
    gain = gains(given[by_score][:candidates], utility)
    ranks = min(len(gain), max(each.measure["cutoff"] for each in limits))
    result = solve(gain, rows_of(limits, 0), ranks, budget=BUDGET, exact=False)
    order = np.concatenate([result.order, np.arange(len(gain), len(given))])
    before, after = {}, {}
    for each in limits:
        before[str(each.measure)] = _value(each.measure, each.lists)
        after[str(each.measure)] = _value(each.measure, _reordered(each.lists, order))
    loss = (result.utility_before - result.utility) / (result.utility_before or 1.0)
    return Reranked(by_score[order].tolist(), result.status, loss, before, after)


def _value(measure: Any, lists: RankedLists) -> float | None:
    value = float(measure.per_query(lists).values[0])
    return None if np.isnan(value) else value
