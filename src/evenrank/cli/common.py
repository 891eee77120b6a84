"""What commands share: runs by name, progress on stderr, results to a file or stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from evenrank.errors import InputError


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"
    latex = "latex"


class Tokenizer(StrEnum):
    """The names of the tokenizers, for option checking without heavy imports."""

    words = "words"
    whitespace = "whitespace"


def parse_runs(given: Iterable[str]) -> dict[str, str]:
    """Runs by name out of `[NAME=]PATH`; a name given twice is refused."""
    from evenrank.measures.evaluate import run_name

    runs: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = run_name(text), text
        if not name or not path:
            raise InputError(f"--run {text!r}: write it as NAME=PATH or PATH")
        if name in runs:
            raise InputError(f"two runs are called {name!r}; give one another name: --run NAME={path}")
        runs[name] = path
    if not runs:
        raise InputError("no run is given; name one with --run PATH")
    return runs


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar on stderr for work on bytes, shown on a terminal once it takes longer than a moment."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as Speed

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def deliver(text: str, output: Path | None) -> None:
    """Write to the file, whole or not at all, or to stdout."""
    if not text.endswith("\n"):
        text += "\n"
    if output is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
        return
    from evenrank.formats.files import writing

    with writing(output) as file:
        file.write(text.encode())


def note(message: str) -> None:
    """A line for people, on stderr."""
    print(message, file=sys.stderr)
