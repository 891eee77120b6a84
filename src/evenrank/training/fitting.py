"""The training loop of the small models: groups of one relevant document and several others.

(Transformers are trained by sentence-transformers' own trainers, see :mod:`evenrank.training.transformers`.)
Whatever is drawn is drawn from the seed and the number of the epoch, so that training that was interrupted
goes on to the very same weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from evenrank.data.files import writing
from evenrank.errors import InputError, check_choice, check_whole
from evenrank.rankers.base import Progress, Say
from evenrank.rankers.neural.candidates import Pairs, scored
from evenrank.training.examples import GOES_ON, Examples
from evenrank.training.losses import LOSSES, check_loss, is_biased, strength_of

Ints = npt.NDArray[np.int64]
_HIGHEST = 1e30
"""Of rates and decay: torch fails where a step does not fit into 32 bits, which end at 3e38."""


class DivergedError(InputError):
    """The loss, or a score, is no number any more."""

    def __init__(self) -> None:
        super().__init__("training diverged: the loss or a score is not a finite number; lower rate")


@dataclass(frozen=True, kw_only=True)
class Training:
    """What every training has to decide.

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
        check_choice("adversary_labels", self.adversary_labels, ("neutrality", "group"))
        check_choice("mirror", self.mirror, ("none", "augment", "consistency"))
        for name in ("adversary", "mirror_strength"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value!r}; it must be a number from 0 on")
        if self.mirror_strength is not None and self.mirror != "consistency":
            raise InputError("mirror_strength is for mirror=consistency")


@dataclass(frozen=True, kw_only=True)
class Recipe(Training):
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


def fit(
    module: nn.Module,
    pairs: Pairs,
    examples: Examples,
    recipe: Recipe,
    *,
    seed: int,
    checkpoint: Path | None = None,
    facts: Mapping[str, Any] | None = None,
    say: Say = lambda text: None,
    progress: Progress | None = None,
) -> list[dict[str, float]]:
    """Train in place, to the weights of the best epoch; returns loss and dev RR@10 of each epoch.

    Parameters
    ----------
    checkpoint, facts
        A file that is written after each epoch, and all that decides the training. A file with the same
        facts is gone on with; any other is written over.
    say
        Hears of each epoch.
    """
    positives, against = examples.groups()
    if not positives:
        raise InputError("no training query has both a relevant document and another one")
    dev = examples.dev_rows(recipe.dev_depth)
    parameters = {name: each for name, each in module.named_parameters() if each.requires_grad}
    optimizer = torch.optim.AdamW(_rates(parameters, recipe), lr=recipe.rate, weight_decay=recipe.decay)
    state = _State.read(checkpoint, facts or {}, module, optimizer, parameters)
    if state.history:
        say(f"{GOES_ON} epoch {len(state.history)}")
    else:
        state.best_rr = examples.rr(dev, scored(module, pairs, dev))
        say(f"before training: dev RR@10 {state.best_rr:.4f}")
        state.best_rr = -1.0
    aim = _Aim(recipe, examples)
    steps = -(-len(positives) // recipe.batch)
    while not state.is_over(recipe):
        epoch = len(state.history)
        torch.manual_seed(seed * 100_003 + epoch)
        module.train()
        total = 0.0
        for step, rows in enumerate(_batches(positives, against, recipe, pairs, [seed, 3, epoch])):
            loss = aim(module, pairs, rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            if not math.isfinite(total):
                raise DivergedError
            if progress:
                progress(epoch * steps + step + 1, recipe.epochs * steps)
        scores = scored(module, pairs, dev)
        if not np.isfinite(scores).all():
            raise DivergedError
        rr = examples.rr(dev, scores)
        state.add(total / len(positives), rr, module)
        best = " (best epoch so far)" if state.waited == 0 else ""
        say(f"epoch {epoch + 1}: loss {total / len(positives):.4f}, dev RR@10 {rr:.4f}{best}")
        if checkpoint is not None:
            state.write(checkpoint, facts or {}, module, optimizer, parameters)
    module.load_state_dict(state.best)
    module.eval()
    return state.history


def _rates(parameters: Mapping[str, nn.Parameter], recipe: Recipe) -> list[dict[str, Any]]:
    """The parameters, word vectors apart from the others."""
    words = [each for name, each in parameters.items() if "embedding." in name]
    others = [each for name, each in parameters.items() if "embedding." not in name]
    slow = recipe.embedding_rate if isinstance(recipe, WordRecipe) else None
    rate = recipe.rate if slow is None else slow
    groups: list[dict[str, Any]] = [{"params": others}, {"params": words, "lr": rate}]
    return [group for group in groups if group["params"]]


class _Aim:
    """What a step of training minimises."""

    def __init__(self, recipe: Recipe, examples: Examples) -> None:
        self._loss = LOSSES[recipe.loss]
        self._strength = strength_of(recipe.loss, recipe.loss_strength)
        if is_biased(recipe.loss) and examples.bias is None:
            raise InputError(f"the loss {recipe.loss} needs to know how one-sided documents are")
        none = np.zeros(len(examples.pairs), np.float32)
        self._bias = none if examples.bias is None else examples.bias
        self._twin = examples.twin if recipe.mirror == "consistency" else None
        self._mirror = 1.0 if recipe.mirror_strength is None else recipe.mirror_strength

    def __call__(self, module: nn.Module, pairs: Pairs, rows: Ints) -> Tensor:
        flat = rows.ravel()
        scores, more = scores_and_more(module, pairs, flat)
        loss = self._loss(scores.view(rows.shape), torch.from_numpy(self._bias[rows]), self._strength)
        if self._twin is not None and self._mirror:
            twin = self._twin[flat]
            flat, twin = flat[twin >= 0], twin[twin >= 0]
            if len(flat):
                module.eval()  # what dropout does to the two would be taken for a difference
                apart = module(*pairs.batch(flat)) - module(*pairs.batch(twin))
                module.train()
                loss = loss + self._mirror * apart.abs().mean()
        return loss if more is None else loss + more


def scores_and_more(module: nn.Module, pairs: Pairs, rows: Ints) -> tuple[Tensor, Tensor | None]:
    """The scores of these pairs, and what else the module wants to have minimised."""
    both = getattr(module, "scores_and_loss", None)
    if both is None:
        return module(*pairs.batch(rows)), None
    scores, loss = both(pairs.batch(rows), rows)
    return scores, loss


def _batches(
    positives: list[int], against: list[Ints], recipe: Recipe, pairs: Pairs, seed: list[int]
) -> Iterator[Ints]:
    """Groups of rows, the relevant one first; groups of like length stand in one batch."""
    random = np.random.default_rng(seed)
    groups = np.empty((len(positives), 1 + recipe.negatives), np.int64)
    groups[:, 0] = positives
    for row, pool in enumerate(against):
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


class _State:
    """Where training stands: what it has come to, the best weights so far, how long it has waited."""

    def __init__(self) -> None:
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Tensor] = {}
        self.best_rr = -1.0
        self.waited = 0

    def is_over(self, recipe: Recipe) -> bool:
        return len(self.history) >= recipe.epochs or self.waited >= recipe.patience

    def add(self, loss: float, rr: float, module: nn.Module) -> None:
        self.history.append({"loss": loss, "dev RR@10": rr})
        if rr > self.best_rr:
            self.best = {name: each.detach().clone() for name, each in module.state_dict().items()}
            self.best_rr, self.waited = rr, 0
        else:
            self.waited += 1

    def write(
        self,
        path: Path,
        facts: Mapping[str, Any],
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        parameters: Mapping[str, nn.Parameter],
    ) -> None:
        tensors = {f"now.{name}": each.detach() for name, each in module.state_dict().items()}
        tensors |= {f"best.{name}": each for name, each in self.best.items()}
        for name, parameter in parameters.items():
            for key, value in optimizer.state[parameter].items():
                tensors[f"optimizer.{name}/{key}"] = torch.as_tensor(value)
        notes = {"history": self.history, "best": self.best_rr, "waited": self.waited, "facts": facts}
        content = save(
            {name: each.contiguous().clone() for name, each in tensors.items()},
            {"evenrank": json.dumps(notes)},
        )
        with writing(path) as file:
            file.write(content)

    @classmethod
    def read(
        cls,
        path: Path | None,
        facts: Mapping[str, Any],
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        parameters: Mapping[str, nn.Parameter],
    ) -> _State:
        """The state in a checkpoint of the same training; a new one if there is none, or it is damaged."""
        state = cls()
        if path is None or not path.is_file():
            return state
        try:
            with safe_open(path, "pt") as file:
                notes = json.loads((file.metadata() or {})["evenrank"])
                if notes["facts"] != json.loads(json.dumps(dict(facts))):
                    return state
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            now = {n.removeprefix("now."): t for n, t in tensors.items() if n.startswith("now.")}
            best = {n.removeprefix("best."): t for n, t in tensors.items() if n.startswith("best.")}
            module.load_state_dict(now)
            for name, value in tensors.items():
                if name.startswith("optimizer."):
                    parameter, _, key = name.removeprefix("optimizer.").rpartition("/")
                    optimizer.state[parameters[parameter]][key] = value
        except (SafetensorError, KeyError, ValueError, RuntimeError, OSError):
            return cls()
        state.history, state.best = notes["history"], best
        state.best_rr, state.waited = notes["best"], notes["waited"]
        return state
