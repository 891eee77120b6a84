"""Connections: how many, how long they may take to say what they want, and how long to read the answer.

An ASGI application sees a request only when its headers are complete. Whoever opens a connection and never
finishes them, or never reads, is met here, before the application.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from evenrank.server.limits import Limits, too_many

_KEEP_ALIVE = 5


def make_server(
    app: Any, *, host: str = "127.0.0.1", port: int = 8000, limits: Limits | None = None, **more: Any
) -> uvicorn.Server:
    """The application behind a port, with limits on connections."""
    protocol = type("Protocol", (_Protocol,), {"limits": limits or Limits()})
    settings: dict[str, Any] = {
        "http": protocol,
        "ws": "none",
        "log_level": "warning",
        "server_header": False,
        "timeout_keep_alive": _KEEP_ALIVE,
        "timeout_graceful_shutdown": _KEEP_ALIVE,
    }
    return uvicorn.Server(uvicorn.Config(app, host=host, port=port, **(settings | more)))


class _Protocol(H11Protocol):
    """One connection."""

    limits: ClassVar[Limits]
    _since = 0.0
    _arriving: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether it asks for nothing yet, or nothing more."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()
        others: list[Any] = [each for each in self.connections if each is not self]
        if sum(not each.transport.is_closing() for each in others) >= self.limits.connections:
            self._make_room(others)

    def _make_room(self, others: list[Any]) -> None:
        """Connections that do not ask for anything must not keep out those that do: the oldest goes."""
        waiting = [each for each in others if each.idle and not each.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda each: each._since).transport.abort()
        else:
            self._refuse(503, too_many())

    def _wait_for_headers(self) -> None:
        self._since = self.loop.time()
        self._arriving = self.loop.call_later(self.limits.headers, self._late)

    def _late(self) -> None:
        self._arriving = None
        if self.idle:
            self._refuse(408, "the request did not arrive in time")

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps({"detail": message}).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
        with suppress(h11.LocalProtocolError):  # it has been answered already
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.idle and self._arriving is None:
            self._wait_for_headers()
        super().data_received(data)
        if not self.idle:
            _cancel(self._arriving)
            self._arriving = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.reading, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._stalled)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._arriving)
        _cancel(self._stalled)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
