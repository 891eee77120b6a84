"""10,000 requests from 32 clients, with slow and broken ones among them: every good one gets its answer."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from evenrank import demo

REQUESTS, GOOD, SLOW, BROKEN = 10_000, 24, 4, 4
_BROKEN = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",  # somebody speaks TLS
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
    b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /v1/evaluate HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}",
    b"A" * 100_000,
]
_SLOW = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
    b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
]


def load(_: str) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "import sys; from evenrank.cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*command, "serve", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not _up(port):
            time.sleep(0.2)
        return _measured(port, process)
    finally:
        process.terminate()
        process.wait()


def _measured(port: int, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    bodies = _bodies()
    expected = [_asked(port, body)[1] for body in bodies]
    numbers = itertools.count()
    statuses: Counter[str] = Counter()
    rude: Counter[str] = Counter()
    took: list[float] = []
    over = threading.Event()
    before = _memory(process)

    def good() -> None:
        while (number := next(numbers)) < REQUESTS:
            which = number % len(bodies)
            began = time.monotonic()
            status, answer = _asked(port, bodies[which])
            while status in (0, 503):
                statuses["told to come back" if status else "connection lost"] += 1
                time.sleep(0.05)
                status, answer = _asked(port, bodies[which])
            took.append(time.monotonic() - began)
            statuses["answered" if status == 200 and answer == expected[which] else "wrong"] += 1

    def slow(number: int) -> None:
        while not over.is_set():
            rude["slow: " + _dripped(port, _SLOW[number % len(_SLOW)], over)] += 1

    def broken(number: int) -> None:
        luck = random.Random(number)
        while not over.is_set():
            rude["broken: " + _sent(port, luck.choice(_BROKEN))] += 1
            time.sleep(0.02)

    others = [threading.Thread(target=slow, args=(i,)) for i in range(SLOW)]
    others += [threading.Thread(target=broken, args=(i,)) for i in range(BROKEN)]
    ours = [threading.Thread(target=good) for _ in range(GOOD)]
    began = time.monotonic()
    for thread in (*others, *ours):
        thread.start()
    for thread in ours:
        thread.join()
    seconds = time.monotonic() - began
    over.set()
    for thread in others:
        thread.join()
    middle, high, worst = np.percentile(took, [50, 99, 100])
    return {
        "requests": REQUESTS,
        "clients": GOOD + SLOW + BROKEN,
        "of these slow": SLOW,
        "of these broken": BROKEN,
        **statuses,
        "other clients": dict(rude),
        "requests a second": round(REQUESTS / seconds, 1),
        "median ms": round(1000 * middle, 1),
        "99th percentile ms": round(1000 * high, 1),
        "longest ms": round(1000 * worst, 1),
        "memory before MB": before,
        "memory after MB": _memory(process),
        "alive": _up(port) and process.poll() is None,
    }


def _bodies() -> list[bytes]:
    texts = [line.partition("\t")[2] for line in (demo.folder() / "docs.tsv").read_text().splitlines()[1:]]
    return [
        json.dumps({"query": "nurse", "results": [{"text": t} for t in texts[i : i + 10]]}).encode()
        for i in range(0, 200, 10)
    ]


def _asked(port: int, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/v1/evaluate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def _up(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def _said(line: socket.socket) -> str:
    try:
        answer = line.recv(4096)
    except TimeoutError:
        return "nothing yet"
    except OSError:
        return "closed"
    return answer[9:12].decode("ascii", "replace") if answer.startswith(b"HTTP/") else "closed"


def _sent(port: int, content: bytes) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as line:
            line.sendall(content)
            return _said(line)
    except OSError:
        return "closed"


def _dripped(port: int, first: bytes, over: threading.Event) -> str:
    """One byte every half second, for as long as it is allowed."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as line:
            line.sendall(first)
            while not over.is_set():
                line.sendall(b"x")
                if (said := _said(line)) != "nothing yet":
                    return said
            return "still at it at the end"
    except OSError:
        return "closed"


def _memory(process: subprocess.Popen[bytes]) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) >> 10
