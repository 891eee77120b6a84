"""`evenrank demo`: what the package does, on a collection that comes with it."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import Format, deliver, note

if TYPE_CHECKING:
    from evenrank.demo.story import Story


def demo_command(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for the collection, runs and report."),
    ] = Path("evenrank-demo"),
    show: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the report in a browser.", show_default="where there is a screen"
        ),
    ] = None,
) -> None:
    """Index, rank, audit, mitigate and report on a small built-in collection: offline, in under a minute.

    The first time takes longest, because the kernels are compiled and cached.
    """
    from evenrank.demo.story import tell

    story = tell(output, say=lambda what: note(f"… {what}"))
    deliver("\n".join([_table(story), *_lines(story, output)]), None)
    if _can_look() if show is None else show:
        import webbrowser

        webbrowser.open(story.report.resolve().as_uri())


def _table(story: Story) -> str:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.numbers import interval, number

    rows = []
    for run in story.audit.runs:
        bias, useful = (story.audit.measured[run, measure] for measure in ("ARaB@10", "nDCG@10"))
        between = interval(bias.low, bias.high)
        rows.append([run, number(bias.value), between, number(bias.abs, ".3f"), number(useful.value, ".3f")])
    return render_grid(Format.table, ["run", "ARaB@10", "95% interval", "abs(ARaB@10)", "nDCG@10"], rows)


def _lines(story: Story, folder: Path) -> Iterator[str]:
    from evenrank.auditing import verdict
    from evenrank.demo.story import AWARE, CONSTRAINED, LIMIT
    from evenrank.show.numbers import number

    measured = story.audit.measured
    size = {run: number(measured[run, "ARaB@10"].abs, ".2f") for run in story.audit.runs}
    useful = {run: number(measured[run, "nDCG@10"].value, ".2f") for run in story.audit.runs}
    reached = {each: number(each.chosen.bias.value, ".2f") for each in (story.within, story.learned)}
    moved = 1 - (story.mirrored.summary["ties"][0] or 0.0)
    told = [
        f"{verdict.headline(story.audit)} Above 0, the top of a list speaks more of men, below 0 more of "
        "women. Only queries that name no gender count.",
        f"The mean hides opposite queries: single lists of bm25 lean by {size['bm25']}.",
        f"{CONSTRAINED} keeps every list within {LIMIT}: abs(ARaB@10) falls from {size['bm25']} to "
        f"{size[CONSTRAINED]}, nDCG@10 from {useful['bm25']} to {useful[CONSTRAINED]}.",
        f"{AWARE} expands queries from passages that are not one-sided. It gets abs(ARaB@10) down to "
        f"{reached[story.learned]} before nDCG@10 falls significantly; re-ranking within a limit on the mean "
        f"gets it down to {reached[story.within]} (all queries).",
        f"With women and men swapped, {moved:.0%} of the passages change their rank in bm25+rm3.",
    ]
    for place, text in enumerate(told, 1):
        yield textwrap.fill(f"{place}. {text}", 80, subsequent_indent="   ", break_on_hyphens=False)
    yield ""
    yield "The imbalance of these passages was put there on purpose: the numbers illustrate,"
    yield "but prove nothing elsewhere."
    yield f"Collection, index, runs and audit.json are in {folder}. The report, to read:"
    yield f"  {story.report}"


def _can_look() -> bool:
    """Is there a person at a terminal, and a screen?"""
    screen = sys.platform == "darwin" or any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.stdout.isatty() and screen
