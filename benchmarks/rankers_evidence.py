"""The tables of docs/rankers-compared.md, as Markdown."""

from __future__ import annotations

from typing import Any

MEASURES = ("nDCG@10", "RR@10", "AP", "RaB@10", "ARaB@10", "NFaiRR@10", "GSR", "LIWC@10")
_COLLECTIONS = {
    "time": "TIME: news of 1963",
    "grepbiasir": "Grep-BiasIR: bias-sensitive queries",
    "squad": "SQuAD: questions and Wikipedia sentences, test split",
}
_SIGNED = ("RaB@10", "ARaB@10", "GSR")


def tables(found: dict[str, Any]) -> str:
    """One Markdown table for each collection, and what debiasing does to GSR."""
    return "\n".join([*(_table(name, content) for name, content in found.items()), _debiasing(found)])


def _debiasing(found: dict[str, Any]) -> str:
    """GSR with debiased vectors, relative to the same ranker with regular ones."""
    headings = ["ranker", *(_COLLECTIONS[name].split(":")[0] for name in found)]
    lines = ["| " + " | ".join(headings) + " |", "|---" + "|--:" * len(found) + "|"]
    values = {
        name: {row["ranker"]: row["GSR"]["value"] for row in content["rankers"]}
        for name, content in found.items()
    }
    for ranker in ("w2v_add", "w2v_si"):
        for debias in ("hard", "strong"):
            label = f"{ranker}, {debias}"
            changes = [f"{100 * (each[label] / each[ranker] - 1):+.0f} %" for each in values.values()]
            lines.append("| " + " | ".join([label, *changes]) + " |")
    return "\n".join(["### Change of GSR by debiasing", "", *lines, ""])


def _table(name: str, content: dict[str, Any]) -> str:
    size = f"{content['documents']:,} documents, {content['queries']:,} queries."
    title = f"### {_COLLECTIONS[name]}\n\n{size}\n"
    headings = ["ranker", *("\\|LIWC@10\\|" if m.startswith("LIWC") else m for m in MEASURES)]
    lines = ["| " + " | ".join(headings) + " |", "|---" + "|--:" * len(MEASURES) + "|"]
    for row in content["rankers"]:
        lines.append(
            "| " + " | ".join([row["ranker"], *(_shown(m, row[m]["value"]) for m in MEASURES)]) + " |"
        )
    return "\n".join([title, *lines, ""])


def _shown(measure: str, value: float | None) -> str:
    return "–" if value is None else format(value, "+.3f" if measure in _SIGNED else ".3f")
