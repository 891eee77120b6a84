"""How GSR sees the inputs: queries and documents as the leaning of their words along a gender direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from evenrank.errors import InputError
from evenrank.measures.fingerprint import fingerprint
from evenrank.measures.gsr.results import measure_reinforcement
from evenrank.measures.gsr.study import Study
from evenrank.measures.results import Measurement, Options
from evenrank.measures.views import View

if TYPE_CHECKING:
    from evenrank.measures.base import BiasMeasure


class Genderedness(View):
    """Queries and documents as the leaning of their words along a gender direction."""

    NEEDED = "the text of documents and queries; give docs and queries"
    WHOLE = True

    def check(self) -> None:
        if self.inputs.docs is None or self.inputs.queries is None:
            raise InputError(f"{self.measures[0]} needs {self.NEEDED}")

    @property
    def name(self) -> str:
        texts, inputs = self.inputs.genderedness, self.inputs
        table = pl.DataFrame({"word": texts.vocabulary, "g": texts.values})
        assert inputs.docs is not None  # `check` sees to it
        read = pl.DataFrame({"docs": [inputs.docs.fingerprint()]})
        known = fingerprint([inputs.queries, inputs.background, table, read])[:8]
        return known + ("" if self.missing == "error" else f",{self.missing}")

    def provenance(self) -> dict[str, Any]:
        return {"genderedness": self.inputs.genderedness.provenance}

    def prepare(self, seed: int = 0) -> None:
        """Read queries and documents, once for all runs."""
        self.check()
        self.study = self.studied(self.inputs.runs, self.measures, self.inputs.qrels, seed=seed)

    def studied(
        self,
        runs: Mapping[str, pl.DataFrame],
        measures: Sequence[Any],
        qrels: pl.DataFrame | None,
        *,
        baselines: bool = True,
        seed: int = 0,
    ) -> Study:
        assert self.inputs.queries is not None  # `check` sees to it
        return Study.of(
            runs,
            measures,
            self.inputs.genderedness,
            docs=self.inputs.docs,
            queries=self.inputs.queries,
            qrels=qrels,
            missing=self.missing,
            seed=seed,
            baselines=baselines,
        )

    def values(
        self, run: pl.DataFrame, measures: Sequence[Any], qrels: pl.DataFrame | None = None
    ) -> dict[BiasMeasure, dict[str, float]]:
        asked = self.inputs.queries
        assert asked is not None  # `check` sees to it
        judged = set() if qrels is None else {*qrels["query_id"].to_list()}
        _refuse_batches(measures[0], asked["query_id"], judged | {*run["query_id"].unique().to_list()})
        study = self.studied({"the run": run}, measures, qrels, baselines=False)
        return {measure: study.contributions("the run", measure) for measure in measures}

    def measured(self, name: str, run: pl.DataFrame, options: Options) -> list[Measurement]:
        slopes: Any = self.measures
        return measure_reinforcement(name, run, slopes, self.study, self.inputs, options)


def _refuse_batches(measure: BiasMeasure, asked: pl.Series, present: set[str]) -> None:
    """A slope over a batch of queries is not the slope; the smallest of several batches gives them away."""
    count = sum(query in present for query in asked.to_list())
    if 2 * count <= len(asked):
        raise InputError(
            f"{measure} is a slope over all queries, but only {count:,} of the {len(asked):,} bound "
            "ones are judged or ranked; evaluate without batch_size, and bind the queries that are evaluated"
        )
