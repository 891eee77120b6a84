"""A table of cells, and what it becomes: text, a table in the terminal, CSV, LaTeX, Markdown.

Results for people are `Displayed`: they print as such a table. How a notebook shows them is said in
`notebook.py`, which knows charts and reports; it is looked up when it is needed, so that results can be made
without either.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType


GAP = "  "
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": "$-$",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "λ": r"$\lambda$",
    "†": r"$^{\dagger}$",
}
_RAISED = {"†": r"\dagger", "*": "*"}
_MARKS = f"[{''.join(_RAISED)}]"
_MATHS = re.compile(rf"[<>=]? ?\[?[+−-]?\d[\d.,e%+−\[\] -]*{_MARKS}*")


class Small(str):
    """A cell that is printed smaller where that can be: an interval beneath its value."""


@dataclass(frozen=True)
class Grid:
    """Headings and rows of cells. The first `left` columns are text, the rest are numbers.

    A row without cells is a gap.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def text(self) -> str:
        """Columns set apart by blanks, for a log or a Python session."""
        lines = [list(self.headings), *(list(row) or [""] * len(self.headings) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        return "\n".join(
            GAP.join(
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def blocks(self, width: int) -> list[Grid]:
        """The same table in as many parts as it takes to fit: each repeats the columns of text.

        No number is ever cut: a column that does not fit beside the others stands in a part below. Text
        that would take more than half of the width is for the terminal to fold.
        """
        widths = [_widest(column) for column in zip(self.headings, *filter(None, self.rows), strict=True)]
        room = width - min(sum(widths[: self.left]) + self.left * len(GAP), width // 2)
        parts: list[list[int]] = []
        for column in range(self.left, len(widths)):
            taken = sum(widths[i] + len(GAP) for i in parts[-1]) if parts else 0
            if parts and taken + widths[column] <= room:
                parts[-1].append(column)
            else:
                parts.append([column])
        if len(parts) < 2:
            return [self]
        shown = [[*range(self.left), *part] for part in parts]
        return [
            Grid(
                [self.headings[i] for i in part],
                [[row[i] for i in part] if row else [] for row in self.rows],
                self.left,
            )
            for part in shown
        ]

    def terminal(self, width: int | None = None) -> RenderableType:
        """A table that Rich draws, in parts beneath one another where the terminal is too narrow."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        drawn: list[RenderableType] = []
        for part in [self] if width is None else self.blocks(width):
            table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
            for i, heading in enumerate(part.headings):
                numeric = i >= part.left
                table.add_column(
                    Text(heading), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold"
                )
            for row in part.rows:
                table.add_row(*map(Text, row))
            drawn += [Text(""), table] if drawn else [table]
        return drawn[0] if len(drawn) == 1 else Group(*drawn)

    def csv(self) -> str:
        """Comma-separated, quoted where a cell needs it."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(row for row in self.rows if row)
        return file.getvalue()

    def latex(self) -> str:
        """A table for a paper (package booktabs)."""
        lines = [
            rf"\begin{{tabular}}{{{'l' * self.left}{'r' * (len(self.headings) - self.left)}}}",
            r"\toprule",
            " & ".join(map(escaped, self.headings)) + r" \\",
            r"\midrule",
        ]
        for row in self.rows:
            cells = [escaped(cell) if i < self.left else _latex_number(cell) for i, cell in enumerate(row)]
            lines.append(" & ".join(cells) + r" \\" if row else r"\addlinespace")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def markdown(self) -> str:
        """A table for a page that reads Markdown, such as the summary of a build."""
        lines = [self.headings, ["---"] * self.left + ["--:"] * (len(self.headings) - self.left)]
        rows = [*lines[:1], *(row for row in self.rows if row)]
        shown = [" | ".join(map(plain_markdown, row)) for row in rows]
        shown.insert(1, " | ".join(lines[1]))
        return "\n".join(f"| {row} |" for row in shown) + "\n"


def _widest(cells: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, cells))


def escaped(text: str) -> str:
    """The text with every character that means something to LaTeX made harmless.

    >>> escaped("a_b 5%")
    'a\\\\_b 5\\\\%'
    """
    return "".join(_SPECIAL.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def _latex_number(cell: str) -> str:
    """A cell of a column of numbers: set as mathematics if it is a number or an interval."""
    if not _MATHS.fullmatch(cell):
        return escaped(cell)
    marked = re.sub(r"(?<=\d),(?=\d)", "{,}", cell).replace("%", r"\%").replace("−", "-")
    raised = re.compile(rf"{_MARKS}+$")
    marked = raised.sub(lambda marks: "^{" + "".join(_RAISED[mark] for mark in marks[0]) + "}", marked)
    return rf"{{\scriptsize ${marked}$}}" if isinstance(cell, Small) else f"${marked}$"


def plain_markdown(text: str) -> str:
    """Text on one line that Markdown takes as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", " ".join(text.split()))


ROWS = 12
"""Rows of a result that is printed as its frame."""


class Displayed:
    """A result: `print` it, look at it in a notebook, or take its numbers on as a frame."""

    def frame(self) -> pl.DataFrame:
        """The numbers."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The numbers as a pandas frame."""
        try:
            return self.frame().to_pandas()
        except ModuleNotFoundError:
            raise InputError("pandas is not installed; pip install pandas, or use frame()") from None

    def __str__(self) -> str:
        return frame_grid(self.frame()).text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        page: str = import_module("evenrank.show.notebook").page(self)
        return page


class Drawn(Displayed):
    """A result that has a chart."""

    def chart(self) -> Any:
        """Its chart, an Altair object: a notebook draws it, `save` writes it."""
        return import_module("evenrank.show.notebook").chart(self)


class Recorded(Drawn):
    """A result that has a chart, and a record in JSON."""

    def to_dict(self) -> dict[str, Any]:
        """What the record holds."""
        raise NotImplementedError

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def frame_grid(frame: pl.DataFrame, rows: int = ROWS) -> Grid:
    """A frame as a table of text: numbers to three digits, the first rows if there are many."""
    texts = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    ordered = frame.select(*texts, *(name for name in frame.columns if name not in texts))
    cells = [[_cell(value) for value in row] for row in ordered.head(rows).iter_rows()]
    if frame.height > rows:
        cells.append([f"… {frame.height - rows:,} more", *[""] * (len(frame.columns) - 1)])
    return Grid([name.replace("_", " ") for name in ordered.columns], cells, max(len(texts), 1))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
