"""`audit`: everything that the given inputs allow, measured, compared and explained in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import polars as pl
from ir_measures import AP, RR, nDCG
from ir_measures.measures import Measure

from evenrank import stats
from evenrank.auditing import gate
from evenrank.auditing.comparing import Offered, compare_runs
from evenrank.auditing.passages import leaning_queries
from evenrank.auditing.result import Audit
from evenrank.auditing.verdict import headline_measure
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.absolute import Absolute
from evenrank.measures.base import BiasMeasure, is_bias, leans
from evenrank.measures.document_groups import given_groups
from evenrank.measures.evaluate import listed_measures, measure, named_runs, run_name
from evenrank.measures.exposure import AWRF
from evenrank.measures.mean_bias import MB
from evenrank.measures.measurements import Measurements
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.parse import Condition, parse_condition
from evenrank.measures.psychology import LIWC
from evenrank.measures.rank_bias import ARaB, RaB, RankBias
from evenrank.measures.ranked_parity import rKL
from evenrank.measures.skew import NDKL
from evenrank.measures.sources import colour
from evenrank.measures.stereotype import GSR

DEPTH = 10
CUTOFFS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40, 50, 70, 100)
_SCHEMA = {
    "run": pl.String,
    "measure": pl.String,
    "cutoff": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def audit(
    runs: Any,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    docs: Any = None,
    tally: Any = None,
    lexicon: Any = None,
    tokenizer: str | None = None,
    queries: Any = None,
    qrels: Any = None,
    baseline: str | None = None,
    background: Any = None,
    vectors: Any = None,
    pairs: Any = None,
    genders: Any = None,
    only: str | None = None,
    labels: Any = None,
    targets: Any = None,
    dictionary: Any = None,
    fail_if: str | Condition | Iterable[str | Condition] = (),
    judging: Literal["point", "interval"] | None = None,
    missing: Literal["error", "zero", "skip"] = "error",
    ties: Literal["order", "expected"] = "order",
    order: Literal["score", "rank"] = "score",
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    progress: Any = None,
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
    docs, tally, lexicon, tokenizer, queries, qrels
        As for :func:`evenrank.measure`.
    vectors, pairs, genders, only, labels, targets, dictionary
        As for :func:`evenrank.measure`.
    missing, ties, order, confidence, resamples, seed, progress
        As for :func:`evenrank.measure`.

    Examples
    --------
    >>> from evenrank import demo
    >>> here = demo.folder()
    >>> docs, queries, qrels = tables.load(here)
    >>> found = audit(
    ...     {"bm25": here / "bm25.run", "dense": here / "dense.run"},
    ...     docs=docs, queries=queries, qrels=qrels, genders=here / "genders.tsv",
    ... )
    >>> found.baseline, found.passed
    ('bm25', True)
    """
    frames = {name: tables.run(run, order=order) for name, run in _named(runs).items()}
    baseline = _baseline(baseline, frames)
    conditions = tuple(parse_condition(one, relative=True) for one in _several(fail_if))
    gate.check_conditions(conditions, baseline=baseline if len(frames) > 1 else None)
    docs = None if docs is None else tables.docs(docs)
    queries = None if queries is None else tables.queries(queries)
    qrels = None if qrels is None else tables.qrels(qrels)
    genders = None if genders is None else tables.genders(genders)
    coloured = None if docs is None and tally is None else colour(tally, docs, lexicon, tokenizer, progress)
    groups = () if coloured is None else coloured.groups
    chosen = background is not None
    background = frames[baseline] if background is None else tables.run(background, order=order)
    shared: dict[str, Any] = {"missing": missing, "ties": ties, "order": order, "seed": seed}
    given = shared | {
        "tally": coloured,
        "queries": queries,
        "qrels": qrels,
        "background": background,
        "genders": genders,
        "only": only,
    }
    asked: list[Measure] = (
        listed_measures(measures)
        if measures is not None
        else default_measures(
            groups,
            () if labels is None else given_groups(labels).groups,
            docs=docs is not None,
            queries=queries is not None,
            qrels=qrels is not None,
            targets=targets is not None,
        )
    )
    wanted = list(dict.fromkeys([*asked, *(condition.subject for condition in conditions)]))
    if not wanted:
        raise InputError("nothing to measure: give docs or a tally for bias, qrels for effectiveness")
    needs = {"docs": docs, "vectors": vectors, "pairs": pairs, "labels": labels, "targets": targets}
    needs |= {"dictionary": dictionary, "confidence": confidence, "resamples": resamples}
    measured, dropped = _measured(frames, wanted, keep=measures is not None, **given, **needs)
    kept = [m.measure for m in measured.runs[baseline]]
    headline = headline_measure(kept)
    found = Audit(
        measured=measured,
        baseline=baseline if len(frames) > 1 else None,
        groups=groups,
        comparisons=compare_runs(measured, baseline, confidence=confidence or 0.95, seed=seed),
        conditions=conditions,
        checks=gate.check(
            measured,
            conditions,
            baseline=baseline if len(frames) > 1 else None,
            judging=judging,
            seed=seed,
        ),
        cautions=(*measured.cautions, *dropped, *_about_background(kept, frames, baseline, chosen)),
        confidence=confidence,
        queries={} if queries is None else dict(queries.iter_rows()),
    )
    if coloured is not None and leans(headline):
        explained = measure(frames, headline, docs=docs, explain=True, confidence=None, **given)
        from evenrank.text.matcher import Matcher  # loads numba

        source = coloured.lexicon or lexicon
        matcher = None if source is None else Matcher(source, coloured.tokenizer or tokenizer or "words")
        rows = [explained[run, headline] for run in frames]
        found = replace(
            found,
            curves=cutoff_curves(frames, kept, confidence=confidence, **given),
            offered=_offered(measured, headline, frames, coloured, qrels, confidence or 0.95, given),
            attributions={m.run: m.attribution for m in rows if m.attribution is not None},
            leaning=leaning_queries(
                rows, frames, coloured, docs=docs, queries=queries, matcher=matcher, missing=missing
            ),
        )
    if queries is not None and any(m.NAME == "GSR" for m in kept):
        from evenrank.measures.stereotype_analysis import most_gendered

        found = replace(found, gendered=most_gendered(queries, vectors, count=8, pairs=pairs))
    return _by_gender(found, frames, docs, qrels, genders, labels, targets, dictionary, tokenizer, seed)


def _offered(
    measured: Measurements,
    headline: BiasMeasure,
    frames: Mapping[str, pl.DataFrame],
    tally: Any,
    qrels: pl.DataFrame | None,
    confidence: float,
    given: Mapping[str, Any],
) -> dict[str, Offered]:
    """For each run, the lean of what its queries were offered: relevant documents, else all candidates."""
    found: dict[str, Offered] = {}
    plain = RaB(
        **{key: headline.params[key] for key in ("of", "against", "magnitude") if key in headline.params}
    )
    judged = None if qrels is None else _relevant_run(qrels, tally.frame["doc_id"])
    for name, frame in frames.items():
        mine = measured[name, headline]
        offers = [] if judged is None or judged.is_empty() else [("relevant documents", judged)]
        lengths = frame.group_by("query_id").len()["len"]
        if (lengths > headline.depth()).mean() > 0.5:  # type: ignore[operator]
            offers.append(("candidates", frame))
        for kind, documents in offers:
            depth = int(documents.group_by("query_id").len()["len"].max())  # type: ignore[arg-type]
            more = dict(given) | {"confidence": None, "background": None, "ties": "order"}
            theirs = measure({name: documents}, plain @ depth, **more | {"missing": "skip"})[plain @ depth]
            _, a, b = mine.beside(theirs)
            offered = Offered.of(kind, a, b, confidence)
            if offered is not None:
                found[name] = offered
                break
    return found


def _relevant_run(qrels: pl.DataFrame, held: pl.Series) -> pl.DataFrame:
    """The relevant documents that the collection holds, as a run; their order does not matter."""
    relevant = qrels.filter((pl.col("relevance") > 0) & pl.col("doc_id").is_in(held.implode()))
    return tables.run(relevant.select("query_id", "doc_id", score=pl.col("relevance").cast(pl.Float64)))


def _measured(
    frames: Mapping[str, pl.DataFrame], wanted: list[Measure], *, keep: bool, **given: Any
) -> tuple[Measurements, tuple[str, ...]]:
    """All measures; what nobody asked for by name and the data do not allow is left out, and said."""
    try:
        return measure(frames, wanted, **given), ()
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
            measure(frames, one, **given | {"confidence": None})
        except InputError as error:
            wanted = without
            dropped.append(f"{one.NAME} was left out: {error.message}.")
    return measure(frames, wanted, **given), tuple(dropped)


def _by_gender(
    found: Audit,
    frames: Mapping[str, pl.DataFrame],
    docs: Any,
    qrels: pl.DataFrame | None,
    genders: pl.DataFrame | None,
    labels: Any,
    targets: Any,
    dictionary: Any,
    tokenizer: str | None,
    seed: int,
) -> Audit:
    """What needs labels: psychology and disparity (of queries), representation (of documents)."""
    if labels is not None and targets is not None:
        from evenrank.measures.labelled_lists import represent

        shown = {name: represent(frame, targets, labels=labels) for name, frame in frames.items()}
        found = replace(found, representation=shown)
    if genders is None:
        return found
    asked = set(genders["query_id"].to_list())
    judged = set() if qrels is None else set(qrels.filter(pl.col("relevance") > 0)["query_id"].to_list())
    listed = set.intersection(*(set(run["query_id"].to_list()) for run in frames.values()))
    many = {
        where: Counter(gender for query, gender in genders.iter_rows() if query in asked & among)
        for where, among in (("judged", judged), ("listed", listed))
    }
    from evenrank.measures.disparities import FEWEST, disparity

    enough = {where: min(count["female"], count["male"]) >= FEWEST for where, count in many.items()}
    if docs is not None and any(enough.values()):
        from evenrank.psychology import audit_judgments, audit_rankings

        more: dict[str, Any] = {"dictionary": dictionary, "tokenizer": tokenizer or "words", "seed": seed}
        found = replace(
            found,
            psychology=audit_judgments(genders=genders, qrels=qrels, docs=docs, **more)
            if enough["judged"]
            else audit_rankings(frames, genders=genders, docs=docs, baseline=found.baseline, **more),
        )
    if qrels is not None and enough["judged"]:
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
    """
    gendered = {"female", "male"} <= set(words) or not words
    found: list[Measure] = [nDCG @ DEPTH, RR @ DEPTH, AP] if qrels else []
    if len(words) == 2:
        found += [RaB @ DEPTH, ARaB @ DEPTH, Absolute(ARaB @ DEPTH), ARaB(magnitude="boolean") @ DEPTH]
    elif len(words) > 2:  # every group against the first: no pair is the natural one
        pairs = [ARaB(of=group, against=words[0]) @ DEPTH for group in words[1:]]
        found += [*pairs, *(Absolute(pair) for pair in pairs)]
    if len(words) >= 2:
        found.append(NFaiRR @ DEPTH)
    if docs and queries and gendered:
        found.append(GSR if qrels else GSR @ DEPTH)
    if docs and gendered:
        found.append(LIWC @ DEPTH)
    if len(shown) >= 2:
        found += [AWRF @ DEPTH, NDKL @ DEPTH]
        found += [rKL @ DEPTH] if len(shown) == 2 else [rKL(group=group) @ DEPTH for group in shown]
    if shown and targets:
        found += [MB(group=group) @ DEPTH for group in (shown[:1] if len(shown) == 2 else shown)]
    return found


def cutoff_curves(
    runs: Mapping[str, pl.DataFrame],
    measures: Iterable[Measure],
    *,
    confidence: float | None = 0.95,
    **given: Any,
) -> pl.DataFrame:
    """RaB, ARaB and NFaiRR at growing cut-offs: run, measure, cutoff, value, low, high.

    Only of families that the audit measures, down to half the depth that half of the lists reach. Intervals
    are Student's: there are many, and curves are read by eye.

    Parameters
    ----------
    given
        What :func:`evenrank.measure` needs: tally, background, genders and so on.
    """
    families = _families(measures)
    lengths = pl.concat(run.group_by("query_id").len()["len"] for run in runs.values())
    depth = int(lengths.median() or 0)  # type: ignore[arg-type]
    # Near the end of the lists NFaiRR goes to 1 of itself: run and background hold the same documents.
    cutoffs = [k for k in CUTOFFS if k <= max(min(depth, 10), depth // 2, 1)]
    if not families:
        return pl.DataFrame(schema=_SCHEMA)
    wanted = {(name, k): family @ k for name, family in families.items() for k in cutoffs}
    measured = measure(runs, wanted.values(), confidence=None, **given)
    rows = []
    for run in runs:
        for (name, k), one in wanted.items():
            m = measured[run, one]
            low = high = None
            if confidence is not None and m.value is not None and len(m.values) > 1:
                interval = stats.mean_interval(m.values, confidence=confidence, method="t")
                low, high = interval.low, interval.high
            rows.append((run, name, k, m.value, low, high))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _families(measures: Iterable[Measure]) -> dict[str, Measure]:
    """One measure without cut-off for each curve, by the name it goes under."""
    given = list(measures)
    found: dict[str, Measure] = {}
    for one in given:
        if isinstance(one, RankBias):
            pair = {key: one.params[key] for key in ("of", "against") if key in one.params}
            if one.params.get("magnitude", "tf") != "tf":
                continue  # one magnitude is enough for curves
            for family in (RaB, ARaB):
                named = family(**pair) if pair else family
                found[str(named)] = named
        elif one.NAME == "NFaiRR" and set(one.params) <= {"cutoff"}:
            found["NFaiRR"] = NFaiRR
    return found
