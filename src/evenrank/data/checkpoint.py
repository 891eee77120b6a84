"""The folder in which interrupted work, a training or a generation, keeps what it can be resumed from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenrank.data.files import writing

_FACTS = "facts.json"


def open_checkpoints(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Whether the folder has the checkpoints of work with these facts; if not, begin an empty one."""
    content = json.dumps(facts, sort_keys=True).encode()
    place = folder / _FACTS
    if place.is_file() and place.read_bytes() == content:
        return True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with writing(place) as file:
        file.write(content)
    return False
