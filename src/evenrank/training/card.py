"""What the dev queries say of a trained ranker: alone, with the first stage, untrained; its card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenrank.errors import InputError
from evenrank.rankers.base import Progress, Say
from evenrank.training.examples import Examples, Ints

_LIMITS = (
    "It orders what a first stage has found; what that one misses stays missing.",
    "It was selected on dev queries of its own training set. How good it is elsewhere has to be measured on "
    "queries that it has not seen.",
    "What it learned about gender, and about anything else, comes from its training data and word vectors. "
    "Nothing here says that it is fair: measure it with `evenrank audit`.",
)


def model_card(
    config: Mapping[str, Any], metrics: Mapping[str, Any], *, training: int, left_out: Mapping[str, int]
) -> str:
    """The card, as Markdown."""
    kind = config["ranker"]
    rows = [f"| {label} | {value:.4f} |" for label, value in dev_table(metrics, kind)]
    missing = [f"- left out: {count:,} {reason}" for reason, count in left_out.items()]
    facts = {key: config[key] for key in ("settings", "recipe", "seed", "facts")}
    return "\n".join(
        [
            f"# Re-ranker: {kind}",
            "",
            f"Trained by evenrank {config['evenrank']} on {training:,} queries; "
            f"{metrics['dev']['queries']:,} others decided when to stop.",
            *missing,
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
            *(f"- {limit}" for limit in _LIMITS),
            "",
            "## How it was made",
            "",
            "```json",
            json.dumps(facts, indent=1, ensure_ascii=False),
            "```",
            "",
        ]
    )


def dev_metrics(
    found: Examples,
    dev: Any,
    reranker: Any,
    history: list[dict[str, float]],
    kind: str,
    hybrid: bool,
    say: Say,
    progress: Progress | None,
) -> dict[str, Any]:
    """What the dev queries say: the first stage, the model, the model with the first stage, the untrained."""
    scores = reranker.score(compact(found, dev))
    metrics: dict[str, Any] = {
        "dev": {
            "queries": int(found.dev.sum()),
            "first stage": found.rr(dev, found.pairs.first[dev]),
            kind: found.rr(dev, scores),
        },
        "hybrid": chosen_weight(found, dev, scores),
        "epochs": history,
    }
    plain = untrained(found, dev, progress=progress) if hybrid else None
    if plain is not None:
        metrics["untrained hybrid"] = plain
    say("RR@10 on the dev queries:")
    for label, value in dev_table(metrics, kind):
        say(f"  {value:.4f}  {label}")
    return metrics


def _probe(found: Mapping[str, Any] | None) -> list[str]:
    """What a fresh classifier reads off the vectors, where an adversary was trained against."""
    if found is None:
        return []
    reads = "gendered or not" if found["reads"] == "neutrality" else "which group"
    said = "not judged: one of its parts has no gendered pair, or no other"
    if found["auc"] is not None:
        between = "" if found["low"] is None else f" [{found['low']:.3f}, {found['high']:.3f}]"
        said = f"AUC {found['auc']:.3f}{between}; 0.5 is chance, 1 is plain to see"
    return [
        "## What its vectors tell of gender",
        "",
        f"A fresh classifier, trained on the finished vectors of {found['learned from']:,} pairs to tell "
        f"{reads}, and tried on {found['pairs']:,} pairs of other queries and documents, "
        f"{found['gendered']:,} of them gendered: {said}.",
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


_STEPS = 25


def chosen_weight(examples: Examples, rows: Ints, scores: npt.NDArray[Any]) -> dict[str, float]:
    """The weight of the first stage with the best RR@10, and that RR@10.

    Weights from a thousandth to a thousand times what makes scores and first stage spread alike, and 0, are
    tried; of equally good ones the smallest is taken.
    """
    first = examples.pairs.first[rows]
    spread = float(scores.std()) / (float(first.std()) or 1.0)
    tried = [0.0, *(np.geomspace(1e-3, 1e3, _STEPS) * spread if spread else ())]
    values = [examples.rr(rows, scores + weight * first) for weight in tried]
    best = int(np.argmax(values))
    return {"weight": float(tried[best]), "dev RR@10": values[best]}


def untrained(examples: Examples, rows: Ints, *, progress: Progress | None = None) -> dict[str, Any] | None:
    """The default bi-encoder as it is, alone and with the first stage; None where it is not installed."""
    from evenrank.rankers.dense import Encoder
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
