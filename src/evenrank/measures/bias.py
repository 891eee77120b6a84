"""Bias measures of one run: values for each query, then summaries over the queries that count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from evenrank.measures.attribution import Attribution, attribution_of
from evenrank.measures.base import BiasMeasure, Context, PerQuery
from evenrank.measures.lists import Floats, in_top, ranked_lists
from evenrank.measures.measurements import Measurement
from evenrank.measures.rank_bias import RankBias
from evenrank.measures.sources import Sources
from evenrank.measures.subsets import labels_of, left_out
from evenrank.measures.summary import Options


def measure_bias(
    name: str, run: pl.DataFrame, measures: Sequence[BiasMeasure], sources: Sources, options: Options
) -> list[Measurement]:
    """Each bias measure of a normalised run, over the queries with at least one ranked document."""
    labels = sources.labels
    only = options.only or ("all" if labels is None else "neutral")
    known = _known(run, sources)
    if options.only not in (None, "all") and labels is not None:
        # The others are neither measured nor shown, so they need not be in the background either.
        run = run.filter(pl.col("query_id").is_in([query for query in known if labels.get(query) == only]))
    context = _context(name, run, measures, sources, options)
    lists = context.lists
    query_ids = lists.query_ids
    label = labels_of(query_ids, labels)
    chosen = np.ones(len(query_ids), bool) if only == "all" else (label == only).fill_null(False).to_numpy()
    unmeasured = left_out(
        known,
        set(query_ids.to_list()),
        labels=labels,
        only=only,
        otherwise="nothing ranked",
        reasons=dict.fromkeys(lists.emptied, "no ranked document is in the collection"),
    )
    apart = [other for other in label.drop_nulls().unique().sort().to_list() if other != only]

    results = []
    for measure in measures:
        found = measure.per_query(context) if len(query_ids) else PerQuery(np.zeros(0))
        defined = chosen & ~np.isnan(found.values)
        undefined = int((chosen & ~defined).sum())
        measured = query_ids if defined.all() else query_ids.filter(pl.Series(defined))
        values = found.values[defined]
        results.append(
            Measurement(
                run=name,
                measure=measure,
                summary=measure.summarise(found, chosen, options.bootstrap),
                left_out=unmeasured | ({found.undefined: undefined} if undefined else {}),
                query_ids=measured,
                values=values,
                part_values={part: of[defined] for part, of in found.parts.items()},
                ties=_tied(measure, context, defined) if options.order == "score" else None,
                compare=_compare(measure, sources, measured, values),
                only=None if labels is None else only,
                subsets={
                    other: measure.summarise(
                        found, (label == other).fill_null(False).to_numpy(), options.bootstrap
                    )
                    for other in apart
                },
                notes=_notes(measure, context, sources, options),
                attribution=_attribution(measure, context, defined, sources) if options.explain else None,
            )
        )
    return results


def _known(run: pl.DataFrame, sources: Sources) -> Iterable[str]:
    """Every query one could expect a value for: those given (else those judged) and those ranked."""
    ranked = run.filter(pl.col("rank") == 1)["query_id"].to_list()
    table = sources.queries if sources.queries is not None else sources.qrels
    return dict.fromkeys([*([] if table is None else table["query_id"].to_list()), *ranked])


def _context(
    name: str, run: pl.DataFrame, measures: Sequence[BiasMeasure], sources: Sources, options: Options
) -> Context:
    tally = sources.required_tally
    lists = ranked_lists(
        run,
        tally.frame,
        tally.groups,
        depth=max(measure.depth() for measure in measures),
        missing=options.missing,
        expected_ties=options.ties == "expected",
        name=name,
    )
    return Context(
        lists, sources.background_lists, sources.docs, sources.queries, sources.qrels, sources.targets
    )


def _compare(
    measure: BiasMeasure, sources: Sources, query_ids: pl.Series, values: Floats
) -> Callable[[], dict[str, dict[str, Any]]]:
    if not isinstance(measure, RankBias):
        return dict
    return partial(sources.offered.compare, measure, query_ids, values)


def _tied(measure: BiasMeasure, context: Context, chosen: np.ndarray) -> float | None:
    if not chosen.any():
        return None
    cutoff = measure.params.get("cutoff") or measure.depth()
    tied = context.lists.tied_within if measure.ORDERED else context.lists.tied_across
    return float(tied(cutoff)[chosen].mean())


def _notes(measure: BiasMeasure, context: Context, sources: Sources, options: Options) -> tuple[str, ...]:
    notes = []
    lists = context.lists
    if lists.skipped:
        ranked = int(lists.scored_lengths.sum()) + lists.skipped
        notes.append(f"{lists.skipped:,} of {ranked:,} ranked documents are not in the collection: skipped")
    if options.missing == "zero":
        rows = lists.rows[lists.top(measure.depth())[0]]
        absent = int((rows < 0).sum())
        if absent:
            notes.append(
                f"{absent:,} of {len(rows):,} ranked documents{in_top(measure.depth())} "
                "are not in the collection: counted as having no words"
            )
    if "background" in measure.NEEDS and sources.background_note:
        notes.append(sources.background_note)
    if options.explain and isinstance(measure, RankBias):
        if sources.docs is None:
            notes.append("which words make up the value cannot be said from a tally alone; give docs too")
        elif sources.matcher is None:
            notes.append("which words make up the value cannot be said: the tally does not name its lexicon")
    return tuple(notes)


def _attribution(
    measure: BiasMeasure, context: Context, chosen: np.ndarray, sources: Sources
) -> Attribution | None:
    if not isinstance(measure, RankBias) or not chosen.any():
        return None
    return attribution_of(measure, context.lists, chosen, docs=sources.docs, matcher=sources.matcher)
