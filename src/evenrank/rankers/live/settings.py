"""Settings of an engine, from the query part of its URL and from keywords: checked, and typed."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from evenrank.data.columns import listing, show
from evenrank.errors import InputError, nearest

T = TypeVar("T")


def merged(url: Iterable[tuple[str, str]], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; one that is given twice is refused rather than guessed."""
    found: dict[str, Any] = {}
    for name, value in (*url, *keywords.items()):
        if name in found:
            raise InputError(f"setting {name} is given twice")
        found[name] = value
    return found


def take(kind: type[T], given: dict[str, Any]) -> T:
    """An instance of a dataclass out of the settings that it has fields for; these leave `given`.

    A field that is a mapping takes ``name.key``: ``header.Accept=…`` for a field ``header``.
    """
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        if typing.get_origin(hint) is dict:
            prefix = f"{field.name}."
            entries = dict(given.pop(field.name, None) or {})
            for name in [name for name in given if name.startswith(prefix)]:
                entries[name.removeprefix(prefix)] = given.pop(name)
            value_type = typing.get_args(hint)[1]
            values[field.name] = {
                key: typed(f"{prefix}{key}", value, value_type) for key, value in entries.items()
            }
        elif field.name in given:
            values[field.name] = typed(field.name, given.pop(field.name), hint)
    return kind(**values)


def refuse_rest(given: Mapping[str, Any], kinds: Iterable[type]) -> None:
    """Complain of settings that nobody took."""
    if not given:
        return
    known = [
        f"{field.name}.NAME"
        if typing.get_origin(typing.get_type_hints(kind)[field.name]) is dict
        else field.name
        for kind in kinds
        for field in dataclasses.fields(kind)
    ]
    name = next(iter(given))
    near = nearest(name, known)
    hint = f"; did you mean {near}?" if near else ""
    raise InputError(f"unknown setting {name}{hint} There are: {listing(known, 40)}")


def typed(name: str, value: Any, hint: Any) -> Any:
    """A value of the type that a field wants, also out of text."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        if value is None or value == "":
            return None
        return typed(name, value, kinds[0])
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if value in choices:
            return value
        raise InputError(f"{name} is {show(value)}; it must be {' or '.join(map(str, choices))}")
    if typing.get_origin(hint) is tuple:
        parts = value.split(",") if isinstance(value, str) else list(value)
        return tuple(part.strip() for part in map(str, parts) if part.strip())
    if hint is str:
        return str(value)
    try:
        if isinstance(value, bool):
            raise ValueError
        number = hint(value)
        if isinstance(value, float) and number != value:
            raise ValueError
    except (TypeError, ValueError):
        wanted = "a whole number" if hint is int else "a number"
        raise InputError(f"{name} is {show(value)}; it must be {wanted}") from None
    return number
