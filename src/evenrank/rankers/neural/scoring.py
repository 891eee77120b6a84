"""Scoring pairs with a small model, in batches of like length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.rankers.base import Progress

Ints = npt.NDArray[np.int64]

_SCORED = 512  # pairs scored at a time


class Pairs(Protocol):
    """Candidates in the form that a model reads."""

    def size(self, rows: Ints) -> Ints: ...

    def batch(self, rows: Ints) -> tuple[Tensor, ...]: ...


def scored(module: nn.Module, pairs: Pairs, rows: Ints, progress: Progress | None = None) -> npt.NDArray[Any]:
    """The scores of these pairs; worked on in batches of like length."""
    module.eval()
    order = np.argsort(pairs.size(rows), kind="stable")
    found = np.empty(len(rows), np.float64)
    with torch.no_grad():
        for start in range(0, len(rows), _SCORED):
            some = order[start : start + _SCORED]
            found[some] = module(*pairs.batch(rows[some])).double().numpy()
            if progress:
                progress(min(start + _SCORED, len(rows)), len(rows))
    return found


@dataclass(frozen=True)
class FirstStage:
    """How first-stage scores are scaled: less their mean among training candidates, by their deviation."""

    mean: float
    deviation: float

    @classmethod
    def among(cls, scores: npt.NDArray[np.float64]) -> FirstStage:
        """Mean and deviation of these."""
        spread = float(scores.std()) if len(scores) else 1.0
        return cls(float(scores.mean()) if len(scores) else 0.0, spread or 1.0)

    def of(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Scores on this scale."""
        return ((scores - self.mean) / self.deviation).astype(np.float32)
