"""Clients that never finish, drip, do not read or come in crowds: the others are answered all the same."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from evenrank.errors import InputError
from evenrank.server.app import make_app, make_server
from evenrank.server.limits import Limits
from evenrank.server.searching import Service
from evenrank.server.uploads import check_size

GOOD = json.dumps({"results": [{"text": "she"}]}).encode()


@contextmanager
def serving(service: Service, limits: Limits) -> Iterator[tuple[str, int]]:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        server = make_server(make_app(service, limits=limits), limits=limits, log_level="critical")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield place.getsockname()
        server.should_exit = True
        thread.join(30)


def status(where: tuple[str, int]) -> int:
    """Of a good request, asked again as a client does that is told to come back."""
    for _ in range(50):
        try:
            connection = http.client.HTTPConnection(*where, timeout=60)
            connection.request("POST", "/v1/evaluate", GOOD, {"Content-Type": "application/json"})
            found = connection.getresponse().status
            connection.close()
        except (ConnectionError, http.client.HTTPException):
            continue
        if found != 503:
            return found
    return 503


def everything(line: socket.socket) -> bytes:
    """What the server says until it closes the connection."""
    line.settimeout(60)
    said = b""
    try:
        while part := line.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


@pytest.fixture(scope="module")
def plain() -> Service:
    made = Service(None)
    made.warm_up()
    return made


def test_headers_that_never_end_are_408(plain: Service) -> None:
    with serving(plain, Limits(headers=0.3)) as where:
        with socket.create_connection(where) as silent, socket.create_connection(where) as half:
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: ")
            for line in (silent, half):
                said = everything(line)
                assert said.startswith(b"HTTP/1.1 408 ") and b"did not arrive in time" in said
        assert status(where) == 200


def test_headers_fed_drop_by_drop_are_408(plain: Service) -> None:
    with serving(plain, Limits(headers=0.5)) as where, socket.create_connection(where) as line:
        said = dripped(line, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: ")
        assert said.startswith(b"HTTP/1.1 408 ")


def test_a_second_request_has_the_same_time(plain: Service) -> None:
    with serving(plain, Limits(headers=0.5)) as where, socket.create_connection(where) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")
        said = dripped(line, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: ")
        assert b"HTTP/1.1 408 " in said


def test_a_body_fed_drop_by_drop_is_408(plain: Service) -> None:
    head = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving(plain, Limits(arrival=0.5)) as where, socket.create_connection(where) as line:
        said = dripped(line, head + b"Content-Length: 100000\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 408 ") and b"did not arrive in time" in said


def dripped(line: socket.socket, first: bytes) -> bytes:
    """What the server says to a request that goes on and on, byte by byte."""
    line.sendall(first)
    line.settimeout(0.05)
    said = b""
    for _ in range(2_000):
        try:
            line.sendall(b"x")
            said += line.recv(65536)
            if b"in time" in said:
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return said


def test_half_open_connections_do_not_keep_others_out(plain: Service) -> None:
    """More of them than there are places, and they may stay for an hour."""
    with serving(plain, Limits(connections=20, headers=3600.0)) as where, ExitStack() as stack:
        for _ in range(100):
            line = stack.enter_context(socket.create_connection(where))
            line.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert [status(where) for _ in range(5)] == [200] * 5


def test_a_client_that_does_not_read_is_let_go(service: Service) -> None:
    ask = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(service, Limits(reading=0.3)) as where, socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(where)
        line.settimeout(60)
        with pytest.raises(ConnectionError):
            for _ in range(100_000):  # more than all buffers in between hold
                line.sendall(ask)
        assert status(where) == 200


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"origin": "http://localhost"}, 200),
        ({"origin": "http://LOCALHOST"}, 200),
        ({}, 200),
        ({"origin": "http://localhost:9"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"host": "testserver"}, 403),
    ],
)
def test_where_a_request_comes_from_is_compared_with_where_it_goes(
    plain: Service, headers: dict[str, str], answer: int
) -> None:
    with TestClient(make_app(plain), base_url="http://localhost") as client:
        given = {"content-type": "application/json", **headers}
        assert client.post("/v1/evaluate", content=GOOD, headers=given).status_code == answer


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_held(service: Service) -> None:
    limits = Limits(unpacked=1 << 20, rows=1_000)
    with TestClient(make_app(service, limits=limits), base_url="http://localhost") as client:
        for content, message in (
            (gzip.compress(b"x" * (64 << 20)), "a.run.gz: more than 1 MB of text"),
            (gzip.compress(b"q Q0 d 1 1 x\n" * 2_000), "a.run.gz: more than 1,000 lines"),
        ):
            answer = client.post("/audit", files={"run": ("a.run.gz", content)})
            assert answer.status_code == 422 and message in answer.text


def test_sizes_are_counted_as_unpacked(tmp_path: Path) -> None:
    for name, content in (("a", b"a\nb\n"), ("a.gz", gzip.compress(b"a\nb\n"))):
        path = tmp_path / name
        path.write_bytes(content)
        check_size(path, 4, 2)
        with pytest.raises(InputError, match="more than 0 MB"):
            check_size(path, 3, 2)
        with pytest.raises(InputError, match="more than 1 lines"):
            check_size(path, 4, 1)


def test_an_audit_that_takes_too_much_memory_ends_itself(service: Service) -> None:
    limits = Limits(memory=64 << 20)
    with TestClient(make_app(service, limits=limits), base_url="http://localhost") as client:
        answer = client.post("/audit", files={"run": ("a.run", b"q01 Q0 d1 1 2.0 x\n")})
        assert answer.status_code in (422, 503)
        assert client.get("/healthz").status_code == 200


def test_the_port_that_was_chosen_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import uvicorn

    from evenrank.cli import main

    answered: list[int] = []

    def run(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        port = int(capfd.readouterr().err.rpartition("http://127.0.0.1:")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            answered.append(port)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    assert main(["serve", "--ranker", "bm25", "--port", "0"]) == 0
    assert answered and answered[0] > 0
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--ranker", "bm25", "--port", str(port)]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith(f"evenrank: cannot listen at 127.0.0.1, port {port}: ") and "--port" in said
