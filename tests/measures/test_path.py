"""The path from a run to a value is short: few calls in few files, as docs/architecture.md shows it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import evenrank as er

PACKAGE = str(Path(er.__file__).parent)
RUN = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0, "d2": 2.0}}
DOCS = {"d1": "he said", "d2": "she said so"}


def _calls() -> Counter[str]:
    """How many calls of evenrank's functions measuring takes by file, where everything is loaded already."""
    er.measure(RUN, ["ARaB@10"], docs=DOCS)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[str(Path(frame.f_code.co_filename).relative_to(PACKAGE))] += 1

    sys.setprofile(count)
    try:
        er.measure(RUN, ["ARaB@10"], docs=DOCS)
    finally:
        sys.setprofile(None)
    return calls


def test_a_value_takes_few_calls() -> None:
    calls = _calls()
    assert sum(calls.values()) <= 250, calls.most_common()


@pytest.mark.xfail(strict=True, reason="15 files, four of them for tables and four for words")
def test_a_value_takes_few_files() -> None:
    calls = _calls()
    assert len(calls) <= 12, calls.most_common()
