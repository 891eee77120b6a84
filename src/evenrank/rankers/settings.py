"""Settings of rankers, models and engines: dataclasses, filled from ``key=value``."""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from evenrank.data.schema import show
from evenrank.errors import InputError, closest_match

T = TypeVar("T")


def read_pairs(given: Iterable[str]) -> dict[str, str]:
    """Return the settings of texts ``key=value``, each given once."""
    result: dict[str, str] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise InputError(f"setting {show(text)}: write it as KEY=VALUE")
        if key in result:
            raise InputError(f"setting {key} is given twice")
        result[key] = value
    return result


def convert(given: Mapping[str, Any], known: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return the settings with texts converted to the types in `known`; other names are refused.

    A setting whose type is a dict takes ``name.key``: ``header.Accept=…`` for ``header``.
    """
    result: dict[str, Any] = {}
    for key, value in given.items():
        name, dot, entry = key.partition(".")
        if dot and typing.get_origin(known.get(name)) is dict:
            kind = typing.get_args(known[name])[1]
            result[name] = {**result.get(name, {}), entry: _converted(value, kind, key)}
        elif key in known:
            result[key] = _converted(value, known[key], key)
        else:
            near = closest_match(key, known)
            hint = f"; did you mean {near}?" if near else ""
            raise InputError(f"{owner} has no setting {show(key)}; it has: {', '.join(known)}{hint}")
    return result


def setting_types(*kinds: type) -> dict[str, Any]:
    """Return the names and types of the fields of dataclasses."""
    return {
        field.name: hints[field.name]
        for kind in kinds
        for hints in [typing.get_type_hints(kind)]
        for field in fields(kind)
    }


def build(given: Mapping[str, Any], *kinds: type, owner: str) -> list[Any]:
    """Return an instance of each dataclass, its fields taken from the settings."""
    values = convert(given, setting_types(*kinds), owner)
    names = [{field.name for field in fields(kind)} for kind in kinds]
    return [
        kind(**{key: value for key, value in values.items() if key in own})
        for kind, own in zip(kinds, names, strict=True)
    ]


def _converted(value: Any, kind: Any, key: str) -> Any:
    return from_text(value, kind, key) if isinstance(value, str) else value


def from_text(text: str, kind: Any, key: str) -> Any:
    """Return a text as a value of an annotated type: bool, int, float, str, a choice, or one of several."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        choices = {str(choice): choice for choice in arguments}
        if text not in choices:
            raise InputError(f"{key} is {show(text)}; choose one of: {', '.join(choices)}")
        return choices[text]
    if origin in (typing.Union, types.UnionType):
        if type(None) in arguments and text.lower() in ("none", "null", ""):
            return None
        ordered = sorted((a for a in arguments if a is not type(None)), key=lambda a: a is str)
        for each in ordered[:-1]:
            try:
                return from_text(text, each, key)
            except InputError:
                continue
        return from_text(text, ordered[-1], key)
    if kind is bool:
        values = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in values:
            raise InputError(f"{key} is {show(text)}; it must be true or false")
        return values[text.lower()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise InputError(f"{key} is {show(text)}; it must be {what}") from None
    if origin in (list, tuple, dict):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise InputError(f"{key} is {show(text)}; it must be a {origin.__name__}") from None
        if isinstance(value, dict) != (origin is dict):
            raise InputError(f"{key} is {show(text)}; it must be a {origin.__name__}")
        return value if origin is dict else origin(value if isinstance(value, (list, tuple)) else [value])
    return text
