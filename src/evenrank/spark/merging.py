"""Measuring a run in parts: what a worker computes for its queries, and how parts are merged.

A measure of a list needs nothing but the list. So a run may be cut by query, and its parts measured apart.
Merged, they give the same values in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from ir_measures.measures import Measure
from numpy.typing import NDArray

from evenrank.data.schema import RUN_SCHEMA
from evenrank.measures.base import BiasMeasure, is_bias, unwrap_abs
from evenrank.measures.evaluate import (
    RunScores,
    cautions,
    effectiveness,
    effectiveness_measurements,
    in_order_requested,
    measurements,
    prepared,
    provenance,
    score_run,
)
from evenrank.measures.inputs import Inputs
from evenrank.measures.lists import Floats, PerQuery, View, find_rows, views_of
from evenrank.measures.results import Measurement, Measurements, Options

_COUNTED = ("looked", "absent", "above", "unknown", "short")


class PartScores(NamedTuple):
    """The values of all measures for a part of a run: of each view, and effectiveness of judged queries."""

    scores: Mapping[Hashable, RunScores]
    judged: Sequence[str] = ()
    effectiveness: Mapping[Measure, Floats] = {}


def scores_to_arrow(scores: RunScores) -> pa.Table:
    """As a table, to be sent from a worker to whoever puts the parts together; measures by number."""
    columns: dict[str, Any] = {"query_id": scores.query_ids.to_arrow(compat_level=pl.CompatLevel.oldest())}
    for number, result in enumerate(scores.per_query.values()):
        columns[f"{number}"] = result.values
        columns |= {f"{number} of {part}": values for part, values in result.parts.items()}
        if result.tied is not None:
            columns[f"{number} tied"] = result.tied
        columns |= {f"{number} {what}": counts for what, counts in result.counts.items()}
    facts = {
        "ranked_queries": scores.ranked_queries.to_list(),
        "undefined": [each.undefined for each in scores.per_query.values()],
        **{name: getattr(scores, name) for name in ("emptied", "ranked", "skipped", "labelled")},
    }
    return pa.table(columns).replace_schema_metadata({"scores": json.dumps(facts)})


def scores_from_arrow(table: pa.Table, measures: Sequence[BiasMeasure]) -> RunScores:
    """What :func:`scores_to_arrow` wrote of these measures."""
    facts = json.loads(table.schema.metadata[b"scores"])
    per_query = {}

    def column(name: str) -> NDArray[Any]:
        values: NDArray[Any] = table.column(name).to_numpy()
        return values

    for number, measure in enumerate(measures):
        shares = f"{number} of "
        groups = [name.removeprefix(shares) for name in table.column_names if name.startswith(shares)]
        counted = [what for what in _COUNTED if f"{number} {what}" in table.column_names]
        per_query[measure] = PerQuery(
            column(f"{number}"),
            {group: column(shares + group) for group in groups},
            facts["undefined"][number],
            column(f"{number} tied") if f"{number} tied" in table.column_names else None,
            {what: column(f"{number} {what}") for what in counted},
        )
    query_ids = pl.Series("query_id", pl.from_arrow(table.column("query_id")), dtype=pl.String)
    ranked = pl.Series("query_id", facts["ranked_queries"], dtype=pl.String)
    numbers = {name: facts[name] for name in ("ranked", "skipped", "labelled")}
    return RunScores(ranked, query_ids, per_query, tuple(facts["emptied"]), **numbers)


def merged(parts: Sequence[RunScores], order: pl.Series) -> RunScores:
    """The scores of a whole run from those of its parts; `order` has the queries of the run."""
    ranked = pl.concat([part.ranked_queries for part in parts])
    query_ids = pl.concat([part.query_ids for part in parts])
    rows = np.argsort(find_rows(query_ids, order), kind="stable")

    def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        whole: NDArray[Any] = np.concatenate(pieces)[rows]
        return whole

    per_query = {}
    for measure, empty in parts[0].per_query.items():
        pieces = [part.per_query[measure] for part in parts if len(part.query_ids)] or [empty]
        first = pieces[0]
        per_query[measure] = PerQuery(
            joined([piece.values for piece in pieces]),
            {group: joined([piece.parts[group] for piece in pieces]) for group in first.parts},
            first.undefined,
            None if first.tied is None else joined([piece.tied for piece in pieces]),  # type: ignore[misc]
            {what: joined([piece.counts[what] for piece in pieces]) for what in first.counts},
        )
    return RunScores(
        ranked_queries=ranked.gather(np.argsort(find_rows(ranked, order), kind="stable")),
        query_ids=query_ids.gather(rows),
        per_query=per_query,
        emptied=tuple(query for part in parts for query in part.emptied),
        ranked=sum(part.ranked for part in parts),
        skipped=sum(part.skipped for part in parts),
        labelled=sum(part.labelled for part in parts),
    )


def opened_without(
    runs: Mapping[str, Any], measures: Sequence[Measure], options: Options, given: Mapping[str, Any]
) -> tuple[Inputs, list[Measure]]:
    """All inputs but the rows of the runs, checked; and the measures whose values are looked for."""
    nothing = pl.DataFrame(schema=RUN_SCHEMA)
    known: Any = {**given, "background": None}
    whole = replace(
        Inputs.open(**known),
        runs=dict.fromkeys(runs, nothing),
        background=None if given.get("background") is None else nothing,
    )
    wanted, _ = prepared(whole, measures, options)  # what is made here is not made again for each part
    return whole, wanted


def score_part(inputs: Inputs, measures: Sequence[Measure], options: Options) -> dict[str, PartScores]:
    """The values of the measures for parts of runs."""
    views = views_of(inputs, filter(is_bias, measures))
    for view in views.values():
        view.prepare(options.seed)
    useful = [measure for measure in measures if not is_bias(measure)]
    result = {}
    for name, run in inputs.runs.items():
        judged: tuple[list[str], dict[Measure, Floats]] = ([], {measure: np.zeros(0) for measure in useful})
        if useful and inputs.qrels is not None:
            mine = inputs.qrels.filter(pl.col("query_id").is_in(run["query_id"].unique().implode()))
            if len(mine):
                judged = effectiveness(run, mine, useful)
        scores = {
            kind: replace(score_run(view, name, run, options), lists={}) for kind, view in views.items()
        }
        result[name] = PartScores(scores, *judged)
    return result


def merge_parts(
    parts: Mapping[str, Sequence[PartScores]],
    order: Mapping[str, pl.Series],
    inputs: Inputs,
    measures: Sequence[Measure],
    options: Options,
    prints: Mapping[str, Any],
) -> Measurements:
    """The measurements of runs from the values of their parts; `order` has the queries of each run."""
    wanted = list(dict.fromkeys(unwrap_abs(one) for one in measures))
    views = views_of(inputs, filter(is_bias, wanted))
    runs = {
        name: in_order_requested(
            _measurements(name, of_run, order[name], views, inputs, options), measures, options
        )
        for name, of_run in parts.items()
    }
    return Measurements(
        runs=runs,
        cautions=cautions(inputs, wanted, runs),
        describe=lambda: provenance(inputs, tuple(views.values()), options) | dict(prints),
    )


def _measurements(
    name: str,
    parts: Sequence[PartScores],
    order: pl.Series,
    views: Mapping[Hashable, View],
    inputs: Inputs,
    options: Options,
) -> list[Measurement]:
    items = [
        one
        for kind, view in views.items()
        for one in measurements(view, name, merged([part.scores[kind] for part in parts], order), options)
    ]
    if parts[0].effectiveness and inputs.qrels is not None:
        judged = inputs.qrels["query_id"].unique(maintain_order=True)
        rows = [find_rows(pl.Series(part.judged, dtype=pl.String), judged) for part in parts]
        values = {measure: np.zeros(len(judged)) for measure in parts[0].effectiveness}
        for measure, whole in values.items():
            for part, at in zip(parts, rows, strict=True):
                whole[at] = part.effectiveness[measure]
        items += effectiveness_measurements(name, order.to_list(), judged.to_list(), values, inputs, options)
    return items
