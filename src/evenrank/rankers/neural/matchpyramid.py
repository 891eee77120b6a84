"""MatchPyramid: Pang, Lan, Guo, Xu, Wan & Cheng, "Text Matching as Image Recognition", AAAI 2016."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenrank.rankers.neural.interaction import Interaction, InteractionSettings, Match


@dataclass(frozen=True, kw_only=True)
class MatchPyramidSettings(InteractionSettings):
    """Settings of :class:`MatchPyramid`.

    ``exact_match`` adds the indicator matrix as a second channel of the image; ``idf`` adds one in which each
    exact match counts the idf of its word.
    """

    channels: int = 8
    kernel: int = 3
    pooled_query: int = 6
    pooled_document: int = 12
    hidden: int = 64


class MatchPyramid(Interaction):
    """The word-by-word matrix read as an image: convolution, dynamic pooling to a fixed size, a network."""

    def __init__(self, vocabulary: Any, settings: MatchPyramidSettings, vectors: Any) -> None:
        super().__init__(vocabulary, settings, vectors)
        layers = 1 + settings.exact_match + settings.idf
        self.first = nn.Conv2d(layers, settings.channels, settings.kernel, padding="same")
        self.second = nn.Conv2d(settings.channels, settings.channels, settings.kernel, padding="same")
        size = settings.channels * settings.pooled_query * settings.pooled_document
        self.network = nn.Sequential(
            nn.Linear(size, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, 1)
        )

    def relevance(self, match: Match) -> Tensor:
        image = [match.cosine]
        if self.settings.exact_match:
            image.append(match.exact)
        if self.settings.idf:
            image.append(match.exact * match.idf.unsqueeze(2))
        mask = (match.query_mask.unsqueeze(2) * match.document_mask.unsqueeze(1)).unsqueeze(1)
        built = torch.relu(self.first(torch.stack(image, 1) * mask)) * mask
        pooled = _pooled(built, match.document_mask.sum(1), self.settings.pooled_document, 3)
        pooled = _pooled(pooled, match.query_mask.sum(1), self.settings.pooled_query, 2)
        built = torch.relu(self.second(pooled))
        score: Tensor = self.network(built.flatten(1)).squeeze(1)
        return score


def _pooled(image: Tensor, lengths: Tensor, parts: int, dimension: int) -> Tensor:
    """Pool by the maximum: the true length of each image is cut into equal parts (§3.3 of the paper)."""
    lengths = lengths.clamp(min=1)
    edges = torch.arange(parts + 1, device=image.device).unsqueeze(0) * lengths.unsqueeze(1) / parts
    begin = edges[:, :-1].floor().long()
    end = torch.maximum(edges[:, 1:].ceil().long(), begin + 1)
    reach = int((end - begin).max())
    places = torch.minimum(
        begin.unsqueeze(2) + torch.arange(reach, device=image.device), (end - 1).unsqueeze(2)
    )
    flat = places.flatten(1)
    if dimension == 3:
        index = flat[:, None, None, :].expand(-1, image.shape[1], image.shape[2], -1)
        taken = image.gather(3, index)
        return taken.unflatten(3, (parts, reach)).amax(4)
    index = flat[:, None, :, None].expand(-1, image.shape[1], -1, image.shape[3])
    return image.gather(2, index).unflatten(2, (parts, reach)).amax(3)
