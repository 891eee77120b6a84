"""Run all benchmarks (or those named), print the table, keep it in results.json and in docs/speed.md."""

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
from benchmarks import speed_page
from benchmarks.pages import current_source
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
    "search",
    "classify",
    "server_load",
)
_WHOLE = "make bench"
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
    keep(found, " ".join(["python -m benchmarks", *names]) if names else _WHOLE)
    return 0 if all(row.passed for row in found) else 1


def keep(found: list[Row], command: str) -> None:
    """Put rows into results.json, in the place of those of the same name, and write the page anew.

    Each says of which `src/` it is. All benchmarks together replace what they had measured before.
    """
    source = current_source()
    before = json.loads(_RESULTS.read_text())["rows"] if _RESULTS.exists() else []
    if command == _WHOLE:
        before = [row for row in before if "benchmarks.search" in row.get("command", "")]
    rows = {(row["what"], row["peer"]): row for row in before}
    for row in found:
        rows[row.what, row.peer] = row._asdict() | {"passed": row.passed, "command": command, "src": source}
    content = {
        "evenrank": evenrank.__version__,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "cpu": platform.machine()},
        "rows": list(rows.values()),
    }
    _RESULTS.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    speed_page.write(content["rows"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
