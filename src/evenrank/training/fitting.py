"""The training loop of the small models: groups of one relevant document and several others.

(Transformers are trained by sentence-transformers' own trainers, see :mod:`evenrank.training.transformers`.)
Whatever is drawn is drawn from the seed and the number of the epoch, so that training that was interrupted
goes on to the very same weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.data.checkpoint import open_checkpoints
from evenrank.errors import InputError, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.rankers.neural.candidates import Pairs, batch_for, scored
from evenrank.training.checkpoint import (
    RESUMED,
    DivergedError,
    checks_since_best,
    load_state,
    save_state,
)
from evenrank.training.dataset import Examples
from evenrank.training.losses import Objective, check_loss

Ints = npt.NDArray[np.int64]
_HIGHEST = 1e30
"""Of rates and decay: torch fails where a step does not fit into 32 bits, which end at 3e38."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of every training.

    Attributes
    ----------
    epochs, patience
        Passes over the training queries at most; stop after so many looks at the dev queries without a better
        RR@10. The best weights are kept.
    batch, negatives
        Groups in a step, and documents in each group beside the relevant one, drawn anew in every epoch.
    rate
        The learning rate, or the highest where it rises and falls.
    loss, loss_strength
        One of :data:`evenrank.training.losses.LOSSES`; for those that look at bias their strength β, 1 if not
        given.
    adversary, adversary_labels
        Strength μ of the reversed gradient of an adversary that reads gender off the vector of a head,
        bi-encoder or cross-encoder; none if not given, and with 0 the finished vectors are only probed. What
        it reads: ``neutrality`` or ``group``, see :mod:`evenrank.training.adversary`.
    mirror, mirror_strength
        ``augment``: each query a second time, all its texts with the other gender. ``consistency``: γ times
        the mean of \\|s(q, d) − s(q, mirrored d)\\| is added, γ = 1 if not given.
    depth
        First-stage candidates of each query.
    dev_share, dev_most, dev_depth
        The share of the queries that are held out for early stopping, the most of them, and how many of
        their candidates are re-ranked.
    """

    WHOLE: ClassVar[tuple[str, ...]] = tuple(
        "epochs patience batch negatives depth dev_most dev_depth".split()
    )

    epochs: int = 8
    patience: int = 2
    batch: int = 64
    negatives: int = 3
    rate: float = 1e-3
    loss: str = "softmax"
    loss_strength: float | None = None
    adversary: float | None = None
    adversary_labels: Literal["neutrality", "group"] = "neutrality"
    mirror: Literal["none", "augment", "consistency"] = "none"
    mirror_strength: float | None = None
    depth: int = 100
    dev_share: float = 0.1
    dev_most: int = 300
    dev_depth: int = 50

    def __post_init__(self) -> None:
        for name in self.WHOLE:
            check_whole(name, getattr(self, name))
        if not 0 < self.rate <= _HIGHEST:
            raise InputError(f"rate is {self.rate:g}; it must be a number above 0, at most {_HIGHEST:g}")
        check_loss(self.loss, self.loss_strength)
        for name in ("adversary", "mirror_strength"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value!r}; it must be a number from 0 on")
        if self.mirror_strength is not None and self.mirror != "consistency":
            raise InputError("mirror_strength is for mirror=consistency")


@dataclass(frozen=True, kw_only=True)
class Recipe(TrainConfig):
    """How a small model is trained: by AdamW, whose weight decay is `decay`."""

    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.decay <= _HIGHEST:
            raise InputError(f"decay is {self.decay:g}; it must be a number from 0 to {_HIGHEST:g}")


@dataclass(frozen=True, kw_only=True)
class WordRecipe(Recipe):
    """How a word-interaction model is trained.

    ``embedding_rate`` is the learning rate of the word vectors where they are trained; None is as `rate`.
    There are very many of them: with few queries they learn these by heart before the rest of the model has
    learned to match.
    """

    embedding_rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding_rate is not None and not 0 < self.embedding_rate <= _HIGHEST:
            raise InputError(
                f"embedding_rate is {self.embedding_rate:g}; it must be a number above 0, at most "
                f"{_HIGHEST:g} (train_embeddings=false leaves the word vectors as they are)"
            )


class TrainRun(NamedTuple):
    """One ranker to be trained.

    ``data`` is all that decides the training: a checkpoint with the same is resumed. ``config`` becomes
    the file of the model's folder; what is found out on the way is added to its ``facts``.
    """

    kind: str
    settings: Any
    recipe: Any
    examples: Examples
    seed: int
    checkpoint: Path
    data: Mapping[str, Any]
    config: dict[str, Any]
    say: Say
    progress: Progress | None


def fit(run: TrainRun, model: nn.Module, pairs: Pairs) -> list[dict[str, float]]:
    """Train in place, to the weights of the best epoch; returns loss and dev RR@10 of each epoch."""
    examples, recipe, seed = run.examples, run.recipe, run.seed
    positives, negatives = examples.groups()
    if not positives:
        raise InputError("no training query has both a relevant document and another one")
    open_checkpoints(run.checkpoint, run.data)
    dev = examples.dev_rows(recipe.dev_depth)
    model.to("cuda" if torch.cuda.is_available() else "cpu")

    def read(model: nn.Module, rows: Ints, with_vectors: bool) -> tuple[Tensor, Tensor | None]:
        batch = batch_for(model, pairs, rows)
        return model.score_and_vector(*batch) if with_vectors else (model(*batch), None)

    objective = Objective(model, read, recipe, examples).to(next(model.parameters()).device)
    parameters = {name: each for name, each in objective.named_parameters() if each.requires_grad}
    optimizer = torch.optim.AdamW(_rates(parameters, recipe), lr=recipe.rate, weight_decay=recipe.decay)
    best, history = load_state(run.checkpoint, objective, optimizer)
    if history:
        run.say(f"{RESUMED} epoch {len(history)}")
    else:
        run.say(f"before training: dev RR@10 {examples.rr(dev, scored(model, pairs, dev)):.4f}")
    steps = -(-len(positives) // recipe.batch)
    while len(history) < recipe.epochs and _waited(history) < recipe.patience:
        epoch = len(history)
        torch.manual_seed(seed * 100_003 + epoch)
        objective.train()
        total = 0.0
        for step, rows in enumerate(_batches(positives, negatives, recipe, pairs, [seed, 3, epoch])):
            loss = objective(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            if not math.isfinite(total):
                raise DivergedError
            if run.progress:
                run.progress(epoch * steps + step + 1, recipe.epochs * steps)
        scores = scored(model, pairs, dev)
        if not np.isfinite(scores).all():
            raise DivergedError
        rr = examples.rr(dev, scores)
        history.append({"loss": total / len(positives), "dev RR@10": rr})
        is_best = _waited(history) == 0
        if is_best:
            best = {name: each.detach().clone() for name, each in objective.state_dict().items()}
        remark = " (best epoch so far)" if is_best else ""
        run.say(f"epoch {epoch + 1}: loss {total / len(positives):.4f}, dev RR@10 {rr:.4f}{remark}")
        save_state(run.checkpoint, objective, optimizer, best, history)
    objective.load_state_dict(best)
    model.cpu().eval()
    return history


def _waited(history: list[dict[str, float]]) -> int:
    return checks_since_best(epoch["dev RR@10"] for epoch in history)


def _rates(parameters: Mapping[str, nn.Parameter], recipe: Recipe) -> list[dict[str, Any]]:
    """The parameters, word vectors apart from the others."""
    words = [each for name, each in parameters.items() if "embedding." in name]
    others = [each for name, each in parameters.items() if "embedding." not in name]
    slow = recipe.embedding_rate if isinstance(recipe, WordRecipe) else None
    rate = recipe.rate if slow is None else slow
    groups: list[dict[str, Any]] = [{"params": others}, {"params": words, "lr": rate}]
    return [group for group in groups if group["params"]]


def _batches(
    positives: list[int], negatives: list[Ints], recipe: Recipe, pairs: Pairs, seed: list[int]
) -> Iterator[Ints]:
    """Groups of rows, the relevant one first; groups of like length stand in one batch."""
    random = np.random.default_rng(seed)
    groups = np.empty((len(positives), 1 + recipe.negatives), np.int64)
    groups[:, 0] = positives
    for row, pool in enumerate(negatives):
        few = len(pool) < recipe.negatives
        groups[row, 1:] = random.choice(pool, recipe.negatives, replace=few)
    longest = pairs.size(groups.ravel()).reshape(groups.shape).max(1)
    order = random.permutation(len(groups))
    window = recipe.batch * 16
    rows: list[Ints] = []
    for start in range(0, len(order), window):
        some = order[start : start + window]
        some = some[np.argsort(longest[some], kind="stable")]
        rows += [some[i : i + recipe.batch] for i in range(0, len(some), recipe.batch)]
    for place in random.permutation(len(rows)):
        yield groups[rows[place]]
