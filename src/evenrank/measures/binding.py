"""Our measures inside ir_measures and PyTerrier: bound to a tally, they need nothing but qrels and a run.

What these libraries expect, and what is done about it: measures are equal when they print equal, so a bound
measure carries a fingerprint of what it is bound to; a provider is only asked when it is in the default
pipeline; and aggregates are plain means over all queries of qrels and run, so every one of them gets a value
(see `bind`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure
from ir_measures.providers import Evaluator, Provider
from ir_measures.util import Metric, QrelsConverter, RunConverter

from evenrank import tables
from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, Context
from evenrank.measures.evaluate import listed_measures
from evenrank.measures.fingerprint import fingerprint
from evenrank.measures.lists import RankedLists, ranked_lists
from evenrank.measures.sources import colour

if TYPE_CHECKING:
    from evenrank.words.tally import Tally


@dataclass(frozen=True, eq=False)
class Binding:
    """What bound measures share."""

    tally: Tally
    docs: Any
    queries: pl.DataFrame | None
    background: pl.DataFrame | None
    missing: str
    judged_only: bool
    name: str

    def lists(self, run: pl.DataFrame, depth: int, name: str) -> RankedLists:
        return ranked_lists(
            run, self.tally.frame, self.tally.groups, depth=depth, missing=self.missing, name=name
        )


class BoundMeasure(Measure):
    """A bias measure that carries its tally. Made by `bind`, after all parameters are set."""

    DEFAULT = 0.0

    def __init__(self, measure: BiasMeasure, binding: Binding) -> None:
        super().__init__(**measure.params)
        self.measure = measure
        self.binding = binding
        self.__name__ = self.NAME = measure.NAME
        self.SUPPORTED_PARAMS = measure.SUPPORTED_PARAMS
        self.AT_PARAM = measure.AT_PARAM

    def validate_params(self) -> None:
        self.measure.validate_params()

    def __call__(self, **params: Any) -> BoundMeasure:
        raise InputError(f"{self.measure} is bound; set parameters and cut-offs before binding")

    def __repr__(self) -> str:
        return f"{self.measure}[{self.binding.name}]"


def bind(
    measures: str | Measure | Iterable[str | Measure],
    *,
    tally: Any = None,
    docs: Any = None,
    queries: Any = None,
    background: Any = None,
    missing: str = "error",
) -> list[Measure]:
    """Measures that work in `ir_measures.calc_aggregate`, `ir_measures.iter_calc` and `pt.Experiment`.

    Binding is the last step, after `@` and parameters. Effectiveness measures are passed through, so that
    a mixed list stays one list, in its order.

    Both libraries take the plain mean over a list of queries, while a bias is the mean over the queries
    with ranked documents. Every listed query therefore gets a value, and values are multiplied by N/n,
    where n queries have ranked documents and N are listed, so that the means come out right; a query
    without ranked documents gets 0. Where all listed queries have ranked documents, N = n and the values
    are the values. Listed are the queries of qrels and run, and `queries` if given.

    In a list with effectiveness measures only judged queries can be listed: PyTerrier wants the same
    queries for all measures. What the run does for other queries is then shared out evenly among the
    judged ones; means are right, single values are shifted a little. With a `batch_size` in
    `pt.Experiment` all this happens batch by batch, and means are only right where N = n.

    Parameters
    ----------
    tally, docs
        The coloured collection, or documents to colour with the default lexicon.
    queries
        Queries to list even when they are neither judged nor ranked.
    background
        Run that NFaiRR compares with; unless given, each run is its own.
    missing
        Documents that the collection lacks: `error`, `zero` or `skip`.
    """
    wanted = listed_measures(measures)
    if tally is None and docs is None:
        raise InputError("bound measures need a tally, or docs to make one from")
    coloured = colour(tally, docs)
    against = None if background is None else tables.run(background)
    asked = None if queries is None else tables.queries(queries)
    binding = Binding(
        tally=coloured,
        docs=None if docs is None else tables.docs(docs),
        queries=asked,
        background=against,
        missing=missing,
        judged_only=not all(isinstance(measure, BiasMeasure) for measure in wanted),
        name=fingerprint([coloured.frame, asked, against])[:8]
        + ("" if missing == "error" else f",{missing}"),
    )
    for measure in wanted:
        if isinstance(measure, BiasMeasure):
            measure.check_groups(coloured.groups)
    _install()
    return [BoundMeasure(m, binding) if isinstance(m, BiasMeasure) else m for m in wanted]


class EvenrankProvider(Provider):
    """Computes bound measures for ir_measures."""

    NAME = "evenrank"

    def supports(self, measure: Measure) -> bool:
        return isinstance(measure, BoundMeasure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> BoundEvaluator:
        judged = dict.fromkeys(qrel.query_id for qrel in QrelsConverter(qrels).as_namedtuple_iter())
        return BoundEvaluator(list(measures), list(judged))


class BoundEvaluator(Evaluator):
    """Values of bound measures for each query of qrels and run."""

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        table = _table(run)
        frame = tables.run(table) if table.height else None
        ranked = [] if frame is None else frame.filter(pl.col("rank") == 1)["query_id"].to_list()
        for binding, measures in _by_binding(self.measures).items():
            listed = self._listed(binding, ranked)
            context = None if frame is None else _context(binding, measures, frame)
            for bound in measures:
                values = {} if context is None else _values(bound.measure, context)
                scale = len(listed) / len(values) if values else 0.0
                unlisted = sum(value for query, value in values.items() if query not in listed)
                for query in listed:
                    value = scale * (values.get(query, 0.0) + unlisted / len(listed))
                    yield Metric(query_id=query, measure=bound, value=value)

    def _listed(self, binding: Binding, ranked: Iterable[str]) -> dict[str, None]:
        if binding.judged_only:
            return dict.fromkeys(self.qrel_qids)
        asked = [] if binding.queries is None else binding.queries["query_id"].to_list()
        return dict.fromkeys([*self.qrel_qids, *ranked, *asked])


def _table(run: Any) -> pl.DataFrame:
    """Columns of a run in any of the shapes that ir_measures takes."""
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    if hasattr(run, "itertuples"):  # pandas: by column, a hundred times as quick as by row
        return pl.DataFrame(
            {
                "query_id": map(str, run["query_id"]),
                "doc_id": map(str, run["doc_id"]),
                "score": run["score"].to_numpy(),
            },
            schema=schema,
        )
    rows = RunConverter(run).as_namedtuple_iter()
    return pl.DataFrame(
        [(str(row.query_id), str(row.doc_id), float(row.score)) for row in rows], schema=schema, orient="row"
    )


def _by_binding(measures: Iterable[Measure]) -> dict[Binding, list[BoundMeasure]]:
    found: dict[Binding, list[BoundMeasure]] = {}
    for measure in measures:
        if isinstance(measure, BoundMeasure):
            found.setdefault(measure.binding, []).append(measure)
    return found


def _context(binding: Binding, measures: Sequence[BoundMeasure], run: pl.DataFrame) -> Context:
    depth = max(bound.measure.background_depth() for bound in measures)
    background = binding.background if binding.background is not None else run
    return Context(
        lists=binding.lists(run, max(bound.measure.depth() for bound in measures), "the run"),
        background=binding.lists(background, depth, "the background run") if depth else None,
        docs=binding.docs,
        queries=binding.queries,
    )


def _values(measure: BiasMeasure, context: Context) -> dict[str, float]:
    if not len(context.lists.query_ids):
        return {}
    values = measure.per_query(context).values
    pairs = zip(context.lists.query_ids.to_list(), values.tolist(), strict=True)
    return {query: value for query, value in pairs if not np.isnan(value)}


def _install() -> None:
    """Put our provider into ir_measures' default pipeline, once."""
    installed = ir_measures.DefaultPipeline.providers
    if not any(isinstance(provider, EvenrankProvider) for provider in installed):
        installed.insert(0, EvenrankProvider())
