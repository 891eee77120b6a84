"""Engines that are slow, busy, broken or not there, asked over real sockets."""

from __future__ import annotations

import email.utils
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from json_server import RESULTS, Asked, Reply, ids, serving

from evenrank.errors import InputError
from evenrank.rankers.remote import engine
from evenrank.rankers.remote.http import retry_after


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_requests_keep_to_the_rate() -> None:
    with serving(lambda _: Reply([{"id": "a"}])) as site:
        start = time.monotonic()
        engine(f"{site.url}/?q={{query}}", rate=20).rank({f"q{n}": "x" for n in range(5)}, depth=5)
    assert len(site.asked) == 5
    assert time.monotonic() - start >= 4 / 20


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_engine_is_asked_again(status: int) -> None:
    with serving(lambda _: Reply(RESULTS) if len(site.asked) == 3 else Reply("later", status)) as site:
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]
    assert len(site.asked) == 3


def test_a_busy_engine_is_not_asked_for_ever() -> None:
    with serving(lambda _: Reply("later", 503)) as site, pytest.raises(InputError) as error:
        ids(f"{site.url}/?q={{query}}", retries=2)
    assert "query 'q' failed" in str(error.value)
    assert "answers 503 (asked 3 times)" in str(error.value)
    assert len(site.asked) == 3


def test_retry_after_is_honoured() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(RESULTS) if len(site.asked) > 1 else Reply("later", 429, {"Retry-After": "1"})

    with serving(answer) as site:
        ids(f"{site.url}/?q={{query}}")
    assert site.asked[1].at - site.asked[0].at >= 1


def test_retry_after_may_be_a_date() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert retry_after({"Retry-After": date}) == pytest.approx(30, abs=2)
    assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0
    assert retry_after({"Retry-After": "soon"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "reply", [Reply(RESULTS, delay=600), Reply(RESULTS, drip=0.2)], ids=["silent", "drip"]
)
def test_time_outs_really_time_out(reply: Reply) -> None:
    with serving(lambda _: reply) as site, pytest.raises(InputError, match=r"no answer within 0\.3 seconds"):
        ids(f"{site.url}/?q={{query}}", timeout=0.3, retries=0)


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl, to make a certificate")
    both, key = tmp_path / "both.pem", tmp_path / "key.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", both], check=True, capture_output=True)
    both.write_text(both.read_text() + key.read_text())
    with serving(lambda _: Reply(RESULTS), certificate=both) as site:
        with pytest.raises(InputError, match="its certificate is not trusted"):
            ids(f"{site.url}/?q={{query}}")
        assert not site.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(both))
        assert ids(f"{site.url}/?q={{query}}") == ["a", "b"]
    with (
        serving(lambda _: Reply(RESULTS, drip=0.05), certificate=both) as site,
        pytest.raises(InputError, match=r"no answer within 0\.5 seconds"),
    ):
        ids(f"{site.url}/?q={{query}}", timeout=0.5, retries=0)


def test_an_engine_that_is_not_there_is_asked_again_and_then_given_up() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=r"no connection \(.*refused\) \(asked 2 times\)"):
        ids(f"http://127.0.0.1:{port}/?q={{query}}", retries=1)


def test_a_connection_that_breaks_is_made_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = []

        def serve() -> None:
            for at in range(2):
                line, _ = server.accept()
                with line:
                    asked.append(line.recv(65536))
                    if at:
                        body = json.dumps(RESULTS).encode()
                        line.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                    else:
                        line.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 999\r\n\r\n{")

        thread = threading.Thread(target=serve)
        thread.start()
        assert ids(f"http://127.0.0.1:{server.getsockname()[1]}/?q={{query}}") == ["a", "b"]
        thread.join()
    assert len(asked) == 2


def test_the_rate_holds_over_real_requests() -> None:
    with serving(lambda _: Reply(RESULTS)) as site:
        start = time.monotonic()  # here, not at the server, which a busy machine lets wait
        engine(f"{site.url}/?q={{query}}", rate=20, workers=4).rank({str(at): "x" for at in range(10)})
    assert len(site.asked) == 10
    assert time.monotonic() - start >= 9 / 20


def test_workers_ask_at_the_same_time() -> None:
    together = threading.Barrier(8)  # nobody is answered until all have asked

    def answer(_: Asked) -> Reply:
        together.wait()
        return Reply(RESULTS)

    with serving(answer) as site:
        engine(f"{site.url}/?q={{query}}", workers=8, timeout=600).rank({str(at): "x" for at in range(8)})
    assert len(site.asked) == 8
