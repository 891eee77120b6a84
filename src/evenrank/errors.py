"""The one exception users see: what is wrong, where, and what to do about it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from os import PathLike
from typing import Any

LONGEST = 2000
"""Characters of a message: who names a megabyte of id gets its beginning and its end."""

# What a terminal would obey or cannot show: controls (but not tab and newline), marks that turn the
# direction of writing, and halves of characters, which stand for bytes of file names that are not UTF-8.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class InputError(ValueError):
    """Something the caller gave cannot be used.

    The message reads ``file:line: what is wrong; what to do``. The command line prints it as one
    line and leaves with exit code 2.
    """

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None
    ) -> None:
        self.message = printable(message)
        self.path = None if path is None else str(path)
        self.line = line
        place = (
            ""
            if self.path is None
            else printable(f"{self.path}:" if line is None else f"{self.path}:{line}:")
        )
        super().__init__(f"{place} {self.message}".strip())


class InputWarning(UserWarning):
    """Something the caller gave can be used, but looks like a mistake; the command line prints one line."""


class NoDocumentsError(InputError):
    """A file holds no document; among others of a folder it can be left out."""


def printable(text: str) -> str:
    """A text that any terminal and any file can take: nothing to obey, nothing endless."""
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"
    return _UNFIT.sub(lambda match: repr(match[0])[1:-1], text)


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Of the known names the one that was perhaps meant, in whatever case it was written.

    `cutoff` says how alike they must be, from 0 to 1.
    """
    from difflib import get_close_matches

    names = {name.lower(): name for name in reversed(list(known))}
    longest = max(map(len, names), default=0)
    near = get_close_matches(word.lower(), names, 1, cutoff) if len(word) <= 3 * longest else []
    return names[near[0]] if near else None


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the known ones."""
    if value not in known:
        raise InputError(f"{name} cannot be {value!r}; {choices(str(value), known)}")


def is_whole(value: Any) -> bool:
    """A whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_whole(name: str, value: Any, *, least: int = 1, most: int | None = None) -> None:
    """Refuse what is not a whole number, or too small or too large a one."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        to = "on" if most is None else f"to {most}"
        raise InputError(f"{name} is {value!r}; it must be a whole number from {least} {to}")


def is_number(value: Any) -> bool:
    """A finite number; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_number(name: str, value: Any, *, least: float = 0.0, most: float = math.inf) -> None:
    """Refuse what is not a finite number, or too small or too large a one."""
    if not is_number(value) or not least <= value <= most:
        to = "on" if most == math.inf else f"to {most:g}"
        raise InputError(f"{name} is {value!r}; it must be a number from {least:g} {to}")


def choices(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is not known: the nearest that is, or all of them."""
    names = [str(name) for name in known]
    if near := nearest(word, names):
        return f"did you mean {near!r}?"
    return f"one of {', '.join(names)}" if names else "it takes none"
