"""PACRR: Hui, Yates, Berberich & de Melo, "PACRR: A Position-Aware Neural IR Model", EMNLP 2017."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenrank.rankers.neural.interaction import Interaction, InteractionSettings, Match, word_shares

_NONE = -1e9


@dataclass(frozen=True, kw_only=True)
class PACRRSettings(InteractionSettings):
    """Settings of :class:`PACRR`: n-grams up to 3, 16 filters, the 3 strongest signals.

    ``exact_match`` adds the indicator matrix as a second layer; ``idf`` adds the idf of each word of the
    query, as a softmax over them.
    """

    query_words: int = 20
    ngrams: int = 3
    filters: int = 16
    strongest: int = 3
    hidden: int = 32


class PACRR(Interaction):
    """Convolutions find matches of n words by n; the strongest few of each query word are kept, in its place.

    The paper combines the words by a recurrent layer; as in its authors' later work (Co-PACRR, WSDM 2018)
    dense layers do it here.
    """

    def __init__(self, vocabulary: Any, settings: PACRRSettings, vectors: Any) -> None:
        super().__init__(vocabulary, settings, vectors)
        self.layers = 1 + settings.exact_match
        self.convolutions = nn.ModuleList(
            nn.Conv2d(self.layers, settings.filters, n) for n in range(2, settings.ngrams + 1)
        )
        signals = (settings.ngrams + settings.exact_match) * settings.strongest + settings.idf
        self.network = nn.Sequential(
            nn.Linear(signals * settings.query_words, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, 1),
        )

    def relevance(self, match: Match) -> Tensor:
        mask = match.query_mask.unsqueeze(2) * match.document_mask.unsqueeze(1)
        single = [match.cosine * mask] + ([match.exact] if self.settings.exact_match else [])
        image = torch.stack(single, 1)
        signals = [self._strongest(each, mask) for each in single]
        for size, convolution in enumerate(self.convolutions, 1):
            built = convolution(nn.functional.pad(image, (0, size, 0, size))).amax(1)  # over the filters
            signals.append(self._strongest(built, mask))
        if self.settings.idf:
            signals.append(word_shares(match.idf, match).unsqueeze(2))
        table = torch.cat(signals, 2)
        missing = self.settings.query_words - table.shape[1]
        score: Tensor = self.network(nn.functional.pad(table, (0, 0, 0, missing)).flatten(1)).squeeze(1)
        return score

    def _strongest(self, signal: Tensor, mask: Tensor) -> Tensor:
        """Return the k largest values of each word of the query; 0 where the document has fewer words."""
        wanted = self.settings.strongest
        kept = signal.masked_fill(mask == 0, _NONE).topk(min(wanted, signal.shape[2]), 2).values
        return nn.functional.pad(kept.masked_fill(kept == _NONE, 0.0), (0, wanted - kept.shape[2]))
