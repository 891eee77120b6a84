"""Conv-KNRM: Dai et al., "Convolutional Neural Networks for Soft-Matching N-Grams", WSDM 2018."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from evenrank.rankers.neural.interaction import Interaction, InteractionSettings, Match, unit
from evenrank.rankers.neural.knrm import Kernels


@dataclass(frozen=True, kw_only=True)
class ConvKNRMSettings(InteractionSettings):
    """Settings of :class:`ConvKNRM`; the paper has n-grams up to 3, and 128 filters.

    ``exact_match`` keeps the kernel at 1, and adds the counts of exactly the same words; ``idf`` weighs the
    query's words.
    """

    ngrams: int = 3
    filters: int = 64
    kernels: int = field(default=11, metadata={"least": 2})
    width: float = 0.1


class ConvKNRM(Interaction):
    """KNRM on n-grams: convolutions make vectors of them, and every length is matched with every other."""

    def __init__(self, vocabulary: Any, settings: ConvKNRMSettings, vectors: Any) -> None:
        super().__init__(vocabulary, settings, vectors)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(vectors.shape[1], settings.filters, n) for n in range(1, settings.ngrams + 1)
        )
        self.kernels = Kernels(settings.kernels, settings.width, exact=settings.exact_match)
        features = settings.ngrams**2 * len(self.kernels) + settings.exact_match
        self.line = nn.Linear(features, 1)

    def relevance(self, match: Match) -> Tensor:
        queries = [self._ngrams(match.query, place) for place in range(self.settings.ngrams)]
        documents = [self._ngrams(match.document, place) for place in range(self.settings.ngrams)]
        weights = self.word_weights(match)
        features = [
            self.kernels(torch.bmm(q, d.transpose(1, 2)), match.document_mask, weights)
            for q in queries
            for d in documents
        ]
        if self.settings.exact_match:
            same = match.exact.sum(2).log1p() * weights
            features.append(same.sum(1, keepdim=True))
        score: Tensor = self.line(torch.cat(features, 1)).squeeze(1)
        return score

    def _ngrams(self, words: Tensor, place: int) -> Tensor:
        """Return vectors of length 1 for the n-gram that begins at each word."""
        padded = nn.functional.pad(words.transpose(1, 2), (0, place))
        return unit(torch.relu(self.convolutions[place](padded)).transpose(1, 2))
