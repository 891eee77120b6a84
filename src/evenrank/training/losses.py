"""What training minimises: losses over groups of one relevant document and several others.

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

`Objective` puts them together with an adversary and with mirroring, for every ranker that is trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from evenrank.data.runs import read_run
from evenrank.errors import InputError, choice_hint
from evenrank.measures.document_bias import KINDS, document_bias, document_measure
from evenrank.training.adversary import classifier, pair_labels, reverse
from evenrank.training.dataset import Examples, augmented, twinned

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
    wished = (_SHARP * (1 - bias)).softmax(1)
    apart = nn.functional.kl_div(scores.log_softmax(1), wished, reduction="batchmean")
    return softmax(scores, bias, strength) + strength * apart


LOSSES: dict[str, Loss] = {
    "softmax": softmax,
    "hinge": hinge,
    "negative-bias": negative_bias,
    "list-bias": list_bias,
    "bias-margin": bias_margin,
    "neutrality": neutrality,
}
_PLAIN = ("softmax", "hinge")


def is_biased(name: str) -> bool:
    """Whether a loss looks at bias, and has a strength."""
    return name not in _PLAIN


def check_loss(name: str, strength: float | None) -> None:
    """Refuse a loss that is not known, and a strength that says nothing."""
    if name not in LOSSES:
        raise InputError(f"loss is {name!r}; {choice_hint(name, LOSSES)}")
    if strength is None:
        return
    if not is_biased(name):
        raise InputError(f"the loss {name} has no strength; {', '.join(filter(is_biased, LOSSES))} have one")
    if not (math.isfinite(strength) and strength >= 0):
        raise InputError(f"loss_strength is {strength!r}; it must be a number from 0 on")


def strength_of(name: str, given: float | None) -> float:
    """β: 1 unless it was given; 0 for losses without one."""
    return 0.0 if not is_biased(name) else 1.0 if given is None else float(given)


def check_loss_inputs(recipe: Any, settings: Iterable[str], bias: Any, lexicon: Any, labels: Any) -> None:
    """Refuse what would be given and read by nothing; `settings` are the names of those given."""
    if "adversary_labels" in settings and recipe.adversary is None:
        raise InputError("adversary_labels is what an adversary reads; there is none, give adversary too")
    aware, kind = ", ".join(filter(is_biased, LOSSES)), str(bias).lower()
    if not is_biased(recipe.loss):
        for name, given in (("bias", kind != "tf"), ("labels", labels is not None)):
            if given:
                raise InputError(f"{name} is for losses that look at bias ({aware}), not for {recipe.loss}")
    else:
        document_measure(bias)  # refuses what is none
        if labels is not None and kind in KINDS and kind != "label":
            raise InputError(f"labels is for bias=label; bias is {bias}")
    if lexicon is not None and not (is_biased(recipe.loss) or _reads_words(recipe)):
        raise InputError(
            f"lexicon is for losses that look at bias ({aware}), an adversary and mirroring; this training "
            "has none of them"
        )


def _reads_words(recipe: Any) -> bool:
    """Whether a training looks at the words of groups, whatever its loss does."""
    return recipe.adversary is not None or recipe.mirror != "none"


def _loss_reads_words(recipe: Any, bias: Any, labels: Any) -> bool:
    """Whether the loss does: not where labels or a dictionary tell the groups."""
    return is_biased(recipe.loss) and labels is None and "dictionary" not in document_measure(bias).NEEDS


def add_loss_inputs(
    examples: Examples, recipe: Any, bias: Any, lexicon: Any, labels: Any
) -> tuple[Examples, dict[str, Any]]:
    """The training data with what a recipe needs: bias, mirrored texts, an adversary's labels; and facts."""
    from evenrank.text.lexicon import lexicon as as_lexicon

    facts = {}
    by_words = _loss_reads_words(recipe, bias, labels)
    if by_words or _reads_words(recipe):
        facts["lexicon"] = as_lexicon("rekabsaz2020" if lexicon is None else lexicon).name
    if is_biased(recipe.loss):
        facts["bias"] = str(bias)
        size = pair_bias(examples, bias, lexicon=lexicon if by_words else None, labels=labels)
        if not len(size) or size.min() == size.max():
            look = "labels" if labels is not None else "lexicon and texts" if by_words else "texts"
            raise InputError(
                f"all documents are equally one-sided by {bias}, so the loss {recipe.loss} would change "
                f"nothing; check {look}"
            )
        examples = replace(examples, bias=size)
    if recipe.mirror != "none":
        before = len(examples.pairs)
        examples = (augmented if recipe.mirror == "augment" else twinned)(examples, lexicon=lexicon)
        if len(examples.pairs) == before:
            raise InputError(
                f"no text that is learned from changes when it is mirrored, so mirror={recipe.mirror} would "
                "change nothing; check lexicon and texts"
            )
    if recipe.adversary is not None:
        examples = replace(
            examples, adversary_labels=pair_labels(examples, recipe.adversary_labels, lexicon=lexicon)
        )
    return examples, {"gender": facts} if facts else {}


def pair_bias(examples: Examples, bias: Any = "tf", *, lexicon: Any = None, labels: Any = None) -> Floats:
    """How one-sided the document of each pair is, from 0 to 1, the worst among all candidates.

    Parameters
    ----------
    examples
        The training data, whose documents are counted.
    bias, lexicon, labels
        As for :func:`evenrank.negatives`: what makes a document one-sided, the words of each group, and the
        group of each document for ``label``.
    """
    pairs = examples.pairs
    run = pl.DataFrame({"query_id": ["all"] * len(pairs.doc_ids), "doc_id": pairs.doc_ids})
    run = run.with_columns(score=-pl.int_range(pl.len()).cast(pl.Float64))
    docs = pl.DataFrame({"doc_id": pairs.doc_ids, "text": pairs.documents})
    table = read_run(run)
    size = document_bias(table, bias, docs=docs, lexicon=lexicon, labels=labels)
    most = float(size.max(initial=0.0))
    by_id = dict(zip(table["doc_id"].to_list(), (size / most if most else size).tolist(), strict=True))
    each = np.array([by_id[doc_id] for doc_id in pairs.doc_ids], np.float32)
    found_: Floats = each[pairs.document]
    return found_


Read = Callable[[nn.Module, Ints, bool], tuple[Tensor, Tensor | None]]
"""Scores of the pairs in these rows by a model and, if wanted, the vectors that they are made of."""


class Objective(nn.Module):
    """What a step minimises: a loss over groups, consistency of mirrored documents, and an adversary.

    Parameters
    ----------
    model, read
        The ranker that is trained, and how it reads pairs.
    recipe, examples
        Which loss, with what strength, and the data that it needs.
    """

    def __init__(self, model: nn.Module, read: Read, recipe: Any, examples: Examples) -> None:
        super().__init__()
        self.model = model
        self._read = read
        self._loss, self._strength = LOSSES[recipe.loss], strength_of(recipe.loss, recipe.loss_strength)
        none = np.zeros(len(examples.pairs), np.float32)
        self._bias = none if examples.bias is None else examples.bias
        self._twin = examples.twin if recipe.mirror == "consistency" else None
        self._mirror = 1.0 if recipe.mirror_strength is None else recipe.mirror_strength
        self._labels, self._reversal = examples.adversary_labels, recipe.adversary
        self.adversary: nn.Module | None = None
        if self._labels is not None:
            self.adversary = classifier(self._width(), int(self._labels.max(initial=1)) + 1)

    def _width(self) -> int:
        """How many numbers the model's vector of a pair has."""
        mode = self.model.training
        self.model.eval()  # dropout would draw random numbers
        with torch.no_grad():
            _, vectors = self._read(self.model, np.zeros(1, np.int64), True)
        self.model.train(mode)
        assert vectors is not None
        return int(vectors.shape[1])

    def forward(self, rows: Ints) -> Tensor:
        """The mean over groups of pairs, the relevant one first: a matrix of their rows."""
        flat = rows.ravel()
        scores, vectors = self._read(self.model, flat, self.adversary is not None)
        device = scores.device
        bias = torch.from_numpy(self._bias[rows]).to(device)
        loss = self._loss(scores.view(rows.shape), bias, self._strength)
        if self._twin is not None and self._mirror:
            twin = self._twin[flat]
            original, twin = flat[twin >= 0], twin[twin >= 0]
            if len(original):
                self.model.eval()  # dropout would be taken for a difference
                apart = self._read(self.model, original, False)[0] - self._read(self.model, twin, False)[0]
                self.model.train()
                loss = loss + self._mirror * apart.abs().mean()
        if self.adversary is not None and self._labels is not None and vectors is not None:
            labels = torch.from_numpy(self._labels[flat]).to(device)
            predicted = self.adversary(reverse(vectors, self._reversal))
            loss = loss + nn.functional.cross_entropy(predicted, labels)
        return loss
