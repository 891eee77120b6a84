"""/v1/evaluate under load: a real server process on one core, 50 requests a second, 10 results of 200 words.

`python -m benchmarks.evidence server-load` sends 10,000 requests; the row of `make bench` is the same for 20
seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from benchmarks.corpus import passages
from benchmarks.timing import Row

RATE, RESULTS, WORDS = 50, 10, 200
LONG, SHORT, WARM = 10_000, 1_000, 200


def rows() -> Iterator[Row]:
    found = measured(SHORT)
    yield Row(
        f"/v1/evaluate, {RESULTS} results of {WORDS} words, {RATE} requests/s, one core: p99",
        "—",
        20.0,
        found["p99_ms"],
        " ms",
        found,
    )


def server_load(_: Path) -> dict[str, Any]:
    """The long run, for the evidence."""
    return measured(LONG)


def measured(requests: int) -> dict[str, Any]:
    """Latencies, errors, memory and processor time of a server that gets so many requests."""
    bodies = _bodies(64)
    with _server() as (port, process):
        _send(port, bodies, WARM)
        memory, spent = _memory(process), _seconds(process)
        took, waited, errors = _send(port, bodies, requests)
        after = _memory(process)
        spent = _seconds(process) - spent
    low, middle, high, worst = np.percentile(took, [50, 90, 99, 100])
    return {
        "requests": requests,
        "requests_per_second": RATE,
        "errors": errors,
        "p50_ms": round(low, 2),
        "p90_ms": round(middle, 2),
        "p99_ms": round(high, 2),
        "max_ms": round(worst, 2),
        "p99_ms_from_due": round(float(np.percentile(waited, 99)), 2),
        "cpu_ms_per_request": round(1000 * spent / requests, 2),
        "memory_mb_before": round(memory, 1),
        "memory_mb_after": round(after, 1),
        "body_bytes": round(float(np.mean([len(body) for body in bodies]))),
        "load_average": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "nice": os.nice(0),
    }


def _bodies(number: int) -> list[bytes]:
    """Requests that differ: 200 words in a row out of passages, ten times."""
    words = " ".join(passages(2_000_000)).split()
    found = []
    for i in range(number):
        starts = ((i * RESULTS + j) * WORDS % (len(words) - WORDS) for j in range(RESULTS))
        results = [
            {"id": f"d{j}", "text": " ".join(words[start : start + WORDS])} for j, start in enumerate(starts)
        ]
        query = " ".join(words[i : i + 5])[:200]
        found.append(json.dumps({"query": query, "results": results}).encode())
    return found


@contextmanager
def _server() -> Iterator[tuple[int, int]]:
    """`evenrank serve` in a process of its own, bound to one core where that is possible."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    pinned = [shutil.which("taskset") or "", "-c", "0"] if shutil.which("taskset") else []
    start = "import sys; from evenrank.cli import main; sys.exit(main())"
    command = [*pinned, sys.executable, "-c", start, "serve", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not _up(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server does not start")
            time.sleep(0.1)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait(20)


def _up(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


def _send(port: int, bodies: list[bytes], requests: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Requests at a fixed rate, whatever the answers take: milliseconds from sending, and from when due."""
    own = local()
    start = time.perf_counter() + 0.2

    def one(number: int) -> tuple[float, float, bool]:
        due = start + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        if not hasattr(own, "line"):
            own.line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            own.line.connect()
            own.line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = time.perf_counter()
        try:
            own.line.request(
                "POST", "/v1/evaluate", bodies[number % len(bodies)], {"Content-Type": "application/json"}
            )
            answer = own.line.getresponse()
            answer.read()
            failed = answer.status != 200
        except (OSError, http.client.HTTPException):
            own.line.close()
            failed = True
        done = time.perf_counter()
        return 1000 * (done - sent), 1000 * (done - due), failed

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(requests)))
    took, waited, failed = zip(*found, strict=True)
    return np.array(took), np.array(waited), sum(failed)


def _memory(process: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("nan")


def _seconds(process: int) -> float:
    """Processor time that the process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
