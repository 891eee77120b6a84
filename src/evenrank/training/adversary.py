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

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenrank.errors import InputError
from evenrank.measures.neutrality import neutrality
from evenrank.show.numbers import counted
from evenrank.stats.intervals import interval_of
from evenrank.training.dataset import Examples, unmirrored

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_WIDTH = 64
_MOST = 4000
"""Pairs that a probe learns from, and that it is tried on."""
_DRAWS = 500


def classifier(width: int, classes: int) -> nn.Sequential:
    """What reads a group off a vector."""
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
    """The vectors themselves; their gradient is multiplied by −strength."""
    built: Tensor = _Reverse.apply(vectors, strength)
    return built


def pair_labels(examples: Examples, what: str, *, lexicon: Any = None) -> Ints:
    """What the adversary reads, for each pair."""
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
    """Words of each group in each text."""
    import polars as pl

    from evenrank.text.tally import tally

    ids = [str(place) for place in range(len(texts))]
    built = tally(
        pl.DataFrame({"doc_id": ids, "text": texts}, schema={"doc_id": pl.String, "text": pl.String}),
        **({} if lexicon is None else {"lexicon": lexicon}),
    )
    place = dict(zip(built.frame["doc_id"].to_list(), range(len(ids)), strict=True))
    rows = built.frame.select(built.groups).to_numpy()[[place[each] for each in ids]]
    return np.asarray(rows, np.float64)


def probe_rows(examples: Examples, seed: int) -> tuple[Ints, Ints]:
    """Pairs to learn from and pairs to be tried on: they share neither queries nor documents.

    Of each document one pair is taken. Mirrored texts are left out: they would be near-copies of documents on
    the other side. Without them, the parts are the same whether a training mirrors or not.
    """
    random = np.random.default_rng([seed, 7])
    pairs = examples.pairs
    given = np.flatnonzero(unmirrored(pairs.doc_ids))
    side = np.zeros(len(pairs.doc_ids), bool)
    side[given] = random.permutation(len(given)) % 2 == 0
    dev, own = examples.dev[pairs.query], examples.own_pairs()
    sides = []
    for wanted in (own & ~dev & side[pairs.document], own & dev & ~side[pairs.document]):
        rows = random.permutation(np.flatnonzero(wanted))
        _, first = np.unique(examples.pairs.document[rows], return_index=True)
        sides.append(np.sort(random.permutation(rows[first])[:_MOST]))
    return sides[0], sides[1]


def probe(
    vectors: Floats,
    labels: Ints,
    tried: Floats,
    right: Ints,
    *,
    queries: Ints | None = None,
    seed: int = 0,
    epochs: int = 30,
) -> dict[str, Any]:
    """How well a fresh classifier reads gender off finished vectors: its AUC on others, with interval.

    With several groups it is the mean of each group's AUC against all others, those without a group being one
    more; ``classes`` are those that both parts have, and that the mean is over. ``auc`` is None where the
    parts have fewer than two of them in common. The interval is for other queries: they are drawn whole,
    since pairs of one query are alike. There is none with one query, nor where draws lack one of the classes,
    nor where these are told apart without any error: an interval without width would claim too much.
    ``gendered`` counts the pairs whose label is not 0, whatever the groups are.

    Parameters
    ----------
    vectors, labels
        What it learns from.
    tried, right, queries
        What it is tried on, and the query of each; each its own if not given.
    """
    requested, place = np.unique(np.arange(len(right)) if queries is None else queries, return_inverse=True)
    result: dict[str, Any] = {
        "pairs": len(right),
        "queries": len(requested),
        "gendered": int((right > 0).sum()),
        "learned from": len(labels),
    }
    classes = int(max(labels.max(initial=0), right.max(initial=0))) + 1
    both = np.intersect1d(labels, right).tolist()
    result["classes"] = both
    if len(both) < 2:
        return {**result, "auc": None, "low": None, "high": None}
    mean, spread = vectors.mean(0), vectors.std(0) + 1e-6
    read_from, read = (torch.from_numpy((each - mean) / spread) for each in (vectors, tried))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = classifier(vectors.shape[1], classes)
        optimizer = torch.optim.AdamW(built.parameters(), lr=1e-3, weight_decay=0.1)
        wanted = torch.from_numpy(labels)
        for _ in range(epochs):
            for rows in torch.randperm(len(read_from)).split(64):
                loss = nn.functional.cross_entropy(built(read_from[rows]), wanted[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            odds = built(read).softmax(1).double().numpy()
    present = [1] if classes == 2 else both
    scores = [odds[:, each] for each in present]
    truths = [(right == each).astype(np.float64) for each in present]

    def mean_auc(weights: Any) -> Any:
        return np.mean([auc(*each, weights) for each in zip(scores, truths, strict=True)], axis=0)

    value = float(mean_auc(np.ones(len(right))))
    if len(requested) == 1:
        return {**result, "auc": value, "low": None, "high": None}
    drawn = np.random.default_rng(seed).multinomial(
        len(requested), np.full(len(requested), 1 / len(requested)), _DRAWS
    )
    interval = interval_of(value, mean_auc(drawn[:, place]), len(requested), 0.95)
    low, high = (None, None) if interval.low == interval.high else (interval.low, interval.high)
    return {**result, "auc": value, "low": low, "high": high}


def probe_ranker(
    examples: Examples,
    vector: Callable[[Ints], Floats],
    what: str,
    seed: int,
    say: Callable[[str], None],
    *,
    lexicon: Any = None,
) -> dict[str, Any]:
    """What a fresh classifier reads off the finished vectors of a ranker, for its metrics and its card."""
    from evenrank.text.lexicon import lexicon as as_lexicon

    labels = examples.adversary_labels
    if labels is None:
        raise InputError("there is nothing for a probe to read")
    seen, tried = probe_rows(examples, seed)
    none: Floats = np.zeros((0, 1), np.float32)
    ready = len(np.intersect1d(labels[seen], labels[tried])) > 1
    vectors = (vector(seen), vector(tried)) if ready else (none, none)
    requested = examples.pairs.query[tried]
    read = probe(vectors[0], labels[seen], vectors[1], labels[tried], queries=requested, seed=seed)
    if read["auc"] is None:
        say("no fresh probe of the vectors: one of its parts would have only pairs of one kind")
    else:
        between = "" if read["low"] is None else f" [{read['low']:.3f}, {read['high']:.3f}]"
        some = f"{counted(read['pairs'], 'pair')}, {read['gendered']:,} of them marked"
        say(f"a fresh probe of the vectors: AUC {read['auc']:.3f}{between} ({what}, {some})")
    groups = list(as_lexicon("rekabsaz2020" if lexicon is None else lexicon).groups)
    return {"reads": what, "groups": groups, **read}


def auc(scores: Any, truth: Any, weights: Any = 1.0) -> Any:
    """Area under the ROC curve: how often a true one scores above another, ties half; one value for each row
    of weights, which say how often a pair is there.
    """
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    order, starts = np.argsort(place, kind="stable"), np.cumsum(counts) - counts

    def by_score(marked: Any) -> Any:
        return np.add.reduceat((marked * weights)[..., order], starts, axis=-1)

    good, bad = by_score(np.asarray(truth, np.float64)), by_score(1.0 - np.asarray(truth, np.float64))
    above = (good * (bad.cumsum(-1) - bad / 2)).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return above / (good.sum(-1) * bad.sum(-1))
