"""What one request may cost: bytes, time, and how many at once. Beyond it is a clear refusal, no crash."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a browser may do with a page: use this server's own style and script, talk to it, and nothing else."""


@dataclass(frozen=True)
class Limits:
    """What requests may cost.

    Parameters
    ----------
    body, upload
        Bytes of a JSON request, and of the files of an audit.
    connections
        Connections at the same time. Beyond, those go first that do not ask for anything.
    headers, arrival, upload_arrival
        Seconds in which the headers of a request, all of its body, and all files of an audit have to arrive.
    reading
        Seconds in which a client has to go on reading its answer.
    seconds, audit_seconds
        Time for an answer, and for an audit.
    waiting, threads
        Requests worked on or waiting at the same time, and threads that work.
    audits
        Audits at the same time.
    unpacked, rows, memory
        Bytes that the files of an audit may unpack to, and lines they may have, each; bytes of memory that an
        audit may take.
    """

    body: int = 1 << 20
    upload: int = 32 << 20
    connections: int = 256
    headers: float = 10.0
    arrival: float = 15.0
    upload_arrival: float = 120.0
    reading: float = 30.0
    seconds: float = 10.0
    audit_seconds: float = 180.0
    waiting: int = 32
    threads: int = 2
    audits: int = 1
    unpacked: int = 256 << 20
    rows: int = 5_000_000
    memory: int = 4 << 30


class Turnstile:
    """Work in threads: so many at a time, so many waiting, and nobody waits longer than agreed.

    A thread cannot be stopped: one that takes too long keeps its place until it is done, so that slow
    requests lead to refusals (503) and never to ever more threads.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads: ThreadPoolExecutor | None = None  # an application may be closed and opened again
        self._inside = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """What `work` returns; HTTP 503 if there is no place, or no answer in time."""
        with self._lock:
            if self._inside >= self._limits.waiting:
                raise busy("the server is busy; try again in a moment")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="evenrank")
            future = self._threads.submit(work, *given)
            self._inside += 1
        future.add_done_callback(self._left)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            raise busy(f"no answer within {self._limits.seconds:g} seconds; ask for less") from None

    def _left(self, _: Future[Any]) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def busy(message: str) -> HTTPException:
    """Not now (503)."""
    return HTTPException(503, message, headers={"Retry-After": "1"})


class Gate:
    """Every request passes it: too large, too slow or from another site is refused; answers get headers."""

    def __init__(self, app: ASGIApp, limits: Limits, hosts: frozenset[str] | None) -> None:
        self.app = app
        self.limits = limits
        self.hosts = hosts  # None: any

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reply = _with_headers(send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, message = refusal
            response = JSONResponse({"detail": message}, status, headers={"Connection": "close"})
            await response(scope, receive, reply)
            return
        await self.app(scope, self._counted(receive, scope), reply)

    def _most(self, scope: Scope) -> int:
        return self.limits.upload if scope["path"] == "/audit" else self.limits.body

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if self.hosts is not None and _host(headers.get("host", "")) not in self.hosts:
            # Another site's name that leads here (DNS rebinding) must not open this server to that site.
            return 403, "this server does not answer to that host name"
        if scope["method"] not in ("GET", "HEAD") and _from_elsewhere(headers):
            return 403, "requests from other sites are refused"
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._most(scope):
            return 413, too_large(self._most(scope))
        return None

    def _counted(self, receive: Receive, scope: Scope) -> Receive:
        """The request's parts, as long as all of them come in time and are not too many."""
        limits, most = self.limits, self._most(scope)
        seconds = limits.upload_arrival if scope["path"] == "/audit" else limits.arrival
        end = asyncio.get_running_loop().time() + seconds
        taken, complete = 0, False

        async def counted() -> Message:
            nonlocal taken, complete
            if complete:  # what comes now is that the client has gone
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                problem = "the request did not arrive in time"
                raise HTTPException(408, problem, headers={"Connection": "close"}) from None
            complete = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, too_large(most), headers={"Connection": "close"})
            return message

        return counted


def too_many() -> str:
    return "the server has too many connections; try again in a moment"


def too_large(most: int) -> str:
    size = f"{most >> 20} MB" if most >= 1 << 20 else f"{most:,} bytes"
    return f"the request is too large; at most {size}"


def _host(given: str) -> str:
    """The name in a Host header, without the port."""
    return (given.rpartition(":")[0] if given.rpartition(":")[2].isdecimal() else given).lower()


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a page of another site sends this; a browser says so, in one of two ways."""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return True
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()


def _with_headers(send: Send) -> Send:
    async def reply(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Content-Security-Policy", POLICY)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            # Not no-referrer: browsers then send "Origin: null" with the page's own forms.
            headers.setdefault("Referrer-Policy", "same-origin")
            headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
            headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return reply
