"""DRMM: Guo, Fan, Ai & Croft, "A Deep Relevance Matching Model for Ad-hoc Retrieval", CIKM 2016."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from evenrank.rankers.neural.interaction import Interaction, InteractionSettings, Match, word_shares


@dataclass(frozen=True, kw_only=True)
class DRMMSettings(InteractionSettings):
    """Settings of :class:`DRMM`; the paper has 30 bins and 5 hidden units.

    ``exact_match`` gives exact matches a bin of their own. With ``idf`` terms are gated by their idf (the
    paper's IDF), without by their vector (its TV). A histogram has no gradient, so the vectors stay as they
    are.
    """

    train_embeddings: bool = False
    bins: int = field(default=30, metadata={"least": 2})
    hidden: int = 5


class DRMM(Interaction):
    """Each query word has a histogram of its cosines with the document's words (counts, as ln(1 + n)).

    A small network makes a number of each histogram; a gate, a softmax over the query's words, weighs them.
    """

    def __init__(self, vocabulary: Any, settings: DRMMSettings, vectors: Any) -> None:
        super().__init__(vocabulary, settings, vectors)
        self.bins = settings.bins
        self.network = nn.Sequential(
            nn.Linear(settings.bins, settings.hidden), nn.Tanh(), nn.Linear(settings.hidden, 1), nn.Tanh()
        )
        self.gate = nn.Linear(1 if settings.idf else vectors.shape[1], 1, bias=False)
        self.scale = nn.Parameter(torch.ones(1))  # the tanh holds scores within ±1; a softmax loss needs more

    def relevance(self, match: Match) -> Tensor:
        matched = self.network(self._histograms(match)).squeeze(2)
        values = self.gate(match.idf.unsqueeze(2) if self.settings.idf else match.query).squeeze(2)
        return self.scale * (word_shares(values, match) * matched).sum(1)

    @torch.no_grad()
    def _histograms(self, match: Match) -> Tensor:
        """Return ln(1 + n) for each bin: equal parts of [−1, 1), and the last bin for exact matches."""
        ordinary = self.bins - 1 if self.settings.exact_match else self.bins
        place = ((match.cosine.clamp(-1, 1) + 1) / 2 * ordinary).long().clamp(max=ordinary - 1)
        if self.settings.exact_match:
            place = torch.where(match.exact > 0, ordinary, place)
        counts = torch.zeros(*place.shape[:2], self.bins, device=place.device)
        counts.scatter_add_(2, place, match.document_mask.unsqueeze(1).expand(place.shape).contiguous())
        return counts.log1p()
