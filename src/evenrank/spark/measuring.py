"""Runs on a cluster: cut by query, measured in the workers, put together on the driver.

What a worker computes for its queries, and how parts are merged, is in `merging.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from ir_measures.measures import Measure

from evenrank.data.read import is_spark, read_table
from evenrank.data.runs import run_rows, sort_run
from evenrank.data.schema import DOC_ID, QUERY_ID, RANK, RUN_SCHEMA, SCORE, Table, pick
from evenrank.errors import InputError
from evenrank.measures.base import is_bias, unwrap_abs
from evenrank.measures.evaluate import depth_to_read, listed_measures
from evenrank.measures.inputs import named_runs
from evenrank.measures.lists import views_of
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurements, Options
from evenrank.spark.merging import (
    PartScores,
    merge_parts,
    opened_without,
    score_part,
    scores_from_arrow,
    scores_to_arrow,
)
from evenrank.spark.tallying import FACTS
from evenrank.text.tally import Tally

_ROWS = 200_000  # of a run that a worker measures at a time, about


def check_shared(measures: Sequence[Measure]) -> None:
    """Refuse measures that workers cannot compute from their share of the lists and counts."""
    for one in map(unwrap_abs, measures):
        if is_bias(one) and (one.SEQUENCES or not one.VIEW.MERGEABLE):
            raise InputError(
                f"{one} looks at more than the counts of one list's documents, which is all that the "
                "workers have; measure it on one machine"
            )
        if one.params.get("target") == "collection":
            raise InputError(f"{one} needs the whole collection; measure it on one machine")


def measure_frames(
    runs: Any,
    measures: str | Measure | Sequence[str | Measure],
    *,
    tally: Any = None,
    only: str | None = None,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **given: Any,
) -> Measurements:
    """Runs in Spark frames, measured in the workers: the values of :func:`evenrank.measure`.

    Parameters
    ----------
    runs
        A Spark frame (query_id, doc_id, score), or a mapping from names to such frames.
    tally
        A Spark frame that :func:`evenrank.tally` made of one of documents.
    queries, qrels, genders, labels, targets
        As for :func:`evenrank.measure`: small tables, sent to all workers.
    background
        A Spark frame.

    Measures that look at more than the counts of one list's documents (GSR and LIWC read texts, EEL several
    lists of a query), and targets that are the shares of the whole collection, are for one
    machine. What the collection and the relevant documents would give is not compared with.
    """
    named = named_runs(runs)
    wanted = listed_measures(measures)
    check_shared(wanted)
    options = Options(only, False, confidence, resamples, seed)
    if given.get("docs") is not None:
        raise InputError("runs are Spark frames; give the tally of the documents, made with evenrank.tally")
    if given.get("targets") is not None and not isinstance(given["targets"], Mapping):
        given["targets"] = read_table(given["targets"])  # read here: workers may not have the file
    head = None if tally is None else _headed(tally)
    inputs, values = opened_without(named, wanted, options, {**given, "tally": head})
    look = _Looking(inputs, tuple(named), tuple(map(str, values)), options)
    frames = [*named.items(), *([] if given.get("background") is None else [(_BEHIND, given["background"])])]
    try:
        rows = _joined(frames, tally, depth_to_read(values, inputs.missing), inputs.order)
        result = rows.groupBy("part").applyInArrow(lambda table: look.work(table), "look binary").collect()
    except Exception as error:
        raise in_one_line(error) from error
    parts = [look.read(row[0]) for row in result]
    return merge_parts(
        {name: [part.scores[name] for part in parts] for name in named},
        {name: _in_order([part.firsts[name] for part in parts]) for name in named},
        inputs,
        wanted,
        options,
        {"runs": dict.fromkeys(named, "a Spark frame")},
    )


_BEHIND = "\x00background"  # no run is called so


class _Part(NamedTuple):
    """What a worker saw of its queries, by run; and in which row of the run each first stands."""

    scores: dict[str, Any]
    firsts: dict[str, pl.DataFrame]


@dataclass(frozen=True)
class _Looking:
    """The work of a worker: all rows of some queries in, what the measures see of them out."""

    inputs: Any
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    options: Any

    def work(self, table: pa.Table) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(table))
        counted = [name for name in frame.columns if name not in (*_KINDS, "run", "first", "part")]
        tally = frame.select("doc_id", *counted).drop_nulls().unique("doc_id", maintain_order=True)
        inputs = self._inputs(tally if counted else None)
        firsts, runs = {}, {}
        for name in (*self.runs, _BEHIND):
            mine = frame.filter(pl.col("run") == name)
            firsts[name] = mine.group_by("query_id").agg(pl.col("first").min())
            rows = run_rows(mine, inputs.order)
            Table(rows).require_unique("query_id", "doc_id")
            runs[name] = sort_run(rows) if len(rows) else pl.DataFrame(schema=RUN_SCHEMA)
        behind = runs.pop(_BEHIND)
        background = None if inputs.background is None else behind
        parted = inputs.of_runs(runs, background=background, part=True)
        scores = score_part(parted, [parse(one) for one in self.measures], self.options)
        return pa.table({"look": [self._written(scores, firsts)]}, pa.schema([("look", pa.binary())]))

    def _inputs(self, tally: pl.DataFrame | None) -> Any:
        known = self.inputs
        built = replace(known, given={**known.given, "tally": None if tally is None else Tally(tally)})
        if known.given.get("labels") is not None:
            built.__dict__["groups"] = known.groups  # made on the driver, which has the file
        return built

    def _written(self, scores: Mapping[str, Any], firsts: Mapping[str, pl.DataFrame]) -> bytes:
        """Arrow tables one after the other: for each run its queries, effectiveness, and each view."""
        sink = pa.BufferOutputStream()
        for name in self.runs:
            of_run = scores[name]
            useful = {str(number): values for number, values in enumerate(of_run.effectiveness.values())}
            pieces = [
                firsts[name].to_arrow(compat_level=pl.CompatLevel.oldest()),
                pa.table({"query_id": pa.array(of_run.judged, pa.string()), **useful}),
                *(scores_to_arrow(each) for each in of_run.scores.values()),
            ]
            for piece in pieces:
                with pa.ipc.new_stream(sink, piece.schema) as writer:
                    writer.write_table(piece)
        return bytes(sink.getvalue())

    def read(self, content: bytes) -> _Part:
        """What :meth:`work` wrote."""
        source = pa.BufferReader(content)

        def piece() -> pa.Table:
            return pa.ipc.open_stream(source).read_all()

        measures = [parse(one) for one in self.measures]
        useful = [measure for measure in measures if not is_bias(measure)]
        views = views_of(self.inputs, filter(is_bias, measures))
        parts, firsts = {}, {}
        for name in self.runs:
            firsts[name] = pl.DataFrame(pl.from_arrow(piece()))
            judged = piece()
            values = {m: judged.column(str(number)).to_numpy() for number, m in enumerate(useful)}
            of_views = {kind: scores_from_arrow(piece(), view.measures) for kind, view in views.items()}
            parts[name] = PartScores(of_views, judged.column("query_id").to_pylist(), values)
        return _Part(parts, firsts)


_KINDS = {"query_id": "string", "doc_id": "string", "score": "double", "rank": "bigint"}


def _joined(frames: Sequence[tuple[str, Any]], tally: Any, depth: int | None, order: str) -> Any:
    """The rows of all runs, cut to the depth needed, and what the tally says of their documents."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    names = {"query_id": QUERY_ID, "doc_id": DOC_ID, order: RANK if order == "rank" else SCORE}
    pieces = []
    for run, frame in frames:
        columns = [
            f.col(f"`{pick(frame.columns, known)}`")
            .cast("string" if name.endswith("_id") else "double")
            .alias(name)
            for name, known in names.items()
        ]
        piece = frame.select(
            f.lit(run).alias("run"), f.monotonically_increasing_id().alias("first"), *columns
        )
        if depth is not None and run != _BEHIND:
            down = f.col(order).asc() if order == "rank" else f.col(order).desc()
            place = f.rank().over(Window.partitionBy("query_id").orderBy(down))
            # One below the cut-off, and all that are tied there: they tell whether a tie decides.
            piece = piece.withColumn("place", place).where(f.col("place") <= depth + 1).drop("place")
        pieces.append(piece)
    rows = reduce(lambda left, right: left.unionByName(right), pieces)
    count = max(1, -(-rows.count() // _ROWS))
    if tally is not None:
        rows = rows.join(tally, on="doc_id", how="left")
    return rows.withColumn("part", f.pmod(f.xxhash64("query_id"), f.lit(count)))


def _in_order(firsts: Sequence[pl.DataFrame]) -> pl.Series:
    """The queries of a run in the order of its rows."""
    return pl.concat(firsts).sort("first")["query_id"]


def _headed(tally: Any) -> Any:
    """The tally without its rows: the groups, and how it was made."""
    if not is_spark(tally):
        raise InputError("runs are Spark frames, so the tally has to be one too; make it with evenrank.tally")
    numbers = {"bigint": pl.Int64, "double": pl.Float64, "string": pl.String}
    empty = pl.DataFrame(schema={name: numbers.get(kind, pl.Float64) for name, kind in tally.dtypes})
    facts = next((one.metadata.get(FACTS) for one in tally.schema if one.name == "doc_id"), None)
    return Tally(empty, json.loads(facts) if facts else None)


def in_one_line(error: Exception) -> Exception:
    """What a worker refused, without the stack of Spark around it; another error as it is."""
    said = re.search(r"InputError: (.+)", str(error))
    return InputError(said[1].strip()) if said else error
