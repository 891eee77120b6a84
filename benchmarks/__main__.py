"""Run all benchmarks (or those named), print the table, and keep it in results.json."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

import evenrank
from benchmarks.timing import Row

_ALL = (
    "tally",
    "swap",
    "rank_bias",
    "gsr",
    "psychology",
    "constrain",
    "encoding",
    "bm25",
    "classify",
    "transformer",
    "server_load",
)
_RESULTS = Path(__file__).with_name("results.json")


def main(names: list[str]) -> int:
    console = Console(stderr=True)
    found: list[Row] = []
    for name in names or _ALL:
        for row in import_module(f"benchmarks.{name}").rows():
            console.print(
                f"{'ok  ' if row.passed else 'FAIL'} {row.what}: {row.reached}{row.unit}", highlight=False
            )
            found.append(row)
    table = Table(box=None, header_style="bold")
    for heading in ("what", "peer", "must reach", "reached"):
        table.add_column(heading)
    for row in found:
        bound = "≥" if row.unit == "×" else "≤"
        table.add_row(row.what, row.peer, f"{bound} {row.must:g}{row.unit}", f"{row.reached}{row.unit}")
    Console().print(table)
    if not names:
        content = {
            "command": "make bench",
            "evenrank": evenrank.__version__,
            "machine": {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "cpu": platform.machine(),
            },
            "rows": [row._asdict() | {"passed": row.passed} for row in found],
        }
        _RESULTS.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return 0 if all(row.passed for row in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
