"""abs(m): how far the lists of single queries lean, whichever way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from ir_measures.measures import Measure

from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, PerQuery, require_params
from evenrank.measures.lists import RankedLists
from evenrank.measures.results import Options, Summary

if TYPE_CHECKING:
    from evenrank.measures.results import Measurement


class Absolute(BiasMeasure):
    """The absolute value of a measure that has a sign, query by query; its value is their mean.

    abs(ARaB@10) = (1/N) Σ_q |ARaB_10(q)|. Never negative, 0 only where every query is in balance: opposite
    queries do not cancel, as they do in the mean of ARaB@10. Made by `abs(ARaB @ 10)` or out of the text
    `abs(ARaB@10)`.

    It is not made for GSR, whose value is one slope over all queries and not a mean.
    """

    PRETTY_NAME = "Mean of absolute values"
    SHORT_DESC = "Mean over queries of the measure's absolute value."
    PREFERRED = "low"
    MEANING = (
        "How far the results of single queries lean, to either side: the mean of absolute values, in which "
        "opposite queries do not cancel out."
    )
    AT_PARAM = ""

    def __init__(self, inner: Measure) -> None:
        if not isinstance(inner, BiasMeasure) or not inner.SIGNED:
            raise InputError(f"abs() takes a measure with a sign, such as ARaB@10; {inner} has none")
        if inner.REFERENCE:
            raise InputError(
                f"{inner} is one value over all queries, not a mean, so abs({inner}) does not exist; "
                f"measure {inner} itself"
            )
        require_params(inner)
        super().__init__()
        self.inner = inner
        self.__name__ = self.NAME = f"abs({inner})"
        for name in ("NEEDS", "ALTERNATIVES", "ORDER_MATTERS", "VIEW"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def __call__(self, **params: Any) -> BiasMeasure:
        raise InputError(f"set the parameters of the measure within abs(), as in abs({self.inner})")

    def depth(self) -> int:
        return self.inner.depth()

    def background_depth(self) -> int:
        return self.inner.background_depth()

    def check_groups(self, groups: tuple[str, ...]) -> None:
        self.inner.check_groups(groups)

    def per_query(self, lists: RankedLists) -> PerQuery:
        result = self.inner.per_query(lists)
        return PerQuery(np.abs(result.values), undefined=result.undefined)

    def of(self, found: Measurement, options: Options) -> Measurement:
        """The measurement of this measure, out of that of the measure within."""
        values = np.abs(found.values)
        everything = np.ones(len(values), bool)
        return replace(
            found,
            measure=self,
            summary=Summary.over(values, {}, everything, signed=False, options=options),
            values=values,
            part_values={},
            compare=dict,
            subsets={label: Summary(of.abs, queries=of.queries) for label, of in found.subsets.items()},
            attribution=None,
            yardsticks=dict,
        )
