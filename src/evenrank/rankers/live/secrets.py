"""Secrets: taken from the environment, and never shown.

What is secret by its place (a password in a URL, a header, a parameter called `token`) is known by its value
from then on: wherever that value turns up, in a message of the engine, in a result, in provenance, it is
replaced by `…`.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

from evenrank.errors import InputError
from evenrank.rankers.live.calls import QueryFailed

SHORTEST = 6
"""Characters from which on a secret is looked for in results: a shorter one would tear words apart."""

_SECRET = re.compile(
    r"auth|bearer|cookie|credential|hmac|key|pass|pwd|secret|session|sig(nature)?$|token"
    r"|(^|[^a-z])(code|jwt|otp|pw|sas|sid)$|(^|[^a-z])(jwt|pw|sas)[^a-z]",
    re.IGNORECASE,
)
_BENIGN = re.compile(r"[a-z][_-]code$", re.IGNORECASE)  # country_code, lang-code
_PARAMETER = re.compile(r"([?&;#])([^=&;#?]+)=([^&;#]*)")
_HIDDEN = "…"


def is_secret(name: str) -> bool:
    """Whether a header, parameter or field of this name usually holds a secret."""
    return _SECRET.search(name) is not None and _BENIGN.search(name) is None


class Secrets:
    """The secret values that one engine is asked with."""

    def __init__(self, url: str = "") -> None:
        self._forms: dict[str, int] = {}  # every way a value may be written, with the length of the value
        for _, name, value in _PARAMETER.findall(url):
            if is_secret(unquote(name)) and "{" not in value:
                self.add(unquote_plus(value))
                self.add(unquote(value))

    def add(self, value: str) -> None:
        """Know this value from now on, however it is written."""
        if not value:
            return
        written = json.dumps(value)[1:-1]
        forms = {value, quote(value, safe=""), quote(value), quote_plus(value), written, repr(value)[1:-1]}
        forms |= {written.replace("/", r"\/"), json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {form.lower() for form in forms if "%" in form}  # %2F or %2f
        self._forms |= dict.fromkeys(forms, len(value))

    def clean(self, text: str, *, shortest: int = 1) -> str:
        """The text without any known value of at least this length."""
        for form in sorted(self._forms, key=len, reverse=True):
            if self._forms[form] >= shortest and form in text:
                text = text.replace(form, _HIDDEN)
        return text

    def cleaned(self, value: Any, *, shortest: int = 1) -> Any:
        """The same for anything that JSON knows, and for bytes."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.clean(value, shortest=shortest)
        if isinstance(value, bytes):
            return self.clean(value.decode("utf-8", "surrogateescape"), shortest=shortest).encode(
                "utf-8", "surrogateescape"
            )
        if isinstance(value, Mapping):
            return {
                self.cleaned(name, shortest=shortest): self.cleaned(of, shortest=shortest)
                for name, of in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.cleaned(each, shortest=shortest) for each in value]
        return value

    @contextmanager
    def kept(self) -> Iterator[None]:
        """No message leaves the block with a secret in it."""
        try:
            yield
        except (InputError, QueryFailed) as error:
            said = [self.cleaned(part) for part in error.args]
            if said == list(error.args):
                raise
            error.args = tuple(said)
            if isinstance(error, InputError):
                error.message = self.clean(error.message)
            raise error from None

    def resolved(self, setting: str, given: Mapping[str, str]) -> dict[str, str]:
        """Values in which `env:NAME` is what the environment variable holds: ``Bearer env:TOKEN``.

        A secret given as it is would stand in the history of the shell and in the list of processes.
        """
        result = {}
        for name, value in given.items():
            content = self.from_environment(f"{setting}.{name}", value)
            if content is None and is_secret(name):
                raise InputError(
                    f"{setting}.{name} looks like a secret; put it into an environment variable and write "
                    f"{setting}.{name}=env:VARIABLE"
                )
            result[name] = value if content is None else content
            if any(character in result[name] for character in "\r\n\0"):
                raise InputError(f"{setting}.{name} holds a line break")
        return result

    def in_body(self, part: Any, name: str = "body") -> Any:
        """A request's JSON in which `env:NAME` is what the variable holds; what looks like a key is known."""
        if isinstance(part, dict):
            return {each: self.in_body(value, each) for each, value in part.items()}
        if isinstance(part, list):
            return [self.in_body(value, name) for value in part]
        if isinstance(part, str):
            content = self.from_environment(f"body: {name}", part)
            if content is not None:
                return content
            if is_secret(name) and "{" not in part:
                self.add(part)
        elif is_secret(name) and isinstance(part, int) and not isinstance(part, bool):
            self.add(str(part))
        return part

    def from_environment(self, place: str, value: str) -> str | None:
        """A value with what the variable holds in place of `env:NAME` at its end; None if it names none."""
        variable = re.search(r"(?:^|\s)env:(\w+)$", value)
        if variable is None:
            return None
        content = os.environ.get(variable[1])
        if not content:
            raise InputError(f"{place}: the environment variable {variable[1]} is not set")
        self.add(content)
        return value[: variable.start(1) - len("env:")] + content

    def userinfo(self, url: str) -> tuple[str, str] | None:
        """User and password out of a URL, decoded; the password may be `env:NAME`."""
        parts = urlsplit(url)
        if parts.username is None:
            return None
        user, password = unquote(parts.username), unquote(parts.password or "")
        password = self.from_environment("password", password) or password
        self.add(password)
        self.add(base64.b64encode(f"{user}:{password}".encode()).decode())
        if not password:  # a token in place of the name
            self.add(user)
        return user, password


def check_address(url: str) -> None:
    """Refuse a URL whose password cannot be told from its host; the message must not show either."""
    rest = url.partition("://")[2]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    before, at, place = host.rpartition("@")
    path = re.split(r"[?#]", rest[len(host) :], maxsplit=1)[0]
    port = place.rpartition("]")[2].partition(":")[2]
    torn = not at and "@" in rest[len(host) :] and port and not port.isdecimal()
    if torn or (at and "@" in path) or "@" in before:
        raise InputError(
            "the password in the URL holds one of / ? # @; write these as %2F %3F %23 %40, or put it into an "
            "environment variable and write env:VARIABLE in its place"
        )


def hidden(url: str) -> str:
    """The URL without password, user name or anything that looks like a secret parameter."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return _HIDDEN if "@" in url else url
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if host and "@" in rest[len(host) :]:  # a password with / ? # in it looks like this; or an address within
        rest = f"{_HIDDEN}@{rest.rpartition('@')[2]}"
    elif "@" in host:
        rest = rest.rpartition("@")[2]

    def parameter(found: re.Match[str]) -> str:
        value = _HIDDEN if is_secret(unquote(found[2])) and found[3] else found[3]
        return f"{found[1]}{found[2]}={value}"

    return f"{scheme}://{_PARAMETER.sub(parameter, rest.partition('#')[0])}"


def encoded(value: str) -> str:
    """A value as it stands in a URL."""
    return quote(value, safe="", errors="replace")
