"""The card beside a model: what it is for, what it learned from, how good it is, what it cannot do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import evenrank
from evenrank.data.files import writing
from evenrank.queries.classifier import LABELS, Classifier
from evenrank.queries.evaluation import CrossValidation

_LIMITS = (
    "A query is labelled by its words, not by facts: an unknown name, or a name of another language, is "
    "often missed.",
    "Three classes, as people annotated them: queries about several genders, or other ones, have no class.",
    "Names follow the US census of 1990.",
    "English only. Other scripts are mostly labelled neutral.",
    "It is meant to split sets of queries for an audit. It says nothing about the person who searches.",
)


def write_card(
    folder: str | os.PathLike[str], model: Classifier, found: CrossValidation | None, *, left_out: int = 0
) -> None:
    """Write ``card.json`` and ``card.md`` into the folder of a saved model."""
    card = {
        "evenrank": evenrank.__version__,
        **model.describe(),
        "left_out": left_out,
        "cross_validation": None if found is None else found.to_dict(),
        "limits": list(_LIMITS),
    }
    with writing(Path(folder) / "card.json") as file:
        file.write((json.dumps(card, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode())
    with writing(Path(folder) / "card.md") as file:
        file.write(_markdown(card).encode())


def _markdown(card: dict[str, Any]) -> str:
    lines = [f"# Query-gender classifier: {card['kind']}", ""]
    if "queries" in card:
        classes = ", ".join(f"{number:,} {label}" for label, number in card.get("classes", {}).items())
        lines += [f"Trained on {card['queries']:,} labelled queries ({classes}).", ""]
    if card["cross_validation"]:
        lines += _numbers(card["cross_validation"])
    lines += ["## What it cannot do", "", *(f"- {limit}" for limit in card["limits"]), ""]
    if "settings" in card:
        lines += ["## Settings", "", "```json", json.dumps(card["settings"], indent=1), "```", ""]
    return "\n".join(lines)


def _numbers(found: dict[str, Any]) -> list[str]:
    accuracy = found["accuracy"]
    interval = "" if accuracy["low"] is None else f" (95%: {accuracy['low']:.3f} to {accuracy['high']:.3f})"
    head = (
        f"{found['folds']}-fold cross-validation, {len(found['seeds'])} seeds, {found['queries']:,} queries."
    )
    rows = [
        f"| {label} | {found['f1'][label]:.3f} | "
        + " | ".join(str(found["confusion"][label][other]) for other in LABELS)
        + " |"
        for label in LABELS
    ]
    return [
        "## How good it is",
        "",
        head,
        "",
        f"- accuracy {accuracy['value']:.3f}{interval}",
        f"- expected calibration error {found['ece']:.3f}",
        "",
        "| true class | F1 | " + " | ".join(f"labelled {label}" for label in LABELS) + " |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
