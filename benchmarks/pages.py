"""Tables of the docs, filled in from what was measured: nobody types them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenrank.show.numbers import DASH, minus

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def fill(page: str, text: str) -> None:
    """Put the text between the marks of a page."""
    path = DOCS / page
    before, found, rest = path.read_text().partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{path} has no place for tables: {BEGIN} … {END}")
    path.write_text(f"{before}{BEGIN}\n{text.rstrip()}\n{END}{after}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text."""
    lines = [headings, ["---"] * left + ["--:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, form: str = "+.3f") -> str:
    """A number with a true minus sign, or a dash."""
    return DASH if value is None else minus(format(value, form))


def interval(low: float | None, high: float | None, form: str = "+.3f") -> str:
    """Both ends, or nothing."""
    return "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]"
