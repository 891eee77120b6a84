"""Requests over HTTP that are answered with JSON: within a time and a size, to one host only."""

from __future__ import annotations

import email.utils
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any

import httpx

from evenrank.errors import InputError
from evenrank.rankers.remote.requests import QueryFailed, Unavailable
from evenrank.rankers.remote.secrets import Secrets, hidden

RETRY_STATUS = frozenset({408, 429, 502, 503, 504})
FATAL_STATUS = {
    401: "the engine wants to know who asks (401); set header.Authorization=env:VARIABLE",
    403: "access is refused (403)",
    404: "there is nothing at this address (404)",
    405: "this method is not allowed there (405)",
    407: "the proxy wants to know who asks (407)",
    410: "there is nothing at this address any more (410)",
}
"""Answers that every query would get."""
MAX_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = 65_536


class Refused(QueryFailed):
    """The engine answered with an error; `body` is its JSON, if any."""

    def __init__(self, message: str, status: int, body: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class JSONClient:
    """A client for one server. Used from several threads; nothing it raises shows a secret.

    Redirects are refused, so that no other host gets the headers.
    """

    def __init__(self, headers: Mapping[str, str], *, timeout: float, secrets: Secrets | None = None) -> None:
        self.timeout = timeout
        self._secrets = secrets or Secrets()
        try:
            self._client = httpx.Client(
                headers={"Accept": "application/json", "User-Agent": "evenrank", **headers},
                timeout=timeout,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
                verify=ssl.create_default_context(),  # the system's certificates, and those of SSL_CERT_FILE
            )
        except ValueError as error:  # a header that cannot be sent
            raise InputError(f"the headers cannot be sent ({type(error).__name__})") from None

    def fetch(self, url: str, body: Any = None, *, place: str | None = None) -> Any:
        """Return the JSON that a GET of the URL, or a POST of a body, answers with.

        Messages name `place` for the URL.
        """
        place = place or hidden(url)
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        late = f"{place}: no answer within {self.timeout:g} seconds"
        method = "GET" if content is None else "POST"
        try:
            with self._client.stream(method, url, content=content, headers=headers) as answer:
                return self._read(answer, place, late)
        except httpx.TimeoutException:
            raise Unavailable(late) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
            raise InputError(f"{place}: not a URL that can be asked") from None
        except httpx.HTTPError as error:
            raise _connection_error(error, place) from None

    def _read(self, answer: httpx.Response, place: str, late: str) -> Any:
        status = answer.status_code
        if 300 <= status < 400:
            location = self._secrets.clean(hidden(answer.headers.get("Location") or "somewhere else"))
            raise InputError(f"{place}: redirects to {location} ({status}); give that address")
        if status in RETRY_STATUS:
            wait = retry_after(answer.headers)
            raise Unavailable(f"{place}: the engine answers {status}", wait=wait)
        largest = MAX_BYTES if status < 300 else _MAX_ERROR_BYTES
        end = time.monotonic() + self.timeout
        pieces = bytearray()
        for piece in answer.iter_bytes():
            pieces += piece
            if len(pieces) > largest and status < 300:
                raise QueryFailed(f"{place}: the answer is larger than {largest:,} bytes")
            if len(pieces) > largest:
                break
            if time.monotonic() > end:
                raise Unavailable(late)
        if status < 300:
            return self._parse(bytes(pieces), place)
        try:
            body = self._secrets.clean(json.loads(pieces))
        except (ValueError, RecursionError):
            body = None
        raise Refused(f"{place}: {FATAL_STATUS.get(status, f'the engine answers {status}')}", status, body)

    def _parse(self, content: bytes, place: str) -> Any:
        text = content.decode("utf-8", "replace")  # one odd byte does not cost the whole answer
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            start = self._secrets.clean(text[:_MAX_ERROR_BYTES])[:60].strip()
            result = f"that begins {start!r}" if start else "that is empty"
            raise QueryFailed(f"{place}: expected JSON, found an answer {result}") from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _connection_error(error: httpx.HTTPError, place: str) -> Exception:
    reason = str(error) or type(error).__name__
    if "CERTIFICATE" in reason:
        return InputError(f"{place}: its certificate is not trusted; SSL_CERT_FILE names further ones")
    if "Name or service not known" in reason or "nodename nor servname" in reason:
        return InputError(f"{place}: no such host")
    if isinstance(error, httpx.RemoteProtocolError):
        return Unavailable(f"{place}: the connection broke within the answer")
    return Unavailable(f"{place}: no connection ({reason})")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a header Retry-After asks for, as a number or a date; None without one."""
    value = (headers.get("Retry-After") or "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
