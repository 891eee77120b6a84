"""Pseudo-relevance feedback: RM3, and the bias-aware RM3 that asks the least one-sided documents.

Search once; take what the best documents speak of; search again with that. Bias-aware feedback re-ranks the
first list by Rel' = (1 − λ) Rel − λ |Bias| before it chooses the documents to learn from; everything else is
RM3 (A. Bigdeli, thesis, Section 4.1; Abdul-Jaleel et al., TREC 2004). λ = 0 is plain RM3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.feedback_bias import DocumentBias
from evenrank.rankers.feedback_terms import FeedbackTerms
from evenrank.rankers.index import Index, as_index
from evenrank.rankers.lexical import BM25, Dirichlet, retrieve, run_table
from evenrank.rankers.relevance_models import feedback_order, interpolate

Model = BM25 | Dirichlet
ESTIMATORS = ("anserini", "thesis")
_QUERIES = 256  # at a time: a thousand candidates each


@dataclass(frozen=True)
class FeedbackSettings:
    """How a query is expanded.

    Attributes
    ----------
    fb_docs, fb_terms
        Documents learnt from (k) and terms taken from them (n).
    alpha
        Weight of the original query; 1 is no expansion at all.
    bias_lambda
        How much bias counts against relevance when documents are chosen: 0 not at all, 1 alone.
    estimator
        ``anserini`` or ``thesis``, see `feedback_model.py`.
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
    estimator: str = "anserini"
    candidates: int = 1000
    max_df: float = 0.1
    smoothing: float = 1000.0

    def __post_init__(self) -> None:
        for name in ("fb_docs", "fb_terms", "candidates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, but must be at least 1")
        for name in ("alpha", "bias_lambda", "max_df"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}, but must lie between 0 and 1")
        if not self.smoothing > 0:
            raise InputError(f"smoothing is {self.smoothing}, but must be above 0")
        if self.estimator not in ESTIMATORS:
            raise InputError(f"there is no estimator {self.estimator!r}; one of {', '.join(ESTIMATORS)}")


@dataclass(frozen=True, eq=False)
class FirstStage:
    """What the first search found: for each query its terms, and its documents from best to worst."""

    query_ids: pl.Series
    terms: list[dict[str, int]]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float64]

    def run(self, index: Index) -> pl.DataFrame:
        """The same as a run."""
        return run_table(index, self.query_ids, np.diff(self.offsets), self.documents, self.scores)


def first_stage(index: Index, queries: pl.DataFrame, model: Model, *, depth: int) -> FirstStage:
    """Search with the queries as they are."""
    terms = [dict(Counter(index.analyzer.terms(text))) for text in queries["text"].to_list()]
    found = retrieve(index, [_numbered(index, bag) for bag in terms], model=model, depth=depth)
    offsets, documents, scores = found
    return FirstStage(queries["query_id"], terms, offsets, documents.astype(np.int64), scores)


def expand(
    vocabulary: FeedbackTerms, first: FirstStage, settings: FeedbackSettings, bias: DocumentBias | None = None
) -> list[dict[str, float]]:
    """The expanded query of each query: terms and weights that sum to 1.

    ``bias`` is needed if λ > 0.
    """
    weighs = settings.bias_lambda > 0
    if weighs and bias is None:
        raise InputError("bias_lambda is above 0, but no document bias is given")
    # All at once: the texts of many documents are read in one go.
    biases = bias(first.documents) if weighs and bias is not None else None
    expanded = []
    for number, terms in enumerate(first.terms):
        rows = slice(int(first.offsets[number]), int(first.offsets[number + 1]))
        documents, scores = first.documents[rows], first.scores[rows]
        one_sided = None if biases is None else biases[rows]
        if settings.candidates < len(documents):
            documents, scores = documents[: settings.candidates], scores[: settings.candidates]
            one_sided = None if one_sided is None else one_sided[: settings.candidates]
        chosen = feedback_order(scores, one_sided, settings.bias_lambda)[: settings.fb_docs]
        model = vocabulary.model(documents[chosen], scores[chosen], terms, settings)
        expanded.append(interpolate(terms, model, settings.alpha))
    return expanded


def second_stage(
    index: Index, query_ids: pl.Series, expanded: Sequence[Mapping[str, float]], model: Model, *, depth: int
) -> pl.DataFrame:
    """Search with the expanded queries: a run."""
    offsets, documents, scores = retrieve(
        index, [_numbered(index, weights) for weights in expanded], model=model, depth=depth
    )
    return run_table(index, query_ids, np.diff(offsets), documents, scores)


def _numbered(index: Index, weights: Mapping[str, float]) -> dict[int, float]:
    """The terms that the index has, by number."""
    numbers = {index.number(term): float(weight) for term, weight in weights.items()}
    numbers.pop(-1, None)
    return numbers


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
        bias: DocumentBias | None = None,
    ) -> None:
        self.name = f"{base}+rm3"
        self.index = index
        self.model = model
        self.settings = settings
        self.bias = bias
        self._vocabulary = FeedbackTerms(index, max_df=settings.max_df)

    def rank(
        self, queries: pl.DataFrame, *, depth: int = 1000, progress: Progress | None = None
    ) -> pl.DataFrame:
        """The best documents for each query, after feedback."""
        runs = []
        for start in range(0, len(queries), _QUERIES):
            part = queries.slice(start, _QUERIES)
            expanded = self._expanded(part)
            runs.append(second_stage(self.index, part["query_id"], expanded, self.model, depth=depth))
            if progress is not None:
                progress(start + len(part), len(queries))
        return pl.concat(runs)

    def expand(self, queries: pl.DataFrame) -> dict[str, dict[str, float]]:
        """The expanded query of each query, by its id."""
        parts = [queries.slice(start, _QUERIES) for start in range(0, len(queries), _QUERIES)]
        ids = queries["query_id"].to_list()
        return dict(zip(ids, (one for part in parts for one in self._expanded(part)), strict=True))

    def _expanded(self, queries: pl.DataFrame) -> list[dict[str, float]]:
        plain = self.settings.bias_lambda == 0
        depth = self.settings.fb_docs if plain else self.settings.candidates
        first = first_stage(self.index, queries, self.model, depth=depth)
        return expand(self._vocabulary, first, self.settings, self.bias)

    def describe(self) -> dict[str, Any]:
        """Name, settings, words of the bias, and index."""
        described: dict[str, Any] = {
            "name": self.name,
            "settings": {**asdict(self.model), **asdict(self.settings)},
            "index": self.index.describe(),
        }
        return described if self.bias is None else {**described, "bias": self.bias.describe()}


def rm3(
    index: Any,
    *,
    model: Literal["bm25", "qld"] = "bm25",
    fb_docs: int = 10,
    fb_terms: int = 10,
    alpha: float = 0.5,
    bias_lambda: float = 0.0,
    lexicon: Any = None,
    magnitude: str = "tf",
    tokenizer: str = "words",
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
        The first and the second search: ``bm25`` (k1 0.9, b 0.4 unless told) or ``qld`` (mu 1000).
    lexicon, magnitude, tokenizer, tally
        What makes a document one-sided, see :class:`DocumentBias`; rekabsaz2020 and ``tf`` unless told. Not
        looked at if ``bias_lambda`` is 0.
    fb_docs, fb_terms, alpha, bias_lambda, estimator, candidates, max_df, smoothing
        See :class:`FeedbackSettings`.
    """
    settings = FeedbackSettings(
        fb_docs=fb_docs,
        fb_terms=fb_terms,
        alpha=alpha,
        bias_lambda=bias_lambda,
        estimator=estimator,
        candidates=candidates,
        max_df=max_df,
        smoothing=smoothing,
    )
    index, bias = as_index(index), None
    if bias_lambda > 0:
        bias = DocumentBias(index, lexicon=lexicon, magnitude=magnitude, tokenizer=tokenizer, tally=tally)
    return Feedback(index, lexical_model(model, k1=k1, b=b, mu=mu), base=model, settings=settings, bias=bias)


def lexical_model(name: str, **settings: float | None) -> Model:
    """BM25 or query likelihood with the settings that are not None; one that it does not have is refused."""
    models: dict[str, type[Model]] = {"bm25": BM25, "qld": Dirichlet}
    if name not in models:
        raise InputError(f"feedback works on {' and '.join(models)}, not on {name!r}")
    given = {key: value for key, value in settings.items() if value is not None}
    known = [each.name for each in fields(models[name])]
    if unknown := [key for key in given if key not in known]:
        raise InputError(f"{name} has no setting {unknown[0]!r}; it has: {', '.join(known)}")
    return models[name](**given)
