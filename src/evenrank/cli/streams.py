"""Standard output and error: written whole, readable everywhere, and no judge of the exit code.

A reader that has gone (`| head`) is not an error, and what nobody reads does not open a gate: the command
goes on and its exit code stands. A disk that is full is an error, whatever was written before.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

LONGEST = 4_000
"""Characters of a line for people; a file may hold an id of a megabyte."""

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")
_PLAIN = {
    **dict.fromkeys("–—−‐‑─━╌", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┏┓┗┛┡┩╇", "+"),
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("·•×", "*"),
    "…": "...",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "\u00a0": " ",
    "±": "+-",
}


# What a message of the library says, and what its reader has to type here.
_TYPED = (
    (r"\bgive docs and queries\b", "give --docs and --queries"),
    (r"\bgive docs or a tally for bias, qrels for\b", "give --docs or --tally for bias, --qrels for"),
    (r"\bgive labels or a tally\b", "give --labels or --tally"),
    (
        r"\bgive training, and the run and queries to re-rank",
        "give --train and --train-queries, and --run and --queries to re-rank",
    ),
    (r"\bgive an index and queries\b", "give --index and --queries"),
    (r"\bre-ranks a run: give one\b", "re-ranks a run: give --run"),
    (r"\bleave that out of the settings\b", "leave that out of --set"),
    (r"\bgive (docs|queries|qrels|genders)\b", r"give --\1"),
    (r"\ba tally, or docs to make one from", "--tally, or --docs to make one from"),
    (r"\border 'rank' or ties 'expected'", "--order rank or --ties expected"),
    (r"\bgenders 'predict' reads\b", "--genders predict reads"),
    (r"\bor give targets\b", "or give --targets"),
    (r"\bleave the (lexicon|tokenizer) out\b", r"leave --\1 out"),
    (r"\bonly '(\w+)' needs\b", r"--only \1 needs"),
    (r"\bonly cannot be\b", "--only cannot be"),
    (r"\bleave out the mode 'mean'", "leave out --mode mean"),
    (
        r"\bexact is for limits on each query; with the mode 'mean' give a larger budget",
        "--exact is for limits on each query; with --mode mean give a larger --budget",
    ),
    (r"\bgendered_queries=True", "--gendered-queries"),
    (r"--force \(overwrite=True\)", "--force"),
)


def as_typed(message: str) -> str:
    """A message of the library in the words of the command line: `give qrels` becomes `give --qrels`.

    >>> as_typed("nDCG@10 needs relevance judgments; give qrels")
    'nDCG@10 needs relevance judgments; give --qrels'
    """
    for said, typed in _TYPED:
        message = re.sub(said, typed, message)
    return message


def visible(text: str) -> str:
    """The text with control characters, and what turns the direction of writing, in sight (ESC: \\u001b)."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """A message as one line that a terminal shows as it is, and that ends."""
    line = visible(" ".join(text.splitlines()))
    # Of a message that is too long the middle goes: what is wrong and what to do stand at the end.
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"


def on_screen(text: str) -> str:
    """What goes to a terminal: our own colours stay, all other control characters are put in sight."""
    parts = _COLOUR.split(text)
    return "".join(part if place % 2 else visible(part) for place, part in enumerate(parts))


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks, in characters that every encoding has; JSON stays JSON."""
    assert isinstance(error, UnicodeEncodeError)
    rows = []
    for character in error.object[error.start : error.end]:
        units = character.encode("utf-16-be", "surrogatepass").hex()
        escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        rows.append(_PLAIN.get(character, escaped))
    return "".join(rows), error.end


codecs.register_error("evenrank.spelled", _spelled)


class CannotWriteError(OSError):
    """Standard output does not take what is written to it."""


class _Standard(io.RawIOBase):
    """A file that takes everything it is given, or raises; after its reader has gone it takes and forgets."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._gone = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view) and not self._gone:
            try:
                written += os.write(self._number, view[written:])
            except BrokenPipeError:
                self._gone = True
            except OSError as error:
                self._gone = True  # what is buffered is not tried again when Python ends
                raise CannotWriteError(error.errno, error.strerror) from None
        return len(view)


def _guarded(stream: Any) -> IO[str] | None:
    """The same stream, guarded; None if it is not one of the system's."""
    try:
        number, encoding = stream.fileno(), stream.encoding
        stream.flush()
    except (AttributeError, OSError, ValueError):
        return None
    return _text(number, encoding)


def _text(number: int, encoding: str) -> IO[str]:
    raw = _Standard(number)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "evenrank.spelled", line_buffering=raw.isatty(), write_through=False
    )


@contextmanager
def standard_streams() -> Iterator[None]:
    """Guard stdout and stderr for as long as the command runs."""
    before = sys.stdout, sys.stderr
    # A stream that was closed is None: writing to it is an error for results, and no matter for remarks.
    out = _guarded(sys.stdout) if sys.stdout is not None else _text(-1, "utf-8")
    err = _guarded(sys.stderr) if sys.stderr is not None else Path(os.devnull).open("w")  # noqa: SIM115
    sys.stdout = out or sys.stdout
    sys.stderr = err or sys.stderr
    try:
        yield
    finally:
        for stream in (out, err):
            if stream is not None:
                with suppress(OSError):
                    stream.flush()
                _let_go(stream)
        sys.stdout, sys.stderr = before


def _let_go(stream: Any) -> None:
    """Part with the system's file without closing it."""
    with suppress(OSError, ValueError):
        stream.detach().detach()


def screen_width() -> int | None:
    """Columns of the terminal that results go to; None where they go to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def put(text: str) -> None:
    """Results to stdout: UTF-8 for a file or a pipe, for a terminal what it can show."""
    out = sys.stdout
    buffer = getattr(out, "buffer", None)
    if out.isatty() or buffer is None:
        out.write(on_screen(text))
    else:
        out.flush()
        buffer.write(text.encode("utf-8", "evenrank.spelled"))
    out.flush()


def say(message: str) -> None:
    """A line for people to stderr; where nobody can read it, it is not missed."""
    with suppress(OSError):
        sys.stderr.write(f"{one_line(message)}\n")
        sys.stderr.flush()
