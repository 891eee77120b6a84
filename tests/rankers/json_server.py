"""A real HTTP server that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evenrank.rankers.remote import engine

RESULTS = {
    "results": [{"id": "a", "score": 2.5, "title": "T", "text": "x"}, {"id": "b", "score": 1, "text": "y"}]
}


def ids(url: str, asked: str = "nurse", /, **given: Any) -> list[str]:
    """What the engine at this address finds."""
    return engine(url, **{"backoff": 0.01, **given}).rank({"q": asked}, depth=10)["doc_id"].to_list()


@dataclass
class Reply:
    """An answer: JSON, or bytes as they are."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    """Seconds between two bytes."""


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    at: float


class Site:
    """Where the server is, and what it was asked."""

    def __init__(self, port: int, scheme: str) -> None:
        self.host = f"127.0.0.1:{port}"
        self.scheme = scheme
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"


@contextmanager
def serving(answer: Callable[[Asked], Reply], *, certificate: Path | None = None) -> Iterator[Site]:
    """A server that gives `answer` to every request; over TLS if there is a certificate with its key."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            parts = urlsplit(self.path)
            asked = Asked(
                self.command,
                parts.path,
                parse_qs(parts.query, keep_blank_values=True),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(content) if content else None,
                time.monotonic(),
            )
            site.asked.append(asked)
            reply = answer(asked)
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            time.sleep(reply.delay)
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if reply.drip:
                    for at in range(len(data)):
                        self.wfile.write(data[at : at + 1])
                        self.wfile.flush()
                        time.sleep(reply.drip)
                else:
                    self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                pass

        do_GET = do_POST = _reply  # noqa: N815 - the library's names

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False  # a handler that sleeps on purpose is not waited for
        request_queue_size = 64

        def handle_error(self, *_: Any) -> None:
            """A client that hangs up is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    site = Site(server.server_address[1], "http" if certificate is None else "https")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
