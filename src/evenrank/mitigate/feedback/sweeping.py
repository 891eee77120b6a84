"""Bias-aware pseudo-relevance feedback, swept: how far does bias fall, and what does it cost?

A. Bigdeli, thesis, Section 4.1: a query that is expanded from documents which are relevant and not one-sided
finds less one-sided documents itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any

import polars as pl
from ir_measures.measures import Measure

import evenrank
from evenrank.data import tables
from evenrank.errors import InputError
from evenrank.measures.base import is_bias
from evenrank.measures.evaluate import listed_measures, measure
from evenrank.measures.fingerprint import fingerprint
from evenrank.measures.inputs import colour
from evenrank.measures.results import Measurement
from evenrank.mitigate.feedback.expanded_queries import expanded_queries, gendered_terms, term_groups
from evenrank.mitigate.feedback.effects import Effect, check_direction, effects_of
from evenrank.mitigate.feedback.sweep_result import FeedbackSweep, Step, corrected

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
    from evenrank.rankers.index import as_index
    from evenrank.rankers.relevance_models import FeedbackTerms

    index = as_index(index)
    asked = tables.queries(queries)
    judged = None if qrels is None else tables.qrels(qrels)
    wanted = _measures(measures, judged is not None)
    strengths, ks, ns = _grid(lambdas, fb_docs, fb_terms)
    given = FeedbackSettings(alpha=alpha, estimator=estimator, candidates=candidates)
    model = lexical_model(ranker, **settings)
    coloured = colour(tally, index.docs, None if magnitude == LIWC else lexicon, tokenizer)
    if tally is None or magnitude == LIWC:
        bias = DocumentBias(index, lexicon=lexicon, magnitude=magnitude, tokenizer=tokenizer or "words")
    else:
        bias = DocumentBias(index, magnitude=magnitude, tally=coloured)
    words = coloured.lexicon or "rekabsaz2020"
    stem = partial(_stemmed, index)

    first = first_stage(index, asked, model, depth=max(candidates, depth))
    plain = first.run(index).filter(pl.col("rank") <= depth)
    if plain.is_empty():
        raise InputError("nothing was found for any query; are they in the language of the documents?")
    sources: dict[str, Any] = {
        "tally": coloured,
        "docs": index.docs,
        "queries": asked,
        "qrels": judged,
        "dictionary": dictionary,
        "background": plain if any(is_bias(m) and "background" in m.NEEDS for m in wanted) else None,
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
    }
    vocabulary = FeedbackTerms(index)
    steps: list[Step] = []
    for k, n in product(ks, ns):
        together: list[Step] = []
        for strength in strengths:
            chosen = replace(given, bias_lambda=strength, fb_docs=k, fb_terms=n)
            weights = expand(vocabulary, first, chosen, bias)
            run = second_stage(index, first.query_ids, weights, model, depth=depth)
            expanded = _expanded(first.query_ids, weights)
            found = _measured(run, wanted, sources)
            effects = tuple(map(Effect, found))
            if together:
                effects = effects_of([effect.measurement for effect in together[0].effects], found)
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
        queries=asked,
        groups=term_groups(terms_seen, words, stemmer=stem),
        provenance={
            "evenrank": evenrank.__version__,
            "index": index.describe(),
            "queries": fingerprint([asked]),
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
