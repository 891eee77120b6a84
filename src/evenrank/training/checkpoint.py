"""The folder beside the output in which an unfinished training keeps what it can be resumed from.

It holds the facts that decide the training, and its checkpoints: one file of the small models
(:func:`save_state`), or the ``checkpoint-N`` folders of a trainer of transformers.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from evenrank.data.files import writing
from evenrank.errors import InputError

_STATE = "checkpoint.safetensors"
RESUMED = "resuming after"
"""How the message of a resumed training begins."""


class DivergedError(InputError):
    """The loss or a score is NaN."""

    def __init__(self) -> None:
        super().__init__("training diverged: the loss or a score is not a finite number; lower rate")


@contextmanager
def kept_if_resumable(folder: Path) -> Iterator[None]:
    """After a failure, keep the folder of a training only if the training can be resumed from it."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, DivergedError) or not any(folder.glob("checkpoint*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def checks_since_best(values: Iterable[float]) -> int:
    """How many values came after the highest one, which is the first of equals."""
    best, waited = -math.inf, 0
    for value in values:
        best, waited = (value, 0) if value > best else (best, waited + 1)
    return waited


def save_state(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Mapping[str, Tensor],
    history: list[dict[str, float]],
) -> None:
    """Write the state of a training after an epoch, with its best weights so far."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    for place, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{place}/{name}": value for name, value in values.items()}
    copies = {name: value.detach().contiguous().clone() for name, value in tensors.items()}
    with writing(folder / _STATE) as file:
        file.write(save(copies, {"history": json.dumps(history)}))


def load_state(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], list[dict[str, float]]]:
    """Restore a training in place; returns its best weights and its history, both empty without a state."""
    if not (folder / _STATE).is_file():
        return {}, []
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
    try:
        with safe_open(folder / _STATE, "pt") as file:
            history = json.loads(file.metadata()["history"])
            for key in file.keys():  # noqa: SIM118 - it is no dict
                part, _, name = key.partition("/")
                parts[part][name] = file.get_tensor(key)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):  # damaged: training begins anew
        return {}, []
    model.load_state_dict(parts["model"])
    state = optimizer.state_dict()
    for key, value in parts["optimizer"].items():
        place, _, name = key.partition("/")
        state["state"].setdefault(int(place), {})[name] = value
    optimizer.load_state_dict(state)
    return parts["best"], history
