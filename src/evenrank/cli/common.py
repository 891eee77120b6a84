"""What commands share: runs by name, genders, progress on stderr, results to a file or stdout."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from evenrank.cli.streams import put, say
from evenrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from evenrank.text.tally import Tally


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


class Missing(StrEnum):
    """What becomes of ranked documents that the collection lacks."""

    error = "error"
    zero = "zero"
    skip = "skip"


class Order(StrEnum):
    """Which column of a run its order follows."""

    score = "score"
    rank = "rank"


def split_names(text: str) -> tuple[str, ...]:
    """Names out of a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def exists(text: str) -> bool:
    """Whether this is the name of something on the disk; a text too long for a name is not."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def split_runs(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """Runs, and the other texts, out of arguments that are either; a run that is not there is an error."""
    runs: list[str] = []
    others: list[str] = []
    for text in given:
        name, equals, path = text.partition("=")
        result = next((each for each in (text, path) if each and exists(each)), None)
        if result is not None and not Path(result).is_dir():
            runs.append(text)
        elif re.match(r"\w+\(", text) or not _looks_like_a_path(text):
            others.append(text)
        elif result is not None:
            raise InputError("is a folder; name the run files in it", path=result)
        else:
            raise InputError("no such file", path=path if equals and name and path else text)
    return runs, others


def _looks_like_a_path(text: str) -> bool:
    separators = [os.sep, *([os.altsep] if os.altsep else [])]
    return any(mark in text for mark in separators) or text.lower().endswith((".run", ".txt", ".gz", ".zst"))


def parse_runs(given: Iterable[str], what: str = "run") -> dict[str, str]:
    """Runs by name out of `[NAME=]PATH`, or what other such options name; a name given twice is refused."""
    from evenrank.measures.inputs import run_name

    runs: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or exists(text):
            name, path = run_name(text), text
        if not name or not path:
            raise InputError(f"--{what} {text!r}: write it as NAME=PATH or PATH")
        if name in runs:
            raise InputError(
                f"two {what.rstrip('s')}s are called {name!r}; give one another name: --{what} NAME={path}"
            )
        runs[name] = path
    if not runs:
        raise InputError("no run is given; name one with --run PATH")
    return runs


@contextmanager
def progress_bar(what: str, *, unit: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar on stderr, if that is a terminal; it goes away when the work is done.

    `unit` is what is counted: `queries`, `words`, …; `bytes` are shown as sizes, with their speed.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.progress import TransferSpeedColumn as Speed

    counted = (MofNCompleteColumn(), TextColumn(unit.replace("[", r"\[")))
    amount = (DownloadColumn(), Speed()) if unit == "bytes" else counted
    columns = (TextColumn("{task.description}"), BarColumn(), *amount, Remaining())
    # stdout stays itself: a library that is first loaded meanwhile (colorama, by numba) may keep it for the
    # end of the process, when a stand-in for it would no longer answer.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def coloured(
    tally: str | None,
    docs: str | None,
    lexicon: str | None,
    tokenizer: Tokenizer | None,
    *,
    fields: str = "title,text",
    id_field: str | None = None,
) -> Tally:
    """The tally that is given, or that of the documents, with a bar while they are counted."""
    from evenrank.data.docs import open_docs
    from evenrank.measures.inputs import get_tally

    opened = None if docs is None else open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("counting", unit="bytes") as progress:
        return get_tally(tally, opened, lexicon, None if tokenizer is None else tokenizer.value, progress)


def deliver(text: str, output: Path | None) -> None:
    """Write to the file, whole or not at all, or to stdout."""
    if not text.endswith("\n"):
        text += "\n"
    if output is None:
        put(text)
        return
    from evenrank.data.files import writing

    with writing(output) as file:
        file.write(text.encode("utf-8", "evenrank.spelled"))


def note(message: str) -> None:
    """A line for people, or several, on stderr."""
    for line in message.splitlines():
        say(line)


def genders_or_predicted(genders: str | None, queries: str | None) -> pl.DataFrame | str | None:
    """What `--genders` names; for `predict` the labels of the shipped static classifier.

    Queries that it was trained on get no label: a classifier is not evidence about what it was told.
    """
    if genders != "predict":
        return genders
    if queries is None:
        raise InputError("--genders predict reads the queries' texts; give --queries")
    from evenrank.queries.classify import predicted_genders

    result, said = predicted_genders(queries)
    note(said)
    return result


def refuse_place(output: Path, tag: str | None = None) -> None:
    """Refuse a run that cannot be written under this name, before the work is done and paid for."""
    from evenrank.data.runs import check_run_name

    if tag is not None:
        check_run_name(tag)
    if str(output) == "-":
        raise InputError("- is no file here; write /dev/stdout")
    target = Path(os.path.realpath(output))
    if target.is_dir():
        raise InputError("cannot be written: this is a folder", path=output)
    if not output.exists() and not target.parent.is_dir():
        raise InputError(f"cannot be written: there is no folder {output.parent}", path=output)
    beside = output.is_file() or not output.exists()  # /dev/stdout is written to as it is
    if beside and not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot be written: nothing can be added to {output.parent}", path=output)
