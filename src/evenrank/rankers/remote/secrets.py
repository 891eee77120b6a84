"""Secrets: taken from the environment, and never shown.

A value in a place for secrets (a password in a URL, a header, a parameter called `token`) is replaced by `…`
wherever it turns up later: in a message of the engine, in a result, in provenance.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit, urlunsplit

from evenrank.errors import InputError
from evenrank.rankers.remote.requests import QueryFailed

SHORTEST = 6
"""Secrets shorter than this are not replaced in results, where they would tear words apart."""

_SECRET = re.compile(
    r"auth|bearer|cookie|credential|hmac|key|pass|pwd|secret|session|sig(nature)?$|token"
    r"|(^|[^a-z])(code|jwt|otp|pw|sas|sid)$|(^|[^a-z])(jwt|pw|sas)[^a-z]",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"[a-z][_-]code$", re.IGNORECASE)  # country_code, lang-code
_PARAMETER = re.compile(r"([?&;#])([^=&;#?]+)=([^&;#]*)")
_HIDDEN = "…"


def is_secret(name: str) -> bool:
    """Whether a header, parameter or field of this name usually holds a secret."""
    return _SECRET.search(name) is not None and _NOT_SECRET.search(name) is None


class Secrets:
    """The secret values that one engine is asked with."""

    def __init__(self, url: str = "") -> None:
        self._lengths: dict[str, int] = {}  # of each value, by every way in which it may be written
        for _, name, value in _PARAMETER.findall(url):
            if is_secret(unquote(name)) and "{" not in value:
                self.add(unquote_plus(value))
                self.add(unquote(value))

    def add(self, value: str) -> None:
        """Hide this value from now on, however it is written."""
        if not value:
            return
        written = json.dumps(value)[1:-1]
        forms = {value, quote(value, safe=""), quote(value), quote_plus(value), written, repr(value)[1:-1]}
        forms |= {written.replace("/", r"\/"), json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {form.lower() for form in forms if "%" in form}  # %2F or %2f
        self._lengths |= dict.fromkeys(forms, len(value))

    def clean(self, value: Any, *, shortest: int = 1) -> Any:
        """Return a text, or anything that JSON knows, without the secrets of at least this length."""
        if isinstance(value, str):
            for form in sorted(self._lengths, key=len, reverse=True):
                if self._lengths[form] >= shortest:
                    value = value.replace(form, _HIDDEN)
            return value
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            return self.clean(text, shortest=shortest).encode("utf-8", "surrogateescape")
        if isinstance(value, Mapping):
            return {
                self.clean(name, shortest=shortest): self.clean(each, shortest=shortest)
                for name, each in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.clean(each, shortest=shortest) for each in value]
        return value

    @contextmanager
    def hide_in_errors(self) -> Iterator[None]:
        """Replace the secrets in the messages of errors that leave the block."""
        try:
            yield
        except (InputError, QueryFailed) as error:
            cleaned = tuple(self.clean(error.args))
            if cleaned == error.args:
                raise
            error.args = cleaned
            if isinstance(error, InputError):
                error.message = self.clean(error.message)
            raise error from None

    def resolve(self, place: str, value: str) -> str | None:
        """Return a value with its end `env:NAME` replaced by that environment variable; None without one."""
        variable = re.search(r"(?:^|\s)env:(\w+)$", value)
        if variable is None:
            return None
        content = os.environ.get(variable[1])
        if not content:
            raise InputError(f"{place}: the environment variable {variable[1]} is not set")
        self.add(content)
        return value[: variable.start(1) - len("env:")] + content

    def resolve_all(self, setting: str, given: Mapping[str, str]) -> dict[str, str]:
        """Return headers or parameters, `env:NAME` replaced: ``Bearer env:TOKEN``.

        A secret given as it is would stand in the history of the shell and in the list of processes.
        """
        result = {}
        for name, value in given.items():
            content = self.resolve(f"{setting}.{name}", value)
            if content is None and is_secret(name):
                raise InputError(
                    f"{setting}.{name} looks like a secret; put it into an environment variable and write "
                    f"{setting}.{name}=env:VARIABLE"
                )
            result[name] = value if content is None else content
            if any(character in result[name] for character in "\r\n\0"):
                raise InputError(f"{setting}.{name} holds a line break")
        return result

    def resolve_body(self, part: Any, name: str = "body") -> Any:
        """Return a request's JSON with `env:NAME` replaced."""
        if isinstance(part, dict):
            return {each: self.resolve_body(value, each) for each, value in part.items()}
        if isinstance(part, list):
            return [self.resolve_body(value, name) for value in part]
        return (self.resolve(f"body: {name}", part) or part) if isinstance(part, str) else part

    def split_login(self, url: str) -> tuple[str, dict[str, str]]:
        """Return the URL without user and password, and the header that carries them instead."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port  # reading the port raises where it is no number
        except ValueError:
            raise InputError(f"{hidden(url)}: not a URL that can be asked; check host and port") from None
        if not host:
            raise InputError(f"{hidden(url)}: the URL names no host")
        if parts.username is None:
            return url, {}
        user, password = unquote(parts.username), unquote(parts.password or "")
        password = self.resolve("password", password) or password
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.add(login)
        self.add(password or user)  # without a password, the name is a token
        plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return plain, {"Authorization": f"Basic {login}"}


def hidden(url: str) -> str:
    """Return the URL without user, password and the values of parameters that look like secrets."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return _HIDDEN if "@" in url else url
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if host and "@" in rest[len(host) :]:  # a password with / ? # in it, or an address within the path
        rest = f"{_HIDDEN}@{rest.rpartition('@')[2]}"
    elif "@" in host:
        rest = rest.rpartition("@")[2]

    def parameter(match: re.Match[str]) -> str:
        value = _HIDDEN if is_secret(unquote(match[2])) and match[3] else match[3]
        return f"{match[1]}{match[2]}={value}"

    return f"{scheme}://{_PARAMETER.sub(parameter, rest.partition('#')[0])}"
