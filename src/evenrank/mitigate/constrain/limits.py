"""Limits on measures, applied to the lists of one run, or to one list as it comes from a search engine.

What a limit asks of a list its measure says itself (`BiasMeasure.limit`), as rows Σ_i w_i · v(d_i) ≤ b. RaB,
ARaB, FaiRR and NFaiRR are such sums already. Skew and MB depend on how many of the top t show each group, and
become bounds on these numbers; where the numbers within the limit do not hang together (Skew counts an absent
group as half a document), there are several alternatives, each of them linear.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.errors import InputError, check_choice
from evenrank.measures.base import Context, limited
from evenrank.measures.document_groups import group_targets, normal_groups, ordered_groups
from evenrank.measures.groups import Groups
from evenrank.measures.lists import ROUNDING, Alternatives, Floats, RankedLists, Row, sides, single_list
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.views import View, Words
from evenrank.mitigate.constrain.solving import gains, solve

__all__ = ["ROUNDING", "Alternatives", "Limit", "Row", "apply_limits", "parse_limits", "reordered", "rows_of"]
ALTERNATIVES = 64
_BOUNDLESS = 1e300  # in place of infinity, with which the solvers cannot reckon


@dataclass(frozen=True, eq=False)
class Limit:
    """A condition, applied to the lists of one run."""

    condition: Condition
    context: Context

    @property
    def measure(self) -> Any:
        return self.condition.measure

    @property
    def linear(self) -> bool:
        """Whether the value is a sum over documents, so that means over queries can be limited too."""
        return hasattr(self.measure, "line")

    def rows(self, query: int) -> Alternatives | None:
        """What a list has to keep to, one of the alternatives; None where the measure is undefined."""
        found: Alternatives | None = self.measure.limit(self.condition, self.context, query)
        return found

    def sides(self) -> list[float]:
        """The signs with which the value is bounded from above."""
        return sides(self.condition)

    def line(self, query: int) -> tuple[Floats, Floats] | None:
        """Of a linear measure, weights of the ranks and values of the documents; None where undefined."""
        found: tuple[Floats, Floats] | None = self.measure.line(self.context, query)
        return found


def parse_limits(limit: Any) -> list[Condition]:
    """Conditions that can be limits; anything else is refused with what can."""
    given = [limit] if isinstance(limit, str | Condition) else list(limit)
    if not given:
        raise InputError("name at least one limit, as in abs(ARaB@10)<=0.1")
    return [limited(_finite(parse_condition(each))) for each in given]


def _finite(condition: Condition) -> Condition:
    """A limit of infinity as one that is too high to bind."""
    if math.isfinite(condition.bound):
        return condition
    if condition.op.startswith(">"):
        raise InputError(f"{condition}: no ranking can keep to it")
    return replace(condition, bound=_BOUNDLESS)


def apply_limits(
    conditions: Iterable[Condition], contexts: Mapping[type[View], Context | None]
) -> list[Limit]:
    """The conditions on the lists of a run, each as the view of its measure sees them."""
    found: list[Limit] = []
    for condition in conditions:
        measure: Any = condition.measure
        seen = contexts.get(measure.VIEW)
        if seen is None:
            raise InputError(f"{condition} needs {measure.VIEW.NEEDED}")
        measure.check_groups(seen.groups)
        found.append(Limit(condition, seen))
    return found


def rows_of(limits: Sequence[Limit], query: int) -> Alternatives:
    """What one list has to keep to: one of the alternatives, every row of it."""
    applied = [rows for rows in (limit.rows(query) for limit in limits) if rows is not None]
    if math.prod(map(len, applied)) > ALTERNATIVES:
        raise InputError("too many groups are limited at once; limit Skew of the ones that matter")
    return [[row for rows in each for row in rows] for each in product(*applied)]


def reordered(lists: RankedLists, order: np.ndarray) -> RankedLists:
    """The same lists with their entries in another order."""
    return replace(lists, rows=lists.rows[order], doc_ids=lists.doc_ids.gather(order), _cache={})


_QUERY = "results"


@dataclass(frozen=True)
class Reranked:
    """One list re-ranked.

    Attributes
    ----------
    order
        For each rank the number of the result that now stands there, counted from 0 as they were given.
    status
        `kept`, `optimal`, `gap`, `infeasible` or `unresolved`: see `Solved` in solving.py.
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
    budget: float = 0.05,
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
    conditions = parse_limits(limit)
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or len(given) == 0 or not np.isfinite(given).all():
        raise InputError("scores must be finite numbers, one for each result")
    by = np.argsort(-given, kind="stable")
    contexts: dict[type[View], Context] = {}
    if counts is not None:
        contexts[Words] = Context(_lists(counts, given, by), _lists(counts, given, by))
    if labels is None and any(getattr(c.measure, "VIEW", None) is Groups for c in conditions):
        raise InputError("limits on groups need labels, one for each result")
    if labels is not None:
        shown = normal_groups(labels)
        groups = ordered_groups(shown)
        columns = {group: [int(label == group) for label in shown] for group in groups}
        wished = None if targets is None else group_targets({_QUERY: targets}, groups)
        contexts[Groups] = Context(_lists(columns, given, by), targets=wished)
    limits = apply_limits(conditions, contexts)
    gain = gains(given[by][:candidates], utility)
    ranks = min(len(gain), max(condition.measure["cutoff"] for condition in conditions))
    found = solve(gain, rows_of(limits, 0), ranks, budget=budget, exact=exact)
    order = np.concatenate([found.order, np.arange(len(gain), len(given))])
    before, after = {}, {}
    for each in limits:
        measure, seen = each.condition.measure, each.context
        before[str(measure)] = _value(measure, seen)
        after[str(measure)] = _value(measure, replace(seen, lists=reordered(seen.lists, order)))
    whole = found.utility_before or 1.0
    loss, gap = (found.utility_before - found.utility) / whole, (found.ceiling - found.utility) / whole
    return Reranked(by[order].tolist(), found.status, loss, gap, before, after)


def _lists(columns: Mapping[str, Sequence[float]], scores: Any, by: Any) -> RankedLists:
    """One ranked list whose documents are rows of these columns."""
    frame = pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})
    if len(frame) != len(scores):
        raise InputError(f"there are {len(scores)} scores, but {len(frame)} results are described")
    groups = tuple(name for name in columns if name != "tokens" and not name.endswith("_logwords"))
    return single_list(_QUERY, frame, groups, by, scores[by])


def _value(measure: Any, context: Context) -> float | None:
    value = float(measure.per_query(context).values[0])
    return None if np.isnan(value) else value
