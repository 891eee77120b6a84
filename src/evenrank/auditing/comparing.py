"""Each run against the baseline, against what its queries were offered, and at growing cut-offs.

And whether female and male queries can be compared: enough of both have to be judged, or listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.data.runs import read_run
from evenrank.measures.base import BiasMeasure, is_bias
from evenrank.measures.compare import RunComparison
from evenrank.measures.evaluate import measured
from evenrank.measures.inputs import Inputs
from evenrank.measures.rank_bias import RaB
from evenrank.measures.results import Measurements, Options

CUTOFFS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40, 50, 70, 100)
_SCHEMA = {
    "run": pl.String,
    "measure": pl.String,
    "cutoff": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "queries": pl.Int64,
}


@dataclass(frozen=True)
class Offered:
    """What the same queries were offered: a yardstick for the lean of a run.

    Attributes
    ----------
    kind
        `relevant documents`: those judged relevant for the same queries, the mean of each query's.
        `candidates`: all documents that the run ranks for them, where that are more than it is measured on.
    value, queries
        Their lean, over the queries that have any.
    difference, low, high
        Run − yardstick over these queries, query by query, with Student's interval; not corrected.
    """

    kind: str
    value: float
    queries: int
    difference: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, kind: str, values: np.ndarray, theirs: np.ndarray, confidence: float) -> Offered | None:
        """Values of a run against those of the yardstick, for the same queries in the same order."""
        if not len(values):
            return None
        result = stats.paired(values, theirs, confidence=confidence)
        assert result.difference is not None
        low, high = (result.low, result.high) if len(values) > 1 else (None, None)
        return cls(kind, float(theirs.mean()), len(values), result.difference, low, high)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def between(found: Sequence[RunComparison], run: str, measure: Measure) -> RunComparison | None:
    """The comparison of one run and measure, if there is one."""
    return next((one for one in found if one.run == run and one.measure == measure), None)


def leans_offered(
    found_all: Measurements, headline: BiasMeasure, inputs: Inputs, options: Options, confidence: float
) -> dict[str, Offered]:
    """For each run, the lean of what its queries were offered: relevant documents, else all candidates."""
    result: dict[str, Offered] = {}
    plain = RaB(
        **{key: headline.params[key] for key in ("of", "against", "magnitude") if key in headline.params}
    )
    qrels = inputs.qrels
    judged = None if qrels is None else _relevant_run(qrels, inputs.tally.frame["doc_id"])
    for name, frame in inputs.runs.items():
        mine = found_all[name, headline]
        offers = [] if judged is None or judged.is_empty() else [("relevant documents", judged)]
        lengths = frame.group_by("query_id").len()["len"]
        if (lengths > headline.depth()).mean() > 0.5:  # type: ignore[operator]
            offers.append(("candidates", frame))
        for kind, documents in offers:
            depth = int(documents.group_by("query_id").len()["len"].max())  # type: ignore[arg-type]
            seen = inputs.of_runs({name: documents}, ties="order", missing="skip")
            theirs = measured(seen, [plain @ depth], options)[plain @ depth]
            _, a, b = mine.beside(theirs)
            offered = Offered.of(kind, a, b, confidence)
            if offered is not None:
                result[name] = offered
                break
    return result


def _relevant_run(qrels: pl.DataFrame, held: pl.Series) -> pl.DataFrame:
    """The relevant documents that the collection holds, as a run; their order does not matter."""
    relevant = qrels.filter((pl.col("relevance") > 0) & pl.col("doc_id").is_in(held.implode()))
    return read_run(relevant.select("query_id", "doc_id", score=pl.col("relevance").cast(pl.Float64)))


def cutoff_curves(
    inputs: Inputs, measures: Iterable[Measure], options: Options, *, confidence: float | None = 0.95
) -> pl.DataFrame:
    """Measures at growing cut-offs, RaB, ARaB and NFaiRR: run, measure, cutoff, value, low, high, queries.

    Only what the measures of the audit call worth drawing, down to half the depth that half of the lists
    reach. Intervals are Student's: there are many, and curves are read by eye.
    """
    families = curve_measures(measures)
    lengths = pl.concat(run.group_by("query_id").len()["len"] for run in inputs.runs.values())
    depth = int(lengths.median() or 0)  # type: ignore[arg-type]
    # Near the end of the lists NFaiRR goes to 1 of itself: run and background hold the same documents.
    cutoffs = [k for k in CUTOFFS if k <= max(min(depth, 10), depth // 2, 1)]
    if not families:
        return pl.DataFrame(schema=_SCHEMA)
    wanted = {(name, k): family @ k for name, family in families.items() for k in cutoffs}
    result = measured(inputs, list(wanted.values()), options)
    rows = []
    for run in inputs.runs:
        for (name, k), one in wanted.items():
            m = result[run, one]
            low = high = None
            if confidence is not None and m.value is not None and len(m.values) > 1:
                interval = stats.mean_interval(m.values, confidence=confidence, method="t")
                low, high = interval.low, interval.high
            rows.append((run, name, k, m.value, low, high, m.queries))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def curve_measures(measures: Iterable[Measure]) -> dict[str, BiasMeasure]:
    """One measure without cut-off for each curve, by its name."""
    biased = [measure for measure in measures if is_bias(measure)]
    return {str(curve): curve for measure in biased for curve in measure.curves()}


def gender_counts(inputs: Inputs) -> dict[str, Counter[str]]:
    """How many queries of each gender are `judged`, and how many `listed` by every run."""
    labels, qrels = inputs.genders or {}, inputs.qrels
    judged = set() if qrels is None else {*qrels.filter(pl.col("relevance") > 0)["query_id"].to_list()}
    listed = set.intersection(*({*run["query_id"].to_list()} for run in inputs.runs.values()))
    return {
        where: Counter(gender for query, gender in labels.items() if query in among)
        for where, among in (("judged", judged), ("listed", listed))
    }


def comparable_genders(counts: Mapping[str, Counter[str]]) -> dict[str, bool]:
    """Whether these are enough of both genders."""
    from evenrank.measures.disparity import MIN_QUERIES

    return {where: min(many["female"], many["male"]) >= MIN_QUERIES for where, many in counts.items()}


def gender_warnings(inputs: Inputs, counts: Mapping[str, Counter[str]]) -> list[str]:
    """That female and male queries are not compared, where there are some of both but too few."""
    from evenrank.measures.disparity import MIN_QUERIES

    where = "listed" if inputs.qrels is None else "judged"
    women, men = counts[where]["female"], counts[where]["male"]
    if not (women and men) or min(women, men) >= MIN_QUERIES:
        return []
    return [
        f"Female and male queries are not compared: {women} female and {men} male ones are {where}, and "
        f"{MIN_QUERIES} of each are needed."
    ]
