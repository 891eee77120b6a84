"""Where something stands in JSON, and JSON with places to fill in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from evenrank.data import door
from evenrank.data.columns import listing, show
from evenrank.errors import InputError

MISSING = object()
_PLACE = re.compile(r"\{(\w+)\}")


def at(value: Any, path: str) -> Any:
    """What stands at `hits.items` or `hits.0._id`; MISSING if nothing does.

    A name that itself holds a dot is found too, as Elasticsearch returns such fields either way.
    """
    if not path:
        return value
    if isinstance(value, dict):
        if path in value:
            return value[path]
        names = path.split(".")
        for end in range(len(names) - 1, 0, -1):
            if (name := ".".join(names[:end])) in value:
                return at(value[name], ".".join(names[end:]))
    if isinstance(value, list):
        place, _, rest = path.partition(".")
        if place.isdecimal() and int(place) < len(value):
            return at(value[int(place)], rest)
    return MISSING


def shape(value: Any) -> str:
    """What a value is, in a few words: for messages about an unexpected one."""
    if isinstance(value, dict):
        return f"an object with {listing(value, 8)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return show(value)


def template(setting: str, text: str) -> Any:
    """JSON with `{query}` and `{depth}` in it, from a text or, as `@path`, from a file."""
    path = text[1:] if text.startswith("@") else None
    if path is not None:
        text = door.text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{setting} is not JSON: {error}", path=path) from error


def fill(part: Any, values: Mapping[str, str | int]) -> Any:
    """The template with `{query}`, `{depth}` and the like replaced by their values.

    It is filled in after parsing: whatever the query holds, it stays inside its string, and is not looked at
    for further places. `"{depth}"` alone becomes a number.
    """
    if isinstance(part, dict):
        return {filled(name, values): fill(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [fill(value, values) for value in part]
    if isinstance(part, str):
        whole = values.get(part[1:-1]) if part.startswith("{") and part.endswith("}") else None
        return filled(part, values) if whole is None else whole
    return part


def filled(text: str, values: Mapping[str, str | int]) -> str:
    """A text with the values in their places."""
    return _PLACE.sub(lambda found: str(values.get(found[1], found[0])), text)


def asks(part: Any, place: str = "query") -> bool:
    """Whether a template has a place for the query, or for something else."""
    return f"{{{place}}}" in json.dumps(part, ensure_ascii=False)
