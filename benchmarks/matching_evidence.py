"""Query matching on the published association scores: matching and bins side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evenrank as er

_SETTINGS: dict[str, dict[str, Any]] = {
    "matching": {},
    "matching, caliper 0.1": {"caliper": 0.1},
    "bins": {"method": "bins"},
    "bins over the male range": {"method": "bins", "range": "male"},
    "100 bins": {"method": "bins", "bins": 100},
}


def matching(data: Path) -> dict[str, Any]:
    """How many queries stay, and how far apart the two distributions of scores are then."""
    folder = data / "data" / "association"
    found: dict[str, Any] = {}
    for name, settings in _SETTINGS.items():
        even = er.balance(folder / "female.tsv.gz", folder / "male.tsv.gz", **settings)
        report = even.report()
        left_out = ("edges", "histogram")
        for when in ("before", "after"):
            report[when] = {key: value for key, value in report[when].items() if key not in left_out}
        found.setdefault("before", report["before"])
        del report["before"]
        found[name] = report
    return found
