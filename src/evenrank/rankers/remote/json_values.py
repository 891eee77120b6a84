"""JSON of requests and answers: places to fill in, and values at a path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from evenrank.data.formats import text_of
from evenrank.data.schema import listing, show
from evenrank.errors import InputError

MISSING = object()
_PLACE = re.compile(r"\{(\w+)\}")


def value_at(value: Any, path: str) -> Any:
    """Return the value at `hits.items` or `hits.0._id`, MISSING if there is none.

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
                return value_at(value[name], ".".join(names[end:]))
    if isinstance(value, list):
        place, _, rest = path.partition(".")
        if place.isdecimal() and int(place) < len(value):
            return value_at(value[int(place)], rest)
    return MISSING


def shape(value: Any) -> str:
    """Return what a value is, in a few words: for messages about an unexpected one."""
    if isinstance(value, dict):
        return f"an object with {listing(value, 8)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return show(value)


def read_template(setting: str, text: str) -> Any:
    """Return JSON with `{query}` and `{depth}` in it, from a text or, as `@path`, from a file."""
    path = text[1:] if text.startswith("@") else None
    if path is not None:
        text = text_of(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{setting} is not JSON: {error}", path=path) from error


def fill(part: Any, values: Mapping[str, str | int]) -> Any:
    """Return the template with `{query}`, `{depth}` and the like replaced by their values.

    It is filled in after parsing: whatever the query holds, it stays inside its string, and is not searched
    for further places. `"{depth}"` alone becomes a number.
    """
    if isinstance(part, dict):
        return {fill_text(name, values): fill(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [fill(value, values) for value in part]
    if isinstance(part, str):
        whole = values.get(part[1:-1]) if part.startswith("{") and part.endswith("}") else None
        return fill_text(part, values) if whole is None else whole
    return part


def fill_text(text: str, values: Mapping[str, str | int]) -> str:
    """Return a text with the values in their places."""
    return _PLACE.sub(lambda match: str(values.get(match[1], match[0])), text)


def has_place(part: Any, name: str = "query") -> bool:
    """Whether a template has a place for the query, or for another value."""
    return f"{{{name}}}" in json.dumps(part, ensure_ascii=False)
