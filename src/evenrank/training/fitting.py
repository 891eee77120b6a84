"""Settings of a training, and the loop that trains the word-interaction models and the head.

(Transformers are trained by sentence-transformers' own trainers, see :mod:`evenrank.training.transformers`.)
Whatever is drawn is drawn from the seed and the number of the epoch, so that a training that was interrupted
resumes to the very same weights.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.data.checkpoint import open_checkpoints
from evenrank.data.files import writing
from evenrank.errors import InputError, check_choice, check_number, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.rankers.neural.candidates import Pairs, batch_for, scored
from evenrank.training.dataset import Examples
from evenrank.training.losses import LOSSES, Objective

Ints = npt.NDArray[np.int64]
_STATE = "checkpoint.pt"
_SMALLEST, _LARGEST = 1e-30, 1e30
"""Of rates: torch fails where a step does not fit into 32 bits, which end at 3e38."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of a training. Each ranker has defaults of its own.

    Attributes
    ----------
    epochs, patience
        Passes over the training queries at most; stop after so many looks at the dev queries without a better
        RR@10. The best weights are kept.
    batch, negatives
        Groups in a step, and documents in each group beside the relevant one, drawn anew in every epoch.
    rate, embedding_rate, decay
        The learning rate, or the highest where it rises and falls; that of trained word vectors, if it is
        another: there are very many of them, so that with few queries they learn these by heart before the
        rest has learned to match; and the weight decay of AdamW.
    loss, loss_strength
        One of :data:`evenrank.training.losses.LOSSES`, and the strength β of those that look at bias.
    adversary, adversary_labels
        Strength μ of the reversed gradient of an adversary that reads gender off the vector of a head,
        bi-encoder or cross-encoder; none if not given, and with 0 the finished vectors are only probed. What
        it reads: ``neutrality`` or ``group``, see :mod:`evenrank.training.adversary`.
    consistency
        γ: so many times the mean of \\|s(q, d) − s(q, d with the gender swapped)\\| is added.
    depth
        First-stage candidates of each query.
    dev_share, dev_most, dev_depth
        The share of the queries that are held out for early stopping, the most of them, and how many of
        their candidates are re-ranked.
    checks, most_queries
        For transformers: how often the dev queries are looked at, and how many relevant documents of training
        queries are learned from at most in each epoch, drawn by the seed.
    """

    epochs: int = 8
    patience: int = 2
    batch: int = 64
    negatives: int = 3
    rate: float = 1e-3
    embedding_rate: float | None = None
    decay: float = 0.0
    loss: str = "softmax"
    loss_strength: float = 1.0
    adversary: float | None = None
    adversary_labels: Literal["neutrality", "group"] = "neutrality"
    consistency: float = 0.0
    depth: int = 100
    dev_share: float = 0.1
    dev_most: int = 300
    dev_depth: int = 50
    checks: int = 5
    most_queries: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch", "negatives", "depth", "dev_most", "dev_depth", "checks"):
            check_whole(name, getattr(self, name))
        if self.most_queries is not None:
            check_whole("most_queries", self.most_queries)
        check_number("rate", self.rate, least=_SMALLEST, most=_LARGEST)
        if self.embedding_rate is not None:
            check_number("embedding_rate", self.embedding_rate, least=_SMALLEST, most=_LARGEST)
        check_number("decay", self.decay, most=_LARGEST)
        check_number("dev_share", self.dev_share, most=1)
        check_choice("loss", self.loss, list(LOSSES))
        for name in ("loss_strength", "adversary", "consistency"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name))


class TrainRun(NamedTuple):
    """One ranker to be trained: its settings and data, and what decides whether a checkpoint is resumed."""

    kind: str
    settings: Any
    config: TrainConfig
    examples: Examples
    seed: int
    checkpoint: Path
    identity: Mapping[str, Any]
    log: Say
    progress: Progress | None


class Fitted(NamedTuple):
    """A trained ranker: its scores of the dev queries, its files, its history, and its provenance.

    ``vector`` returns the vectors of pairs, for a probe.
    """

    scores: npt.NDArray[Any]
    files: dict[str, bytes]
    history: list[dict[str, float]]
    facts: dict[str, Any]
    vector: Callable[[Ints], Any]


class DivergedError(InputError):
    """The loss or a score is NaN."""

    def __init__(self) -> None:
        super().__init__("training diverged: the loss or a score is not a finite number; lower rate")


def fit(run: TrainRun, model: nn.Module, pairs: Pairs, mirrored: Pairs | None) -> list[dict[str, float]]:
    """Train in place, to the weights of the best epoch; return loss and dev RR@10 of each epoch."""
    examples, config, seed = run.examples, run.config, run.seed
    positives, negatives = examples.groups()
    open_checkpoints(run.checkpoint, run.identity)
    dev = examples.dev_rows(config.dev_depth)
    model.to("cuda" if torch.cuda.is_available() else "cpu")

    def read(rows: Ints, is_mirrored: bool) -> tuple[Tensor, Tensor | None]:
        batch = batch_for(model, mirrored if is_mirrored and mirrored is not None else pairs, rows)
        return model.score_and_vector(*batch) if hasattr(model, "score_and_vector") else (model(*batch), None)

    objective = Objective(model, read, config, examples).to(next(model.parameters()).device)
    optimizer = torch.optim.AdamW(_rates(objective, config), lr=config.rate, weight_decay=config.decay)
    state = _load_state(run.checkpoint, objective, optimizer)
    best, history = state["best"], state["history"]
    if history:
        run.log(f"resuming after epoch {len(history)}")
    else:
        run.log(f"before training: dev RR@10 {examples.rr(dev, scored(model, pairs, dev)):.4f}")
    steps = -(-len(positives) // config.batch)
    while len(history) < config.epochs and _waited(history) < config.patience:
        epoch = len(history)
        torch.manual_seed(seed * 100_003 + epoch)
        objective.train()
        total = 0.0
        for step, rows in enumerate(_batches(positives, negatives, config, pairs, [seed, 3, epoch])):
            loss = objective(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            if not math.isfinite(total):
                raise DivergedError
            if run.progress:
                run.progress(epoch * steps + step + 1, config.epochs * steps)
        scores = scored(model, pairs, dev)
        if not np.isfinite(scores).all():
            raise DivergedError
        rr = examples.rr(dev, scores)
        history.append({"loss": total / len(positives), "dev RR@10": rr})
        is_best = _waited(history) == 0
        if is_best:
            best = {name: each.detach().clone() for name, each in objective.state_dict().items()}
        remark = " (best epoch so far)" if is_best else ""
        run.log(f"epoch {epoch + 1}: loss {total / len(positives):.4f}, dev RR@10 {rr:.4f}{remark}")
        state = {"model": objective.state_dict(), "optimizer": optimizer.state_dict()}
        with writing(run.checkpoint / _STATE) as file:
            torch.save({**state, "best": best, "history": history}, file)
    objective.load_state_dict(best)
    model.cpu().eval()
    return history


def _waited(history: list[dict[str, float]]) -> int:
    return checks_since_best(epoch["dev RR@10"] for epoch in history)


def checks_since_best(values: Iterable[float]) -> int:
    """Return how many values came after the highest one, which is the first of equals."""
    best, waited = -math.inf, 0
    for value in values:
        best, waited = (value, 0) if value > best else (best, waited + 1)
    return waited


def _rates(objective: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Return the parameters, word vectors apart from the others."""
    parameters = {name: each for name, each in objective.named_parameters() if each.requires_grad}
    words = [each for name, each in parameters.items() if "embedding." in name]
    others = [each for name, each in parameters.items() if "embedding." not in name]
    rate = config.rate if config.embedding_rate is None else config.embedding_rate
    groups: list[dict[str, Any]] = [{"params": others}, {"params": words, "lr": rate}]
    return [group for group in groups if group["params"]]


def _batches(
    positives: list[int], negatives: list[Ints], config: TrainConfig, pairs: Pairs, seed: list[int]
) -> Iterator[Ints]:
    """Yield groups of rows, the relevant one first; groups of like length are in one batch."""
    random = np.random.default_rng(seed)
    groups = np.empty((len(positives), 1 + config.negatives), np.int64)
    groups[:, 0] = positives
    for row, pool in enumerate(negatives):
        few = len(pool) < config.negatives
        groups[row, 1:] = random.choice(pool, config.negatives, replace=few)
    longest = pairs.size(groups.ravel()).reshape(groups.shape).max(1)
    order = random.permutation(len(groups))
    window = config.batch * 16
    rows: list[Ints] = []
    for start in range(0, len(order), window):
        some = order[start : start + window]
        some = some[np.argsort(longest[some], kind="stable")]
        rows += [some[i : i + config.batch] for i in range(0, len(some), config.batch)]
    for place in random.permutation(len(rows)):
        yield groups[rows[place]]


@contextmanager
def kept_if_resumable(folder: Path) -> Iterator[None]:
    """After a failure, keep the folder of a training only if the training can be resumed from it."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, DivergedError) or not any(folder.glob("checkpoint*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _load_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Restore a training in place; return its best weights and its history, both empty without a state."""
    try:
        state = torch.load(folder / _STATE, weights_only=True)  # tensors and numbers only
    except (OSError, RuntimeError, UnpicklingError):  # none, or damaged: training begins anew
        return {"best": {}, "history": []}
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return dict(state)
