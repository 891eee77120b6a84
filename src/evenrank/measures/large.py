"""Measuring runs that are too large to be held: cut by query, part after part, and put together again.

Parts come from disk (`measured_in_parts`) or from the workers of a cluster (`evenrank.spark`). What is done
with one (`looked`) and with all of them (`put_together`) is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures import Measure

from evenrank.data import large_runs
from evenrank.data.tables import RUN_SCHEMA
from evenrank.measures.absolute import core
from evenrank.measures.base import is_bias
from evenrank.measures.evaluate import (
    effectiveness,
    effectiveness_told,
    in_order_asked,
    not_asked,
    provenance,
)
from evenrank.measures.inputs import Given, Inputs
from evenrank.measures.lists import Floats, find_rows
from evenrank.measures.parts import Seen, merged
from evenrank.measures.results import Measurement, Measurements, Options, check_subset
from evenrank.measures.views import View, views_of


class Look(NamedTuple):
    """What all measures see of a part of a run: each view for itself, and effectiveness of judged queries."""

    seen: Mapping[type[View], Seen]
    judged: Sequence[str] = ()
    useful: Mapping[Measure, Floats] = {}


def measured_in_parts(
    runs: Mapping[str, Any], measures: Sequence[Measure], options: Options, given: Given
) -> Measurements:
    """The same as `evaluate.measured`, in memory that does not grow with the runs."""
    from evenrank.process import cores, in_order

    whole, wanted = opened_without(runs, measures, options, given)
    background, order = given.get("background"), given.get("order") or "score"
    parts = large_runs.parts_for([*runs.values(), background])
    with ExitStack() as stack:

        def cut(run: Any) -> Any:
            made = large_runs.cut(run, order=order, parts=parts, progress=given.get("progress"))
            stack.callback(made.close)
            return made

        cuts = {name: cut(run) for name, run in runs.items()}
        behind = None if background is None else cut(background)

        def look(number: int) -> dict[str, Look]:
            frames = {name: run.part(number) for name, run in cuts.items()}
            below = None if behind is None else behind.part(number)
            return looked(whole.of_parts(frames, below), wanted, options)

        found = [*in_order(look, range(parts), threads=cores())]
        prints: dict[str, Any] = {"runs": {name: run.fingerprint() for name, run in cuts.items()}}
        if behind is not None:
            prints["background"] = behind.fingerprint()
    looks = {name: [part[name] for part in found] for name in runs}
    return put_together(
        looks, {name: run.queries for name, run in cuts.items()}, whole, measures, options, prints
    )


def opened_without(
    runs: Mapping[str, Any], measures: Sequence[Measure], options: Options, given: Given
) -> tuple[Inputs, list[Measure]]:
    """All inputs but the rows of the runs, checked; and the measures whose values are looked for."""
    nothing = pl.DataFrame(schema=RUN_SCHEMA)
    known: Any = {**given, "background": None}
    whole = replace(
        Inputs.open(**known),
        runs=dict.fromkeys(runs, nothing),
        background=None if given.get("background") is None else nothing,
    )
    wanted = list(dict.fromkeys(core(one) for one in measures))
    whole.check(wanted)
    check_subset(options.only, whole.genders)
    for view in views_of(whole, filter(is_bias, wanted)).values():
        view.prepare(options.bootstrap.seed)  # what is made here is not made again for each part
    return whole, wanted


def looked(inputs: Inputs, measures: Sequence[Measure], options: Options) -> dict[str, Look]:
    """What the measures see of parts of runs."""
    views = views_of(inputs, filter(is_bias, measures))
    for view in views.values():
        view.prepare(options.bootstrap.seed)
    useful = [measure for measure in measures if not is_bias(measure)]
    found = {}
    for name, run in inputs.runs.items():
        judged: tuple[list[str], dict[Measure, Floats]] = ([], {measure: np.zeros(0) for measure in useful})
        if useful and inputs.qrels is not None:
            mine = inputs.qrels.filter(pl.col("query_id").is_in(run["query_id"].unique().implode()))
            if len(mine):
                judged = effectiveness(run, mine, useful)
        # Without the contexts: those of all parts together are as large as the run.
        seen = {kind: replace(view.seen(name, run, options), within={}) for kind, view in views.items()}
        found[name] = Look(seen, *judged)
    return found


def put_together(
    looks: Mapping[str, Sequence[Look]],
    order: Mapping[str, pl.Series],
    inputs: Inputs,
    measures: Sequence[Measure],
    options: Options,
    prints: Mapping[str, Any],
) -> Measurements:
    """The measurements of runs out of what was seen of their parts; `order` has the queries of each."""
    wanted = list(dict.fromkeys(core(one) for one in measures))
    views = views_of(inputs, filter(is_bias, wanted))
    runs = {
        name: in_order_asked(_told(name, parts, order[name], views, inputs, options), measures, options)
        for name, parts in looks.items()
    }
    return Measurements(
        runs=runs,
        cautions=(*inputs.guessed, *(inputs.cautions() if inputs.counting(wanted) else ()), *not_asked(runs)),
        describe=lambda: provenance(inputs, tuple(views.values()), options) | dict(prints),
    )


def _told(
    name: str,
    parts: Sequence[Look],
    order: pl.Series,
    views: Mapping[type[View], View],
    inputs: Inputs,
    options: Options,
) -> list[Measurement]:
    found = [
        one
        for kind, view in views.items()
        for one in view.told(name, merged([part.seen[kind] for part in parts], order), options)
    ]
    if parts[0].useful and inputs.qrels is not None:
        judged = inputs.qrels["query_id"].unique(maintain_order=True)
        rows = [find_rows(pl.Series(part.judged, dtype=pl.String), judged) for part in parts]
        values = {measure: np.zeros(len(judged)) for measure in parts[0].useful}
        for measure, whole in values.items():
            for part, at in zip(parts, rows, strict=True):
                whole[at] = part.useful[measure]
        found += effectiveness_told(name, order.to_list(), judged.to_list(), values, inputs, options)
    return found
