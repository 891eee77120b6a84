"""The folder in which interrupted work leaves what it has done, and the facts that decide its result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenrank.data.files import writing
from evenrank.errors import InputError

_FACTS = "facts.json"


class Checkpoint:
    """A folder of unfinished work; it can be resumed if the facts are the same.

    Parameters
    ----------
    folder
        Where it is, usually hidden beside the output.
    facts
        All that decides the result, as JSON values.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self.folder = folder
        self._content = json.dumps(dict(facts), sort_keys=True).encode()

    def can_resume(self) -> bool:
        """Whether the folder holds work with the same facts."""
        try:
            return (self.folder / _FACTS).read_bytes() == self._content
        except OSError:
            return False

    def start(self) -> None:
        """Make the folder, and say in it what decides the result."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", path=self.folder) from error
        with writing(self.folder / _FACTS) as file:
            file.write(self._content)

    def clear(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
