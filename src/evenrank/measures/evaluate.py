"""Measuring runs: bias measures on arrays, effectiveness through ir_measures, in one list."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Unpack

import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

import evenrank
from evenrank.data import files
from evenrank.data.read import fingerprint, is_spark, spark
from evenrank.data.schema import GENDERS_SCHEMA
from evenrank.errors import InputError, check_choice
from evenrank.measures.base import Absolute, BiasMeasure, is_bias, is_sum, summarise, unwrap_abs
from evenrank.measures.effectiveness import (
    effectiveness_depth,
    score_effectiveness,
    summarise_effectiveness,
)
from evenrank.measures.explain import Attribution, attribution_of
from evenrank.measures.groups import check_labelled, group_notes
from evenrank.measures.inputs import Inputs, MeasureInputs, named_runs, sharing_tables
from evenrank.measures.lists import WHOLE_LIST, PerQuery, RankedLists, in_top, ranked_queries
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurement, Measurements, Options, Summary
from evenrank.measures.variants import neutral_lists

NOT_LINEAR = "not linear in the documents: tied documents stay in trec_eval's order"
NOT_IN_QUERIES = "not among the queries given"
"""Why a query that is ranked or judged has no value."""
SUBSETS = ("neutral", "female", "male", "other", "all")


def measure(
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    *,
    only: str | None = None,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    explain: bool = False,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Measurements:
    """Measure bias and effectiveness of one or several runs, with intervals, in the order of `measures`.

    A bias measure is averaged over the queries with at least one ranked document, effectiveness over
    the judged queries, 0 where nothing was returned.

    Parameters
    ----------
    runs
        One run (a path, a frame, a dict, …) or a mapping from names to runs. Runs in Spark frames,
        beside a tally in one, are measured by Spark's workers.
    measures
        Measures or their names, ours and those of ir_measures: `[ARaB@10, "nDCG@10"]`.
    tally, docs, lexicon, tokenizer
        The coloured collection, or the documents to colour with a lexicon (rekabsaz2020) and a
        tokenizer (words). A lexicon or tokenizer beside a tally must be those the tally was made with.
    queries
        With them, queries for which nothing was ranked are counted, and gendered ones pointed out.
    qrels
        Needed for effectiveness; with them RaB and ARaB are also compared with the relevant documents.
    background
        Run whose documents NFaiRR compares with; the first run unless given.
    vectors, pairs
        Word vectors for GSR (a file, or anything :func:`evenrank.vectors.genderedness` takes), and pairs of
        words that define another direction in them. Without vectors the shipped table is used.
    labels
        The group that each document shows (doc_id and group), for rND, Skew, exposure and their like; without
        them groups are inferred from the tally: the group with most words.
    dictionary
        Words for LIWC: a LIWC-style ``.dic`` with the categories female and male. Without it, the open
        dictionary.
    targets
        The share that each group should have (query and a column for each group), for the same measures;
        without them, and unless a measure says otherwise, that in the query's whole list.
    genders, only
        Gender labels of queries; ``"predict"`` asks the shipped classifier (or `classify`). With labels,
        bias measures are over the neutral queries (GSR: over all) and the other subsets are shown apart;
        `only` (neutral, female, male, all) chooses one subset for all measures.
    missing
        Documents that the collection lacks: `error`, `zero` (no words) or `skip` (the next moves up). A note
        says how many; where it lacks all of them, that is always an error.
    ties
        `order`: by id, descending, as trec_eval does. `expected`: the exact mean over all orders of tied
        documents, for measures that are linear in the documents: RaB, ARaB, FaiRR and NFaiRR.
    order
        `score`: ranks follow the scores. `rank`: the run's rank column is trusted.
    confidence, resamples, seed
        Bootstrap intervals by query; `confidence=None` makes none, which is quicker.
    explain
        Add which words (if docs are given), documents and queries make up each measure that is a sum over
        documents (RaB, ARaB, …), and GSR.
    progress
        Passed on to the tally, if one is made.

    Examples
    --------
    >>> run = {"q": {"d1": 2.0, "d2": 1.0}}
    >>> docs = {"d1": "he said", "d2": "she said so"}
    >>> measure(run, "RaB(magnitude='count')@1", docs=docs)["RaB(magnitude='count')@1"].value
    1.0
    """
    _check_options(confidence, resamples, seed)
    wanted = listed_measures(measures)
    if "pyspark" in sys.modules and any(map(is_spark, named_runs(runs).values())):
        if explain:
            raise InputError(
                "explain reads the documents, which Spark's workers lack; measure on one machine"
            )
        how: Any = {"only": only, "confidence": confidence, "resamples": resamples, "seed": seed}
        there: Measurements = spark().measure_frames(runs, wanted, tally=tally, **how, **given)
        return there
    options = Options(only, explain, confidence, resamples, seed)
    depth = depth_to_read(wanted, given.get("missing"))
    inputs = Inputs.open(runs, tally=tally, depth=depth, **given)
    result = measured(inputs, wanted, options)
    if inputs.docs is not None:
        inputs.docs.forget()
    return result


def measured(inputs: Inputs, measures: Sequence[Measure], options: Options) -> Measurements:
    """Measures of the runs of the inputs."""
    wanted = list(dict.fromkeys(map(unwrap_abs, measures)))
    inputs.check(wanted)
    if options.only is not None:
        check_choice("only", options.only, SUBSETS)
        if options.only != "all" and inputs.genders is None:
            raise InputError(f"only {options.only!r} needs gender labels for the queries; give genders")
    shared = sharing_tables(filter(is_bias, wanted))
    for some in shared:
        inputs.expect_texts(some, explain=options.explain)
    runs = {}
    useful = [m for m in wanted if not is_bias(m)]
    for name, run in inputs.runs.items():
        rows: list[Measurement] = []
        for some in shared:
            rows += getattr(some[0], "measured", _measure_bias)(inputs, some, name, run, options)
        if useful:
            rows += _measure_effectiveness(inputs, name, run, useful, options)
        by_measure = {one.measure: one for one in rows}
        runs[name] = tuple(
            [
                _absolute(m, by_measure[m.inner], options) if isinstance(m, Absolute) else by_measure[m]
                for m in measures
            ]
        )
    warnings = inputs.warnings(wanted)
    most = max((m.left_out.get(NOT_IN_QUERIES, 0) for m in chain(*runs.values())), default=0)
    if most:
        others = "1 ranked or judged query is" if most == 1 else f"{most:,} ranked or judged queries are"
        warnings.append(f"{others} not among the queries given, and left out.")
    return Measurements(
        runs=runs,
        warnings=tuple(warnings),
        describe=partial(provenance, inputs, shared, options),
    )


@dataclass(frozen=True)
class _Queries:
    """The queries of a run: those that count, those with each other label, and why some have no value."""

    query_ids: pl.Series
    chosen: NDArray[np.bool_]
    subsets: dict[str, NDArray[np.bool_]]
    left_out: dict[str, int]

    def about(
        self, name: str, measure: Measure, values: NDArray[Any], undefined: str
    ) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Return which queries count and have a value, and the fields of a measurement about them."""
        defined = self.chosen & ~np.isnan(values)
        without = int((self.chosen & ~defined).sum())
        return defined, {
            "run": name,
            "measure": measure,
            "left_out": self.left_out | ({undefined: without} if without else {}),
            "query_ids": self.query_ids if defined.all() else self.query_ids.filter(pl.Series(defined)),
            "values": values[defined],
        }


def _queries(
    inputs: Inputs,
    query_ids: pl.Series,
    ranked: pl.Series,
    only: str,
    *,
    otherwise: str,
    emptied: Iterable[str] = (),
) -> _Queries:
    """Select the queries that values belong to, out of those with ranked (or judged) documents."""
    chosen, subsets = subset_masks(query_ids, inputs.genders, only)
    among = inputs.is_requested(query_ids)
    requested = inputs.is_requested(ranked)
    table = inputs.queries if inputs.queries is not None else inputs.qrels
    expected = [] if table is None else table["query_id"].to_list()
    unmeasured = left_out(
        dict.fromkeys([*expected, *ranked.filter(pl.Series(requested)).to_list()]),
        set(query_ids.to_list()),
        labels=inputs.genders,
        only=only,
        otherwise=otherwise,
        reasons=dict.fromkeys(emptied, "no ranked document is in the collection"),
    )
    if others := int((~requested).sum()):
        unmeasured[NOT_IN_QUERIES] = others
    masks = {other: mask & among for other, mask in subsets.items()}
    return _Queries(query_ids, chosen & among, masks, unmeasured)


def _measure_bias(
    inputs: Inputs, measures: Sequence[BiasMeasure], name: str, run: pl.DataFrame, options: Options
) -> list[Measurement]:
    """Measure bias over the queries of a run with a list, or over the neutral ones if there are labels."""
    if "variants" in measures[0].NEEDS:
        run = neutral_lists(run, name)
    ranked = ranked_queries(run)
    if options.only not in (None, "all") and inputs.genders is not None:
        # The others are neither measured nor shown, so they need not be in the background either.
        kept = [query for query in ranked.to_list() if inputs.genders.get(query) == options.only]
        run = run.filter(pl.col("query_id").is_in(kept))
    by_ties: dict[bool, RankedLists] = {}
    lists_of: dict[BiasMeasure, RankedLists] = {}
    for measure in measures:
        expected = inputs.ties == "expected" and measure.LINEAR
        if expected not in by_ties:
            by_ties[expected] = inputs.lists(run, measures, name, expected_ties=expected)
        lists_of[measure] = by_ties[expected]
    if "groups" in measures[0].NEEDS:
        check_labelled(name, run, lists_of)
    lists = next(iter(by_ties.values()))
    only = options.only or ("all" if inputs.genders is None else "neutral")
    queries = _queries(
        inputs, lists.query_ids, ranked, only, otherwise="nothing ranked", emptied=lists.emptied
    )
    results = []
    for measure, lists in lists_of.items():
        result = measure.per_query(lists) if len(lists.query_ids) else PerQuery(np.zeros(0))
        defined, about = queries.about(name, measure, result.values, result.undefined)
        ties = None
        if inputs.order == "score" and defined.any():  # whether the ids of tied documents decide the value
            cutoff = measure.params.get("cutoff") or measure.depth()
            ties = float(lists.tied(cutoff, above=measure.ORDER_MATTERS)[defined].mean())
        summarised = partial(summarise, result.values, result.parts, signed=measure.SIGNED, options=options)
        explained: Attribution | None = None
        if options.explain and is_sum(measure) and measure.LINEAR and defined.any():
            matcher = None if measure.words(lists.groups) is None else inputs.matcher_of(measure)
            explained = attribution_of(measure, lists, defined, docs=inputs.docs, matcher=matcher)
        results.append(
            Measurement(
                **vars(summarised(queries.chosen)),
                **about,
                part_values={part: of[defined] for part, of in result.parts.items()},
                ties=ties,
                compare=partial(measure.backgrounds, inputs, about["query_ids"], about["values"]),
                only=None if inputs.genders is None else only,
                subsets={other: summarised(mask) for other, mask in queries.subsets.items()},
                notes=_notes(inputs, measure, lists, defined, options),
                attribution=explained,
            )
        )
    return results


def _measure_effectiveness(
    inputs: Inputs, name: str, run: pl.DataFrame, measures: Sequence[Measure], options: Options
) -> list[Measurement]:
    """Measures of ir_measures for a run: over all judged queries, unless a subset was chosen."""
    qrels: Any = inputs.qrels  # `Inputs.check` makes sure of it
    judged, returned, values = score_effectiveness(run, qrels, measures)
    ranked = pl.concat([judged, ranked_queries(run)]).unique(maintain_order=True)
    queries = _queries(inputs, judged, ranked, options.only or "all", otherwise="not judged")
    results = []
    for measure, each in values.items():
        defined, about = queries.about(name, measure, each, "undefined")
        notes = []
        if silent := int((~returned[defined]).sum()):
            notes.append(f"judged queries with nothing returned, counted as 0: {silent:,}")
        if inputs.ties == "expected":
            notes.append(NOT_LINEAR)
        summary = summarise_effectiveness(measure, each, queries.chosen, options)
        results.append(Measurement(**vars(summary), **about, only=options.only, notes=tuple(notes)))
    return results


def _notes(
    inputs: Inputs, measure: Any, lists: RankedLists, defined: NDArray[np.bool_], options: Options
) -> tuple[str, ...]:
    """Return notes for readers of one value; `defined` marks the lists that have one."""
    by_groups = "groups" in measure.NEEDS
    notes = [f"group labels: {lists.labels.how}"] if by_groups else []
    if lists.skipped:
        ranked = int(lists.scored_lengths.sum()) + lists.skipped
        notes.append(f"{lists.skipped:,} of {ranked:,} ranked documents are not in the collection: skipped")
    if inputs.missing == "zero" and (lists.labels is None or lists.labels.inferred):
        entries, _ = lists.top(measure.depth())
        if absent := int((lists.rows[entries] < 0).sum()):
            notes.append(
                f"{absent:,} of {len(entries):,} ranked documents{in_top(measure.depth())} "
                "are not in the collection: counted as having no words"
            )
    if by_groups:
        notes += group_notes(measure, lists, defined)
    if "background" in measure.NEEDS and inputs.background is None and inputs.runs:
        which = "the run itself" if len(inputs.runs) == 1 else f"the first run, {next(iter(inputs.runs))}"
        notes.append(f"background: {which}; values with different backgrounds cannot be compared")
    if options.explain and measure.LINEAR and measure.words(lists.groups) is not None:
        if inputs.docs is None:
            notes.append(
                "which words make up the value is unknown without the documents: a tally holds counts only"
            )
        elif inputs.matcher_of(measure) is None:
            notes.append("which words make up the value is unknown: the tally does not name its lexicon")
    if inputs.ties == "expected" and not measure.LINEAR:
        notes.append(NOT_LINEAR)
    return tuple(notes)


def subset_masks(
    query_ids: pl.Series, labels: Mapping[str, str] | None, only: str
) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.bool_]]]:
    """The queries with the label `only` (or all), and those with each other label."""
    known = labels or {}
    label = np.array([known.get(query, "") for query in query_ids.to_list()], dtype=object)
    masks = {other: np.equal(label, other, dtype=bool) for other in sorted({*label.tolist()} - {""})}
    if only == "all":
        return np.ones(len(query_ids), bool), masks
    return masks.pop(only, np.zeros(len(query_ids), bool)), masks


def left_out(
    expected: Iterable[str],
    measured: Collection[str],
    *,
    labels: Mapping[str, str] | None = None,
    only: str = "all",
    otherwise: str,
    reasons: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Count the expected queries that have no value, by reason.

    A query outside the subset counts under its label; one within it that was not measured under its own entry
    in `reasons`, or under `otherwise`.
    """
    result: Counter[str] = Counter()
    for query in expected:
        label = None if labels is None else labels.get(query)
        if only != "all" and label != only:
            result["no gender label" if label is None else f"labelled {label}"] += 1
        elif query not in measured:
            result[(reasons or {}).get(query, otherwise)] += 1
    return dict(sorted(result.items()))


def depth_to_read(measures: Iterable[Measure], missing: str | None) -> int | None:
    """Return how many top documents of runs and background these measures read; None for whole runs."""
    if missing == "skip":
        return None  # the documents below move up
    deepest = 0
    for one in measures:
        measure: Any = unwrap_abs(one)
        if is_bias(measure):
            deepest = max(deepest, measure.depth(), measure.background_depth())
        else:
            deepest = max(deepest, effectiveness_depth(measure))
    return None if deepest >= WHOLE_LIST else deepest


def _check_options(confidence: float | None, resamples: int, seed: int) -> None:
    if confidence is not None and not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, but must lie between 0 and 1, as in 0.95")
    if resamples < 1:
        raise InputError(f"resamples is {resamples!r}, but must be at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed!r}, but must be at least 0")


def _absolute(measure: Absolute, signed: Measurement, options: Options) -> Measurement:
    """Return the measurement of abs(m), computed from that of m."""
    values = np.abs(signed.values)
    summary = summarise(values, {}, np.ones(len(values), bool), signed=False, options=options)
    return replace(
        signed,
        **vars(summary),
        measure=measure,
        values=values,
        part_values={},
        compare=dict,
        subsets={label: Summary(value=of.abs, queries=of.queries) for label, of in signed.subsets.items()},
        attribution=None,
    )


def provenance(inputs: Inputs, shared: Iterable[Sequence[BiasMeasure]], options: Options) -> dict[str, Any]:
    """Return what the numbers were computed from, and how."""
    built: dict[str, Any] = {"tally": {}}
    for some in shared:
        built |= inputs.described(some)
    tables = {name: getattr(inputs, name) for name in ("queries", "qrels", "background")}
    if inputs.genders is not None:
        rows = [*inputs.genders.items()]
        tables["genders"] = pl.DataFrame(rows, schema=GENDERS_SCHEMA, orient="row")
    return {
        "evenrank": evenrank.__version__,
        **built,
        "runs": {
            name: files.fingerprint(inputs.top_only[name]) if name in inputs.top_only else fingerprint([run])
            for name, run in inputs.runs.items()
        },
        **{name: fingerprint([table]) for name, table in tables.items() if table is not None},
        **{name: getattr(inputs, name) for name in ("missing", "ties", "order")},
        **{name: getattr(options, name) for name in ("only", "confidence", "resamples", "seed")},
    }


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """The measures, parsed and each once."""
    given = [measures] if isinstance(measures, str | Measure) else list(measures)
    wanted = list(dict.fromkeys(map(parse, given)))
    if not wanted:
        raise InputError("name at least one measure, as in ARaB@10")
    return wanted
