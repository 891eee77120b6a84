"""GSR: do lists speak the gendered language that their queries suggest?

A. Fabris, A. Purpura, G. Silvello and G. A. Susto, Gender Stereotype Reinforcement: Measuring the Gender Bias
Conveyed by Ranking Algorithms, Information Processing & Management 57(6), 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import ParamInfo

from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, Change, Param, PerQuery, register
from evenrank.measures.gsr.results import compare_reinforcement, measure_reinforcement
from evenrank.measures.gsr.slope import DISCOUNTS, Ints
from evenrank.measures.gsr.study import Study
from evenrank.measures.lists import WHOLE_LIST, RankedLists, View
from evenrank.measures.results import Measurement, Options


class Genderedness(View):
    """Queries and documents as the genderedness of their words."""

    NEEDED = "the text of documents and queries; give docs and queries"

    def check(self) -> None:
        if self.inputs.docs is None or self.inputs.queries is None:
            raise InputError(f"{self.measures[0]} needs {self.NEEDED}")

    def provenance(self) -> dict[str, Any]:
        texts = self.inputs.genderedness
        return {"genderedness": texts.stopping(self.measures[0]["stop_words"]).provenance}

    def prepare(self, seed: int = 0) -> None:
        """Read queries and documents, once for all runs (and for each list of stop words)."""
        self.check()
        inputs = self.inputs
        assert inputs.queries is not None  # `check` sees to it
        self.studies = {
            stop_words: Study(
                inputs.runs,
                [measure for measure in self.measures if measure["stop_words"] == stop_words],
                inputs.genderedness.stopping(stop_words),
                docs=inputs.docs,
                queries=inputs.queries,
                qrels=inputs.qrels,
                missing=self.missing,
                seed=seed,
            )
            for stop_words in dict.fromkeys(measure["stop_words"] for measure in self.measures)
        }

    def measured(self, name: str, run: pl.DataFrame, options: Options) -> list[Measurement]:
        results: dict[Any, Measurement] = {}
        for stop_words, study in self.studies.items():
            measures: Any = [measure for measure in self.measures if measure["stop_words"] == stop_words]
            for result in measure_reinforcement(name, run, measures, study, self.inputs, options):
                results[result.measure] = result
        return [results[measure] for measure in self.measures]


class StereotypeReinforcement(BiasMeasure):
    """Gender stereotype reinforcement: how far the language of the lists follows that of the queries.

    GSR = (1/(σ² N)) Σ_i (g(q_i) − μ_q)(g_qi(L_i) − μ_L): the slope of the least-squares line of the lists'
    genderedness on the queries'. g(q) is the mean cosine of the query's words with the gender direction;
    g_q(L) the mean over the list of its documents' genderedness without the query's words, the document
    at rank r weighing 1/log2(r + 1). Positive: female-leaning queries get female-leaning documents, and
    male-leaning ones male-leaning; 0: results do not depend on the leaning of the query; negative:
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
        "Whether results use the gendered language that their queries suggest: the slope of one on the "
        "other. A perfect engine is not at 0, so compare with its value."
    )
    INTERPRETATION = "above 0 follows the stereotype"
    REFERENCE = "a perfect engine"
    SIGNED = True
    VIEW = Genderedness
    NEEDS = frozenset({"docs", "queries"})
    ALTERNATIVES = {"qrels": "a depth, as in GSR@10"}  # noqa: RUF012
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
        "stop_words": Param(
            dtype=str,
            choices=("glasgow", "indri"),
            default="glasgow",
            desc="words that do not count: Glasgow's 318, or the 418 of Indri that the released code has",
        ),
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if self["cutoff"] is None:
            self.NEEDS = frozenset({"docs", "queries", "qrels"})

    def depth(self) -> int:
        return WHOLE_LIST if self["cutoff"] is None else int(self["cutoff"])

    def depths(self, relevant: Ints | None, queries: int) -> Ints:
        """The depth of each query; without a cut-off as many as it has relevant documents."""
        if self["cutoff"] is not None:
            return np.full(queries, self["cutoff"], np.int64)
        if relevant is None:
            raise InputError(f"{self} needs relevance judgments; give qrels, or {self.ALTERNATIVES['qrels']}")
        return relevant

    def compare(
        self, mine: Measurement, theirs: Measurement, *, confidence: float = 0.95, seed: int = 0
    ) -> Change:
        """Compare two runs, see `compare_reinforcement`; the change has no values by query."""
        comparison = compare_reinforcement(mine, theirs, confidence=confidence, seed=seed)  # type: ignore[arg-type]
        return Change(comparison, pl.Series("query_id", [], dtype=pl.String), np.zeros(0))

    def per_query(self, lists: RankedLists) -> PerQuery:
        raise InputError(f"{self} is not computed from a tally; use evenrank.measure")


GSR = StereotypeReinforcement()
register(GSR)
