"""Our measures inside ir_measures and PyTerrier: bound to a tally, they need nothing but qrels and a run.

What these libraries expect, and what is done about it: measures are equal when they print equal, so a bound
measure carries a fingerprint of what it is bound to; a provider is only asked when it is in the default
pipeline; and aggregates are plain means over all judged queries, so every one of them gets a value
(see `bind`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure
from ir_measures.providers import Evaluator, Provider
from ir_measures.util import Metric, QrelsConverter, RunConverter

from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.absolute import core
from evenrank.measures.base import BiasMeasure, Context, check_choice
from evenrank.measures.document_groups import DocumentGroups
from evenrank.measures.evaluate import MISSING, listed_measures
from evenrank.measures.fingerprint import fingerprint
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.lists import RankedLists, ranked_lists
from evenrank.measures.psychology import DictionaryBias, dictionary_tally
from evenrank.measures.sources import colour, document_groups, reader
from evenrank.measures.stereotype import StereotypeReinforcement
from evenrank.measures.study import Study
from evenrank.measures.targets import group_targets, targets_fingerprint
from evenrank.process import refuse_after_fork

if TYPE_CHECKING:
    from evenrank.text.tally import Tally
    from evenrank.vectors.texts import GenderedTexts


@dataclass(frozen=True, eq=False)
class Binding:
    """What bound measures share."""

    tally: Tally | DocumentGroups | None
    docs: Any
    queries: pl.DataFrame | None
    background: pl.DataFrame | None
    missing: str
    name: str
    texts: GenderedTexts | None = None
    targets: Mapping[str, Mapping[str, Fraction]] | None = None

    def lists(self, run: pl.DataFrame, depth: int, name: str) -> RankedLists:
        assert self.tally is not None  # `bind` sees to it
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
    vectors: Any = None,
    pairs: Any = None,
    labels: Any = None,
    targets: Any = None,
    dictionary: Any = None,
    missing: str = "error",
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
    tally, docs
        The coloured collection, or documents to colour with the default lexicon.
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
    check_choice("missing", missing, MISSING)
    wanted = listed_measures(measures)
    biases = [measure for measure in wanted if isinstance(measure, BiasMeasure)]
    slopes = [measure for measure in biases if isinstance(core(measure), StereotypeReinforcement)]
    grouped = [measure for measure in biases if isinstance(core(measure), GroupMeasure)]
    worded = [measure for measure in biases if isinstance(core(measure), DictionaryBias)]
    if worded and docs is None:
        raise InputError(f"{worded[0]} needs the text of the documents; give docs")
    apart = [*slopes, *worded]
    counting = [m for m in biases if m not in apart and (m not in grouped or labels is None)]
    if counting and tally is None and docs is None:
        raise InputError("bound measures need a tally, or docs to make one from")
    if slopes and (docs is None or queries is None):
        raise InputError(f"{slopes[0]} needs the text of documents and queries; give docs and queries")
    coloured = colour(tally, docs) if counting else None
    groups = document_groups(labels, coloured) if grouped else None
    texts = reader(vectors, pairs) if slopes else None
    collection = None if docs is None else tables.docs(docs)
    against = None if background is None else tables.run(background)
    asked = None if queries is None else tables.queries(queries)
    binding = Binding(
        tally=coloured,
        docs=collection,
        queries=asked,
        background=against,
        missing=missing,
        name=_name(coloured, asked, against, collection, texts)
        + ("" if missing == "error" else f",{missing}"),
        texts=texts,
    )
    if coloured is not None:
        for measure in counting:
            measure.check_groups(coloured.groups)
    of_groups = binding
    if groups is not None:
        for measure in grouped:
            measure.check_groups(groups.groups)
        # A document without a given label shows no group; see `measure_groups`.
        unknown = missing if groups.inferred else "unlabelled"
        wished = None if targets is None else group_targets(targets, groups.groups)
        name = fingerprint([groups.frame, asked])[:8] + (
            "" if wished is None else targets_fingerprint(wished)[:8]
        )
        of_groups = replace(binding, tally=groups, missing=unknown, name=name, targets=wished)
    of_words = binding
    if worded:
        words = dictionary_tally(collection, dictionary)
        of_words = replace(binding, tally=words, name=fingerprint([words.frame, asked])[:8])
    bindings: dict[Measure, Binding] = {
        **dict.fromkeys(grouped, of_groups),
        **dict.fromkeys(worded, of_words),
    }
    _install()
    return [BoundMeasure(m, bindings.get(m, binding)) if isinstance(m, BiasMeasure) else m for m in wanted]


def _name(
    tally: Tally | None,
    queries: pl.DataFrame | None,
    background: pl.DataFrame | None,
    docs: Any,
    texts: GenderedTexts | None,
) -> str:
    """Eight characters that differ where what is bound differs."""
    frames = [None if tally is None else tally.frame, queries, background]
    if texts is not None:
        table = pl.DataFrame({"word": texts.vocabulary, "g": texts.values})
        frames += [table, pl.DataFrame({"docs": [docs.fingerprint()]})]
    return fingerprint(frames)[:8]


class EvenrankProvider(Provider):
    """Computes bound measures for ir_measures."""

    NAME = "evenrank"

    def supports(self, measure: Measure) -> bool:
        return isinstance(measure, BoundMeasure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> BoundEvaluator:
        rows = [(q.query_id, q.doc_id, q.relevance) for q in QrelsConverter(qrels).as_namedtuple_iter()]
        judged = dict.fromkeys(query for query, _, _ in rows)
        return BoundEvaluator(list(measures), list(judged), rows)


class BoundEvaluator(Evaluator):
    """Values of bound measures for each judged query, or for each query of the run if none is judged."""

    def __init__(self, measures: list[Measure], judged: list[str], qrels: list[tuple[str, str, int]]) -> None:
        super().__init__(measures, judged)
        self._rows = qrels

    @cached_property
    def qrels(self) -> pl.DataFrame | None:
        schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
        return pl.DataFrame(self._rows, schema=schema, orient="row") if self._rows else None

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        refuse_after_fork()
        table = _table(run)
        frame = tables.run(table) if table.height else None
        ranked = [] if frame is None else frame.filter(pl.col("rank") == 1)["query_id"].to_list()
        for binding, measures in _by_binding(self.measures).items():
            listed = self._listed(binding, ranked)
            found = {} if frame is None else self._values(binding, measures, frame)
            for bound in measures:
                values = found.get(bound, {})
                scale = len(listed) / len(values) if values else 0.0
                unlisted = sum(value for query, value in values.items() if query not in listed)
                for query in listed:
                    value = scale * (values.get(query, 0.0) + unlisted / len(listed))
                    yield Metric(query_id=query, measure=bound, value=value)

    def _values(
        self, binding: Binding, measures: list[BoundMeasure], run: pl.DataFrame
    ) -> dict[BoundMeasure, dict[str, float]]:
        """Values of each measure, by query."""
        slopes = {b: b.measure for b in measures if isinstance(b.measure, StereotypeReinforcement)}
        others = [b for b in measures if b not in slopes]
        context = _context(binding, others, run, self.qrels) if others else None
        found = {} if context is None else {b: _values(b.measure, context) for b in others}
        if slopes:
            assert binding.texts is not None and binding.queries is not None  # `bind` sees to it
            present = {*self.qrel_qids, *run["query_id"].unique().to_list()}
            _refuse_batches(next(iter(slopes)), binding.queries["query_id"], present)
            study = Study.of(
                {"the run": run},
                list(slopes.values()),
                binding.texts,
                docs=binding.docs,
                queries=binding.queries,
                qrels=self.qrels,
                missing=binding.missing,
                baselines=False,
            )
            for bound, measure in slopes.items():
                found[bound] = study.contributions("the run", measure)
        return found

    def _listed(self, binding: Binding, ranked: Iterable[str]) -> dict[str, None]:
        if self.qrel_qids:  # PyTerrier wants the same queries for all measures, and others list these
            return dict.fromkeys(self.qrel_qids)
        asked = [] if binding.queries is None else binding.queries["query_id"].to_list()
        return dict.fromkeys([*self.qrel_qids, *ranked, *asked])


def _refuse_batches(bound: BoundMeasure, asked: pl.Series, present: set[str]) -> None:
    """A slope over a batch of queries is not the slope; the smallest of several batches gives them away."""
    count = sum(query in present for query in asked.to_list())
    if 2 * count <= len(asked):
        raise InputError(
            f"{bound.measure} is a slope over all queries, but only {count:,} of the {len(asked):,} bound "
            "ones are judged or ranked; evaluate without batch_size, and bind the queries that are evaluated"
        )


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


def _context(
    binding: Binding, measures: Sequence[BoundMeasure], run: pl.DataFrame, qrels: pl.DataFrame | None
) -> Context:
    depth = max(bound.measure.background_depth() for bound in measures)
    background = binding.background if binding.background is not None else run
    return Context(
        lists=binding.lists(run, max(bound.measure.depth() for bound in measures), "the run"),
        background=binding.lists(background, depth, "the background run") if depth else None,
        docs=binding.docs,
        queries=binding.queries,
        qrels=qrels,
        targets=binding.targets,
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
