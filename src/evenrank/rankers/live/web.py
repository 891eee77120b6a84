"""One HTTP request for JSON: within a time, within a size, and no secrets to other hosts; and what stands
where in JSON.

The standard library is all it takes, so that asking an engine needs no extra package. Connections are
not kept open: a search takes longer than opening one.
"""

from __future__ import annotations

import base64
import email.utils
import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import cache
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from evenrank.data.formats import text_of
from evenrank.data.schema import listing, show
from evenrank.errors import InputError
from evenrank.rankers.live.calls import Busy, QueryFailed, cut_after
from evenrank.rankers.live.secrets import Secrets, hidden

LATER = frozenset({408, 429, 502, 503, 504})
"""Answers that say: try again."""
NEVER = {
    401: "the engine wants to know who asks (401); set header.Authorization=env:VARIABLE",
    403: "access is refused (403)",
    404: "there is nothing at this address (404)",
    405: "this method is not allowed there (405)",
    407: "the proxy wants to know who asks (407)",
    410: "there is nothing at this address any more (410)",
}
"""Answers that every query would get."""
_SIZE = 16 * 1024 * 1024
_MORE = 65_536


class Site(NamedTuple):
    """How requests to one engine are made."""

    headers: Mapping[str, str]
    timeout: float
    largest: int = _SIZE
    """Bytes of an answer beyond which it is not read."""
    secrets: Secrets = Secrets()
    """What no message may show."""


class Refusal(QueryFailed):
    """The engine answered with an error; `body` is what it says, if that is JSON."""

    def __init__(self, message: str, status: int, body: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class _SameSite(urllib.request.HTTPRedirectHandler):
    """Follows a redirection, but tells other hosts nothing that was meant for this one."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if req.data is not None or urlsplit(newurl).scheme not in ("http", "https"):
            return None
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and _origin(req.full_url) != _origin(newurl):
            for name in list(new.headers):
                if name.lower() not in ("accept", "user-agent"):
                    new.remove_header(name)
        return new


class _Plain(urllib.request.HTTPHandler):
    """Opens connections, and keeps their sockets in a list, so that they can be cut."""

    def __init__(self, lines: list[socket.socket]) -> None:
        super().__init__()
        self.lines = lines

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_remembering(http.client.HTTPConnection, self.lines), req)


class _Secure(urllib.request.HTTPSHandler):
    """The same over TLS."""

    def __init__(self, lines: list[socket.socket]) -> None:
        super().__init__(context=_trusted())
        self.lines = lines

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        kind = _remembering(http.client.HTTPSConnection, self.lines)
        return self.do_open(kind, req, context=self._context)  # type: ignore[attr-defined]


@cache
def _trusted() -> ssl.SSLContext:
    """Whom to trust; reading the certificates takes longer than many a search."""
    return ssl.create_default_context()


def _remembering(kind: type[http.client.HTTPConnection], lines: list[socket.socket]) -> Any:
    class Remembering(kind):  # type: ignore[misc,valid-type]
        def connect(self) -> None:
            super().connect()
            lines.append(self.sock)

    return Remembering


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def separated(url: str, secrets: Secrets) -> tuple[str, dict[str, str]]:
    """The URL without user and password, and the header that says them instead."""
    try:
        who = secrets.userinfo(url)
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        raise InputError(f"{hidden(url)}: not a URL that can be asked; check host and port") from None
    if not parts.hostname:
        raise InputError(f"{hidden(url)}: the URL names no host")
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if who is None:
        return plain, {}
    return plain, {"Authorization": "Basic " + base64.b64encode(":".join(who).encode()).decode()}


def fetch(site: Site, url: str, body: Any = None, *, place: str | None = None) -> Any:
    """The JSON that a GET of the URL, or a POST of a body, answers with; messages say `place` for the URL."""
    place = place or hidden(url)
    data = None if body is None else json.dumps(body, ensure_ascii=True).encode()
    headers = {"Accept": "application/json", "User-Agent": "evenrank", **site.headers}
    if data is not None:
        headers.setdefault("Content-Type", "application/json")
    end = time.monotonic() + site.timeout
    lines: list[socket.socket] = []
    late = f"{place}: no answer within {site.timeout:g} seconds"
    try:
        request = urllib.request.Request(url, data, headers)
        opener = urllib.request.build_opener(_SameSite, _Plain(lines), _Secure(lines))
        with (
            cut_after(site.timeout, lambda: lines),
            opener.open(request, timeout=site.timeout) as answer,
        ):
            content = _read(answer, end, site.largest, late, place)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error, place, end, site.secrets) from None
    except http.client.InvalidURL:
        raise InputError(f"{place}: not a URL that can be asked") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError) or time.monotonic() >= end:
            raise Busy(late) from None
        raise _lost(reason, place) from None
    except ValueError as error:  # a header that cannot be sent; what it holds is not shown
        raise InputError(f"{place}: the request cannot be written ({type(error).__name__})") from None
    return parsed(content, place, site.secrets)


def _read(answer: Any, end: float, largest: int, late: str, place: str) -> bytes:
    """The whole answer; many small pieces, each in time, do not stretch the time."""
    pieces = bytearray()
    while piece := answer.read1(_MORE):
        pieces += piece
        if len(pieces) > largest:
            raise QueryFailed(f"{place}: the answer is larger than {largest:,} bytes")
    if time.monotonic() > end:
        raise Busy(late)
    if getattr(answer, "length", None):  # read1 ends quietly where a connection breaks
        raise Busy(f"{place}: the connection broke within the answer")
    return bytes(pieces)


def _lost(reason: object, place: str) -> Exception:
    if isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN:
        return InputError(f"{place}: no such host")
    if type(reason).__module__ == "ssl" and "CERTIFICATE" in str(reason):
        return InputError(f"{place}: its certificate is not trusted; SSL_CERT_FILE names further ones")
    return Busy(f"{place}: no connection ({str(reason) or type(reason).__name__})")


def _refusal(error: urllib.error.HTTPError, place: str, end: float, secrets: Secrets) -> Exception:
    if error.code in LATER:
        return Busy(f"{place}: the engine answers {error.code}", wait=retry_after(error.headers))
    if error.code in range(300, 400):
        target = secrets.clean(hidden(error.headers.get("Location") or "somewhere else"))
        return InputError(f"{place}: redirects to {target} ({error.code}); give that address")
    try:
        body = secrets.cleaned(json.loads(_read(error, end, _MORE, "", place)))
    except (ValueError, OSError, QueryFailed, RecursionError, http.client.HTTPException):
        body = None
    message = NEVER.get(error.code, f"the engine answers {error.code}")
    return Refusal(f"{place}: {message}", error.code, body)


def retry_after(headers: Any) -> float | None:
    """The seconds that a header Retry-After asks for, as a number or a date; None if it asks for none."""
    value = (headers.get("Retry-After") or "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def parsed(content: bytes, place: str, secrets: Secrets) -> Any:
    """The JSON of an answer."""
    try:
        try:
            return json.loads(content)
        except UnicodeDecodeError:  # one odd byte does not cost the whole answer
            return json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        start = secrets.clean(content[:_MORE].decode("utf-8", "replace"))[:60].strip()
        result = f"that begins {start!r}" if start else "that is empty"
        raise QueryFailed(f"{place}: expected JSON, found an answer {result}") from None


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
        text = text_of(path)
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
