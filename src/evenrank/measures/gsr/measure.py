"""GSR: do lists speak the gendered language that their queries suggest?

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement: Measuring the Gender Bias
Conveyed by Ranking Algorithms, Information Processing & Management 57(6), 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, Context, Param, PerQuery, register
from evenrank.measures.gsr.results import compared_lines
from evenrank.measures.gsr.slope import DISCOUNTS, Ints
from evenrank.measures.gsr.view import Genderedness
from evenrank.measures.lists import WHOLE

if TYPE_CHECKING:
    from evenrank.measures.results import Change, Measurement


class StereotypeReinforcement(BiasMeasure):
    """Gender stereotype reinforcement: how far the language of the lists follows that of the queries.

    GSR = (1/(σ² N)) Σ_i (g(q_i) − μ_q)(g_qi(L_i) − μ_L): the slope of the least-squares line of the lists'
    genderedness on the queries'. g(q) is the mean cosine of the query's words with the gender direction;
    g_q(L) the mean over the list of its documents' genderedness without the query's words, the document
    at rank r weighing 1/log2(r + 1). Positive: female-leaning queries get female-leaning documents, and
    male-leaning ones male-leaning; 0: what is found does not depend on the leaning of the query; negative:
    lists run against the stereotype. It has no bounds; the relevant documents alone give a positive value
    wherever topics have a language of their own, so compare with the perfect engine.

    `GSR` looks at the top K_q documents, as many as the query has relevant ones, so that it compares
    with the perfect engine: it needs qrels. `GSR@k` looks at the top k and never at qrels. The two differ.

    The value of a query is its contribution (g(q_i) − μ_q)(g_qi(L_i) − μ_L)/σ²; their mean is GSR. Queries
    and documents without a word that has a value are left out, and counted.

    Fabris, Purpura, Silvello and Susto, IP&M 57(6), 2020, Eqs. 1 to 5.
    """

    __name__ = NAME = "GSR"
    PRETTY_NAME = "Gender stereotype reinforcement"
    SHORT_DESC = "Slope of the lists' genderedness on the queries'."
    MEANING = (
        "Whether results speak the gendered language that their queries suggest: the slope of one on the "
        "other. A perfect engine is not at 0: compare with it."
    )
    READING = "above 0 follows the stereotype"
    YARDSTICK = "a perfect engine"
    SIGNED = True
    VIEW = Genderedness
    NEEDS = frozenset({"docs", "queries"})
    WAYS_OUT = {"qrels": "a depth, as in GSR@10"}  # noqa: RUF012
    SUPPORTED_PARAMS: dict[str, ParamInfo] = {  # noqa: RUF012 (as ir_measures declares it)
        "cutoff": Param(
            dtype=int, default=None, minimum=1, desc="how deep to look; unless given, the number of relevant"
        ),
        "discount": Param(
            dtype=str,
            choices=DISCOUNTS,
            default="log",
            desc="weight of a rank: 1/log2(r + 1), as the released code has it, or none",
        ),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if self["cutoff"] is None:
            self.NEEDS = frozenset({"docs", "queries", "qrels"})

    def depth(self) -> int:
        return WHOLE if self["cutoff"] is None else int(self["cutoff"])

    def depths(self, relevant: Ints | None, queries: int) -> Ints:
        """How deep to look for each query; 0 for one without a relevant document, where that decides."""
        if self["cutoff"] is not None:
            return np.full(queries, self["cutoff"], np.int64)
        if relevant is None:
            raise InputError(f"{self} needs relevance judgments; give qrels, or {self.WAYS_OUT['qrels']}")
        return relevant

    def compare(
        self, mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0
    ) -> Change:
        """One run against another: both lines are fitted anew, see `compare_reinforcement`."""
        return compared_lines(mine, theirs, confidence=confidence, seed=seed)

    def per_query(self, context: Context) -> PerQuery:
        raise InputError(f"{self} is not computed from a tally; use evenrank.measure")


GSR = StereotypeReinforcement()
register(GSR)
