"""What people read is plain English, spelt one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.html"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
]


@pytest.mark.parametrize(
    ("phrase", "instead"),
    [
        (r"[Jj]udgement", "judgment"),
        (r"search lean to\?", "which way do your results lean"),
        (r"\bleans libraries\b", "leans toward libraries"),
        (r"[Ww]ho is neither", "people who are neither"),
        (r"\bour fault\b", "an internal error"),
        (r"\bmean size\b", "abs(m), or the mean of absolute values"),
        (r"is sometimes the answer", "sometimes the document is the answer"),
        (r"\b[Ww]hoever (has|needs|looks)\b", "if you have, need, look"),
        (r"\blearnt\b", "learned"),
    ],
)
def test_a_phrase_that_puzzled_readers_does_not_come_back(phrase: str, instead: str) -> None:
    found = [
        str(path.relative_to(ROOT)) for path in READ if re.search(phrase, path.read_text(encoding="utf-8"))
    ]
    assert not found, f"write {instead}"
