"""Pseudo-relevance feedback: RM3, and the bias-aware RM3 that asks the least one-sided documents.

Search once; take what the best documents speak of; search again with that. Bias-aware feedback re-ranks the
first list by Rel' = (1 − λ) Rel − λ |Bias| before it chooses the documents to learn from; everything else is
RM3 (A. Bigdeli, thesis, Section 4.1; Abdul-Jaleel et al., TREC 2004). λ = 0 is plain RM3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from evenrank.errors import InputError
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
from evenrank.text.tally import MAGNITUDES, magnitude

if TYPE_CHECKING:
    from evenrank.text.matcher import Counts


Model = BM25 | Dirichlet
Floats = NDArray[np.float64]
LIWC = "liwc"
BIASES = (*MAGNITUDES, LIWC)
ESTIMATORS = ("anserini", "thesis")
_QUERIES = 256  # at a time: a thousand candidates each
_TEXTS = 1 << 15  # texts in memory at a time


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
    result = retrieve(index, _numbered(index, terms), model=model, depth=depth)
    counts, documents, scores = result
    offsets = np.cumsum([0, *counts], dtype=np.int64)
    return FirstStage(queries["query_id"], terms, offsets, documents.astype(np.int64), scores)


def expand(
    index: Index, first: FirstStage, settings: FeedbackSettings, bias: DocumentBias | None = None
) -> list[dict[str, float]]:
    """The expanded query of each query: terms and weights that sum to 1.

    ``bias`` is needed if λ > 0.
    """
    biases = None
    if settings.bias_lambda > 0:
        if bias is None:
            raise InputError("bias_lambda is above 0, but no document bias is given")
        biases = bias(first.documents)  # all at once: the texts of many documents are read in one go
    expanded = []
    for number, terms in enumerate(first.terms):
        begin, end = first.offsets[number : number + 2].tolist()
        rows = slice(begin, min(end, begin + settings.candidates))
        documents, scores = first.documents[rows], first.scores[rows]
        order = feedback_order(scores, None if biases is None else biases[rows], settings.bias_lambda)
        chosen = order[: settings.fb_docs]
        model = relevance_model(index, documents[chosen], scores[chosen], terms, settings)
        expanded.append(interpolate(terms, model, settings.alpha))
    return expanded


def relevance_model(
    index: Index,
    documents: NDArray[np.int64],
    scores: Floats,
    query: Mapping[str, int],
    settings: FeedbackSettings,
) -> dict[str, float]:
    """Weight of each expansion term that these feedback documents give, summing to 1.

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
    """Whether each term of the index may expand a query."""
    buffers = [pa.py_buffer(index.arrays[name]) for name in ("term-offsets", "terms")]
    terms = pl.Series("term", pa.LargeStringArray.from_buffers(index.terms, *buffers), dtype=pl.String)
    spelled: NDArray[np.bool_] = terms.str.contains("^[a-z0-9]{2,20}$").to_numpy()
    return spelled & (index.document_frequency <= max_df * index.documents)


def second_stage(
    index: Index, query_ids: pl.Series, expanded: Sequence[Mapping[str, float]], model: Model, *, depth: int
) -> pl.DataFrame:
    """Search with the expanded queries: a run."""
    found = retrieve(index, _numbered(index, expanded), model=model, depth=depth)
    return run_table(index, query_ids, *found)


def _numbered(index: Index, queries: Sequence[Mapping[str, float]]) -> list[dict[int, float]]:
    """The terms that the index has, by number."""
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
        bias: DocumentBias | None = None,
    ) -> None:
        self.name = f"{base}+rm3"
        self.index = index
        self.model = model
        self.settings = settings
        self.bias = bias

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
        return expand(self.index, first, self.settings, self.bias)

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
    index, bias = Index.open(index), None
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


class DocumentBias:
    """|magnitude of one group − that of the other| of documents, by their numbers; 0 is balance.

    With more than two groups, the largest magnitude minus the smallest. It does not matter which group comes
    first. A document is looked at once, when it is first asked for.

    Parameters
    ----------
    index
        Whose documents; their stored text is read unless a tally is given.
    lexicon, tokenizer
        The words of each group and how text becomes words.
    magnitude
        ``tf``, ``tf-words``, ``boolean``, ``count``, ``length``, or ``liwc``: percent of the text in the
        female and male words of a dictionary (`lexicon` is then a ``.dic``, or None for the open one).
    tally
        The coloured collection (a Tally, its frame or its file), in place of lexicon and tokenizer: no text
        is read then, which is the quick way for large collections.
    """

    def __init__(
        self,
        index: Index,
        *,
        lexicon: Any = None,
        magnitude: str = "tf",
        tokenizer: str = "words",
        tally: Any = None,
    ) -> None:
        if magnitude not in BIASES:
            raise InputError(f"there is no document bias {magnitude!r}; one of {', '.join(BIASES)}")
        self.magnitude = magnitude
        self._index = index
        self._known = np.full(index.documents, np.nan)
        if tally is not None:
            if lexicon is not None or magnitude == LIWC:
                raise InputError("a tally has its own words; leave out the lexicon, or give no tally")
            self._matcher = None
            self._words = self._take(tally)
            return
        from evenrank.text.lexicon import female_and_male
        from evenrank.text.matcher import Matcher

        chosen = female_and_male(lexicon) if magnitude == LIWC else lexicon or "rekabsaz2020"
        self._matcher = Matcher(chosen, tokenizer)
        if len(self._matcher.groups) < 2:
            raise InputError(f"lexicon {self._matcher.lexicon.name!r} has one group; bias needs two")
        self._words = {
            "lexicon": self._matcher.lexicon.name,
            "lexicon_hash": self._matcher.lexicon.hash,
            "tokenizer": self._matcher.tokenizer,
        }

    def __call__(self, documents: NDArray[Any]) -> Floats:
        """|bias| of each of these documents, given by number."""
        unknown = np.unique(documents[np.isnan(self._known[documents])])
        for start in range(0, len(unknown), _TEXTS):
            self._count(unknown[start : start + _TEXTS])
        return self._known[documents]

    def describe(self) -> dict[str, Any]:
        """What it was computed with."""
        return {"magnitude": self.magnitude, **self._words}

    def _count(self, documents: NDArray[Any]) -> None:
        if self._matcher is None:
            missing = self._index.doc_ids(documents[:1])[0]
            raise InputError(f"the tally lacks document {missing!r} of the index; tally the same collection")

        ids = self._index.doc_ids(documents)
        texts = self._index.docs.texts(ids)
        result = self._matcher.count([texts[doc_id] for doc_id in ids])
        self._known[documents] = spread(result, self.magnitude)

    def _take(self, source: Any) -> dict[str, Any]:
        """Keep the values of a tally's documents; what is known about its words."""
        from evenrank.text.matcher import Counts
        from evenrank.text.tally import Tally

        tally = Tally.of(source)
        numbers = self._index.numbers(tally.frame["doc_id"].to_list())
        here = numbers >= 0
        columns = tally.frame
        counts = Counts(
            columns["tokens"].to_numpy(),
            np.stack([columns[group].to_numpy() for group in tally.groups], axis=1),
            np.stack([columns[f"{group}_logwords"].to_numpy() for group in tally.groups], axis=1),
        )
        self._known[numbers[here]] = spread(counts, self.magnitude)[here]
        known = tally.lexicon
        facts: dict[str, Any] = {"tokenizer": tally.tokenizer}
        return facts if known is None else {"lexicon": known.name, "lexicon_hash": known.hash, **facts}


def spread(found: Counts, name: str) -> Floats:
    """Largest minus smallest magnitude over the groups of each document: |male − female| for two groups."""
    plain = "length" if name == LIWC else name
    groups = range(found.counts.shape[1])
    each = [
        magnitude(plain, found.counts[:, g], logwords=found.logwords[:, g], tokens=found.tokens)
        for g in groups
    ]
    values = np.stack(each, axis=1)
    apart = values.max(axis=1) - values.min(axis=1)
    return 100 * apart if name == LIWC else apart
