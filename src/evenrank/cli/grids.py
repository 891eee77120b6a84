"""Tables that commands print: to the terminal, a file or a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderHook
from rich.segment import Segment
from rich.text import Text

from evenrank.cli.common import Format
from evenrank.cli.streams import visible
from evenrank.show.grid import Grid

GROUP_COLOURS = {"female": "medium_purple1", "male": "dark_orange"}


def render_grid(
    form: Format,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    remarks: Iterable[str] = (),
    left: int = 1,
    output: Path | None = None,
) -> str:
    """A table for people, or LaTeX. The first `left` columns are text; a row without cells is a gap.

    `output` is the file it goes to, if not the screen.
    """
    grid = Grid(headings, rows, left)
    if form is Format.latex:
        return grid.latex()
    console = canvas(output)
    console.print(grid.terminal())
    for remark in remarks:
        console.print(Text(remark, style="dim"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def canvas(output: Path | None) -> Console:
    """Where a table is drawn before it is delivered; names are taken as they are, brackets and all.

    Coloured and as wide as the terminal if it goes there; plain and wide enough for any table if it goes
    to a file or a pipe.
    """
    screen = output is None and sys.stdout.isatty()
    width = Console().width if screen else 160
    made = Console(
        file=io.StringIO(), width=width, force_terminal=screen, highlight=False, markup=False, emoji=False
    )
    made.push_render_hook(Plain())
    return made


class Plain(RenderHook):
    """For a console of Rich: what is printed on it, with control characters in sight."""

    def process_renderables(self, renderables: list[Any]) -> list[Any]:
        return [_Shown(each) for each in renderables]


class _Shown:
    def __init__(self, content: Any) -> None:
        self.content = content

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Segment]:
        for segment in console.render(self.content, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
