"""Measuring runs: bias measures on arrays, effectiveness through ir_measures, in one list."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

import ir_measures
import numpy as np
import polars as pl
from ir_measures.measures import Measure
from numpy.typing import NDArray

import evenrank
from evenrank.data import files
from evenrank.data.read import fingerprint, is_spark, spark
from evenrank.errors import InputError, check_choice
from evenrank.measures.absolute import Absolute
from evenrank.measures.base import is_bias, unwrap_abs
from evenrank.measures.inputs import Inputs, MeasureInputs, named_runs
from evenrank.measures.lists import WHOLE_LIST, Floats, ranked_queries
from evenrank.measures.parse import parse
from evenrank.measures.results import (
    NOT_IN_QUERIES,
    Measurement,
    Measurements,
    Options,
    Summary,
    check_subset,
    left_out,
)
from evenrank.measures.views import NOT_LINEAR, View, views_of
from evenrank.stats.rounding import round_significant

_FAMILIES = ("tally", "genderedness", "groups", "targets", "dictionary")  # in the order of the provenance


def measure(
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    *,
    only: str | None = None,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    explain: bool = False,
    compare: Literal["pairs"] | None = None,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Measurements:
    """Bias and effectiveness of one or several runs, with intervals, in the order asked for.

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
    compare
        ``"pairs"``: every run against every other, p corrected (Holm) over all pairs and measures; raised
        letters mark what differs.
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
    if compare is not None:
        check_choice("compare", compare, ("pairs",))
    depth = depth_to_read(wanted, given.get("missing"))
    inputs = Inputs.open(runs, tally=tally, depth=depth, **given)
    result = measured(inputs, wanted, options)
    if inputs.docs is not None:
        inputs.docs.forget()
    if compare is None:
        return result
    from evenrank.measures.pairs import with_pairs

    return with_pairs(result, confidence=confidence or 0.95, seed=seed)


def measured(inputs: Inputs, measures: Sequence[Measure], options: Options) -> Measurements:
    """Measures of the runs of the inputs; in an audit, one of several looks at the same inputs."""
    wanted = list(dict.fromkeys(map(unwrap_abs, measures)))
    inputs.check(wanted)
    check_subset(options.only, inputs.genders)
    views = views_of(inputs, filter(is_bias, wanted))
    if inputs.docs is not None:
        for view in views.values():
            for ids in view.wanted_texts(explain=options.explain):
                inputs.docs.expect(ids.unique().to_list())
    for view in views.values():
        view.prepare(options.seed)
    runs = {}
    useful = [m for m in measures if not is_bias(m)]
    for name, run in inputs.runs.items():
        rows: list[Measurement] = []
        for view in views.values():
            rows += view.measured(name, run, options)
        if useful and inputs.qrels is not None:
            ranked = ranked_queries(run).to_list()
            values = effectiveness(run, inputs.qrels, useful)
            rows += effectiveness_measurements(name, ranked, *values, inputs, options)
        runs[name] = in_order_requested(rows, measures, options)
    return Measurements(
        runs=runs,
        cautions=(
            *inputs.guessed,
            *inputs.doubts(),
            *(inputs.cautions() if inputs.counting(wanted) else ()),
            *not_in_queries(runs),
        ),
        describe=partial(provenance, inputs, tuple(views.values()), options),
    )


def not_in_queries(runs: Mapping[str, Iterable[Measurement]]) -> tuple[str, ...]:
    """A caution, where runs or judgments hold queries that are not among those given."""
    most = 0
    for measurements in runs.values():
        for one in measurements:
            most = max(most, one.left_out.get(NOT_IN_QUERIES, 0))
    counted = "1 ranked or judged query is" if most == 1 else f"{most:,} ranked or judged queries are"
    return (f"{counted} not among the queries given, and left out.",) if most else ()


def depth_to_read(measures: Iterable[Measure], missing: str | None) -> int | None:
    """How far down runs, and the background, have to be known for these measures; None for whole runs."""
    if missing == "skip":
        return None  # the documents below move up
    deepest = 0
    for one in measures:
        measure: Any = one.inner if isinstance(one, Absolute) else one
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


def in_order_requested(
    found: Iterable[Measurement], measures: Sequence[Measure], options: Options
) -> tuple[Measurement, ...]:
    """One measurement for each measure, absolute ones made of those without."""
    by_measure = {one.measure: one for one in found}
    ordered = []
    for m in measures:
        if isinstance(m, Absolute):
            ordered.append(m.of(by_measure[m.inner], options))
        else:
            ordered.append(by_measure[m])
    return tuple(ordered)


def provenance(inputs: Inputs, views: Sequence[View], options: Options) -> dict[str, Any]:
    """What the numbers were made from and how."""
    built: dict[str, Any] = {"tally": {}}
    for view in views:
        built |= view.provenance()
    tables_given = {"queries": inputs.queries, "qrels": inputs.qrels, "background": inputs.background}
    return {
        "evenrank": evenrank.__version__,
        **{family: built[family] for family in _FAMILIES if family in built},
        "runs": {
            name: files.fingerprint(inputs.top_only[name]) if name in inputs.top_only else fingerprint([run])
            for name, run in inputs.runs.items()
        },
        **{name: fingerprint([table]) for name, table in tables_given.items() if table is not None},
        **({} if inputs.genders is None else {"genders": fingerprint([_labels(inputs.genders)])}),
        "missing": inputs.missing,
        "ties": inputs.ties,
        "order": inputs.order,
        "only": options.only,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "seed": options.seed,
    }


def _labels(labels: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": list(labels), "gender": list(labels.values())})


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """The measures, parsed and each once."""
    given = [measures] if isinstance(measures, str | Measure) else list(measures)
    wanted = list(dict.fromkeys(map(parse, given)))
    if not wanted:
        raise InputError("name at least one measure, as in ARaB@10")
    return wanted


def effectiveness_measurements(
    name: str,
    ranked: Sequence[str],
    judged: Sequence[str],
    values: Mapping[Measure, Floats],
    inputs: Inputs,
    options: Options,
) -> list[Measurement]:
    """Each effectiveness measure over the judged queries, 0 where nothing was returned.

    Where queries are given, over those of them that are judged. Gender labels restrict it only when a subset
    was asked for by name.
    """
    only = options.only or "all"
    known = pl.Series("query_id", list(dict.fromkeys([*judged, *ranked])), pl.String)
    others = set(known.filter(~inputs.asked(known)).to_list())
    if others:
        inside = np.array([query not in others for query in judged], bool)
        values = {measure: result[inside] for measure, result in values.items()}
        judged, ranked = ([query for query in some if query not in others] for some in (judged, ranked))
    chosen = np.array([only == "all" or (inputs.genders or {}).get(query) == only for query in judged], bool)
    expected = [] if inputs.queries is None else inputs.queries["query_id"].to_list()
    unmeasured = left_out(
        dict.fromkeys([*expected, *judged, *ranked]),
        set(judged),
        labels=inputs.genders,
        only=only,
        otherwise="not judged",
    ) | ({NOT_IN_QUERIES: len(others)} if others else {})
    silent = len({query for query, one in zip(judged, chosen, strict=True) if one}.difference(ranked))
    notes = [f"judged queries with nothing returned, counted as 0: {silent:,}"] if silent else []
    if inputs.ties == "expected":
        notes.append(NOT_LINEAR)
    results = []
    for measure, result in values.items():
        undefined = int((chosen & np.isnan(result)).sum())
        defined = chosen & ~np.isnan(result)
        results.append(
            Measurement(
                run=name,
                measure=measure,
                summary=_summary(measure, result, chosen, options),
                left_out=unmeasured | ({"undefined": undefined} if undefined else {}),
                query_ids=pl.Series(judged, dtype=pl.String).filter(pl.Series(defined)),
                values=result[defined],
                only=options.only,
                notes=tuple(notes),
            )
        )
    return results


def _summary(measure: Measure, values: Floats, chosen: NDArray[np.bool_], options: Options) -> Summary:
    if isinstance(measure.aggregator(), ir_measures.MeanAgg):
        return Summary.over(values, {}, chosen, signed=False, options=options)
    # NumQ, NumRet and their like are sums over queries: no mean, no interval around one.
    counted = Summary.over(values, {}, chosen, signed=False, options=Options(confidence=None))
    return replace(counted, value=float(np.nansum(values[chosen])) if counted.queries else None)


def effectiveness(
    run: pl.DataFrame, qrels: pl.DataFrame, measures: Sequence[Measure]
) -> tuple[list[str], dict[Measure, Floats]]:
    """The judged queries, in the order of the qrels, and each measure's values for them.

    0 where nothing was returned; NaN where something was, but the measure is undefined.
    """
    judged = qrels["query_id"].unique(maintain_order=True)
    # The tools read a run document by document: leave out those that no measure looks at.
    run = run.filter(pl.col("rank") <= max(map(effectiveness_depth, measures)))
    # Queries go by number: some of the tools behind ir_measures (gdeval) know no other ids.
    number = pl.DataFrame({"query_id": judged, "number": pl.int_range(len(judged), eager=True)})
    # Scores that fall by one, down to 1: every tool then ranks as we do, to the last tie, and those that
    # give a document that was not returned a score of 0 (Compat) rank it below all others.
    ranked = run.join(number, on="query_id", maintain_order="left").with_columns(
        score=pl.col("rank").max().over("number") - pl.col("rank") + 1
    )
    relevance = _nested(qrels.join(number, on="query_id", maintain_order="left"), "relevance")
    # What no tool gives a value for is undefined, as Accuracy where nothing relevant was returned.
    unless_found = np.zeros(len(judged))
    unless_found[ranked["number"].unique().to_numpy()] = np.nan
    values = {measure: unless_found.copy() for measure in measures}
    try:
        scores = _nested(ranked, "score")
        for together in _by_tool(values):
            for metric in ir_measures.iter_calc(together, relevance, scores):
                values[metric.measure][int(metric.query_id)] = metric.value
    except (ArithmeticError, TypeError, ValueError) as error:  # a measure or parameter no tool can compute
        names = ", ".join(map(str, values))
        raise InputError(f"ir_measures cannot compute {names}: {' '.join(str(error).split())}") from None
    # Differences that are equal but for their last digits are ties in tests of ranks.
    return judged.to_list(), {measure: round_significant(each, 12) for measure, each in values.items()}


def effectiveness_depth(measure: Measure) -> int:
    """How far down an effectiveness measure looks; with ``judged_only`` others move up, so all of a run."""
    return (
        WHOLE_LIST if measure.params.get("judged_only") else int(measure.params.get("cutoff") or WHOLE_LIST)
    )


def _by_tool(measures: Iterable[Measure]) -> list[list[Measure]]:
    """The measures, apart by the tool that computes them: ir_measures turns undefined into 0 for several."""
    result: dict[str | None, list[Measure]] = {}
    for measure in measures:
        tools = (p for p in ir_measures.DefaultPipeline.providers if p.is_available() and p.supports(measure))
        result.setdefault(next((tool.NAME for tool in tools), None), []).append(measure)
    return list(result.values())


def _nested(table: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for query, document, number in table.select("number", "doc_id", value).iter_rows():
        nested.setdefault(str(query), {})[document] = number
    return nested
