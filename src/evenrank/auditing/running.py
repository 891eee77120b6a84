"""`audit`: everything that the given inputs allow, measured, compared and explained in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl
from ir_measures import AP, RR, nDCG
from ir_measures.measures import Measure

from evenrank.auditing import gate
from evenrank.auditing.certainty import certainties, parse_deltas
from evenrank.auditing.comparing import (
    comparable_genders,
    cutoff_curves,
    gender_counts,
    gender_warnings,
    leans_offered,
)
from evenrank.auditing.passages import leaning_queries
from evenrank.auditing.result import Audit
from evenrank.auditing.verdict import headline_measure, told_changes
from evenrank.errors import InputError
from evenrank.measures.base import Absolute, is_bias, is_sum, sign_names_group
from evenrank.measures.compare import compare
from evenrank.measures.dictionary import LIWC
from evenrank.measures.evaluate import listed_measures, measured
from evenrank.measures.exposure import AWRF, ExposureGap
from evenrank.measures.gsr.measure import GSR, most_gendered
from evenrank.measures.inputs import Inputs, MeasureInputs, named_runs, run_name
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.parity import rKL
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.rank_bias import ARaB, RaB
from evenrank.measures.representation import MB
from evenrank.measures.results import Measurements, Options
from evenrank.measures.skew import NDKL

if TYPE_CHECKING:
    from evenrank.auditing.stages import Trace
    from evenrank.mitigate.mirror import Mirror

DEPTH = 10
_SHARES = (
    "Labels are shares: rates of selection and representation bias, which count documents, are left out."
)


def audit(
    runs: Any,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    only: str | None = None,
    fail_if: str | Condition | Iterable[str | Condition] = (),
    judging: Literal["point", "interval"] | None = None,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    delta: Any = None,
    variants: Any = None,
    stages: Any = None,
    rankers: Any = None,
    selected: int | None = None,
    tally: Any = None,
    **given: Unpack[MeasureInputs],
) -> Audit:
    """Audit runs for bias: measure, compare with a baseline, explain, and judge.

    Parameters
    ----------
    runs
        One run, a mapping from names to runs, or a list of paths.
    measures
        What to measure; unless given, all that the inputs allow: nDCG, RR and AP with qrels; RaB, ARaB and
        NFaiRR with docs or a tally; GSR with docs and queries; LIWC with docs; AWRF, NDKL, rKL (and MB with
        targets) with labels.
    baseline
        The run that the others are compared with, query by query: paired tests, effect sizes, p corrected
        (Holm) over all runs and measures. The first unless given.
    background
        Run whose documents NFaiRR compares with; the baseline unless given.
    fail_if
        Conditions that must not hold for any run but the baseline: `"abs(ARaB@10)>0.1"`, or relative to the
        baseline, `"abs(ARaB@10) > baseline + 0.02"`. Their measures are added; see :attr:`Audit.failures`.
    judging
        Whether values and changes are held against these by the `point` or by their one-sided 95% bound
        (`interval`). Unless given, changes from the baseline by the interval, values by the point.
    only, confidence, resamples, seed
        As for :func:`evenrank.measure`.
    delta
        What is small enough, ``{"ARaB@10": 0.05}`` or ``"ARaB@10=0.05"``: a lean is also judged for being
        less than that, and the difference of any measure from the baseline. Without it nothing is called
        small; the verdict says from which δ on it would be.
    variants
        Results for variants of queries, as :func:`evenrank.compare_variants` reads them.
    selected
        Ranks that count as selected, for selection rates and impact ratios between the groups that documents
        are labelled with; 10 unless given.
    stages
        Runs by name in the order of a pipeline, see :func:`evenrank.trace`: what each of them adds.
    rankers
        Rankers for the mirror test, see :func:`evenrank.mirror`: is it they, or the texts? Needs docs and
        queries; measured with the headline measure.
    docs, tally, lexicon, tokenizer, queries, qrels, vectors, pairs, genders, labels, targets, dictionary
        As for :func:`evenrank.measure`; the documents are read twice at most.
    missing, ties, order, progress
        As for :func:`evenrank.measure`.

    Examples
    --------
    >>> from evenrank import demo
    >>> here = demo.folder()
    >>> import evenrank as er
    >>> docs, queries, qrels = er.load(here)
    >>> found = audit(
    ...     {"bm25": here / "bm25.run", "dense": here / "dense.run"},
    ...     docs=docs, queries=queries, qrels=qrels, genders=here / "genders.tsv",
    ... )
    >>> found.baseline, found.passed
    ('bm25', True)
    """
    if selected is not None and given.get("labels") is None:
        raise InputError("selection rates need the groups of documents; give labels")
    if selected is not None and selected < 1:
        raise InputError(f"selected is {selected}; it must be at least 1")
    inputs = Inputs.open(_named(runs), tally=tally, **given)
    frames = inputs.runs
    baseline = _baseline(baseline, frames)
    conditions = tuple(parse_condition(one, relative=True) for one in _several(fail_if))
    gate.check_conditions(conditions, baseline=baseline if len(frames) > 1 else None)
    chosen = inputs.background is not None
    if not chosen:
        inputs = replace(inputs, background=frames[baseline])
    groups = inputs.tally.groups if inputs.has_tally else ()
    requested: list[Measure] = (
        listed_measures(measures)
        if measures is not None
        else default_measures(
            groups,
            () if given.get("labels") is None else inputs.groups.groups,
            docs=inputs.docs is not None,
            queries=inputs.queries is not None,
            qrels=inputs.qrels is not None,
            targets=given.get("targets") is not None,
            soft=inputs.soft,
        )
    )
    deltas = parse_deltas(delta)
    wanted = list(dict.fromkeys([*requested, *(condition.subject for condition in conditions), *deltas]))
    if not wanted:
        raise InputError("nothing to measure: give docs or a tally for bias, qrels for effectiveness")
    counts = gender_counts(inputs)
    compared = comparable_genders(counts)
    _expect_texts(inputs, wanted, compared)
    options = Options(only, False, confidence, resamples, seed)
    found_all, dropped = _measured(inputs, wanted, options, keep=measures is not None)
    kept = [m.measure for m in found_all.runs[baseline]]
    headline = headline_measure(kept)
    several = len(frames) > 1
    result = Audit(
        measured=found_all,
        baseline=baseline if len(frames) > 1 else None,
        groups=groups,
        comparisons=tuple(compare(found_all, baseline, confidence=confidence or 0.95, seed=seed))
        if several
        else (),
        conditions=conditions,
        checks=gate.check(
            found_all,
            conditions,
            baseline=baseline if len(frames) > 1 else None,
            judging=judging,
            seed=seed,
        ),
        warnings=(
            *found_all.warnings,
            *dropped,
            *_about_background(kept, frames, baseline, chosen),
            *gender_warnings(inputs, counts),
        ),
        confidence=confidence,
        queries={} if inputs.queries is None else dict(inputs.queries.iter_rows()),
    )
    told = [one.measure for one in told_changes(result)]
    result = replace(
        result,
        deltas=deltas,
        certainty=certainties(
            found_all,
            result.comparisons,
            deltas,
            [m for m in (headline, *told) if m is not None],
            confidence=confidence,
            seed=seed,
        ),
    )
    if inputs.has_tally and sign_names_group(headline) and headline.LINEAR:
        quick = replace(options, confidence=None)
        explained = measured(inputs, [headline], replace(quick, explain=True))
        rows = [explained[run, headline] for run in frames]
        result = replace(
            result,
            curves=cutoff_curves(inputs, kept, quick, confidence=confidence),
            offered=leans_offered(found_all, headline, inputs, quick, confidence or 0.95),
            attributions={m.run: m.attribution for m in rows if m.attribution is not None},
            leaning=leaning_queries(rows, inputs),
        )
    if inputs.queries is not None and any(is_bias(m) and "genderedness" in m.NEEDS for m in kept):
        named = {"vectors": given.get("vectors"), "pairs": given.get("pairs")}
        result = replace(result, gendered=most_gendered(inputs.queries, count=8, **named))
    result = _by_gender(result, inputs, compared, seed=seed, selected=selected or DEPTH)
    if stages is not None:
        asked_for = kept if measures is not None else _traced(kept, headline, groups)
        result = replace(result, stages=_stages(inputs, stages, asked_for, only, confidence or 0.95, seed))
    if rankers is not None:
        result = replace(result, preference=_preference(inputs, rankers, headline, confidence or 0.95, seed))
    if variants is not None:
        from evenrank.auditing.black_box import compare_variants

        lists = compare_variants(variants, confidence=confidence or 0.95, resamples=resamples, seed=seed)
        result = replace(result, variants=lists)
    if inputs.docs is not None:
        inputs.docs.forget()
    return result


def _traced(kept: list[Measure], headline: Measure | None, groups: tuple[str, ...]) -> list[Measure]:
    """What stages are traced by, where nobody named measures: lean, neutrality, exposure."""
    rows = [m for m in (headline, NFaiRR @ DEPTH) if m is not None and m in kept]
    return [*rows, ExposureGap @ DEPTH] if len(groups) == 2 else rows


def _stages(
    inputs: Inputs, stages: Any, measures: list[Measure], only: str | None, confidence: float, seed: int
) -> Trace:
    """What each stage adds, with the tally and labels of the audit."""
    from evenrank.auditing.stages import trace

    wanted = [m for m in measures if is_sum(m)]
    if not wanted:
        raise InputError("stages are traced by measures that are sums over documents, as ARaB@10; name one")
    kept = ("labels", "targets", "dictionary", "missing", "ties", "order")
    shared: Any = {name: value for name, value in inputs.given.items() if name in kept} | {
        "docs": inputs.docs,
        "genders": inputs.genders,
    }
    if inputs.has_tally:
        shared["tally"] = inputs.tally
    return trace(stages, wanted, only=only, confidence=confidence, seed=seed, **shared)


def _preference(
    inputs: Inputs, rankers: Any, headline: Measure | None, confidence: float, seed: int
) -> Mirror:
    """The mirror test of rankers on the audited collection and queries."""
    from evenrank.mitigate.mirror import mirror

    if inputs.docs is None or inputs.queries is None:
        raise InputError("the mirror test ranks the collection anew; give docs and queries")
    lexicon = inputs.given.get("lexicon") or "rekabsaz2020"
    requested = headline if sign_names_group(headline) and headline.LINEAR else ARaB @ DEPTH
    more: Any = {"confidence": confidence, "seed": seed, "lexicon": lexicon}
    return mirror(inputs.docs, inputs.queries, rankers=rankers, measure=requested, **more)


def _expect_texts(inputs: Inputs, measures: list[Measure], compared: Mapping[str, bool]) -> None:
    """Say beforehand whose texts will be asked for, so that one pass over the documents fetches them all."""
    if inputs.docs is None:
        return
    headline = headline_measure(measures)
    if inputs.has_tally and sign_names_group(headline) and headline.LINEAR:
        inputs.expect_texts([headline], explain=True)
    if compared["judged"] and inputs.qrels is not None:
        labelled = pl.col("query_id").is_in(list(inputs.genders or ()))
        inputs.docs.expect(inputs.qrels.filter(pl.col("relevance") > 0, labelled)["doc_id"].to_list())
    elif compared["listed"]:
        for run in inputs.runs.values():
            inputs.docs.expect(run.filter(pl.col("rank") <= DEPTH)["doc_id"].to_list())


def _measured(
    inputs: Inputs, wanted: list[Measure], options: Options, *, keep: bool
) -> tuple[Measurements, tuple[str, ...]]:
    """All measures; what nobody asked for by name and the data do not allow is left out, and said."""
    try:
        return measured(inputs, wanted, options), ()
    except InputError:
        if keep:
            raise
    dropped = []
    # Of these one cannot know before whether the texts, or the background, allow them.
    doubtful = [m for m in wanted if is_bias(m) and m.NEEDS & {"docs", "queries", "background"}]
    for one in doubtful:
        without = [m for m in wanted if m != one]
        if not without:
            continue
        try:
            measured(inputs, [one], replace(options, confidence=None))
        except InputError as error:
            wanted = without
            dropped.append(f"{one.NAME} was left out: {error.message}.")
    return measured(inputs, wanted, options), tuple(dropped)


def _by_gender(
    found: Audit, inputs: Inputs, compared: Mapping[str, bool], *, seed: int, selected: int
) -> Audit:
    """What needs labels: psychology and disparity (of queries), selection, representation (of documents)."""
    given, frames, docs, qrels = inputs.given, inputs.runs, inputs.docs, inputs.qrels
    labels, targets, genders = given.get("labels"), given.get("targets"), inputs.genders
    if inputs.soft:
        labels = None  # what follows counts documents
        found = replace(found, warnings=(*found.warnings, _SHARES))
    if labels is not None:
        from evenrank.auditing.selection import selection

        found = replace(found, selection=selection(frames, labels, at=selected))
    if labels is not None and targets is not None:
        from evenrank.measures.representation import represent

        shown = {name: represent(frame, targets, labels=labels) for name, frame in frames.items()}
        found = replace(found, representation=shown)
    if docs is not None and any(compared.values()):
        from evenrank.psychology import audit_judgments, audit_rankings

        more: dict[str, Any] = {
            "genders": genders,
            "docs": docs,
            "dictionary": given.get("dictionary"),
            "seed": seed,
        }
        found = replace(
            found,
            psychology=audit_judgments(qrels=qrels, **more)
            if compared["judged"]
            else audit_rankings(frames, at=DEPTH, baseline=found.baseline, **more),
        )
    if qrels is not None and compared["judged"]:
        from evenrank.measures.disparity import disparity

        found = replace(
            found, disparity=disparity(frames, qrels, genders, baseline=found.baseline, seed=seed)
        )
    return found


def _about_background(
    measures: Iterable[Measure], frames: Mapping[str, pl.DataFrame], baseline: str, chosen: bool
) -> list[str]:
    if chosen or len(frames) < 2:
        return []
    names = dict.fromkeys(m.NAME for m in measures if is_bias(m) and "background" in m.NEEDS)
    return [
        f"{name} compares with the documents of {baseline}; other backgrounds give other values."
        for name in names
    ]


def _baseline(name: str | None, frames: Mapping[str, pl.DataFrame]) -> str:
    if name is not None and name not in frames:
        raise InputError(f"the baseline {name!r} is none of the runs; one of {', '.join(frames)}")
    return name or next(iter(frames))


def _named(runs: Any) -> dict[str, Any]:
    if isinstance(runs, list | tuple) and all(isinstance(run, str | PathLike) for run in runs):
        named = {run_name(run): run for run in runs}
        if len(named) < len(runs):
            raise InputError("two runs have the same name; give a mapping from names to runs")
        return named
    return named_runs(runs)


def _several(conditions: Any) -> list[Any]:
    return [conditions] if isinstance(conditions, str | Condition) else list(conditions)


def default_measures(
    words: tuple[str, ...],
    shown: tuple[str, ...] = (),
    *,
    docs: bool,
    queries: bool,
    qrels: bool,
    targets: bool,
    soft: bool = False,
) -> list[Measure]:
    """Effectiveness, then bias, for whatever is there.

    Parameters
    ----------
    words
        Groups of the tally; empty without one.
    shown
        Groups that documents are labelled with; empty without labels.
    docs, queries, qrels, targets
        Whether these were given.
    soft
        Whether labels are shares, which rKL cannot count.
    """
    gendered = {"female", "male"} <= set(words) or not words
    rows: list[Measure] = [nDCG @ DEPTH, RR @ DEPTH, AP] if qrels else []
    if len(words) == 2:
        rows += [RaB @ DEPTH, ARaB @ DEPTH, Absolute(ARaB @ DEPTH), ARaB(magnitude="boolean") @ DEPTH]
    elif len(words) > 2:  # every group against the first: no pair is the natural one
        pairs = [ARaB(of=group, against=words[0]) @ DEPTH for group in words[1:]]
        rows += [*pairs, *(Absolute(pair) for pair in pairs)]
    if len(words) >= 2:
        rows.append(NFaiRR @ DEPTH)
    if docs and queries and gendered:
        rows.append(GSR if qrels else GSR @ DEPTH)
    if docs and gendered:
        rows.append(LIWC @ DEPTH)
    if len(shown) >= 2:
        rows += [AWRF @ DEPTH, NDKL @ DEPTH]
        counted = [] if soft else [None] if len(shown) == 2 else list(shown)
        rows += [(rKL if group is None else rKL(group=group)) @ DEPTH for group in counted]
    if shown and targets:
        rows += [MB(group=group) @ DEPTH for group in (shown[:1] if len(shown) == 2 else shown)]
    return rows
