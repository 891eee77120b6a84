"""Which terms of a document may expand a query: the side of feedback that looks into the index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenrank.rankers.relevance_models import DocumentTerms, anserini_model, thesis_model

if TYPE_CHECKING:
    from evenrank.rankers.feedback import FeedbackSettings
    from evenrank.rankers.index import Index

_FIT = re.compile(r"[a-z0-9]{2,20}")
_DOCUMENTS = 1 << 16  # remembered


class FeedbackTerms:
    """The terms of an index that may expand a query: [a-z0-9]{2,20}, in at most `max_df` of the documents.

    As in Anserini; the second rule keeps stop words of the collection out, and with them, where most
    documents speak of men, *he* and *his*.
    """

    def __init__(self, index: Index, *, max_df: float = 0.1) -> None:
        self._index = index
        self._rare = max_df * index.documents
        self._spelled: dict[int, bool] = {}
        self.of_document = lru_cache(_DOCUMENTS)(self._of_document)

    def model(
        self,
        documents: NDArray[Any],
        scores: NDArray[np.float64],
        query: Mapping[str, int],
        settings: FeedbackSettings,
    ) -> dict[str, float]:
        """Weight of each expansion term that these feedback documents give, summing to 1."""
        index = self._index
        found = [self.of_document(int(document)) for document in documents]
        if settings.estimator == "anserini":
            weights = anserini_model(found, scores, fb_terms=settings.fb_terms)
        else:
            asked = {index.number(term): float(times) for term, times in query.items()}
            asked.pop(-1, None)
            every = {term for document in found for term in document.terms.tolist()} | asked.keys()
            share = {term: float(index.collection_frequency[term]) / index.tokens for term in every}
            weights = thesis_model(
                found,
                asked,
                [_frequencies(index.forward(int(document)), asked) for document in documents],
                share,
                fb_terms=settings.fb_terms,
                mu=settings.smoothing,
            )
        return {index.term(number): weight for number, weight in weights.items()}

    def _of_document(self, document: int) -> DocumentTerms:
        terms, tf = self._index.forward(document)
        rare = self._index.document_frequency[terms] <= self._rare
        pairs = [
            (term, times)
            for term, times in zip(terms[rare].tolist(), tf[rare].tolist(), strict=True)
            if self._fits(term)
        ]
        return DocumentTerms(
            np.array([term for term, _ in pairs], np.int64),
            np.array([times for _, times in pairs], np.float64),
            float(self._index.lengths[document]),
        )

    def _fits(self, term: int) -> bool:
        """Is the term spelled as one that may expand a query?"""
        if term not in self._spelled:
            self._spelled[term] = _FIT.fullmatch(self._index.term(term)) is not None
        return self._spelled[term]


def _frequencies(
    document: tuple[NDArray[Any], NDArray[Any]], wanted: Mapping[int, float]
) -> dict[int, float]:
    """How often the wanted terms occur in a document."""
    terms, tf = document
    here = np.isin(terms, list(wanted))
    return dict(zip(terms[here].tolist(), tf[here].astype(float).tolist(), strict=True))
