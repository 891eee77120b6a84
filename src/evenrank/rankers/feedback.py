"""Pseudo-relevance feedback: RM3, and bias-aware RM3.

Search once; take what the best documents speak of; search again with that. Bias-aware feedback re-ranks the
first list by Rel' = (1 − λ) Rel − λ |Bias| before it chooses the documents to learn from; everything else is
RM3 (A. Bigdeli, thesis, Section 4.1; Abdul-Jaleel et al., TREC 2004). λ = 0 is plain RM3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.rankers.base import Progress
from evenrank.rankers.index import Index
from evenrank.rankers.lexical import BM25, Dirichlet, retrieve, run_table
from evenrank.rankers.relevance_models import (
    DocumentTerms,
    anserini_model,
    feedback_order,
    interpolate,
    thesis_model,
)
from evenrank.text.tally import MAGNITUDES, Tally, magnitude
from evenrank.text.tally import tally as count_words

Model = BM25 | Dirichlet
Floats = NDArray[np.float64]
LIWC = "liwc"
BIASES = (*MAGNITUDES, LIWC)
ESTIMATORS = ("anserini", "thesis")
_QUERIES = 256  # at a time: a thousand candidates each


@dataclass(frozen=True)
class FeedbackSettings:
    """How a query is expanded.

    Attributes
    ----------
    fb_docs, fb_terms
        Documents learned from (k) and terms taken from them (n).
    alpha
        Weight of the original query; 1 is no expansion at all.
    bias_lambda
        How much bias counts against relevance when documents are chosen: 0 not at all, 1 alone.
    normalise
        Scale relevance and bias to [0, 1] in each query before λ weighs them. The thesis prints Equation 4.1
        without this; scores of BM25 then outweigh most biases.
    estimator
        ``anserini`` or ``thesis``, see :mod:`evenrank.rankers.relevance_models`.
    candidates
        Length of the first list, among which documents are chosen if λ > 0.
    max_df
        Terms that occur in a larger share of the documents do not expand a query.
    smoothing
        Prior of the estimator ``thesis``.
    """

    fb_docs: int = 10
    fb_terms: int = 10
    alpha: float = 0.5
    bias_lambda: float = 0.0
    normalise: bool = True
    estimator: str = "anserini"
    candidates: int = 1000
    max_df: float = 0.1
    smoothing: float = 1000.0

    def __post_init__(self) -> None:
        for name in ("fb_docs", "fb_terms", "candidates"):
            check_whole(name, getattr(self, name))
        for name in ("alpha", "bias_lambda", "max_df"):
            check_number(name, getattr(self, name), most=1)
        check_number("smoothing", self.smoothing, least=1e-9)
        check_choice("estimator", self.estimator, ESTIMATORS)


def relevance_model(
    index: Index,
    documents: NDArray[np.int64],
    scores: Floats,
    query: Mapping[str, int],
    settings: FeedbackSettings,
) -> dict[str, float]:
    """Return the weight of each expansion term that these feedback documents give, summing to 1.

    As in Anserini, a term may expand a query if it is spelled [a-z0-9]{2,20} and is in at most `max_df` of
    the documents; the second rule keeps stop words of the collection out, and with them, where most documents
    speak of men, *he* and *his*.
    """
    fits = index.derived(
        ("expansion terms", settings.max_df), lambda: _expansion_terms(index, settings.max_df)
    )
    forward = [index.forward(document) for document in documents.tolist()]
    rows = [
        DocumentTerms(terms[fits[terms]].astype(np.int64), tf[fits[terms]].astype(float), float(length))
        for (terms, tf), length in zip(forward, index.lengths[documents], strict=True)
    ]
    if settings.estimator == "anserini":
        weights = anserini_model(rows, scores, fb_terms=settings.fb_terms)
    else:
        (requested,) = _numbered(index, [query])
        every = {term for row in rows for term in row.terms.tolist()} | requested.keys()
        share = {term: float(index.collection_frequency[term]) / index.tokens for term in every}
        query_tf = [dict(zip(terms.tolist(), tf.tolist(), strict=True)) for terms, tf in forward]
        weights = thesis_model(
            rows, requested, query_tf, share, fb_terms=settings.fb_terms, mu=settings.smoothing
        )
    return {index.term(number): weight for number, weight in weights.items()}


def _expansion_terms(index: Index, max_df: float) -> NDArray[np.bool_]:
    """Return whether each term of the index may expand a query."""
    spelled: NDArray[np.bool_] = index.vocabulary.str.contains("^[a-z0-9]{2,20}$").to_numpy()
    return spelled & (index.document_frequency <= max_df * index.documents)


def _numbered(index: Index, queries: Sequence[Mapping[str, float]]) -> list[dict[int, float]]:
    """Return the terms that the index has, by number."""
    terms = list({term for query in queries for term in query})
    numbers = dict(zip(terms, index.term_numbers(terms).tolist(), strict=True))
    return [
        {numbers[term]: float(weight) for term, weight in query.items() if numbers[term] >= 0}
        for query in queries
    ]


class Feedback:
    """RM3 on a lexical first stage, bias-aware if λ > 0: queries in, run out.

    Attributes
    ----------
    name
        ``bm25+rm3`` or ``qld+rm3``.
    settings
        How queries are expanded.
    """

    def __init__(
        self,
        index: Index,
        model: Model,
        *,
        base: str,
        settings: FeedbackSettings,
        bias: Floats | None = None,
    ) -> None:
        self.name = f"{base}+rm3"
        self.index = index
        self.model = model
        self.settings = settings
        self.bias = bias

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Return the best documents for each query, after feedback."""
        runs = []
        for start in range(0, len(queries), _QUERIES):
            part = queries.slice(start, _QUERIES)
            terms = _numbered(self.index, self._expanded(part))
            result = retrieve(self.index, terms, model=self.model, depth=depth)
            runs.append(run_table(self.index, part["query_id"], *result))
            if progress is not None:
                progress(start + len(part), len(queries))
        return pl.concat(runs)

    def expand(self, queries: pl.DataFrame) -> dict[str, dict[str, float]]:
        """Return the terms and weights of each expanded query, by its id."""
        parts = [queries.slice(start, _QUERIES) for start in range(0, len(queries), _QUERIES)]
        ids = queries["query_id"].to_list()
        return dict(zip(ids, (one for part in parts for one in self._expanded(part)), strict=True))

    def _expanded(self, queries: pl.DataFrame) -> list[dict[str, float]]:
        settings = self.settings
        depth = settings.fb_docs if self.bias is None else settings.candidates
        queries_terms = [dict(Counter(self.index.analyzer.terms(text))) for text in queries["text"].to_list()]
        counts, documents, scores = retrieve(
            self.index, _numbered(self.index, queries_terms), model=self.model, depth=depth
        )
        expanded, end = [], 0
        for terms, count in zip(queries_terms, counts.tolist(), strict=True):
            rows, end = slice(end, end + count), end + count
            candidates, relevance = documents[rows].astype(np.int64), scores[rows]
            bias = None if self.bias is None else self.bias[candidates]
            order = feedback_order(relevance, bias, settings.bias_lambda, normalise=settings.normalise)
            chosen = order[: settings.fb_docs]
            model = relevance_model(self.index, candidates[chosen], relevance[chosen], terms, settings)
            expanded.append(interpolate(terms, model, settings.alpha))
        return expanded

    def describe(self) -> dict[str, Any]:
        """Name, settings and index."""
        return {
            "name": self.name,
            "settings": {**asdict(self.model), **asdict(self.settings)},
            "index": self.index.describe(),
        }


def rm3(
    index: Any,
    *,
    model: Literal["bm25", "qld"] = "bm25",
    fb_docs: int = 10,
    fb_terms: int = 10,
    alpha: float = 0.5,
    bias_lambda: float = 0.0,
    normalise: bool = True,
    lexicon: Any = None,
    magnitude: str = "tf",
    tokenizer: str | None = None,
    tally: Any = None,
    estimator: Literal["anserini", "thesis"] = "anserini",
    candidates: int = 1000,
    max_df: float = 0.1,
    smoothing: float = 1000.0,
    k1: float | None = None,
    b: float | None = None,
    mu: float | None = None,
) -> Feedback:
    """RM3 on BM25 or query likelihood; with ``bias_lambda`` above 0, bias-aware.

    Parameters
    ----------
    model
        The first and the second search: ``bm25`` (with k1 and b) or ``qld`` (with mu).
    lexicon, magnitude, tokenizer, tally
        What makes a document biased, see :func:`document_bias`; not used if ``bias_lambda`` is 0.
    fb_docs, fb_terms, alpha, bias_lambda, normalise, estimator, candidates, max_df, smoothing
        See :class:`FeedbackSettings`.
    """
    settings = FeedbackSettings(
        fb_docs=fb_docs,
        fb_terms=fb_terms,
        alpha=alpha,
        bias_lambda=bias_lambda,
        normalise=normalise,
        estimator=estimator,
        candidates=candidates,
        max_df=max_df,
        smoothing=smoothing,
    )
    index, bias = Index.open(index), None
    if bias_lambda > 0:
        bias = document_bias(index, lexicon=lexicon, kind=magnitude, tokenizer=tokenizer, tally=tally)
    given = {"k1": k1, "b": b} if model == "bm25" else {"mu": mu}
    chosen = {name: value for name, value in given.items() if value is not None}
    ranked_by = BM25(**chosen) if model == "bm25" else Dirichlet(**chosen)
    return Feedback(index, ranked_by, base=model, settings=settings, bias=bias)


def document_bias(
    index: Index, *, lexicon: Any = None, kind: str = "tf", tokenizer: str | None = None, tally: Any = None
) -> Floats:
    """Return |magnitude of one group − that of the other| of each document, by its number; 0 is balance.

    With more than two groups, the largest magnitude minus the smallest.

    Parameters
    ----------
    index
        Whose documents; their stored text is read unless a tally is given.
    lexicon, tokenizer
        The words of each group and how text becomes words.
    kind
        The magnitude, ``tf``, ``tf-words``, ``boolean``, ``count`` or ``length``; or ``liwc``: percent of the
        text in the female and male words of a dictionary (`lexicon` is then a ``.dic``, or None for the open
        one).
    tally
        The tally of the collection, in place of lexicon and tokenizer.
    """
    check_choice("magnitude", kind, BIASES)
    if kind == LIWC:
        from evenrank.text.lexicon import female_and_male

        lexicon = female_and_male(lexicon)
    if tally is None:
        counted = count_words(index.docs, lexicon or "rekabsaz2020", tokenizer=tokenizer or "words")
    else:
        counted = Tally.of(tally)
    if len(counted.groups) < 2:
        raise InputError("the lexicon has one group; bias needs two")
    numbers = index.numbers(counted.frame["doc_id"].to_list())
    if np.bincount(numbers[numbers >= 0], minlength=index.documents).min() == 0:
        raise InputError("the tally lacks documents of the index; tally the same collection")
    name = "length" if kind == LIWC else kind
    each = [
        magnitude(
            name,
            counted.frame[group].to_numpy(),
            logwords=counted.frame[f"{group}_logwords"].to_numpy(),
            tokens=counted.frame["tokens"].to_numpy(),
        )
        for group in counted.groups
    ]
    difference = np.max(each, axis=0) - np.min(each, axis=0)
    values = np.zeros(index.documents)
    values[numbers[numbers >= 0]] = difference[numbers >= 0]
    return 100 * values if kind == LIWC else values
