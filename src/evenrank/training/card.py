"""The card of a trained ranker: what it is, what it learned from, how good it is, what it cannot tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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


def dev_table(metrics: Mapping[str, Any], kind: str) -> list[tuple[str, float]]:
    """What was measured on the dev queries, in words, with its RR@10."""
    rows = [("first stage", metrics["dev"]["first stage"]), (kind, metrics["dev"][kind])]
    rows.append((f"{kind} + {metrics['hybrid']['weight']:.3g} · first stage", metrics["hybrid"]["dev RR@10"]))
    if plain := metrics.get("untrained hybrid"):
        name = plain["encoder"].rpartition("/")[2]
        rows.append((f"untrained hybrid: {name} + {plain['weight']:.3g} · first stage", plain["dev RR@10"]))
    return rows
