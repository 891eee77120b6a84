"""The network of the transformer classifier: an encoder, told what is known about each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from evenrank.queries.classifier import LABELS
from evenrank.queries.word_knowledge import Floats, WordKnowledge

PIECES = 32
"""Word pieces of a query that are read; the longest of 3,000 annotated queries has fewer."""
_PREDICTED_AT_ONCE = 64


@dataclass(frozen=True)
class Encoded:
    """A query as the network reads it: word pieces, and for each the numbers of its word."""

    pieces: Sequence[int]
    known: Floats | None


class Network(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Encoder, mean over the pieces, linear layer.

    The numbers of :class:`WordKnowledge` are projected and added to the embedding of each piece of the
    word, so that all layers can use them. The projection starts near zero: at first the encoder is the
    pre-trained one.
    """

    def __init__(self, encoder: Any, known: int) -> None:
        super().__init__()
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # made for another task; its weights would be carried along for nothing
        self.encoder = encoder
        size = int(encoder.config.hidden_size)
        self.known = torch.nn.Linear(known, size) if known else None
        self.dropout = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(size, len(LABELS))
        for layer, deviation in ((self.known, 0.002), (self.head, 0.02)):
            if layer is not None:
                torch.nn.init.normal_(layer.weight, std=deviation)
                torch.nn.init.zeros_(layer.bias)

    def forward(self, pieces: Any, mask: Any, known: Any) -> Any:
        """Unnormalised log-probabilities, one row per query."""
        embedded = self.encoder.get_input_embeddings()(pieces)
        if self.known is not None:
            embedded = embedded + self.known(known)
        states = self.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        return self.head(self.dropout((states * weights).sum(1) / weights.sum(1)))


def encode(texts: Sequence[str], tokenizer: Any, knowledge: WordKnowledge | None) -> list[Encoded]:
    """Cleaned texts as the network reads them."""
    if not texts:
        return []
    made = tokenizer(
        list(texts), truncation=True, max_length=PIECES, return_offsets_mapping=knowledge is not None
    )
    if knowledge is None:
        return [Encoded(pieces, None) for pieces in made["input_ids"]]
    found = []
    for text, pieces, offsets in zip(texts, made["input_ids"], made["offset_mapping"], strict=True):
        # An empty span is one of the encoder's own marks, which stands for no word: beyond the text.
        starts = [start if end > start else len(text) for start, end in offsets]
        found.append(Encoded(pieces, knowledge.at(text, starts)))
    return found


def batch(queries: Sequence[Encoded], padding: int) -> tuple[Any, Any, Any]:
    """The arguments of the network, padded to the longest of these queries."""
    longest = max(len(query.pieces) for query in queries)
    pieces = np.full((len(queries), longest), padding, np.int64)
    mask = np.zeros_like(pieces)
    first = queries[0].known
    known = None if first is None else np.zeros((len(queries), longest, first.shape[1]), np.float32)
    for row, query in enumerate(queries):
        length = len(query.pieces)
        pieces[row, :length], mask[row, :length] = query.pieces, 1
        if known is not None:
            known[row, :length] = query.known
    return tuple(None if part is None else torch.from_numpy(part) for part in (pieces, mask, known))  # type: ignore[return-value]


def scores(network: Network, queries: Sequence[Encoded], padding: int) -> Floats:
    """What the network says about each query, before it is made into probabilities."""
    found = np.empty((len(queries), len(LABELS)), np.float32)
    # Queries of one length together: little padding, and a query's value does not depend on its neighbours'
    # number beyond rounding.
    order = np.argsort([len(query.pieces) for query in queries], kind="stable")
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(order), _PREDICTED_AT_ONCE):
            some = order[start : start + _PREDICTED_AT_ONCE]
            found[some] = network(*batch([queries[i] for i in some], padding)).numpy()
    return found
