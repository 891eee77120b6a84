"""Do trained rankers remember documents? RR@10 apart by whether the answer was one in training too."""

from __future__ import annotations

from typing import Any

KINDS = ("answer seen in training", "answer not seen")


def fine_tuning(systems: dict[str, Any]) -> list[str]:
    """What fine-tuning the bi-encoder changed, also apart for what it may remember."""
    found = systems.get("fine-tuned bi-encoder", {}).get("against untuned")
    if found is None:
        return []
    said = [
        f"{kind} {each['difference']:+.3f} ({each['low']:+.3f} to {each['high']:+.3f})"
        for kind, each in found.items()
    ]
    return [f"Fine-tuning the bi-encoder changes RR@10, by queries: {'; '.join(said)}.", ""]


def memory_table(systems: dict[str, Any]) -> list[str]:
    """RR@10 of each ranker on queries whose answer it may remember, and on the others."""
    rows = {system: row["RR@10 by answer"] for system, row in systems.items()}
    shown = ["ranker"]
    for kind in KINDS:
        shown += [f"{kind}: queries", "RR@10", "against BM25", "95 %"]
    lines = ["| " + " | ".join(shown) + " |", "|---|" + "--:|" * (len(shown) - 1)]
    for system, found in rows.items():
        cells = [system]
        for kind in KINDS:
            each = found[kind]
            cells += [f"{each['queries']:,}", f"{each['value']:.3f}"]
            if system == "bm25":
                cells += ["", ""]
            else:
                cells += [f"{each['difference']:+.3f}", f"{each['low']:+.3f} to {each['high']:+.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    said = (
        "The same RR@10, split by whether a relevant document of the test query is relevant to a training "
        "query too. What is gained on the first kind alone may be memory for documents."
    )
    return [said, "", *lines, ""]
