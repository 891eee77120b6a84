"""What training minimises: losses over groups of one relevant document and several negatives.

A loss is a function of the scores of a batch of groups (groups × documents, the relevant one first), of how
one-sided each document is (from 0 to 1, the same shape), and of its strength β. To add one, write it here and
name it in `LOSSES`; it is then known to ``--loss`` and works with every ranker.

================= =====================================================================================
softmax           cross-entropy over the group
hinge             a margin of 1 over each of the others
negative-bias     softmax + β · mean bias of the negatives, each counted by its softmax among them
list-bias         softmax + β · the same over the whole group, the relevant document included
bias-margin       a margin of 1 + β · bias over each of the others
neutrality        softmax + β · how far the scores are from a softmax of neutrality, 10 · (1 − bias)
================= =====================================================================================

The first two ignore bias. Bias-aware losses: Seyedsalehi et al., EDBT 2022; the term for neutrality follows
CODER (Zerveas et al., SIGIR 2022), where it is the cross-entropy between two distributions over a list.

`Objective` adds an adversary and the consistency of mirrored documents, for every ranker that is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from evenrank.data.runs import read_run
from evenrank.errors import InputError
from evenrank.measures.document_bias import document_bias, document_measure
from evenrank.mitigate.swap import swapper
from evenrank.training.adversary import classifier, pair_labels, reverse
from evenrank.training.dataset import Examples

Loss = Callable[[Tensor, Tensor, float], Tensor]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_SHARP = 10.0
"""How sharply the softmax of neutrality tells documents apart: e¹⁰ between a neutral one and the worst."""


def softmax(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """−ln of the relevant document's share of the softmax over the group."""
    return nn.functional.cross_entropy(
        scores, torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    )


def hinge(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """max(0, 1 − s⁺ + s⁻), the mean over the negatives."""
    return torch.relu(1 - scores[:, :1] + scores[:, 1:]).mean()


def negative_bias(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """Softmax + β Σ_j p_j b_j, p the softmax over the negatives: which of them are preferred."""
    shares = scores[:, 1:].softmax(1)
    return softmax(scores, bias, strength) + strength * (shares * bias[:, 1:]).sum(1).mean()


def list_bias(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """Softmax + β Σ_j p_j b_j, p the softmax over the group: a one-sided relevant document counts too."""
    return softmax(scores, bias, strength) + strength * (scores.softmax(1) * bias).sum(1).mean()


def bias_margin(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """max(0, 1 + β b⁻ − s⁺ + s⁻): the more one-sided a negative, the farther below it has to stand."""
    return torch.relu(1 + strength * bias[:, 1:] - scores[:, :1] + scores[:, 1:]).mean()


def neutrality(scores: Tensor, bias: Tensor, strength: float) -> Tensor:
    """Softmax + β · KL(softmax of neutrality ‖ softmax of scores) over the whole group."""
    target = (_SHARP * (1 - bias)).softmax(1)
    divergence = nn.functional.kl_div(scores.log_softmax(1), target, reduction="batchmean")
    return softmax(scores, bias, strength) + strength * divergence


LOSSES: dict[str, Loss] = {
    "softmax": softmax,
    "hinge": hinge,
    "negative-bias": negative_bias,
    "list-bias": list_bias,
    "bias-margin": bias_margin,
    "neutrality": neutrality,
}


def is_biased(name: str) -> bool:
    """Whether a loss looks at bias, and has a strength."""
    return name not in ("softmax", "hinge")


def add_loss_inputs(
    examples: Examples, config: Any, bias: Any, lexicon: Any, labels: Any
) -> tuple[Examples, dict[str, Any]]:
    """Return the training data with bias, mirrored documents and labels where needed; and provenance."""
    from evenrank.text.lexicon import lexicon as open_lexicon

    if not (is_biased(config.loss) or config.consistency or config.adversary is not None):
        return examples, {}
    lexicon = open_lexicon("rekabsaz2020" if lexicon is None else lexicon)
    by_words = labels is None and "dictionary" not in document_measure(bias).NEEDS
    facts = {}
    if config.consistency or config.adversary is not None or by_words:
        facts["lexicon"] = lexicon.name
    if is_biased(config.loss):
        facts["bias"] = str(bias)
        size = pair_bias(examples, bias, lexicon=lexicon if by_words else None, labels=labels)
        if not len(size) or size.min() == size.max():
            raise InputError(
                f"all documents are equally one-sided by {bias}, so the loss {config.loss} would change "
                "nothing; check lexicon, labels and texts"
            )
        examples = replace(examples, bias=size)
    if config.consistency:
        swapped = swapper(lexicon).texts(examples.pairs.documents).texts.to_pylist()
        examples = replace(examples, mirrored=replace(examples.pairs, documents=swapped))
    if config.adversary is not None:
        made = pair_labels(examples, config.adversary_labels, lexicon=lexicon)
        examples = replace(examples, adversary_labels=made)
    return examples, {"gender": facts}


def pair_bias(examples: Examples, bias: Any = "tf", *, lexicon: Any = None, labels: Any = None) -> Floats:
    """Return how one-sided the document of each pair is, from 0 to 1, the worst among all candidates.

    `bias`, `lexicon` and `labels` are as for :func:`evenrank.negatives`.
    """
    pairs = examples.pairs
    run = pl.DataFrame({"query_id": ["all"] * len(pairs.doc_ids), "doc_id": pairs.doc_ids})
    run = run.with_columns(score=-pl.int_range(pl.len()).cast(pl.Float64))
    docs = pl.DataFrame({"doc_id": pairs.doc_ids, "text": pairs.documents})
    table = read_run(run)
    size = document_bias(table, bias, docs=docs, lexicon=lexicon, labels=labels)
    most = float(size.max(initial=0.0))
    by_id = dict(zip(table["doc_id"].to_list(), (size / most if most else size).tolist(), strict=True))
    of_documents = np.array([by_id[doc_id] for doc_id in pairs.doc_ids], np.float32)
    values: Floats = of_documents[pairs.document]
    return values


Read = Callable[[Ints, bool], tuple[Tensor, Tensor | None]]
"""Scores of the pairs in these rows, and the vectors that they are made of; of mirrored documents if True."""


class Objective(nn.Module):
    """What a step minimises: a loss over groups, the consistency of mirrored documents, and an adversary.

    Parameters
    ----------
    model, read
        The ranker that is trained, and how it scores pairs.
    config, examples
        Which loss, with what strength, and the data that it needs.
    """

    def __init__(self, model: nn.Module, read: Read, config: Any, examples: Examples) -> None:
        super().__init__()
        self.model = model
        self._read = read
        self._config = config
        self._loss = LOSSES[config.loss]
        none = np.zeros(len(examples.pairs), np.float32)
        self._bias = none if examples.bias is None else examples.bias
        self._is_changed: Any = None
        if examples.mirrored is not None:
            texts = zip(examples.pairs.documents, examples.mirrored.documents, strict=True)
            self._is_changed = np.array([old != new for old, new in texts])[examples.pairs.document]
        self._labels = examples.adversary_labels
        self.adversary: nn.Module | None = None
        if self._labels is not None:
            self.adversary = classifier(self._width(), int(self._labels.max(initial=1)) + 1)

    def _width(self) -> int:
        """Return how many numbers the model's vector of a pair has."""
        mode = self.model.training
        self.model.eval()  # dropout would draw random numbers
        with torch.no_grad():
            _, vectors = self._read(np.zeros(1, np.int64), False)
        self.model.train(mode)
        if vectors is None:
            raise InputError("this model does not show the vector that its score is made of")
        return int(vectors.shape[1])

    def forward(self, rows: Ints) -> Tensor:
        """Return the mean over groups of pairs, the relevant one first: a matrix of their rows."""
        flat = rows.ravel()
        scores, vectors = self._read(flat, False)
        bias = torch.from_numpy(self._bias[rows]).to(scores.device)
        loss = self._loss(scores.view(rows.shape), bias, self._config.loss_strength)
        if self._is_changed is not None and self._is_changed[flat].any():
            changed = flat[self._is_changed[flat]]
            self.model.eval()  # dropout would be taken for a difference
            difference = self._read(changed, False)[0] - self._read(changed, True)[0]
            self.model.train()
            loss = loss + self._config.consistency * difference.abs().mean()
        if self.adversary is not None and self._labels is not None and vectors is not None:
            labels = torch.from_numpy(self._labels[flat]).to(scores.device)
            predicted = self.adversary(reverse(vectors, self._config.adversary))
            loss = loss + nn.functional.cross_entropy(predicted, labels)
        return loss
