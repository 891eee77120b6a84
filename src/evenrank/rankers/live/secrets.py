"""Secrets: taken from the environment, and never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

from evenrank.errors import InputError

_SECRET = re.compile(r"auth|cookie|credential|key|pass|pwd|secret|session|sig(nature)?$|token", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a header or parameter of this name usually holds a secret."""
    return _SECRET.search(name) is not None


def resolved(setting: str, given: Mapping[str, str]) -> dict[str, str]:
    """Values in which `env:NAME` is what the environment variable holds: ``Bearer env:TOKEN``.

    A secret given as it is would stand in the history of the shell and in the list of processes.
    """
    found = {}
    for name, value in given.items():
        variable = re.search(r"(?:^|\s)env:(\w+)$", value)
        if variable is None and is_secret(name):
            raise InputError(
                f"{setting}.{name} looks like a secret; put it into an environment variable and write "
                f"{setting}.{name}=env:VARIABLE"
            )
        if variable is not None:
            content = os.environ.get(variable[1])
            if not content:
                raise InputError(f"{setting}.{name}: the environment variable {variable[1]} is not set")
            value = value[: variable.start(1) - len("env:")] + content
        if any(character in value for character in "\r\n\0"):
            raise InputError(f"{setting}.{name} holds a line break")
        found[name] = value
    return found


def hidden(url: str) -> str:
    """The URL without password, user name or anything that looks like a secret parameter."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "the URL"
    pairs = [pair.partition("=") for pair in parts.query.split("&")] if parts.query else []
    shown = "&".join(
        f"{name}{equals}{'…' if is_secret(unquote(name)) and value else value}"
        for name, equals, value in pairs
    )
    return f"{parts.scheme}://{host}{parts.path}" + (f"?{shown}" if shown else "")


def userinfo(url: str) -> tuple[str, str] | None:
    """User and password out of a URL, decoded; the password may be `env:NAME`."""
    parts = urlsplit(url)
    if parts.username is None:
        return None
    password = unquote(parts.password or "")
    if password.startswith("env:"):
        password = resolved("password", {"": password})[""]
    return unquote(parts.username), password


def encoded(value: str) -> str:
    """A value as it stands in a URL."""
    return quote(value, safe="", errors="replace")
