"""Our losses in the trainers of sentence-transformers: bias, an adversary, mirrored documents.

The trainer gets the numbers of a group's pairs as labels; the loss looks up texts, bias and what an adversary
reads, so that no column of the library has to carry what it does not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.errors import InputError
from evenrank.training.adversary import reader, reverse
from evenrank.training.examples import Examples
from evenrank.training.losses import LOSSES, strength_of

Ints = npt.NDArray[np.int64]
_SCALE = 20.0
"""What a cosine is multiplied by before it is a score, as in the library's own losses."""
_BATCH = 64


def group_columns(kind: str, found: Examples, rows: Ints) -> dict[str, list[Any]]:
    """The groups for the trainer: the query, and the numbers of the pairs, the relevant one first."""
    pairs = found.pairs
    label = "labels" if kind == "cross-encoder" else "label"
    return {"query": [pairs.queries[pairs.query[row[0]]] for row in rows], label: rows.tolist()}


def group_loss(kind: str, model: Any, recipe: Any, found: Examples) -> nn.Module:
    """The loss of a recipe that is not plain."""
    return GroupLoss(kind, model, recipe, found)


class GroupLoss(nn.Module):
    """A loss over groups, an adversary and the consistency of mirrored documents, as the recipe says."""

    def __init__(self, kind: str, model: Any, recipe: Any, found: Examples) -> None:
        super().__init__()
        self.model = model
        self._kind, self._found = kind, found
        self._loss, self._strength = LOSSES[recipe.loss], strength_of(recipe.loss, recipe.loss_strength)
        none = np.zeros(len(found.pairs), np.float32)
        self._bias = none if found.bias is None else found.bias
        self._twin = found.twin if recipe.mirror == "consistency" else None
        self._mirror = 1.0 if recipe.mirror_strength is None else recipe.mirror_strength
        self._reversal = recipe.adversary
        self.adversary: nn.Module | None = None
        if recipe.adversary is not None and found.reads is not None:
            with torch.no_grad():
                width = read_pairs(kind, model, found, np.zeros(1, np.int64))[1].shape[1]
            self.adversary = reader(width, int(found.reads.max(initial=1)) + 1)

    def forward(self, inputs: Any, labels: Any, **more: Any) -> Tensor:
        """The mean over the groups of a batch; `labels` are the numbers of their pairs."""
        rows = np.stack([np.asarray(each, np.int64) for each in labels])
        flat = rows.ravel()
        scores, vectors = read_pairs(
            self._kind, self.model, self._found, flat, pooled=self.adversary is not None
        )
        loss = self._loss(scores.view(rows.shape), torch.from_numpy(self._bias[rows]), self._strength)
        if self.adversary is not None and self._found.reads is not None:
            read = self.adversary(reverse(vectors, self._reversal))
            loss = loss + nn.functional.cross_entropy(read, torch.from_numpy(self._found.reads[flat]))
        if self._twin is not None and self._mirror:
            twin = self._twin[flat]
            flat, twin = flat[twin >= 0], twin[twin >= 0]
            if len(flat):
                self.model.eval()  # what dropout does to the two would be taken for a difference
                one, other = (
                    read_pairs(self._kind, self.model, self._found, each)[0] for each in (flat, twin)
                )
                self.model.train()
                loss = loss + self._mirror * (one - other).abs().mean()
        return loss


def read_pairs(
    kind: str, model: Any, found: Examples, rows: Ints, *, pooled: bool = True
) -> tuple[Tensor, Tensor]:
    """Scores of pairs, and the vectors that they are made of: of a bi-encoder both of them, side by side."""
    pairs = found.pairs
    if kind == "cross-encoder":
        texts = [(pairs.queries[pairs.query[i]], pairs.documents[pairs.document[i]]) for i in rows]
        out = model(model.preprocess(texts))
        scores: Tensor = out["scores"].view(-1).float()
        vectors = out.get("sentence_embedding")
        if vectors is None:
            if pooled:
                raise InputError("this cross-encoder does not show the vector that its score is made of")
            vectors = scores.unsqueeze(1)
        return scores, vectors
    queries, query = np.unique(pairs.query[rows], return_inverse=True)
    documents, document = np.unique(pairs.document[rows], return_inverse=True)
    unit = nn.functional.normalize
    left = unit(model(model.preprocess([pairs.queries[i] for i in queries]))["sentence_embedding"])[query]
    right = unit(model(model.preprocess([pairs.documents[i] for i in documents]))["sentence_embedding"])
    right = right[document]
    return _SCALE * (left * right).sum(1), torch.cat([left, right], 1)


def vectors_of(kind: str, model: Any, found: Examples, rows: Ints) -> npt.NDArray[np.float32]:
    """The vectors of pairs by a finished model, for a probe."""
    model.eval()
    made = []
    with torch.no_grad():
        for start in range(0, len(rows), _BATCH):
            made.append(read_pairs(kind, model, found, rows[start : start + _BATCH])[1].float().numpy())
    return np.concatenate(made)
