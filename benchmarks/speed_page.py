"""docs/speed.md, written from results.json: `python -m benchmarks.speed_page` writes it without measuring."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import fill, table


def write(rows: Sequence[dict[str, Any]]) -> None:
    """Fill in the tables."""
    fill("speed.md", page(rows))


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The tables: what is compared with a peer, and what has a bound of its own."""
    ratios = [row for row in rows if row["unit"] == "×"]
    others = [row for row in rows if row["unit"] != "×"]
    compared = [
        [
            row["what"],
            row["peer"],
            _number(row["reached"]),
            f"≥ {_number(row['must'])}",
            _detail(row, "ratio of processor time"),
            _detail(row, "load"),
            _source(row),
        ]
        for row in ratios
    ]
    bounded = [
        [
            row["what"],
            _valued(row["reached"], row["unit"]),
            f"≤ {_valued(row['must'], row['unit'])}",
            _source(row),
        ]
        for row in others
    ]
    text = table(
        ["what", "compared with", "times as fast", "wanted", "by processor time", "load", "source"],
        compared,
        left=2,
    )
    return text + "\n" + table(["what", "measured", "wanted", "source"], bounded)


def _detail(row: dict[str, Any], name: str) -> str:
    """What was noted beside the ratio, if it was."""
    return f"{row['details'][name]:g}" if name in row["details"] else ""


def _source(row: dict[str, Any]) -> str:
    """Of which `src/` a row is."""
    return str(row.get("src", "older"))[:7]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _valued(value: float, unit: str) -> str:
    return f"{_number(value)} {unit.strip()}"


if __name__ == "__main__":
    write(json.loads(Path(__file__).with_name("results.json").read_text())["rows"])
