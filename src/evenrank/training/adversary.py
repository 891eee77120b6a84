"""An adversary that reads gender off a ranker's vector, and a gradient that teaches the ranker to hide it.

The vector that the score is made of also goes into a classifier Linear–Tanh–Linear, whose gradient comes back
reversed and multiplied by μ. The classifier learns to tell gendered pairs from others; the vector learns not
to let it (AdvBert: Rekabsaz, Kopeinik and Schedl, SIGIR 2021). A classifier that fails at the end of training
says little, for it may have been misled. So a *fresh* one is trained on the finished vectors, always, and its
AUC on documents and queries it has not seen is reported: 0.5 is chance, 1 is plain to see.

What is read, for a pair of query and document:

=========== ================================================================================================
neutrality  1 if the neutrality of the query or of the document is below 1, else 0, as in the released code
            (which has 326 words; here the lexicon is yours to choose)
group       0 where neither group has more words in the document, else the number of the group that has
=========== ================================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from evenrank.errors import InputError
from evenrank.measures.neutrality import neutrality
from evenrank.rankers.base import Say
from evenrank.stats.intervals import interval_of
from evenrank.training.dataset import Examples

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_WIDTH = 64
_MOST = 4000
"""Pairs that a probe learns from, and that it is tested on."""
_DRAWS = 500
_RESOLUTION = 1e-9
"""An interval that is no wider is none: the groups are told apart without any error."""


def classifier(width: int, classes: int) -> nn.Sequential:
    """Return the network that reads a group off a vector."""
    return nn.Sequential(nn.Linear(width, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, classes))


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return vectors.view_as(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


def reverse(vectors: Tensor, strength: float) -> Tensor:
    """Return the vectors themselves; their gradient is multiplied by −strength."""
    same: Tensor = _Reverse.apply(vectors, strength)
    return same


def pair_labels(examples: Examples, what: str, *, lexicon: Any = None) -> Ints:
    """Return what the adversary predicts for each pair: `neutrality` or `group`."""
    pairs = examples.pairs
    document = _counts(pairs.documents, lexicon)
    if what == "neutrality":
        query = _counts(pairs.queries, lexicon)
        marked = (neutrality(document) < 1)[pairs.document] | (neutrality(query) < 1)[pairs.query]
        labels = marked.astype(np.int64)
    else:
        ahead = document == document.max(1, keepdims=True)
        labels = np.where(ahead.sum(1) == 1, ahead.argmax(1) + 1, 0)[pairs.document].astype(np.int64)
    if len(np.unique(labels)) < 2:
        raise InputError("all pairs are alike to the adversary: it has nothing to read")
    return labels


def _counts(texts: list[str], lexicon: Any) -> npt.NDArray[Any]:
    """Return the words of each group in each text."""
    from evenrank.text.tally import tally

    ids = [str(place) for place in range(len(texts))]
    docs = pl.DataFrame({"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String})
    counted = tally(docs, "rekabsaz2020" if lexicon is None else lexicon)
    place = dict(zip(counted.frame["doc_id"].to_list(), range(len(ids)), strict=True))
    rows = counted.frame.select(counted.groups).to_numpy()[[place[each] for each in ids]]
    return np.asarray(rows, np.float64)


def probe_rows(examples: Examples, seed: int) -> tuple[Ints, Ints]:
    """Return pairs to learn from and pairs to test on: they share neither queries nor documents.

    Of each document one pair is taken.
    """
    random = np.random.default_rng([seed, 7])
    pairs = examples.pairs
    side = random.permutation(len(pairs.doc_ids)) % 2 == 0
    dev = examples.dev[pairs.query]
    parts = []
    for chosen in (~dev & side[pairs.document], dev & ~side[pairs.document]):
        rows = random.permutation(np.flatnonzero(chosen))
        _, first = np.unique(pairs.document[rows], return_index=True)
        parts.append(np.sort(random.permutation(rows[first])[:_MOST]))
    return parts[0], parts[1]


def probe(
    vectors: Floats,
    labels: Ints,
    test_vectors: Floats,
    test_labels: Ints,
    *,
    queries: Ints | None = None,
    seed: int = 0,
    epochs: int = 30,
) -> dict[str, Any]:
    """Return how well a fresh classifier reads gender off finished vectors: its AUC on others, with interval.

    With several groups it is the mean over ``classes``, those that both parts have, of the AUC of each
    against all others. ``auc`` is None where the parts have fewer than two classes in common. The interval
    draws whole queries, since pairs of one query are alike. There is none with one query, where draws lack a
    class, or where the classes are told apart without any error. ``gendered`` counts the pairs whose label
    is not 0.

    Parameters
    ----------
    vectors, labels
        What it learns from.
    test_vectors, test_labels, queries
        What it is tested on, and the query of each; each its own if not given.
    """
    of_query = np.arange(len(test_labels)) if queries is None else queries
    names, place = np.unique(of_query, return_inverse=True)
    common = np.intersect1d(labels, test_labels).tolist()
    result: dict[str, Any] = {
        "pairs": len(test_labels),
        "queries": len(names),
        "gendered": int((test_labels > 0).sum()),
        "learned from": len(labels),
        "classes": common,
        "auc": None,
        "low": None,
        "high": None,
    }
    if len(common) < 2:
        return result
    from sklearn.metrics import roc_auc_score

    classes = int(max(labels.max(), test_labels.max())) + 1
    mean, deviation = vectors.mean(0), vectors.std(0) + 1e-6
    inputs, test_inputs = (torch.from_numpy((each - mean) / deviation) for each in (vectors, test_vectors))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = classifier(vectors.shape[1], classes)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
        targets = torch.from_numpy(labels)
        for _ in range(epochs):
            for rows in torch.randperm(len(inputs)).split(64):
                loss = nn.functional.cross_entropy(network(inputs[rows]), targets[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            odds = network(test_inputs).softmax(1).double().numpy()
    compared = [1] if classes == 2 else common

    def mean_auc(weights: Any = None) -> float:
        each = [
            roc_auc_score(test_labels == group, odds[:, group], sample_weight=weights) for group in compared
        ]
        return float(np.mean(each))

    result["auc"] = mean_auc()
    if len(names) > 1:
        drawn = np.random.default_rng(seed).multinomial(
            len(names), np.full(len(names), 1 / len(names)), _DRAWS
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a draw without one of the classes has no value
            draws = np.array([mean_auc(weights) for weights in drawn[:, place]])
        interval = interval_of(result["auc"], draws, len(names), 0.95)
        low, high = interval.low, interval.high
        if low is not None and high is not None and high - low > _RESOLUTION:
            result |= {"low": low, "high": high}
    return result


def probe_ranker(
    examples: Examples, vector: Callable[[Ints], Floats], what: str, seed: int, log: Say
) -> dict[str, Any]:
    """Return what a fresh classifier reads off the finished vectors of a ranker, for its metrics."""
    labels = examples.adversary_labels
    assert labels is not None
    learned, tested = probe_rows(examples, seed)
    empty: Floats = np.zeros((0, 1), np.float32)
    is_possible = len(np.intersect1d(labels[learned], labels[tested])) > 1
    vectors = (vector(learned), vector(tested)) if is_possible else (empty, empty)
    queries = examples.pairs.query[tested]
    result = {"reads": what}
    result |= probe(vectors[0], labels[learned], vectors[1], labels[tested], queries=queries, seed=seed)
    log(probe_text(result))
    return result


def probe_text(result: dict[str, Any]) -> str:
    """Return the AUC of a fresh probe as a sentence, for the log and the card."""
    if result["auc"] is None:
        return "no fresh probe of the vectors: one of its parts would have only pairs of one kind"
    interval = "" if result["low"] is None else f" [{result['low']:.3f}, {result['high']:.3f}]"
    pairs = f"{result['pairs']:,} pairs, {result['gendered']:,} of them marked; 0.5 is chance"
    return f"a fresh probe of the vectors: AUC {result['auc']:.3f}{interval} ({result['reads']}, {pairs})"
