"""KNRM: Xiong et al., "End-to-End Neural Ad-hoc Ranking with Kernel Pooling", SIGIR 2017."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from evenrank.rankers.neural.interaction import Interaction, InteractionSettings, Match


@dataclass(frozen=True, kw_only=True)
class KNRMSettings(InteractionSettings):
    """Settings of :class:`KNRM`; the paper has 11 kernels, one of them for exact matches.

    ``exact_match`` keeps the kernel at 1; ``idf`` weighs the query's words.
    """

    kernels: int = field(default=11, metadata={"least": 2})
    width: float = 0.1


class KNRM(Interaction):
    """Each query word counts the document's words softly, by kernels over the cosine; a line sums them up."""

    def __init__(self, vocabulary: Any, settings: KNRMSettings, vectors: Any) -> None:
        super().__init__(vocabulary, settings, vectors)
        self.kernels = Kernels(settings.kernels, settings.width, exact=settings.exact_match)
        self.line = nn.Linear(len(self.kernels), 1)

    def relevance(self, match: Match) -> Tensor:
        features = self.kernels(match.cosine, match.document_mask, self.word_weights(match))
        score: Tensor = self.line(features).squeeze(1)
        return score


class Kernels(nn.Module):
    """Soft counts of words at several levels of similarity: Σ over query words of ln Σ exp(−(s − µ)²/2σ²)."""

    def __init__(self, count: int, width: float, *, exact: bool) -> None:
        super().__init__()
        soft = count - 1
        means = [-1 + (2 * place + 1) / soft for place in range(soft)]
        means, widths = ([*means, 1.0], [width] * soft + [1e-3]) if exact else (means, [width] * soft)
        self.register_buffer("means", torch.tensor(means))
        self.register_buffer("widths", torch.tensor(widths))

    def __len__(self) -> int:
        return len(self.means)

    def forward(self, similar: Tensor, document: Tensor, weights: Tensor) -> Tensor:
        """Return a feature for each kernel; `weights` is what each word of the query counts."""
        near: Tensor = _SoftCounts.apply(similar, document, self.means, self.widths)
        return (near.clamp(min=1e-10).log() * 0.1 * weights.unsqueeze(2)).sum(1)


class _SoftCounts(torch.autograd.Function):
    """Σ over a document's words of exp(−(s − µ)²/2σ²), for each query word and kernel.

    Written out because a matrix for each kernel, kept for the gradient, takes three times as long.
    """

    @staticmethod
    def forward(ctx: Any, similar: Tensor, document: Tensor, means: Tensor, widths: Tensor) -> Tensor:
        ctx.save_for_backward(similar, document, means, widths)
        sums = [_near(similar, document, mean, width).sum(2) for mean, width in _pairs(means, widths)]
        return torch.stack(sums, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        similar, document, means, widths = ctx.saved_tensors
        total = torch.zeros_like(similar)
        for place, (mean, width) in enumerate(_pairs(means, widths)):
            slope = _near(similar, document, mean, width).mul_(similar - mean).mul_(-1 / width**2)
            total.addcmul_(slope, gradients[0][:, :, place : place + 1])
        return total, None, None, None


def _near(similar: Tensor, document: Tensor, mean: float, width: float) -> Tensor:
    """exp(−(s − µ)²/2σ²) where there is a word; below e⁻⁸⁰, where processors become slow, e⁻⁸⁰."""
    near = similar - mean
    return near.square_().mul_(-1 / (2 * width**2)).clamp_(min=-80).exp_().mul_(document.unsqueeze(1))


def _pairs(means: Tensor, widths: Tensor) -> list[tuple[float, float]]:
    return list(zip(means.tolist(), widths.tolist(), strict=True))
