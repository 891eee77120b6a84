"""The one exception users see: what is wrong, where, and what to do about it."""

from __future__ import annotations

from os import PathLike


class InputError(ValueError):
    """Something the caller gave cannot be used.

    The message reads ``file:line: what is wrong; what to do``. The command line prints it as one
    line and leaves with exit code 2.
    """

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None
    ) -> None:
        self.message = message
        self.path = None if path is None else str(path)
        self.line = line
        place = "" if path is None else f"{path}:" if line is None else f"{path}:{line}:"
        super().__init__(f"{place} {message}".strip())
