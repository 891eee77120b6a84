"""The head: a small network on the frozen vectors of an encoder. It trains in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load
from torch import Tensor, nn

from evenrank.errors import InputError
from evenrank.rankers.base import Progress
from evenrank.rankers.encoder import Encoder
from evenrank.rankers.encodings import Encodings, encode_pairs
from evenrank.rankers.neural.candidates import (
    Candidates,
    Doubles,
    FirstStage,
    Ints,
    SmallReranker,
    scored,
)

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """Settings of :class:`Head`.

    Attributes
    ----------
    encoder
        Name or folder of a sentence-transformer; all-MiniLM-L6-v2 if not given.
    max_length
        Tokens of a text that it looks at; its own limit if not given.
    hidden
        Width of the network.
    dropout
        Of its hidden layer.
    with_first_stage
        Use the first-stage score too.
    """

    encoder: str | None = None
    max_length: int | None = None
    hidden: int = 64
    dropout: float = 0.2
    with_first_stage: bool = True

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise InputError(f"hidden is {self.hidden}; it must be at least 1")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout:g}; it must be at least 0 and below 1")


class Head(nn.Module):
    """Cosine and first-stage score, weighted, and what a network makes of both vectors and their products.

    Untrained, it ranks by the cosine plus the first stage.
    """

    def __init__(self, dimension: int, settings: HeadSettings) -> None:
        super().__init__()
        self.settings = settings
        self.read = nn.Linear(3 * dimension, settings.hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.line = nn.Linear(settings.hidden, 1, bias=False)
        nn.init.zeros_(self.line.weight)
        self.product = nn.Parameter(torch.full((dimension,), 10.0))  # all alike, it is 10 · cosine
        self.first_stage = nn.Parameter(torch.ones(1), requires_grad=settings.with_first_stage)

    def forward(self, query: Tensor, document: Tensor, first: Tensor) -> Tensor:
        """Return the scores of pairs: of vectors of length 1, and scaled first-stage scores."""
        return self.score_and_vector(query, document, first)[0]

    def score_and_vector(self, query: Tensor, document: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores, and the hidden layer that they are made of."""
        product = query * document
        scaled = np.sqrt(query.shape[1])  # the numbers of a unit vector are small
        hidden = torch.relu(self.read(torch.cat([query, document, product * scaled], 1) * scaled))
        score: Tensor = self.line(self.dropout(hidden)).squeeze(1) + product @ self.product
        return score + self.first_stage * first if self.settings.with_first_stage else score, hidden


class VectorPairs:
    """Candidates as vectors, ready to be cut into batches."""

    def __init__(self, pairs: Candidates, queries: Floats, documents: Floats, scale: FirstStage) -> None:
        self.query, self.document = pairs.query, pairs.document
        self.first = scale.of(pairs.first)
        self._queries, self._documents = queries, documents

    def size(self, rows: Ints) -> Ints:
        """Return 0 for each: all pairs are alike."""
        return np.zeros(len(rows), np.int64)

    def batch(self, rows: Ints) -> tuple[Tensor, Tensor, Tensor]:
        """Return these pairs as the arguments of a model."""
        return (
            torch.from_numpy(self._queries[self.query[rows]]),
            torch.from_numpy(self._documents[self.document[rows]]),
            torch.from_numpy(self.first[rows]),
        )


class HeadReranker(SmallReranker):
    """A head and the encoder whose vectors it reads."""

    def __init__(
        self, module: Head, encodings: Encodings, scale: FirstStage, facts: Mapping[str, Any]
    ) -> None:
        super().__init__("head", module, scale, facts)
        self.encodings = encodings

    def pairs(self, pairs: Candidates, progress: Progress | None = None) -> VectorPairs:
        """Return candidates as the model reads them."""
        return VectorPairs(pairs, *encode_pairs(self.encodings, pairs, progress), self.scale)

    def score(self, pairs: Candidates, *, progress: Progress | None = None) -> Doubles:
        """Return the score of each pair."""
        return scored(self.module, self.pairs(pairs, progress), np.arange(len(pairs)))

    def files(self) -> dict[str, bytes]:
        """Return the content of its folder."""
        return self._files("encoder.json", {"encoder": _encoder_facts(self.encodings.encoder)})

    @classmethod
    def open(cls, config: Mapping[str, Any], files: Mapping[str, bytes]) -> HeadReranker:
        """Open the head in a folder; the encoder has to be the one it was trained with."""
        settings = HeadSettings(**config["settings"])
        encoder = head_encoder(settings)
        saved = json.loads(files["encoder.json"])
        if _encoder_facts(encoder) != saved["encoder"]:
            raise InputError("the head was trained on the vectors of another encoder than is found here")
        module = Head(saved["encoder"]["dimension"], settings)
        module.load_state_dict(load(files["weights.safetensors"]))
        return cls(module, Encodings(encoder), FirstStage(**saved["first stage"]), config["facts"])


def _encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """Return which encoder a head belongs to: a head on other vectors would be noise."""
    return {**encoder.facts(), "dimension": encoder.dimension}


def head_encoder(settings: HeadSettings) -> Encoder:
    """Return the encoder that a head reads."""
    return Encoder(settings.encoder, max_length=settings.max_length, similarity="cosine")
