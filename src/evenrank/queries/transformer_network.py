"""The network of the transformer classifier: an encoder told about names and words; how it is tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from evenrank.queries.classifier import LABELS, Progress
from evenrank.queries.evaluation import softmax
from evenrank.queries.words import Floats, WordKnowledge

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
    built = tokenizer(
        list(texts), truncation=True, max_length=PIECES, return_offsets_mapping=knowledge is not None
    )
    if knowledge is None:
        return [Encoded(pieces, None) for pieces in built["input_ids"]]
    rows = []
    for text, pieces, offsets in zip(texts, built["input_ids"], built["offset_mapping"], strict=True):
        # An empty span is one of the encoder's own marks, which stands for no word: beyond the text.
        starts = [start if end > start else len(text) for start, end in offsets]
        rows.append(Encoded(pieces, knowledge.at(text, starts)))
    return rows


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
    values = np.empty((len(queries), len(LABELS)), np.float32)
    # Queries of one length together: little padding, and a query's value does not depend on its neighbours'
    # number beyond rounding.
    order = np.argsort([len(query.pieces) for query in queries], kind="stable")
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(order), _PREDICTED_AT_ONCE):
            some = order[start : start + _PREDICTED_AT_ONCE]
            values[some] = network(*batch([queries[i] for i in some], padding)).numpy()
    return values


_WARM_UP = 0.1  # of all steps: the rate rises, so that the untrained head does not disturb the encoder
_SORTED_TOGETHER = 20  # batches within which queries are sorted by length: short enough to stay random


@dataclass(frozen=True)
class Recipe:
    """How the network is trained.

    Attributes
    ----------
    epochs
        Times that every query is seen.
    rate
        Largest learning rate of the encoder (AdamW; linear warm-up and decay).
    new_rate
        Of the layers that are not pre-trained.
    batch_size
        Queries at a time.
    smoothing
        Share of each label that is given to all classes. Annotators disagree on such queries.
    train_embeddings
        Move the vectors of word pieces too. A few thousand queries hold too few words for that.
    held_out
        Share of the queries that is kept apart: for the temperature, and for `patience`.
    patience
        Stop after so many epochs without a lower loss on the queries held out, and go back to the best
        epoch; None trains to the end.
    """

    epochs: int = 3
    rate: float = 1e-4
    new_rate: float = 1e-3
    batch_size: int = 32
    smoothing: float = 0.05
    train_embeddings: bool = False
    held_out: float = 0.05
    patience: int | None = None


class Bar:
    """Turns steps into calls of a progress function, and losses into notes, if it can show them."""

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress, self._steps, self._step = progress, steps, 0

    def step(self) -> None:
        self._step += 1
        if self._progress:  # copies of queries make some more steps than were announced
            self._progress(min(self._step, self._steps), self._steps)

    def loss(self, value: float) -> None:
        note = getattr(self._progress, "note", None)
        if note:
            note(f"loss {value:.3f}")

    def done(self) -> None:
        if self._progress:
            self._progress(self._steps, self._steps)


def train(
    network: Network,
    queries: Sequence[Encoded],
    codes: npt.NDArray[np.int64],
    held_out: tuple[Sequence[Encoded], npt.NDArray[np.int64]],
    recipe: Recipe,
    *,
    padding: int,
    seed: int,
    progress: Bar,
) -> list[float]:
    """Fine-tune in place; returns the mean loss of each epoch.

    The caller has seeded torch, which decides dropout; `seed` decides the order of the queries.
    """
    random = np.random.default_rng(seed)
    optimizer = _optimizer(network, recipe)
    steps = recipe.epochs * -(-len(queries) // recipe.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share_of_rate(step, steps))
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)
    losses: list[float] = []
    best, best_loss, waited = None, np.inf, 0
    for _ in range(recipe.epochs):
        network.train()
        total = 0.0
        for some in _batches([len(query.pieces) for query in queries], recipe.batch_size, random):
            loss = criterion(
                network(*batch([queries[i] for i in some], padding)), torch.from_numpy(codes[some])
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(some)
            progress.step()
        losses.append(total / len(queries))
        progress.loss(losses[-1])
        if recipe.patience is not None and len(held_out[1]):
            now = cross_entropy(scores(network, held_out[0], padding), held_out[1])
            if now < best_loss:
                best, best_loss, waited = _copied(network), now, 0
            elif (waited := waited + 1) >= recipe.patience:
                break
    if best is not None:
        network.load_state_dict(best)
    return losses


def cross_entropy(found: npt.NDArray[Any], codes: npt.NDArray[np.int64]) -> float:
    """Mean negative log-probability of the right class."""
    return float(-np.log(softmax(found)[np.arange(len(codes)), codes] + 1e-12).mean())


def _optimizer(network: Network, recipe: Recipe) -> torch.optim.Optimizer:
    groups = []
    for name, weights in network.named_parameters():
        pretrained = name.startswith("encoder.")
        if pretrained and "embeddings" in name and not recipe.train_embeddings:
            weights.requires_grad_(False)
            continue
        rate = recipe.rate if pretrained else recipe.new_rate
        groups.append({"params": [weights], "lr": rate, "weight_decay": 0.01 if weights.dim() > 1 else 0.0})
    try:
        return torch.optim.AdamW(groups, fused=True)  # a quarter less time for a step
    except RuntimeError:  # torch before 2.4 has it for GPUs only
        return torch.optim.AdamW(groups)


def _share_of_rate(step: int, steps: int) -> float:
    rising = max(1, round(_WARM_UP * steps))
    return (step + 1) / rising if step < rising else max(0.0, (steps - step) / max(1, steps - rising))


def _batches(
    lengths: Sequence[int], size: int, random: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Random batches of queries of similar length, in random order."""
    order = random.permutation(len(lengths))
    by_length = np.asarray(lengths)
    rows = []
    for start in range(0, len(order), size * _SORTED_TOGETHER):
        chunk = order[start : start + size * _SORTED_TOGETHER]
        chunk = chunk[np.argsort(by_length[chunk], kind="stable")]
        rows += [chunk[i : i + size] for i in range(0, len(chunk), size)]
    for i in random.permutation(len(rows)):
        yield rows[i]


def _copied(network: Network) -> dict[str, torch.Tensor]:
    return {name: weights.detach().clone() for name, weights in network.state_dict().items()}
