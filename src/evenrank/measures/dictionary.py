"""LIWC@k: how far the gender words of a psychological dictionary lean to one side in the top documents.

A. Bigdeli, thesis, Section 3.2.2.2 and Tables 3.8, 4.1 and 4.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.measures.base import LinearMeasure, Param, PerQuery, Preferred, register
from evenrank.measures.lists import Floats, RankedLists
from evenrank.measures.rank_bias import rab_weights


class DictionaryBias(LinearMeasure):
    """The lean of a list between a dictionary's female and male words, in percent of the text.

    LIWC@k of a query is | mean over its top k documents of (male % − female %) |, where % is 100 × the
    category's tokens / all tokens of the document; a list of n < k documents averages over what it has,
    and an empty document has 0 %. From 0 (balance) to 100. With ``signed=True`` the sign is kept: positive
    leans male, negative female. The words are those of a dictionary with the categories female and male:
    the open one, or LIWC's own if you have it (`dictionary=`).

    The thesis' Tables 4.1 and 4.2 are in percent, as here; 3.7, 3.8 and 3.12 are fractions.
    """

    __name__ = NAME = "LIWC"
    SHORT_DESC = "Mean over queries of |male % − female %| over the top k documents."
    PREFERRED: ClassVar[Preferred | None] = "low"
    MEANING = "How far the top {k} documents lean to female or to male words, in percent of words."
    ORDER_MATTERS = False
    CURVE = False  # it would need the texts of documents far down the lists
    NEEDS = frozenset({"docs", "dictionary"})
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(dtype=int, required=True, minimum=1, desc="ranking cutoff threshold"),
        "signed": Param(dtype=bool, default=False, desc="keep the sign: positive leans male"),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        # A matter of the parameter: an absolute value is not linear in the documents.
        self.LINEAR = bool(self["signed"])  # type: ignore[misc]
        if self["signed"]:
            self.PREFERRED = "zero"  # type: ignore[misc]
            self.MEANING = "How far the top {k} documents lean to male words, in percent of words."  # type: ignore[misc]
            self.INTERPRETATION = "above 0 leans male, below 0 female"  # type: ignore[misc]

    weights = staticmethod(rab_weights)

    def values(self, lists: RankedLists) -> Floats:
        male, female = (lists.magnitude("length", group) for group in ("male", "female"))
        return 100 * (male - female)

    def words(self, groups: tuple[str, ...]) -> tuple[str, dict[str, float]]:
        return "length", {"male": 100.0, "female": -100.0}

    def per_query(self, lists: RankedLists) -> PerQuery:
        """The value for each list, and the percent of each of the two in it."""
        weighing = self.weighing(lists)
        parts = {
            group: 100 * weighing.total(lists.magnitude("length", group)) for group in ("female", "male")
        }
        lean = parts["male"] - parts["female"]
        return PerQuery(lean if self["signed"] else np.abs(lean), parts)


LIWC = DictionaryBias()
register(LIWC)
