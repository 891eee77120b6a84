"""Our measures inside ir_measures and PyTerrier: bound to a tally, they need nothing but qrels and a run.

What these libraries expect, and what is done about it: measures are equal when they print equal, so of two
bound to different things the second carries a fingerprint of what it is bound to; a provider is only used
when it is in the default pipeline; and aggregates are plain means over all judged queries, so every one of
them gets a value (see `bind`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Unpack
from weakref import WeakValueDictionary

import ir_measures
import polars as pl
from ir_measures.measures import Measure
from ir_measures.providers import Evaluator, Provider
from ir_measures.util import Metric, QrelsConverter, RunConverter

from evenrank.data.read import described, fingerprint, refuse_after_fork
from evenrank.data.runs import read_run
from evenrank.data.schema import QRELS_SCHEMA, RUN_SCHEMA
from evenrank.errors import InputError
from evenrank.measures.base import BiasMeasure, is_bias
from evenrank.measures.evaluate import listed_measures, measured
from evenrank.measures.inputs import Inputs, MeasureInputs, depth_of, sharing_tables
from evenrank.measures.lists import ranked_queries
from evenrank.measures.results import Options

_BOUND: WeakValueDictionary[str, BoundMeasure] = WeakValueDictionary()


class BoundMeasure(Measure):
    """A bias measure that carries its tally. Made by `bind`, after all parameters are set."""

    DEFAULT = 0.0

    def __init__(self, measure: BiasMeasure, inputs: Inputs, name: str) -> None:
        super().__init__(**measure.params)
        self.measure = measure
        self.inputs = inputs
        self.name = name
        # ir_measures and PyTerrier tell measures apart by what they print. The first to be bound is called
        # as it is; while it lives, one bound to something else carries a fingerprint of that.
        plain = _BOUND.setdefault(str(measure), self).name == name
        self.printed = str(measure) if plain else f"{measure}[{name}]"
        self.__name__ = self.NAME = measure.NAME
        self.SUPPORTED_PARAMS = measure.SUPPORTED_PARAMS
        self.AT_PARAM = measure.AT_PARAM

    def validate_params(self) -> None:
        self.measure.validate_params()

    def __call__(self, **params: Any) -> BoundMeasure:
        raise InputError(f"{self.measure} is bound; set parameters and cut-offs before binding")

    def __repr__(self) -> str:
        return self.printed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundMeasure) and (str(self.measure), self.name) == (
            str(other.measure),
            other.name,
        )

    def __hash__(self) -> int:
        return hash((str(self.measure), self.name))


def bind(
    measures: str | Measure | Iterable[str | Measure],
    *,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> list[Measure]:
    """Measures that work in `ir_measures.calc_aggregate`, `ir_measures.iter_calc` and `pt.Experiment`.

    Binding is the last step, after `@` and parameters. Effectiveness measures are passed through, so that
    a mixed list stays one list, in its order.

    Both libraries take the plain mean over a list of queries, while a bias is the mean over the queries
    with ranked documents. Every listed query therefore gets a value, and values are multiplied by N/n,
    where n queries have ranked documents and N are listed, so that the means come out right; a query
    without ranked documents gets 0. Where all listed queries have ranked documents, N = n and the values
    are the values. Listed are the judged queries: PyTerrier wants the same queries for all measures, and
    effectiveness knows no others. What the run does for other queries is shared out evenly among the
    judged ones; means are right, single values are shifted a little. Without any judgments the queries of
    the run are listed, and `queries` if given. With a `batch_size` in `pt.Experiment` all this happens
    batch by batch, and means are only right where N = n.

    GSR is a slope over all queries; its values are contributions, whose mean is the slope. It needs docs
    and queries, and takes the judgments from those it is evaluated with. It cannot be computed batch by
    batch: a run for half of the bound queries or less is refused, so that `batch_size` never passes
    unnoticed.

    Parameters
    ----------
    tally, docs, lexicon, tokenizer
        The tally of the collection, or documents to count words in.
    queries
        Queries to list, where there are no judgments, even when nothing is ranked for them. GSR reads their
        texts.
    background
        Run that NFaiRR compares with; unless given, each run is its own.
    vectors, pairs
        Word vectors for GSR, and pairs of words for another direction; the shipped table unless given.
    labels, targets
        Group of each document, for rKL, Skew and their like, inferred from the tally unless given; and the
        share that each group should have for each query.
    dictionary
        Words for LIWC, which needs docs; the open dictionary unless given.
    missing
        Documents that the collection lacks: `error`, `zero` or `skip`.
    """
    refuse_after_fork()
    for name in ("qrels", "genders", "ties", "order"):
        if name in given:
            raise InputError(f"bind takes no {name}; judgments and runs come with the evaluation")
    inputs = Inputs.open(None, tally=tally, **given)
    wanted = listed_measures(measures)
    biases = [measure for measure in wanted if is_bias(measure)]
    inputs.check(biases)
    names: dict[Measure, str] = {}
    for some in sharing_tables(biases):
        names |= dict.fromkeys(some, _name(inputs, some))
    if not any(isinstance(provider, EvenrankProvider) for provider in ir_measures.DefaultPipeline.providers):
        ir_measures.DefaultPipeline.providers.insert(0, EvenrankProvider())
    return [BoundMeasure(m, inputs, names[m]) if is_bias(m) else m for m in wanted]


def _name(inputs: Inputs, measures: Sequence[BiasMeasure]) -> str:
    """Return eight characters that differ if the inputs of the measures differ."""
    facts, looked_up = inputs.described(measures) | {"missing": inputs.missing}, None
    if "genderedness" in measures[0].NEEDS:
        facts["docs"] = inputs.docs.fingerprint()  # type: ignore[union-attr]  # see `Inputs.check`
    else:
        table = inputs.table(measures[0], depth_of(measures))
        for measure in measures:
            measure.check_groups(table.groups)
        looked_up = table.frame
    tables = [looked_up, inputs.queries, inputs.background, described(facts)]
    return fingerprint(tables)[:8]


class EvenrankProvider(Provider):
    """Computes bound measures for ir_measures."""

    NAME = "evenrank"

    def supports(self, measure: Measure) -> bool:
        return isinstance(measure, BoundMeasure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> BoundEvaluator:
        rows = [(q.query_id, q.doc_id, q.relevance) for q in QrelsConverter(qrels).as_namedtuple_iter()]
        return BoundEvaluator(list(measures), pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"))


class BoundEvaluator(Evaluator):
    """Values of bound measures for each judged query, or for each query of the run if none is judged."""

    def __init__(self, measures: list[Measure], qrels: pl.DataFrame) -> None:
        super().__init__(measures, qrels["query_id"].unique(maintain_order=True).to_list())
        self.qrels = qrels if len(qrels) else None

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        if not hasattr(run, "itertuples"):  # pandas is read by column
            run = list(RunConverter(run).as_namedtuple_iter())
        frame = read_run(run) if len(run) else pl.DataFrame(schema=RUN_SCHEMA)
        ranked = ranked_queries(frame).to_list()
        for (inputs, has_queries), measures in self._sharing().items():
            # PyTerrier wants the same queries for all measures, and others list the judged ones.
            listed = dict.fromkeys(self.qrel_qids)
            if not listed:
                more = [] if inputs.queries is None else inputs.queries["query_id"].to_list()
                listed = dict.fromkeys([*ranked, *more])
            result = None
            if ranked:
                if has_queries:
                    _refuse_batch(measures[0].measure, inputs.queries, {*ranked, *self.qrel_qids})
                of_run = inputs.of_runs(
                    {"the run": frame},
                    background=inputs.background,
                    qrels=self.qrels,
                    queries=inputs.queries if has_queries else None,  # else all that are ranked count
                )
                result = measured(of_run, [bound.measure for bound in measures], Options(confidence=None))
            for bound in measures:
                values = {} if result is None else result[bound.measure].per_query()
                scale = len(listed) / len(values) if values else 0.0
                unlisted = sum(value for query, value in values.items() if query not in listed)
                for query in listed:
                    value = scale * (values.get(query, 0.0) + unlisted / len(listed))
                    yield Metric(query_id=query, measure=bound, value=value)

    def _sharing(self) -> dict[tuple[Inputs, bool], list[BoundMeasure]]:
        """The measures that are bound to the same inputs; those that need queries apart."""
        result: dict[tuple[Inputs, bool], list[BoundMeasure]] = {}
        for bound in self.measures:
            if isinstance(bound, BoundMeasure):
                key = bound.inputs, "queries" in bound.measure.NEEDS
                result.setdefault(key, []).append(bound)
        return result


def _refuse_batch(measure: Measure, queries: Any, present: set[str]) -> None:
    """Refuse one batch of several: a slope over its queries is not the slope over all."""
    count = sum(query in present for query in queries["query_id"].to_list())
    if 2 * count <= len(queries):
        raise InputError(
            f"{measure} is a slope over all queries, but only {count:,} of the {len(queries):,} bound ones "
            "are judged or ranked; evaluate without batch_size, and bind the queries that are evaluated"
        )
