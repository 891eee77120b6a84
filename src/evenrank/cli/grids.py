"""Rows of cells as a table in the terminal or in a paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from evenrank.cli.common import Format
from evenrank.cli.rendering import canvas
from evenrank.data.latex import escaped

Rows = Sequence[Sequence[str]]


def render_grid(
    form: Format,
    headings: Sequence[str],
    rows: Rows,
    *,
    remarks: Iterable[str] = (),
    left: int = 1,
    output: Path | None = None,
) -> str:
    """A table for people, or LaTeX (package booktabs). The first `left` columns are text, the rest numbers.

    A row without cells is a gap. `output` is the file it goes to, if not the screen.
    """
    if form is Format.latex:
        return _latex(headings, rows, left)
    console = canvas(output)
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        grid.add_column(Text(heading), justify="left" if number < left else "right", no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    console.print(grid)
    for remark in remarks:
        console.print(Text(remark, style="dim"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def _latex(headings: Sequence[str], rows: Rows, left: int) -> str:
    lines = [
        rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(headings) - left)}}}",
        r"\toprule",
        " & ".join(map(escaped, headings)) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        cells = [escaped(cell) if i < left or not cell else f"${_math(cell)}$" for i, cell in enumerate(row)]
        lines.append(" & ".join(cells) + r" \\" if row else r"\addlinespace")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _math(cell: str) -> str:
    return cell.replace("%", r"\%").replace("–", r"\text{--}").replace("†", r"^\dagger")


def number(value: float | None, form: str = "+.3f") -> str:
    """A number, or a dash where it cannot be known."""
    return "–" if value is None else format(value, form)


def p_value(p: float | None) -> str:
    """p to two digits; very small ones by their power of ten."""
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"
