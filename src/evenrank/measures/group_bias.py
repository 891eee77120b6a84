"""Group measures of one run: bias measures whose tally is the documents' groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evenrank.errors import InputError
from evenrank.measures.bias import measure_bias
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.measurements import Measurement
from evenrank.measures.sources import Sources
from evenrank.measures.summary import Options

_TARGETS = {
    "list": "the query's whole list",
    "collection": "the shares in the collection",
    "equal": "equal shares",
    "given": "the given shares of each query",
}


def measure_groups(
    name: str, run: pl.DataFrame, measures: Sequence[GroupMeasure], sources: Sources, options: Options
) -> list[Measurement]:
    """Each group measure of a normalised run; says where groups and target come from."""
    groups = sources.groups
    if groups is None:
        raise InputError(
            f"{measures[0]} needs groups of documents; give labels, or a tally or docs to infer them"
        )
    labelled = groups.frame.filter(pl.Series(groups.known))["doc_id"]
    ranked = run.select("query_id", "rank", known=pl.col("doc_id").is_in(labelled.implode()))
    if not ranked["known"].any():
        raise InputError(
            f"{name}: none of its documents has a group; check that labels and run belong together"
        )
    coloured: Any = groups  # has what is asked of a tally here: frame and groups
    seen = replace(sources, tally=coloured, background=None, background_depth=0, background_name="")
    # A document without a given label shows no group; one that a tally lacks may be a mistake.
    asked = options if groups.inferred else replace(options, missing="unlabelled")
    found = []
    for measured in measure_bias(name, run, measures, seen, asked):
        notes = [f"group labels: {groups.how}", *measured.notes]
        if "target" in measured.measure.SUPPORTED_PARAMS:
            target = measured.measure["target"] or ("list" if sources.targets is None else "given")
            notes.append(f"target: {_TARGETS[target] if isinstance(target, str) else target}")
        cutoff = measured.measure["cutoff"]
        top = ranked.filter(pl.col("query_id").is_in(measured.query_ids.implode()))
        top = top if cutoff is None else top.filter(pl.col("rank") <= cutoff)
        unknown = int((~top["known"]).sum())
        if unknown:
            notes.append(f"{unknown / len(top):.1%} of the documents looked at show no group")
        if options.ties == "expected":
            notes.append("not linear in the documents: tied ones stand in trec_eval's order")
        found.append(replace(measured, notes=tuple(notes)))
    return found
