"""InputError, the one exception users see, and checks of arguments that raise it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from os import PathLike
from typing import Any

MAX_MESSAGE_LENGTH = 2000
"""The most characters of a message; of a longer one only the beginning and the end are shown."""

# Characters that a terminal would execute or cannot show: control characters (except tab and newline), marks
# that change the writing direction, and lone surrogates, which represent bytes that are not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class InputError(ValueError):
    """An input cannot be used.

    The message reads ``file:line: what is wrong; what to do``. The command line prints it as one line and
    exits with code 2.
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
    """An input can be used but looks like a mistake; the command line prints it as one line."""


class NoDocumentsError(InputError):
    """A file has no documents; in a folder with other files it is skipped."""


def printable(text: str) -> str:
    """Escape unprintable characters and shorten a text, so that it is safe to print."""
    if len(text) > MAX_MESSAGE_LENGTH:
        half = MAX_MESSAGE_LENGTH // 2
        text = f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def closest_match(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar of the known names, ignoring case; None if none is similar.

    `cutoff` is the least similarity, from 0 to 1.
    """
    from difflib import get_close_matches

    names = {name.lower(): name for name in reversed(list(known))}
    longest = max(map(len, names), default=0)
    matches = get_close_matches(word.lower(), names, 1, cutoff) if len(word) <= 3 * longest else []
    return names[matches[0]] if matches else None


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise InputError unless the value is one of the known ones."""
    if value not in known:
        raise InputError(f"{name} cannot be {value!r}; {choice_hint(str(value), known)}")


def is_whole(value: Any) -> bool:
    """Whether this is an int; booleans are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_whole(name: str, value: Any, *, least: int = 1, most: int | None = None) -> None:
    """Raise InputError unless the value is a whole number in this range."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        to = "on" if most is None else f"to {most}"
        raise InputError(f"{name} is {value!r}; it must be a whole number from {least} {to}")


def is_number(value: Any) -> bool:
    """Whether this is a finite number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_number(name: str, value: Any, *, least: float = 0.0, most: float = math.inf) -> None:
    """Raise InputError unless the value is a finite number in this range."""
    if not is_number(value) or not least <= value <= most:
        to = "on" if most == math.inf else f"to {most:g}"
        raise InputError(f"{name} is {value!r}; it must be a number from {least:g} {to}")


def choice_hint(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word: the most similar known one, or all of them."""
    names = [str(name) for name in known]
    if near := closest_match(word, names):
        return f"did you mean {near!r}?"
    return f"one of {', '.join(names)}" if names else "it takes none"
