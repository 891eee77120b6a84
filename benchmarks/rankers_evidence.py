"""All rankers in one table: `python -m benchmarks.evidence rankers` measures and fills the page in docs.

`python -m benchmarks.rankers_evidence` fills the page again from docs/evidence/rankers.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import evenrank as er
from evenrank.reproduce.rankers import MEASURES, compare_rankers
from evenrank.text.cache import root

_DOCS = Path(__file__).parents[1] / "docs"
_PAGE = _DOCS / "rankers-compared.md"
_BEGIN, _END = "<!-- tables: begin -->", "<!-- tables: end -->"
_COLLECTIONS = {
    "time": (None, "TIME: news of 1963"),
    "grepbiasir": (None, "Grep-BiasIR: bias-sensitive queries"),
    "squad": ("test", "SQuAD: questions and Wikipedia sentences, test split"),
}
_SIGNED = ("RaB@10", "ARaB@10", "GSR")


def rankers(data: Path) -> dict[str, Any]:
    """Every ranker on three collections. Indexes and vectors stay in the cache for the next time."""
    found: dict[str, Any] = {}
    vectors = data / "data" / "vectors" / "glove-100d.bin.gz"
    for name, (split, _) in _COLLECTIONS.items():
        where = root() / "evidence" / name
        where.parent.mkdir(parents=True, exist_ok=True)
        dataset = er.load(data / "data" / name, split=split)
        found[name] = compare_rankers(
            dataset, where, vectors=vectors, say=lambda label, name=name: print(name, label, file=sys.stderr)
        )
    fill(found)
    return found


def fill(found: dict[str, Any]) -> None:
    """Put the tables into the page."""
    before, _, rest = _PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _PAGE.write_text(f"{before}{_BEGIN}\n{tables(found)}{_END}{after}")


def tables(found: dict[str, Any]) -> str:
    """One Markdown table for each collection, and what debiasing does to GSR."""
    return "\n".join([*(_table(name, content) for name, content in found.items()), _debiasing(found)])


def _debiasing(found: dict[str, Any]) -> str:
    """GSR with debiased vectors, relative to the same ranker with regular ones."""
    headings = ["ranker", *(_COLLECTIONS[name][1].split(":")[0] for name in found)]
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
    title = f"### {_COLLECTIONS[name][1]}\n\n{size}\n"
    headings = ["ranker", *("\\|LIWC@10\\|" if m.startswith("LIWC") else m for m in MEASURES)]
    lines = ["| " + " | ".join(headings) + " |", "|---" + "|--:" * len(MEASURES) + "|"]
    for row in content["rankers"]:
        lines.append(
            "| " + " | ".join([row["ranker"], *(_shown(m, row[m]["value"]) for m in MEASURES)]) + " |"
        )
    return "\n".join([title, *lines, ""])


def _shown(measure: str, value: float | None) -> str:
    return "–" if value is None else format(value, "+.3f" if measure in _SIGNED else ".3f")


if __name__ == "__main__":
    fill(json.loads((_DOCS / "evidence" / "rankers.json").read_text())["results"])
