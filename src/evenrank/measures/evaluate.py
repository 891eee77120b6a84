"""Measuring runs: bias measures on arrays, effectiveness through ir_measures, in one list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from numbers import Real
from os import PathLike
from pathlib import PurePath
from typing import Any, Literal

import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.absolute import Absolute, core
from evenrank.measures.base import BiasMeasure, check_choice
from evenrank.measures.bias import measure_bias
from evenrank.measures.effectiveness import measure_effectiveness
from evenrank.measures.fingerprint import fingerprint
from evenrank.measures.group_bias import measure_groups
from evenrank.measures.groups import GroupMeasure
from evenrank.measures.measurements import Measurement, Measurements
from evenrank.measures.parse import parse
from evenrank.measures.psychology import DictionaryBias, affiliation_tally, measure_dictionary_bias
from evenrank.measures.reinforcement import measure_reinforcement
from evenrank.measures.sources import Sources, gather_sources
from evenrank.measures.stereotype import StereotypeReinforcement
from evenrank.measures.study import Study
from evenrank.measures.subsets import check_subset, gender_labels
from evenrank.measures.summary import Bootstrap, Options
from evenrank.measures.targets import targets_fingerprint
from evenrank.process import refuse_after_fork

MISSING = ("error", "zero", "skip")
_SUFFIXES = (".gz", ".zst", ".run", ".txt")


def measure(
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    *,
    tally: Any = None,
    docs: Any = None,
    lexicon: Any = None,
    tokenizer: str | None = None,
    queries: Any = None,
    qrels: Any = None,
    background: Any = None,
    vectors: Any = None,
    pairs: Any = None,
    labels: Any = None,
    targets: Any = None,
    dictionary: Any = None,
    genders: Any = None,
    only: str | None = None,
    missing: Literal["error", "zero", "skip"] = "error",
    ties: Literal["order", "expected"] = "order",
    order: Literal["score", "rank"] = "score",
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    explain: bool = False,
    progress: Any = None,
) -> Measurements:
    """Bias and effectiveness of one or several runs, with intervals, in the order asked for.

    A bias measure is averaged over the queries with at least one ranked document, effectiveness over
    the judged queries, 0 where nothing was returned.

    Parameters
    ----------
    runs
        One run (a path, a frame, a dict, …) or a mapping from names to runs.
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
        Word vectors for GSR (a file, or anything :func:`evenrank.vectors.gendered` takes), and pairs of
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
        Gender labels of queries. With labels, bias measures are over the neutral queries (GSR: over all)
        and the other subsets are shown apart; `only` (neutral, female, male, all) chooses one subset for
        all measures.
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
        Add which words (if docs are given), documents and queries make up each RaB, ARaB and GSR.
    progress
        Passed on to the tally, if one is made.

    Examples
    --------
    >>> run = {"q": {"d1": 2.0, "d2": 1.0}}
    >>> docs = {"d1": "he said", "d2": "she said so"}
    >>> measure(run, "RaB(magnitude='count')@1", docs=docs)["RaB(magnitude='count')@1"].value
    1.0
    """
    refuse_after_fork()
    check_choice("missing", missing, MISSING)
    check_choice("ties", ties, ("order", "expected"))
    check_choice("order", order, ("score", "rank"))
    _check_bootstrap(confidence, resamples, seed)
    if ties == "expected" and order == "rank":
        raise InputError("the rank column leaves no ties; choose either order 'rank' or ties 'expected'")
    asked = listed_measures(measures)
    wanted = list(dict.fromkeys(core(one) for one in asked))
    frames = {name: tables.run(run, order=order) for name, run in named_runs(runs).items()}
    sources = gather_sources(
        wanted,
        frames,
        tally=tally,
        docs=docs,
        lexicon=lexicon,
        tokenizer=tokenizer,
        queries=queries,
        qrels=qrels,
        background=None if background is None else tables.run(background, order=order),
        labels=None if genders is None else gender_labels(genders),
        missing=missing,
        progress=progress,
        vectors=vectors,
        pairs=pairs,
        groups=labels,
        targets=targets,
    )
    ours = affiliation_tally(wanted, frames, sources.docs, dictionary, tokenizer, missing, ties)
    sources = replace(sources, affiliation=ours)
    check_subset(only, sources.labels)
    options = Options(missing, ties, order, only, explain, Bootstrap(confidence, resamples, seed))
    study = _study(wanted, frames, sources, options)
    return Measurements(
        runs={
            name: _as_asked(asked, _measure_run(name, run, wanted, sources, options, study), options)
            for name, run in frames.items()
        },
        cautions=sources.cautions(),
        describe=partial(_provenance, frames, sources, options),
    )


def _check_bootstrap(confidence: float | None, resamples: int, seed: int) -> None:
    if confidence is not None and not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, but must lie between 0 and 1, as in 0.95")
    if resamples < 1:
        raise InputError(f"resamples is {resamples!r}, but must be at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed!r}, but must be at least 0")


def _measure_run(
    name: str,
    run: pl.DataFrame,
    measures: list[Measure],
    sources: Sources,
    options: Options,
    study: Study | None,
) -> tuple[Measurement, ...]:
    slopes = [m for m in measures if isinstance(m, StereotypeReinforcement)]
    groups = [m for m in measures if isinstance(m, GroupMeasure)]
    words = [m for m in measures if isinstance(m, DictionaryBias)]
    apart = [*slopes, *groups, *words]
    biases = [m for m in measures if isinstance(m, BiasMeasure) and m not in apart]
    others = [m for m in measures if not isinstance(m, BiasMeasure)]
    found: dict[Measure, Measurement] = {}
    if slopes and study is not None:
        found |= {m.measure: m for m in measure_reinforcement(name, run, slopes, study, sources, options)}
    if groups:
        found |= {m.measure: m for m in measure_groups(name, run, groups, sources, options)}
    if words:
        found |= {m.measure: m for m in measure_dictionary_bias(name, run, words, sources, options)}
    if biases:
        found |= {m.measure: m for m in measure_bias(name, run, biases, sources, options)}
    if others:
        found |= {m.measure: m for m in measure_effectiveness(name, run, others, sources, options)}
    return tuple(found[m] for m in measures)


def _as_asked(
    asked: list[Measure], found: tuple[Measurement, ...], options: Options
) -> tuple[Measurement, ...]:
    """What was asked for, in its order: abs(m) out of m."""
    by_measure = {m.measure: m for m in found}
    return tuple(
        measure.of(by_measure[measure.inner], options.bootstrap)
        if isinstance(measure, Absolute)
        else by_measure[measure]
        for measure in asked
    )


def _study(
    measures: list[Measure], runs: Mapping[str, pl.DataFrame], sources: Sources, options: Options
) -> Study | None:
    """What GSR reads of queries and documents, once for all runs."""
    slopes = [m for m in measures if isinstance(m, StereotypeReinforcement)]
    if not slopes or sources.texts is None or sources.queries is None:
        return None
    return Study.of(
        runs,
        slopes,
        sources.texts,
        docs=sources.docs,
        queries=sources.queries,
        qrels=sources.qrels,
        missing=options.missing,
        seed=options.bootstrap.seed,
    )


def _provenance(runs: Mapping[str, pl.DataFrame], sources: Sources, options: Options) -> dict[str, Any]:
    tables_given = {"queries": sources.queries, "qrels": sources.qrels, "background": sources.background}
    if sources.background_name:
        del tables_given["background"]
    return {
        "evenrank": evenrank.__version__,
        "tally": {} if sources.tally is None else sources.tally.provenance,
        **({} if sources.texts is None else {"genderedness": sources.texts.provenance}),
        **({} if sources.groups is None else {"groups": sources.groups.provenance}),
        **({} if sources.targets is None else {"targets": targets_fingerprint(sources.targets)}),
        **({} if sources.affiliation is None else {"dictionary": sources.affiliation.provenance}),
        "runs": {name: fingerprint([run]) for name, run in runs.items()},
        **{name: fingerprint([table]) for name, table in tables_given.items() if table is not None},
        **({} if sources.labels is None else {"genders": fingerprint([_labels(sources.labels)])}),
        "missing": options.missing,
        "ties": options.ties,
        "order": options.order,
        "only": options.only,
        **asdict(options.bootstrap),
    }


def _labels(labels: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": list(labels), "gender": list(labels.values())})


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """The measures, parsed and each once."""
    given = [measures] if isinstance(measures, str | Measure) else list(measures)
    wanted = list(dict.fromkeys(parse(measure) for measure in given))
    if not wanted:
        raise InputError("name at least one measure, as in ARaB@10")
    return wanted


def named_runs(runs: Any) -> dict[str, Any]:
    """Runs by name; a run that comes alone is called after its file, or `run`."""
    if isinstance(runs, Mapping) and not _is_run(runs):
        if not runs:
            raise InputError("give at least one run")
        return {str(name): run for name, run in runs.items()}
    if isinstance(runs, str | PathLike):
        return {run_name(runs): runs}
    return {"run": runs}


def run_name(path: str | PathLike[str]) -> str:
    """What a run file is called: its name without .run, .txt, .gz and .zst."""
    name = PurePath(path).name
    while suffix := next((s for s in _SUFFIXES if name.endswith(s) and name != s), ""):
        name = name.removesuffix(suffix)
    return name


def _is_run(runs: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one run (query → document → score) and not runs by name."""
    first = next(iter(runs.values()), None)
    return isinstance(first, Mapping) and all(isinstance(score, Real) for score in first.values())
