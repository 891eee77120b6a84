"""Relevance models: which terms the feedback documents add to a query, and with which weight.

Plain functions on numbered terms. Two estimators:

`anserini` — what Anserini's RM3 computes, and what the thesis was run with. Of each feedback document the
n most frequent terms, normalised to sum 1, weighted by the document's retrieval score, summed; of the sum
the n heaviest.

`thesis` — Equations 4.2 and 4.4 of A. Bigdeli's thesis as printed. Terms are chosen by
Σ_d P(t|d) ln(P(t|d) / P(t|C)) and weighted by Σ_d P(t|d) Π_{q} P(q|d). The probabilities are smoothed with a
Dirichlet prior, since an unsmoothed product is zero for every document that lacks one query term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenrank.stats.rounding import DIGITS, round_significant

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DocumentTerms(NamedTuple):
    """The terms of one feedback document that may expand a query, in order of their numbers."""

    terms: Ints
    tf: Floats
    length: float
    """All tokens of the document, also those that may not expand a query."""


def min_max(values: Floats) -> Floats:
    """The values of one query's documents, moved and scaled onto [0, 1]; 0 throughout if all are equal."""
    if not len(values):
        return np.zeros(0)
    low, high = float(values.min()), float(values.max())
    reach = high - low
    if not np.isfinite(reach) or reach <= 0:
        return np.zeros(len(values))
    return np.clip((values - low) / reach, 0.0, 1.0)


def debiased_relevance(relevance: Floats, bias: Floats, lambda_: float, *, normalise: bool = True) -> Floats:
    """Rel'(d) = (1 − λ) Rel(d) − λ |Bias(d)|, both normalised over the query's documents (thesis, Eq. 4.1).

    From 1 − λ (most relevant, least biased) down to −λ (least relevant, most biased). The equation as printed
    normalises neither (`normalise` false): the weight of λ then depends on the sizes of the scores.
    """
    if not normalise:
        return (1 - lambda_) * relevance - lambda_ * np.abs(bias)
    return (1 - lambda_) * min_max(relevance) - lambda_ * min_max(np.abs(bias))


def feedback_order(relevance: Floats, bias: Floats | None, lambda_: float, *, normalise: bool = True) -> Ints:
    """The candidates of a query, given best first, by Rel'; equals (to nine digits) stay in order.

    λ = 0 is the given order, whatever the bias; λ = 1 is from least to most biased.
    """
    if bias is None or lambda_ == 0:
        return np.arange(len(relevance))
    result = debiased_relevance(relevance, bias, lambda_, normalise=normalise)
    return np.argsort(-np.round(result, DIGITS), kind="stable")


def anserini_model(documents: Sequence[DocumentTerms], scores: Floats, *, fb_terms: int) -> dict[int, float]:
    """Weight of each expansion term, summing to 1; empty if no document offers a term.

    Parameters
    ----------
    documents
        The feedback documents. Of equally frequent terms those with the smaller numbers are taken, which in
        an index are the first in the order of their bytes. Of the orders tried, this one agrees best with
        Anserini's runs; short documents, where most terms occur once, depend on it.
    scores
        Their first-stage scores: what each document has to say counts in proportion.
    fb_terms
        Terms taken from each document, and in the end.
    """
    total: dict[int, float] = {}
    for document, score in zip(documents, scores.tolist(), strict=True):
        top = np.argsort(-document.tf, kind="stable")[:fb_terms]
        norm = float(document.tf[top].sum())
        for term, tf in zip(document.terms[top].tolist(), document.tf[top].tolist(), strict=True):
            total[term] = total.get(term, 0.0) + tf / norm * score
    return normalised(heaviest(total, fb_terms))


def thesis_model(
    documents: Sequence[DocumentTerms],
    query: Mapping[int, float],
    query_tf: Sequence[Mapping[int, float]],
    collection: Mapping[int, float],
    *,
    fb_terms: int,
    mu: float = 1000.0,
) -> dict[int, float]:
    """The thesis' printed equations: chosen by Eq. 4.2, weighted by Eq. 4.4, weights summing to 1.

    P(t|d) = (tf + μ P(t|C)) / (|d| + μ). The products over query terms are compared in logarithms and only
    up to a factor that all documents of the query share, which normalising removes.

    Parameters
    ----------
    documents
        The feedback documents.
    query, query_tf
        How often each term stands in the query, and how often in each of the documents.
    collection
        P(t|C) of every term of the query and the documents.
    mu
        The prior of the smoothing.
    """
    candidates = list(dict.fromkeys(term for document in documents for term in document.terms.tolist()))
    if not candidates:
        return {}
    place = {term: number for number, term in enumerate(candidates)}
    background = np.array([collection[term] for term in candidates])
    frequency = np.zeros((len(documents), len(candidates)))
    for row, document in enumerate(documents):
        frequency[row, [place[term] for term in document.terms.tolist()]] = document.tf
    lengths = np.array([document.length for document in documents])[:, None]
    given = (frequency + mu * background) / (lengths + mu)
    choice = (given * np.log(given / background)).sum(axis=0)

    likelihood = np.zeros(len(documents))
    for row, (document, tf) in enumerate(zip(documents, query_tf, strict=True)):
        for term, times in query.items():
            smooth = (tf.get(term, 0.0) + mu * collection[term]) / (document.length + mu)
            likelihood[row] += times * np.log(smooth)
    weight = np.dot(given.T, np.exp(likelihood - likelihood.max()))
    chosen = np.argsort(-round_significant(choice), kind="stable")[:fb_terms]
    return normalised({candidates[at]: float(weight[at]) for at in chosen})


def heaviest(weights: Mapping[int, float], count: int) -> dict[int, float]:
    """The entries with the largest weights, largest first; of equals (to nine digits) the smaller key."""
    ordered = sorted(weights.items(), key=lambda entry: (-round_significant(entry[1]), entry[0]))
    return dict(ordered[:count])


def normalised(weights: Mapping[int, float]) -> dict[int, float]:
    """The positive weights, scaled to sum 1; empty if there are none."""
    positive = {key: weight for key, weight in weights.items() if weight > 0}
    total = sum(positive.values())
    return {key: weight / total for key, weight in positive.items()}


def interpolate(query: Mapping[str, float], model: Mapping[str, float], alpha: float) -> dict[str, float]:
    """The expanded query, α · query + (1 − α) · model, summing to 1 (thesis, Eq. 4.3).

    The terms of the query come first, then the others from heavy to light; weightless ones are left out.
    Without a model the query stays as it is.
    """
    total = sum(query.values())
    own = {term: times / total for term, times in query.items()} if total else {}
    if not model or not own:
        return dict(own)
    mixed = {term: alpha * weight + (1 - alpha) * model.get(term, 0.0) for term, weight in own.items()}
    mixed |= {term: (1 - alpha) * weight for term, weight in model.items() if term not in own}
    return {term: weight for term, weight in mixed.items() if weight > 0}
