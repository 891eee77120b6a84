"""What the cases of both modules need: the data, and short forms of large values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_REPOSITORY = HERE.parent.parent
SHOWN = 50  # of many queries or documents, this many are recorded one by one


def data_folder() -> Path | None:
    """The folder with real collections and runs, or None where there is none; as in conftest.py."""
    named = os.environ.get("EVENRANK_TEST_DATA")
    folder = _REPOSITORY / named if named else _REPOSITORY.parent / "shared"
    return folder.resolve() if (folder / "data").is_dir() else None


def data(name: str) -> Path:
    """A file or folder of the test data, such as data/squad/docs.tsv or runs/squad.bm25.run.gz."""
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("there is no test data; set EVENRANK_TEST_DATA")
    return folder / name


def ranking(documents: Iterable[tuple[str, float]]) -> dict[str, list[list[Any]]]:
    """A ranked list. Documents whose scores are within 1e-9 may change places in it."""
    return {"ranking": [[str(doc), float(score)] for doc, score in documents]}


def shortened(values: Mapping[str, float], shown: int = SHOWN) -> dict[str, Any]:
    """Numbers by name: the first of them in the order of their names, and sums over all."""
    numbers = [float(value) for value in values.values()]
    return {
        "count": len(numbers),
        "sum": float(sum(numbers)),
        "sum of squares": float(sum(number**2 for number in numbers)),
        "first": {name: float(values[name]) for name in sorted(values)[:shown]},
    }
