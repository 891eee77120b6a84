"""What the dev queries say of a trained ranker: alone, with the first stage, untrained; its card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.rankers.base import Progress, Say
from evenrank.show.numbers import counted
from evenrank.training.dataset import Examples, Ints

_LIMITS = (
    "It orders what a first stage has found; what that one misses stays missing.",
    "{chosen} on dev queries of its own training set. How good it is elsewhere has to be measured on queries "
    "that it has not seen.",
    "What it learned about gender, and about anything else, comes from its training data and word vectors. "
    "Nothing here says that it is fair: measure it with `evenrank audit`.",
)


def model_card(
    config: Mapping[str, Any], metrics: Mapping[str, Any], *, training: int, left_out: Sequence[str]
) -> str:
    """The card, as Markdown; `training` is the number of queries that were learned from."""
    kind = config["ranker"]
    stopped = config["recipe"].get("checks") != 0
    role = "decided when to stop" if stopped else "were held out and did not decide when to stop"
    chosen = "It was selected" if stopped else "The weight of the first stage was chosen"
    rows = [f"| {label} | {value:.4f} |" for label, value in dev_table(metrics, kind)]
    facts = {key: config[key] for key in ("settings", "recipe", "seed", "facts")}
    return "\n".join(
        [
            f"# Re-ranker: {kind}",
            "",
            f"Trained by evenrank {config['evenrank']} on {counted(training, 'query', 'queries')}; "
            f"{counted(metrics['dev']['queries'], 'other')} {role}{_apart(metrics['dev'])}.",
            *(f"- left out: {each}" for each in left_out),
            "",
            "## RR@10 on the dev queries",
            "",
            "| | RR@10 |",
            "|---|--:|",
            *rows,
            "",
            *_probe(metrics.get("probe")),
            "## What it cannot do",
            "",
            *(f"- {limit.format(chosen=chosen)}" for limit in _LIMITS),
            "",
            "## How it was made",
            "",
            "```json",
            json.dumps(facts, indent=1, ensure_ascii=False),
            "```",
            "",
        ]
    )


def _apart(dev: Mapping[str, Any]) -> str:
    """Whether the dev queries have relevant documents in common with training queries."""
    if dev["apart"]:
        return "; no document is relevant to one of these and to a training query"
    return "; they have relevant documents in common with training queries, which flatters a good memory"


def dev_metrics(
    examples: Examples,
    dev: Any,
    reranker: Any,
    history: list[dict[str, float]],
    kind: str,
    hybrid: bool,
    say: Say,
    progress: Progress | None,
) -> dict[str, Any]:
    """What the dev queries say: the first stage, the model, the model with the first stage, the untrained."""
    scores = reranker.score(compact(examples, dev))
    metrics: dict[str, Any] = {
        "dev": {
            "queries": int(examples.dev.sum()),
            "apart": examples.dev_is_apart,
            "first stage": examples.rr(dev, examples.pairs.first[dev]),
            kind: examples.rr(dev, scores),
        },
        "hybrid": chosen_weight(examples, dev, scores),
        "epochs": history,
    }
    plain = untrained(examples, dev, progress=progress) if hybrid else None
    if plain is not None:
        metrics["untrained hybrid"] = plain
    say("RR@10 on the dev queries:")
    for label, value in dev_table(metrics, kind):
        say(f"  {value:.4f}  {label}")
    return metrics


def _probe(probe: Mapping[str, Any] | None) -> list[str]:
    """What a fresh classifier reads off the vectors, where an adversary was trained against."""
    if probe is None:
        return []
    by_group, gender = probe["reads"] == "group", set(probe["groups"]) == {"female", "male"}
    named = f"({', '.join(probe['groups'])})"
    marked = "gendered" if gender else "with a group" if by_group else "not neutral"
    reads = f"which group {named}" if by_group else "gendered or not" if gender else f"neutral or not {named}"
    title = f"## What its vectors tell of {'gender' if gender else 'the groups'}"
    if probe["auc"] is None:
        learned = counted(probe["learned from"], "pair")
        return [
            title,
            "",
            f"No fresh classifier was trained to tell {reads}: of {learned} to learn from and "
            f"{probe['pairs']:,} to be tried on, one part has only pairs of one kind.",
            "",
        ]
    between = "" if probe["low"] is None else f" [{probe['low']:.3f}, {probe['high']:.3f}]"
    said = f"AUC {probe['auc']:.3f}{between}; 0.5 is chance, 1 is plain to see"
    if by_group and len(probe["classes"]) > 2:
        without = " and the pairs without one" if 0 in probe["classes"] else ""
        said += f". It is the mean over the groups{without}, each against the rest"
    return [
        title,
        "",
        f"A fresh classifier, trained on the finished vectors of {counted(probe['learned from'], 'pair')} to "
        f"tell {reads}, and tried on {counted(probe['pairs'], 'pair')} of "
        f"{counted(probe['queries'], 'other query', 'other queries')} and of other documents, "
        f"{probe['gendered']:,} of them {marked}: {said}.",
        "",
    ]


def dev_table(metrics: Mapping[str, Any], kind: str) -> list[tuple[str, float]]:
    """What was measured on the dev queries, in words, with its RR@10."""
    rows = [("first stage", metrics["dev"]["first stage"]), (kind, metrics["dev"][kind])]
    rows.append((f"{kind} + {metrics['hybrid']['weight']:.3g} · first stage", metrics["hybrid"]["dev RR@10"]))
    if plain := metrics.get("untrained hybrid"):
        name = plain["encoder"].rpartition("/")[2]
        rows.append((f"untrained hybrid: {name} + {plain['weight']:.3g} · first stage", plain["dev RR@10"]))
    return rows


def chosen_weight(examples: Examples, rows: Ints, scores: npt.NDArray[Any]) -> dict[str, float]:
    """The weight of the first stage that makes the relevant documents most likely, and RR@10 with it.

    A softmax over the candidates of each query is fitted to which of them are relevant, with a coefficient
    for score and first stage each; the weight is their ratio. RR@10 itself is nearly flat in the weight, and
    where it happens to be highest on a few hundred queries says little about others.
    """
    first = examples.pairs.first[rows]
    columns = np.stack([scores, first], axis=1).astype(np.float64)
    spread = np.where(columns.std(axis=0) > 0, columns.std(axis=0), 1.0)
    of_score, of_first = _likeliest(columns / spread, examples.relevant[rows], examples.pairs.query[rows])
    most = _MOST * spread[0] / spread[1]  # a score that tells nothing still breaks ties of the first stage
    weight = 0.0 if of_first <= 0 else most
    if of_first > 0 and of_score > 0:
        weight = min(most, float(of_first / of_score * spread[0] / spread[1]))
    return {"weight": float(weight), "dev RR@10": examples.rr(rows, scores + weight * first)}


_MOST = 1000.0
"""How many times more than the score the first stage counts at most, where both spread alike."""
_RIDGE = 0.01
"""Keeps coefficients finite where a score puts every relevant document first."""


def _likeliest(columns: npt.NDArray[Any], relevant: Any, queries: Ints) -> tuple[float, float]:
    """Coefficients of the two columns in a softmax over the rows of each query."""
    from scipy.optimize import minimize

    _, place = np.unique(queries, return_inverse=True)
    target = relevant / np.maximum(np.bincount(place, relevant), 1)[place]
    counts = np.bincount(place, target)[place]  # 0 for a query without a relevant candidate

    def surprise(of_each: npt.NDArray[Any]) -> tuple[float, npt.NDArray[Any]]:
        worth = columns @ of_each
        highest = np.full(len(worth), -np.inf)
        np.maximum.at(highest, place, worth)
        worth -= highest[place]
        total = np.bincount(place, np.exp(worth))[place]
        share = counts * np.exp(worth) / total
        lost = float(target @ (np.log(total) - worth)) + _RIDGE * float(of_each @ of_each)
        return lost, columns.T @ (share - target) + 2 * _RIDGE * of_each

    result = minimize(surprise, np.zeros(2), jac=True, method="L-BFGS-B").x
    return float(result[0]), float(result[1])


def untrained(examples: Examples, rows: Ints, *, progress: Progress | None = None) -> dict[str, Any] | None:
    """The default bi-encoder as it is, alone and with the first stage; None where it is not installed."""
    from evenrank.rankers.encoder import Encoder
    from evenrank.rankers.neural.rerankers import BiEncoderReranker

    try:
        encoder = Encoder(None)
        scores = BiEncoderReranker(encoder).score(compact(examples, rows), progress=progress)
    except InputError:
        return None
    return {
        "encoder": encoder.model.name,
        "alone": examples.rr(rows, scores),
        **chosen_weight(examples, rows, scores),
    }


def compact(examples: Examples, rows: Ints) -> Any:
    """These pairs with their texts only: nothing else is encoded."""
    from evenrank.rankers.neural.candidates import Candidates

    pairs = examples.pairs
    queries, query = np.unique(pairs.query[rows], return_inverse=True)
    documents, document = np.unique(pairs.document[rows], return_inverse=True)
    return Candidates(
        [pairs.query_ids[i] for i in queries],
        [pairs.queries[i] for i in queries],
        [pairs.doc_ids[i] for i in documents],
        [pairs.documents[i] for i in documents],
        query,
        document,
        pairs.first[rows],
    )
