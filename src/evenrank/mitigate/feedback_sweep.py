"""Bias-aware pseudo-relevance feedback, swept: how far does bias fall, and what does it cost?

A. Bigdeli, thesis, Section 4.1: a query that is expanded from documents which are relevant and not one-sided
finds less one-sided documents itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank import stats
from evenrank.data.read import fingerprint, read_qrels, read_queries
from evenrank.errors import InputError
from evenrank.measures.base import is_bias
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.inputs import get_tally
from evenrank.measures.parse import parse
from evenrank.measures.results import Measurement
from evenrank.mitigate.feedback_effects import (
    TIED,
    Effect,
    GenderedTerms,
    Pair,
    check_direction,
    effects_of,
    expanded_queries,
    gains,
    gendered_terms,
    paired_values,
    side_by_side,
    term_groups,
)
from evenrank.show.grid import Drawn

if TYPE_CHECKING:
    from evenrank.rankers.base import Progress
    from evenrank.rankers.index import Index


LAMBDAS = tuple(number / 10 for number in range(11))
BIAS = ("ARaB@10", "ARaB(magnitude='boolean')@10", "LIWC@10")
"""The three bias measures of the thesis' Tables 4.1 and 4.2."""
UTILITY = ("AP", "nDCG@10", "RR@10")


def feedback(
    index: Index | str | PathLike[str],
    queries: Any,
    *,
    qrels: Any = None,
    ranker: str = "bm25",
    lambdas: Sequence[float] = LAMBDAS,
    fb_docs: int | Sequence[int] = 10,
    fb_terms: int | Sequence[int] = 10,
    alpha: float = 0.5,
    lexicon: Any = None,
    magnitude: str = "tf",
    tokenizer: str | None = None,
    tally: Any = None,
    estimator: str = "anserini",
    candidates: int = 1000,
    depth: int = 1000,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    dictionary: Any = None,
    confidence: float | None = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: float,
) -> FeedbackSweep:
    """RM3 at each λ, measured and compared with λ = 0: less biased expansions, step by step.

    Parameters
    ----------
    index
        An index with stored text, or its path.
    queries, qrels
        What is asked; and judgments, without which only bias is measured.
    ranker
        The two searches: ``bm25`` or ``qld``; its settings (``k1=0.6``) may follow.
    lambdas
        Strengths between 0 and 1; 0, plain RM3, is always among them.
    fb_docs, fb_terms
        Numbers of feedback documents (k) and expansion terms (n); several of either are all tried.
    alpha, estimator, candidates
        See :class:`evenrank.rankers.feedback.FeedbackSettings`.
    lexicon, magnitude, tokenizer
        What makes a document one-sided, when documents are chosen, see
        :class:`evenrank.rankers.feedback.DocumentBias`. The lexicon and tokenizer also serve the
        measures (not if magnitude is ``liwc``).
    tally
        The coloured collection, instead of counting its words again.
    measures
        RaB, ARaB, LIWC, FaiRR, NFaiRR and measures of effectiveness. Without them the three bias measures of
        the thesis, ``ARaB@10`` by ``tf`` and ``boolean`` and ``LIWC@10``; with qrels also AP, nDCG@10, RR@10.
    dictionary
        Words of the measure LIWC.
    confidence, resamples, seed
        Of the intervals, as in :func:`evenrank.measure`.

    Returns
    -------
    FeedbackSweep
        Every step with its run, expanded queries, values, tests and shares of queries improved and hurt.
    """
    from evenrank.rankers.feedback import (
        LIWC,
        DocumentBias,
        FeedbackSettings,
        expand,
        first_stage,
        lexical_model,
        second_stage,
    )
    from evenrank.rankers.index import Index

    index = Index.open(index)
    requested = read_queries(queries)
    judged = None if qrels is None else read_qrels(qrels)
    wanted = _measures(measures, judged is not None)
    strengths, ks, ns = _grid(lambdas, fb_docs, fb_terms)
    given = FeedbackSettings(alpha=alpha, estimator=estimator, candidates=candidates)
    model = lexical_model(ranker, **settings)
    coloured = get_tally(tally, index.docs, None if magnitude == LIWC else lexicon, tokenizer)
    if tally is None or magnitude == LIWC:
        bias = DocumentBias(index, lexicon=lexicon, magnitude=magnitude, tokenizer=tokenizer or "words")
    else:
        bias = DocumentBias(index, magnitude=magnitude, tally=coloured)
    words = coloured.lexicon or "rekabsaz2020"
    stem = partial(_stemmed, index)

    first = first_stage(index, requested, model, depth=max(candidates, depth))
    plain = first.run(index).filter(pl.col("rank") <= depth)
    if plain.is_empty():
        raise InputError("nothing was found for any query; are they in the language of the documents?")
    sources: dict[str, Any] = {
        "tally": coloured,
        "docs": index.docs,
        "queries": requested,
        "qrels": judged,
        "dictionary": dictionary,
        "background": plain if any(is_bias(m) and "background" in m.NEEDS for m in wanted) else None,
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
    }
    steps: list[Step] = []
    for k, n in product(ks, ns):
        together: list[Step] = []
        for strength in strengths:
            chosen = replace(given, bias_lambda=strength, fb_docs=k, fb_terms=n)
            weights = expand(index, first, chosen, bias)
            run = second_stage(index, first.query_ids, weights, model, depth=depth)
            expanded = _expanded(first.query_ids, weights)
            result = _measured(run, wanted, sources)
            effects = tuple(map(Effect, result))
            if together:
                effects = effects_of([effect.measurement for effect in together[0].effects], result)
            terms = gendered_terms(expanded, words, stemmer=stem)
            together.append(Step(strength, k, n, run, expanded, terms, effects))
            if progress is not None:
                progress(len(steps) + len(together), len(strengths) * len(ks) * len(ns))
        steps += corrected(together)
    terms_seen = pl.concat([step.expanded["term"] for step in steps]).unique(maintain_order=True).to_list()
    return FeedbackSweep(
        ranker=ranker,
        steps=tuple(steps),
        first=_measured(plain, wanted, sources),
        queries=requested,
        groups=term_groups(terms_seen, words, stemmer=stem),
        provenance={
            "evenrank": evenrank.__version__,
            "index": index.describe(),
            "queries": fingerprint([requested]),
            **({} if judged is None else {"qrels": fingerprint([judged])}),
            "ranker": {"name": f"{ranker}+rm3", **asdict(model)},
            "alpha": alpha,
            "estimator": estimator,
            "candidates": candidates,
            "depth": depth,
            "bias": bias.describe(),
        },
    )


def _measures(given: Any, judged: bool) -> list[Measure]:
    wanted = listed_measures(given or [*(UTILITY if judged else ()), *BIAS])
    for each in wanted:
        check_direction(each)
    return wanted


def _grid(
    lambdas: Sequence[float], fb_docs: int | Sequence[int], fb_terms: int | Sequence[int]
) -> tuple[list[float], list[int], list[int]]:
    """The values to try, each once; λ from weak to strong, with 0."""
    strengths = sorted({0.0, *map(float, lambdas)})
    ks, ns = (list(dict.fromkeys([x] if isinstance(x, int) else x)) for x in (fb_docs, fb_terms))
    if not ks or not ns:
        raise InputError("name at least one number of feedback documents and of terms")
    return strengths, ks, ns


def _measured(run: pl.DataFrame, wanted: list[Measure], sources: dict[str, Any]) -> tuple[Measurement, ...]:
    return next(iter(measure({"run": run}, wanted, **sources).runs.values()))


def _expanded(ids: pl.Series, weights: Sequence[dict[str, float]]) -> pl.DataFrame:
    return expanded_queries(dict(zip(ids, weights, strict=True)))


def _stemmed(index: Index, word: str) -> str | None:
    """A word as the index spells it, if it is one term there."""
    terms = index.analyzer.terms(word)
    return terms[0] if len(terms) == 1 else None


@dataclass(frozen=True, eq=False)
class Step:
    """One setting of the sweep: its run, its expanded queries, and what they do."""

    lambda_: float
    fb_docs: int
    fb_terms: int
    run: pl.DataFrame
    expanded: pl.DataFrame
    terms: GenderedTerms
    effects: tuple[Effect, ...]

    def __getitem__(self, measure: str | Measure) -> Effect:
        wanted = parse(measure)
        for effect in self.effects:
            if effect.measure == wanted:
                return effect
        raise InputError(f"{wanted} was not measured; {', '.join(str(e.measure) for e in self.effects)} were")

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it, without the run."""
        return {
            "lambda": self.lambda_,
            "fb_docs": self.fb_docs,
            "fb_terms": self.fb_terms,
            "measures": [effect.to_dict() for effect in self.effects],
            "gendered_terms": self.terms.to_dict(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackSweep(Drawn):
    """Bias-aware feedback at several strengths.

    Attributes
    ----------
    steps
        One for each k, n and λ, λ = 0 first; iteration goes over them.
    first
        The first stage, without any feedback.
    provenance
        What it was made from and how.
    """

    ranker: str
    steps: tuple[Step, ...]
    first: tuple[Measurement, ...]
    queries: pl.DataFrame
    groups: dict[str, str]
    provenance: dict[str, Any]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def step(self, lambda_: float, *, fb_docs: int | None = None, fb_terms: int | None = None) -> Step:
        """The step of this λ, and of the first k and n unless they are named."""
        for step in self.steps:
            same = abs(step.lambda_ - lambda_) < TIED
            if same and fb_docs in (None, step.fb_docs) and fb_terms in (None, step.fb_terms):
                return step
        tried = ", ".join(f"{value:g}" for value in dict.fromkeys(step.lambda_ for step in self.steps))
        raise InputError(f"λ = {lambda_:g} was not tried with these settings; {tried} were")

    def baseline(self, step: Step) -> Step:
        """Plain feedback with the k and n of this step."""
        return self.step(0, fb_docs=step.fb_docs, fb_terms=step.fb_terms)

    def shown(self, requested: float | None = None) -> float | None:
        """The λ whose queries are shown: the one asked for, else 0.5, else the largest; None if all are 0."""
        if requested is not None:
            return self.step(requested).lambda_
        tried = [step.lambda_ for step in self.steps if step.lambda_ > 0]
        return 0.5 if 0.5 in tried else max(tried, default=None)

    def per_query(self, measure: str | Measure = "ARaB@10", *, lambda_: float = 0.5) -> pl.DataFrame:
        """How much each query gained against plain feedback, best first: Figures 4.4 to 4.7 of the thesis.

        Columns: ``query_id``, ``before``, ``after`` (absolute for RaB, ARaB and LIWC) and ``gain``, positive
        where the measure got better.
        """
        after = self.step(lambda_)
        before = self.baseline(after)
        ids, was, now = paired_values(before[measure].measurement, after[measure].measurement)
        gain = gains(after[measure].measure, was, now)
        frame = pl.DataFrame({"query_id": ids, "before": was, "after": now, "gain": gain})
        return frame.sort("gain", descending=True, maintain_order=True)

    def harmless(self, measure: str | Measure, *, alpha: float = 0.05) -> float:
        """The largest λ up to which no λ lowers the measure significantly, after Holm (first k and n)."""
        first = self.steps[0]
        reached = 0.0
        for step in self.steps:
            if (step.fb_docs, step.fb_terms) != (first.fb_docs, first.fb_terms) or step.lambda_ == 0:
                continue
            if step[measure].worse(alpha):
                break
            reached = step.lambda_
        return reached

    def side_by_side(self, lambda_: float = 0.5, *, top: int = 10) -> list[Pair]:
        """Queries whose expansion lost most weight in gendered terms, both expansions: Table 4.5."""
        after = self.step(lambda_)
        before = self.baseline(after)
        return side_by_side(before.expanded, after.expanded, self.queries, self.groups, top=top)

    def frame(self) -> pl.DataFrame:
        """One row for each step and measure."""
        rows = []
        for step in self.steps:
            for effect in step.effects:
                one, change = effect.measurement, effect.change
                rows.append(
                    {
                        "lambda": step.lambda_,
                        "fb_docs": step.fb_docs,
                        "fb_terms": step.fb_terms,
                        "measure": str(effect.measure),
                        "value": one.value,
                        "low": one.low,
                        "high": one.high,
                        "abs": one.abs,
                        "difference": None if change is None else change.difference,
                        "p": None if change is None else change.p,
                        "p_holm": effect.p_holm,
                        "reduction": effect.reduction,
                        "abs_reduction": effect.abs_reduction,
                        "improved": effect.improved,
                        "tied": effect.tied,
                        "hurt": effect.hurt,
                        "gendered_terms": step.terms.number,
                        "gendered_weight": step.terms.weight,
                    }
                )
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything but the runs, as JSON knows it."""
        steps = [step.to_dict() for step in self.steps]
        if per_query:
            for row, step in zip(steps, self.steps, strict=True):
                for entry, effect in zip(row["measures"], step.effects, strict=True):
                    entry["per_query"] = effect.measurement.per_query()
        first = [Effect(measurement).to_dict() for measurement in self.first]
        return {
            "ranker": self.ranker,
            "first_stage": first,
            "steps": steps,
            "provenance": self.provenance,
        }

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            values = "  ".join(f"{effect.measure} {_number(effect)}" for effect in step.effects)
            lines.append(f"λ {step.lambda_:<4g}k {step.fb_docs}  n {step.fb_terms}  {values}")
        return "\n".join(lines)


def corrected(steps: Sequence[Step]) -> list[Step]:
    """The steps of one k and n, with Holm's correction over their λs, measure by measure."""
    result = list(steps)
    for place in range(len(result[0].effects)):
        effects = [step.effects[place] for step in result]
        adjusted = stats.holm([None if e.change is None else e.change.p for e in effects])
        for number, (step, p) in enumerate(zip(result, adjusted, strict=True)):
            changed = (
                *step.effects[:place],
                replace(step.effects[place], p_holm=p),
                *step.effects[place + 1 :],
            )
            result[number] = replace(step, effects=changed)
    return result


def _number(effect: Effect) -> str:
    value = effect.measurement.value
    return "–" if value is None else f"{value:.4f}"
