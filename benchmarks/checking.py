"""`make evidence-check`: of which source is the evidence, and do the tables of the docs say what it says?

`python -m benchmarks.checking --fill` first puts the tables of experiments/results into the docs.

Evidence made from another `src/` than this one is listed as stale: its numbers may still hold, nobody knows.
Evidence that lists the files it used is not, while these are the same.
A table that differs from its JSON is a failure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.common import RESULTS

from benchmarks.pages import (
    DOCS,
    changed_files,
    changed_since,
    current_source,
    fill,
    kept_tables,
    last_change,
    study_tables,
    used_files,
)

_TABLES = {
    "certainty.md": ("certainty", "certainty_evidence:page"),
    "monitor.md": ("monitor", "monitor_evidence:page"),
    "query-gender.md": ("query-gender", "classifier_evidence:page"),
    "where-bias-enters.md": ("where-bias-enters", "stages_evidence:page"),
    "mitigation/projection.md": ("projection", "projection_evidence:page"),
    "mitigation/head-to-head.md": ("head-to-head", "head_to_head:page"),
    "measures/many-groups.md": ("many-groups", "groups_evidence:page"),
    "speed.md": ("benchmarks", "speed_page:page"),
    "rankers-compared.md": ("rankers", "rankers_evidence:tables"),
    "neural-rankers.md": ("neural-rankers", "neural_tables:page"),
    "mitigation/training.md": ("training", "training_page:page"),
    "generated-queries.md": ("generation", "generation_evidence:closeness_page"),
    "mitigation/balanced-training.md": ("generation", "generation_evidence:balance_page"),
}
"""Each page with tables between marks: its evidence, and what makes the tables of it."""

_STUDIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "query-variants.md": ("variants", ("Two engines", "VarARaB@10 by topic", "Share of the variants")),
    "mitigation/feedback.md": ("feedback", ("Tables 4.1", "Tables 4.3")),
}
"""Each page with tables of a study: its record in experiments/results, and how the titles begin."""

MADE = "made from it"
SAME = "made from another, but no file that they use has changed"
STALE = "stale by src/"
UNKNOWN = "of an src/ that nobody noted"

_BENCHMARKS = Path(__file__).with_name("results.json")


def pages() -> list[str]:
    """The pages that have a place for tables."""
    return sorted(
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if kept_tables(path.read_text()) is not None
    )


def differing() -> list[str]:
    """The pages whose tables are not those of their evidence, and those of which nobody knows."""
    return [page for page in pages() if not _agrees(page)]


def fill_from_studies() -> None:
    """Put the tables of the studies into the pages that show them."""
    for page, (name, titles) in _STUDIES.items():
        fill(page, study_tables(_record(name), titles))


def _record(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return record


def _agrees(page: str) -> bool:
    kept = kept_tables((DOCS / page).read_text()) or ""
    if page in _STUDIES:
        name, titles = _STUDIES[page]
        return study_tables(_record(name), titles).strip() == kept.strip()
    if page not in _TABLES:
        return False
    name, where = _TABLES[page]
    path = DOCS / "evidence" / f"{name}.json" if name != "benchmarks" else _BENCHMARKS
    if not path.exists():
        return False
    module, _, function = where.partition(":")
    made: Callable[[Any], str] = getattr(import_module(f"benchmarks.{module}"), function)
    found = json.loads(path.read_text())
    return made(found.get("results", found.get("rows"))).strip() == kept.strip()


def standing(path: Path, now: str) -> str:
    """How a file of evidence stands to `src/` as it is now."""
    found = json.loads(path.read_text())
    if found.get("src") is None:
        return UNKNOWN
    if found["src"] == now:
        return MADE
    used = found.get("modules")
    return SAME if used is not None and not changed_files(used) else STALE


def _why(path: Path) -> str:
    """Which of the files that it used have changed, where that is known."""
    found = json.loads(path.read_text())
    changed = sorted(set(used_files(found.get("modules", {}))) & changed_since(found.get("src")))
    few = [name.removeprefix("src/evenrank/") for name in changed[:3]]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"; since then {', '.join(few)}{more}" if few else ""


def main() -> int:
    now = current_source()
    print(f"src/ is {now}")
    by_standing: dict[str, list[str]] = {name: [] for name in (MADE, SAME, STALE, UNKNOWN)}
    for path in sorted((DOCS / "evidence").glob("*.json")):
        how = standing(path, now)
        said = (
            path.stem
            if how in (MADE, SAME)
            else f"{path.stem} (numbers as of {last_change(path)}{_why(path)})"
        )
        by_standing[how].append(said)
    for what, names in by_standing.items():
        print(f"{what}: {', '.join(names) or 'none'}")
    wrong = differing()
    for page in wrong:
        print(f"docs/{page}: its tables are not those of its evidence", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    if sys.argv[1:] == ["--fill"]:
        fill_from_studies()
    sys.exit(main())
