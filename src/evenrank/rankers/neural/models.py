"""The word-interaction models.

============ ===========================================================================================
DRMM         Guo, Fan, Ai & Croft, "A Deep Relevance Matching Model for Ad-hoc Retrieval", CIKM 2016
MatchPyramid Pang, Lan, Guo, Xu, Wan & Cheng, "Text Matching as Image Recognition", AAAI 2016
KNRM         Xiong et al., "End-to-End Neural Ad-hoc Ranking with Kernel Pooling", SIGIR 2017
Conv-KNRM    Dai et al., "Convolutional Neural Networks for Soft-Matching N-Grams", WSDM 2018
PACRR        Hui, Yates, Berberich & de Melo, "PACRR: A Position-Aware Neural IR Model", EMNLP 2017
============ ===========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor, nn

from evenrank.rankers.base import Progress
from evenrank.rankers.neural.candidates import Candidates, Doubles, FirstStage, SmallReranker, scored
from evenrank.rankers.neural.interaction import (
    Interaction,
    InteractionSettings,
    Match,
    Vocabulary,
    WordPairs,
    unit,
    word_shares,
)

_NONE = -1e9


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


INTERACTION_CLASSES = {
    "drmm": (DRMM, DRMMSettings),
    "matchpyramid": (MatchPyramid, MatchPyramidSettings),
    "knrm": (KNRM, KNRMSettings),
    "convknrm": (ConvKNRM, ConvKNRMSettings),
    "pacrr": (PACRR, PACRRSettings),
}
"""The module of each model, and its settings."""


class WordReranker(SmallReranker):
    """A word-interaction model with its vocabulary."""

    def __init__(
        self,
        kind: str,
        module: Interaction,
        vocabulary: Vocabulary,
        scale: FirstStage,
        facts: Mapping[str, Any],
    ) -> None:
        super().__init__(kind, module, scale, facts)
        self.vocabulary = vocabulary

    def pairs(self, pairs: Candidates) -> WordPairs:
        """Return candidates as the model reads them."""
        return WordPairs(pairs, self.vocabulary, self.module.settings, self.scale)

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        return scored(self.module, self.pairs(pairs), np.arange(len(pairs)), progress)

    def files(self) -> dict[str, bytes]:
        """Return the content of its folder."""
        words, idf = list(self.vocabulary.words), self.vocabulary.unknown_idf
        return self._files("vocabulary.json", {"words": words, "unknown idf": idf})

    @classmethod
    def open(cls, kind: str, config: Mapping[str, Any], files: Mapping[str, bytes]) -> WordReranker:
        """Open the model in a folder, from bytes that were checked."""
        model_class, settings = INTERACTION_CLASSES[kind]
        weights = load(files["weights.safetensors"])
        saved = json.loads(files["vocabulary.json"])
        idf = weights["word_idf"].numpy()[1:-1] * saved["unknown idf"]
        vocabulary = Vocabulary(tuple(saved["words"]), idf, saved["unknown idf"])
        shape = (len(vocabulary), weights["embedding.weight"].shape[1])
        module = model_class(vocabulary, settings(**config["settings"]), np.zeros(shape, np.float32))
        module.load_state_dict(weights)
        return cls(kind, module, vocabulary, FirstStage(**saved["first stage"]), config["facts"])
