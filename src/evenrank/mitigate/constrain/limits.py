"""Limits on measures, applied to the lists of one run.

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
from typing import Any

import numpy as np

from evenrank.errors import InputError
from evenrank.measures.base import Context, limited
from evenrank.measures.lists import ROUNDING, Alternatives, Floats, RankedLists, Row, sides
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.views import View

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
